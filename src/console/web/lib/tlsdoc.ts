// The TLS keys of a bridge to a remote broker as a form holds them, and back. Pure; used by remotedoc.ts. A field holds
// a path on the gateway or the PEM text itself.

export interface TlsForm {
  readonly ca: string;
  readonly cert: string;
  /** "" = as it is, where there is one. */
  readonly key: string;
  readonly hasKey: boolean;
  readonly keyPassword: string;
  readonly hasKeyPassword: boolean;
  readonly serverName: string;
  readonly verify: boolean;
  /** Keys of the block that the form has no field for. */
  readonly more: Readonly<Record<string, unknown>>;
}

const MASK = '***';
const KEYS = ['cacertfile', 'certfile', 'keyfile', 'key_password', 'servername', 'verify_peer'];

/** Whether the URL of a server asks for TLS. */
export function isSecure(server: string): boolean {
  return /^(?:tls\+mqtt-tcp|mqtts|wss):/.test(server.trim());
}

export function emptyTls(): TlsForm {
  return {
    ...{ ca: '', cert: '', key: '', keyPassword: '', serverName: '', verify: true },
    ...{ hasKey: false, hasKeyPassword: false, more: {} },
  };
}

function word(value: unknown): string {
  return typeof value === 'string' && value !== MASK ? value : '';
}

export function tlsForm(ssl: unknown): TlsForm {
  if (typeof ssl !== 'object' || ssl === null) return emptyTls();
  const block = ssl as Readonly<Record<string, unknown>>;
  const more = Object.entries(block).filter(([key, value]) => !KEYS.includes(key) && value !== null);
  return {
    ca: word(block.cacertfile),
    cert: word(block.certfile),
    key: word(block.keyfile),
    hasKey: block.keyfile === MASK,
    keyPassword: '',
    hasKeyPassword: block.key_password === MASK,
    serverName: word(block.servername),
    verify: block.verify_peer !== false,
    more: Object.fromEntries(more),
  };
}

/** The block to send; undefined where nothing differs from the default. */
export function tlsBlock(form: TlsForm): Record<string, unknown> | undefined {
  const { ca, cert, key, hasKey, keyPassword, hasKeyPassword, serverName, verify, more } = form;
  const block: Record<string, unknown> = { ...more };
  const put = (name: string, value: string): void => {
    if (value !== '') block[name] = value;
  };
  put('cacertfile', ca.trim());
  put('certfile', cert.trim());
  put('keyfile', key.trim() === '' && hasKey ? MASK : key.trim());
  put('key_password', keyPassword === '' && hasKeyPassword ? MASK : keyPassword);
  put('servername', serverName.trim());
  if (!verify) block.verify_peer = false;
  return Object.keys(block).length === 0 ? undefined : block;
}

/** Fields of the form by the last part of a pointer below /ssl. */
export const TLS_FIELDS: Readonly<Record<string, string>> = {
  cacertfile: 'ssl/ca',
  certfile: 'ssl/cert',
  keyfile: 'ssl/key',
  key_password: 'ssl/keyPassword',
  servername: 'ssl/serverName',
  verify_peer: 'ssl/verify',
};
