// Logging in by user and password, or with a token where the gateway takes tokens. Shown by shell.tsx while nobody is
// logged in.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, login } from '../lib/api.ts';
import { t } from '../lib/words.ts';
import { Mark } from '../ui/icons.tsx';
import { Button, TextField } from '../ui/parts.tsx';
import { Switches } from '../ui/shell.tsx';

function reasonOf(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.status === 0) return t('The gateway cannot be reached.');
  if (error.code === 103) return t('Wrong user name or password.');
  if (error.code === 116) return t('The token is not valid or has expired.');
  if (error.status === 429) return t('Too many failed logins. Try again in half a minute.');
  return error.message;
}

/** Over a page that waits, whose own dialogs may be open: only another modal dialog can be used then. */
export function LoginAgain() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="login-again" aria-label={t('Log in')} onCancel={(event) => event.preventDefault()}>
      <LoginPage again />
    </dialog>
  );
}

/** @param again somebody was logged in before: his page waits below */
export function LoginPage({ again = false }: { readonly again?: boolean }) {
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [token, setToken] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    login(token === null ? { username, password } : { token: token.trim() }).catch((error: unknown) => {
      setProblem(reasonOf(error));
      setBusy(false);
    });
  };
  return (
    <div class="login">
      <div class="login-tools">
        <Switches />
      </div>
      <main>
        <form class="panel" onSubmit={submit}>
          <div class="login-brand">
            <Mark />
            <h1>Tidegate</h1>
            <p class="muted">
              {again ? t('The session has ended. Log in to go on.') : t('Gateway between MQTT and NNG')}
            </p>
          </div>
          {token === null ? (
            <>
              <TextField
                label={t('User')}
                value={username}
                onValue={setUsername}
                name="username"
                autocomplete="username"
                required
              />
              <TextField
                label={t('Password')}
                value={password}
                onValue={setPassword}
                secret
                name="password"
                autocomplete="current-password"
                required
              />
            </>
          ) : (
            <TextField label={t('Token')} value={token} onValue={setToken} rows={5} mono name="token" />
          )}
          {problem !== null && (
            <p class="failed" role="alert">
              {problem}
            </p>
          )}
          <Button kind="primary" type="submit" disabled={busy}>
            {t('Log in')}
          </Button>
          <button type="button" class="link" onClick={() => setToken(token === null ? '' : null)}>
            {token === null ? t('Use a token instead') : t('Use a password instead')}
          </button>
        </form>
      </main>
    </div>
  );
}
