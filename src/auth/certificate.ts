// The user name that a TLS certificate gives. Called by authenticator.ts for listeners with use_identity_as_username.
// The certificate has been verified by transport/ before; without one, or without the wanted field, there is no name.
import type { TlsInfo } from '../transport/transport.ts';

/** 'cn': the subject's common name; 'subject': the whole subject in RFC 2253 form. */
export type CertificateField = 'cn' | 'subject';

/** A string of MQTT cannot be longer (MQTT 5.0 section 1.5.4). */
const LONGEST_BYTES = 65535;

/**
 * The name, or null when the peer showed no certificate or one without that field, or with a name MQTT cannot carry.
 */
export function certificateName(tls: TlsInfo | null, field: CertificateField): string | null {
  const peer = tls?.peer ?? null;
  const psk = tls?.pskIdentity;
  if (peer === null && psk === undefined) return null;
  const name = psk ?? (field === 'cn' ? (peer?.commonName ?? null) : (peer?.subject ?? null));
  // Control characters would let a subject imitate another line of a log or rule file.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (name === null || name === '' || /[\u0000-\u001f\u007f-\u009f]/.test(name)) return null;
  return Buffer.byteLength(name) > LONGEST_BYTES ? null : name;
}
