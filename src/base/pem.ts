// Keys and certificates as configurations name them: a path, or the PEM text itself. Called by whatever reads them
// (transport/certificate.ts, webhook/webhook.ts) and by the schema, which never shows a private key. Source: RFC 7468.

/** Whether a value is the PEM text itself and no path. */
export function isPemText(value: string): boolean {
  return value.trimStart().startsWith('-----BEGIN ');
}

const PRIVATE = /-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----/;

/** Whether a PEM text holds a private key. */
export function holdsPrivateKey(value: string): boolean {
  return PRIVATE.test(value);
}
