// Pre-shared keys of TLS: the file of identities and keys that a listener takes, and a key as it is written. Called by
// tls.ts. Nothing fails open: an unknown identity has no key, and a file that cannot be read whole is an error. Source:
// RFC 4279 (identities, keys), mosquitto.conf(5) psk_file.
import { constants } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errorText, GatewayError } from '../base/errors.ts';

/** Both as RFC 4279 section 5.3 asks for; OpenSSL takes no longer ones. */
const LONGEST_IDENTITY_BYTES = 128;
const LONGEST_KEY_BYTES = 256;

/** A session that is taken up again would not say whose key it was. */
export const PSK_OPTIONS = constants.SSL_OP_NO_TICKET;

/** The bytes of a key in hexadecimal; a string is what is wrong with it. */
export function pskBytes(text: string): Buffer | string {
  if (!/^(?:[0-9a-f]{2})+$/i.test(text)) return 'a key of an even number of hexadecimal digits expected';
  const key = Buffer.from(text, 'hex');
  return key.length > LONGEST_KEY_BYTES ? `a key has at most ${LONGEST_KEY_BYTES} bytes` : key;
}

/** The keys of a file by identity: lines of `identity:key`, # begins a comment. Throws TRANSPORT-TLS with the line. */
export function readPskFile(file: string): ReadonlyMap<string, Buffer> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    throw new GatewayError('TRANSPORT-TLS', `${file}: ${errorText(error)}`, error);
  }
  const keys = new Map<string, Buffer>();
  for (const [i, written] of text.split('\n').entries()) {
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    // A key holds no colon.
    const at = line.lastIndexOf(':');
    const identity = at < 0 ? '' : line.slice(0, at).trim();
    const key = pskBytes(line.slice(at + 1).trim());
    const wrong =
      identity === '' || Buffer.byteLength(identity) > LONGEST_IDENTITY_BYTES
        ? `an identity of 1 to ${LONGEST_IDENTITY_BYTES} bytes and a key expected, with a colon between them`
        : keys.has(identity)
          ? 'the same identity again'
          : key;
    if (typeof wrong === 'string') throw new GatewayError('TRANSPORT-TLS', `${file}:${i + 1}: ${wrong}`);
    keys.set(identity, wrong);
  }
  return keys;
}
