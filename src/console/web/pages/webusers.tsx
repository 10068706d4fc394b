// Security: who may use this console and the API, with which role; adding, changing and removing them. For admins.
import { useState } from 'preact/hooks';
import { ApiError, call, escaped, me, type Role, textOf } from '../lib/api.ts';
import { kept } from '../lib/keep.ts';
import { useLoaded } from '../lib/live.ts';
import { t } from '../lib/words.ts';
import { KeepCheck } from '../ui/keepcheck.tsx';
import {
  Badge,
  Button,
  Confirm,
  Dialog,
  Empty,
  Failed,
  IconButton,
  Panel,
  Scroll,
  SelectField,
  TextField,
} from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';

interface WebUser {
  readonly username: string;
  readonly role: Role;
  readonly hashed: boolean;
  /** Stands in http_server.username: changed in the configuration only. */
  readonly fixed: boolean;
}
interface Users {
  readonly data: readonly WebUser[];
  readonly auth_type: 'basic' | 'jwt' | 'no_auth';
}

const TONES: Readonly<Record<Role, string>> = { viewer: 'off', operator: 'info', admin: 'good' };

function roles(): readonly (readonly [Role, string])[] {
  return [
    ['viewer', t('viewer: read only')],
    ['operator', t('operator: also manages clients, messages and switches')],
    ['admin', t('admin: everything')],
  ];
}

/** @param user null for a new one */
function UserDialog({
  user,
  onClose,
  onSaved,
}: {
  readonly user: WebUser | null;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const [name, setName] = useState(user?.username ?? '');
  const [role, setRole] = useState<Role>(user?.role ?? 'viewer');
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState<{ field: string; text: string } | null>(null);
  const at = (field: string): string | undefined => (problem?.field === field ? problem.text : undefined);
  const save = (event: Event): void => {
    event.preventDefault();
    const body = { role, ...(password === '' ? {} : { password }) };
    call('PUT', kept(`/users/${escaped(name.trim())}`), body).then(
      () => {
        tell(user === null ? t('User {n} added.', { n: name }) : t('User {n} changed.', { n: name }));
        onSaved();
        onClose();
      },
      (error: unknown) => {
        const field = error instanceof ApiError ? error.pointer.slice(1) : '';
        setProblem({ field: ['role', 'password'].includes(field) ? field : '', text: textOf(error) });
      },
    );
  };
  return (
    <Dialog title={user === null ? t('Add a user') : t('User {n}', { n: user.username })} onClose={onClose}>
      <form onSubmit={save} noValidate autocomplete="off">
        <div class="dialog-body">
          <TextField label={t('Name')} value={name} onValue={setName} disabled={user !== null} mono />
          <SelectField label={t('Role')} value={role} onValue={setRole} options={roles()} problem={at('role')} />
          <TextField
            label={t('Password')}
            value={password}
            onValue={setPassword}
            problem={at('password')}
            hint={user === null ? t('at least 8 characters; stored as a hash') : t('empty = unchanged')}
            autocomplete="new-password"
            secret
            mono
          />
          {at('') !== undefined && (
            <p class="failed" role="alert">
              {at('')}
            </p>
          )}
        </div>
        <footer class="dialog-foot">
          <KeepCheck />
          <span class="spring" />
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button kind="primary" type="submit" disabled={name.trim() === ''}>
            {t('Save')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What holds where there are no users, or they are not all. */
function Note({ users }: { readonly users: Users }) {
  if (users.auth_type === 'jwt')
    return (
      <p class="note">
        {t('Only tokens are accepted; their claim role sets the permissions. Users with passwords cannot log in.')}
      </p>
    );
  if (users.auth_type === 'no_auth' || users.data.length === 0) {
    return (
      <p class="note">{t('No login: anyone on this machine is admin; the console is not reachable from elsewhere.')}</p>
    );
  }
  return null;
}

interface RowProps {
  readonly user: WebUser;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}

function UserRow({ user, onEdit, onRemove }: RowProps) {
  return (
    <tr>
      <td>
        {user.username} {user.username === me.get()?.username && <span class="muted">({t('you')})</span>}
      </td>
      <td>
        <Badge state={TONES[user.role]} text={t(user.role)} />
      </td>
      <td class={user.hashed ? 'muted' : 'warn-text'}>{user.hashed ? t('hashed') : t('plain text')}</td>
      <td class="cell-tools">
        {!user.fixed && (
          <>
            <IconButton icon="edit" label={t('Change user {n}', { n: user.username })} onClick={onEdit} />
            <IconButton icon="trash" label={t('Remove user {n}', { n: user.username })} onClick={onRemove} />
          </>
        )}
      </td>
    </tr>
  );
}

export function WebUsers() {
  const list = useLoaded(() => call<Users>('GET', '/users'), 'webusers', 10_000);
  const [editing, setEditing] = useState<{ user: WebUser | null } | null>(null);
  const [removing, setRemoving] = useState<WebUser | null>(null);
  const users = list.value;
  return (
    <Panel
      title={t('Console users')}
      tools={
        <Button icon="plus" onClick={() => setEditing({ user: null })}>
          {t('Add a user')}
        </Button>
      }
    >
      <Failed error={list.error} />
      {users !== null && <Note users={users} />}
      {users !== null && users.data.length === 0 && <Empty>{t('No users.')}</Empty>}
      {users !== null && users.data.length > 0 && (
        <Scroll look="table-box" label={t('Console users')}>
          <table>
            <thead>
              <tr>
                <th>{t('User')}</th>
                <th>{t('Role')}</th>
                <th>{t('Password')}</th>
                <th class="cell-tools">{t('Change')}</th>
              </tr>
            </thead>
            <tbody>
              {users.data.map((user) => (
                <UserRow
                  key={user.username}
                  user={user}
                  onEdit={() => setEditing({ user })}
                  onRemove={() => setRemoving(user)}
                />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {editing !== null && <UserDialog user={editing.user} onClose={() => setEditing(null)} onSaved={list.reload} />}
      {removing !== null && (
        <Confirm
          title={t('Remove user {n}?', { n: removing.username })}
          action={t('Remove')}
          onClose={() => setRemoving(null)}
          onYes={async () => {
            await call('DELETE', kept(`/users/${escaped(removing.username)}`));
            list.reload();
          }}
        >
          <p>{t('Sessions of this user end immediately.')}</p>
        </Confirm>
      )}
    </Panel>
  );
}
