// The TLS fields of a bridge to a remote broker: authority, certificate and key as a path on the gateway or as pasted
// PEM text, which a file of this computer can fill in. Used by remoteform.tsx.
import type { TlsForm } from '../lib/tlsdoc.ts';
import { t } from '../lib/words.ts';
import { Check, TextField } from '../ui/parts.tsx';
import { FieldProblem, type Problems } from './bridgeframe.tsx';

/** Bytes of a PEM file: a chain of a few certificates. */
const MAX_FILE = 65_536;

interface PemProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly problem: string | undefined;
  readonly hint?: string;
  readonly placeholder: string;
}

function PemField({ label, value, onValue, problem, hint, placeholder }: PemProps) {
  const read = (event: Event): void => {
    const input = event.currentTarget as HTMLInputElement;
    const file = input.files?.[0];
    if (file !== undefined && file.size <= MAX_FILE) void file.text().then(onValue);
    input.value = '';
  };
  return (
    <div class="pem">
      <TextField
        label={label}
        value={value}
        onValue={onValue}
        problem={problem}
        hint={hint}
        placeholder={placeholder}
        rows={value.includes('\n') ? 5 : 2}
        mono
        wide
      />
      <label class="pem-file">
        {t('Read a file')}
        <input
          type="file"
          accept=".pem,.crt,.cer,.key"
          onChange={read}
          aria-label={t('Read a file: {n}', { n: label })}
        />
      </label>
    </div>
  );
}

export function TlsFields({
  tls,
  set,
  problems,
}: {
  readonly tls: TlsForm;
  readonly set: (more: Partial<TlsForm>) => void;
  readonly problems: Problems;
}) {
  return (
    <fieldset class="rule">
      <legend>TLS</legend>
      <p class="note">{t('Certificates: a path on the gateway, or the PEM text itself.')}</p>
      <div class="fields">
        <PemField
          label={t('Certificate authority')}
          value={tls.ca}
          onValue={(ca) => set({ ca })}
          problem={problems.get('ssl/ca')}
          placeholder={t('empty = those of the system')}
        />
        <PemField
          label={t('Client certificate')}
          value={tls.cert}
          onValue={(cert) => set({ cert })}
          problem={problems.get('ssl/cert')}
          placeholder={t('if the broker requires one')}
        />
        <PemField
          label={t('Private key')}
          value={tls.key}
          onValue={(key) => set({ key })}
          problem={problems.get('ssl/key')}
          hint={tls.hasKey ? t('empty = unchanged') : undefined}
          placeholder={t('of the client certificate')}
        />
        <TextField
          label={t('Password of the key')}
          value={tls.keyPassword}
          onValue={(keyPassword) => set({ keyPassword })}
          problem={problems.get('ssl/keyPassword')}
          hint={tls.hasKeyPassword ? t('empty = unchanged') : undefined}
          autocomplete="new-password"
          secret
          mono
        />
        <TextField
          label={t('Name in the certificate')}
          value={tls.serverName}
          onValue={(serverName) => set({ serverName })}
          problem={problems.get('ssl/serverName')}
          placeholder={t('the host of the server')}
          mono
        />
        <div class="field check-field">
          <Check label={t('Verify the certificate')} value={tls.verify} onValue={(verify) => set({ verify })} />
        </div>
      </div>
      {!tls.verify && <p class="warn-text">{t('Without verification anyone can pretend to be the broker.')}</p>}
      <FieldProblem problems={problems} field="ssl/verify" />
      <FieldProblem problems={problems} field="ssl" />
    </fieldset>
  );
}
