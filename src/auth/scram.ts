// SCRAM-SHA-256 as an Authentication Method of MQTT 5.0: the password never crosses the wire. Made by realms.ts,
// stepped by session/ at CONNECT and at re-authentication. Users come from auth.password or a file of stored keys.
// Unknown users run the same exchange and fail at its end. Sources: RFC 5802, RFC 7677, MQTT 5.0 section 4.12. Channel
// binding is not offered (`n` and `y` are taken).
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { MOST_ITERATIONS, strictBase64 } from '../base/passwordhash.ts';
import { lineError, readTextFile, type TextFile } from './textfile.ts';

/** What a server keeps of a password: enough to check one, not enough to log in with. */
export interface ScramKeys {
  readonly iterations: number;
  readonly salt: Buffer;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
  /** As written: SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>. */
  readonly text: string;
}

export const METHOD = 'SCRAM-SHA-256';
/** RFC 7677 section 4: at least 4096. */
export const DEFAULT_SCRAM_ITERATIONS = 4096;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const pbkdf2Async = promisify(pbkdf2);

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Derives the keys of a password; `text` is their text form. */
export async function deriveScram(password: Uint8Array | string, salt: Buffer, iterations: number): Promise<ScramKeys> {
  // SASLprep maps compatibility characters (RFC 4013): NFKC is what it does to text without control characters.
  const prepared = Buffer.from(password).toString('utf8').normalize('NFKC');
  const salted = await pbkdf2Async(prepared, salt, iterations, KEY_BYTES, 'sha256');
  const storedKey = sha256(hmac(salted, 'Client Key'));
  const serverKey = hmac(salted, 'Server Key');
  const keys = `${storedKey.toString('base64')}:${serverKey.toString('base64')}`;
  return { iterations, salt, storedKey, serverKey, text: `${METHOD}$${iterations}:${salt.toString('base64')}$${keys}` };
}

/** New stored keys with a random salt. */
export function makeScram(password: Uint8Array, iterations: number): Promise<ScramKeys> {
  return deriveScram(password, randomBytes(SALT_BYTES), iterations);
}

/** Checks a password that did come over the wire against stored keys. */
export async function verifyScram(keys: ScramKeys, password: Uint8Array): Promise<boolean> {
  const made = await deriveScram(password, keys.salt, keys.iterations);
  return timingSafeEqual(made.storedKey, keys.storedKey);
}

/** Reads stored keys; a string says what is wrong. */
export function parseScram(text: string): ScramKeys | string {
  const parts = /^SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)$/.exec(text);
  if (parts === null) return 'not SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>';
  const iterations = Number(parts[1]);
  if (iterations < 1 || iterations > MOST_ITERATIONS)
    return `the number of iterations is not between 1 and ${MOST_ITERATIONS}`;
  const salt = strictBase64(parts[2]);
  const storedKey = strictBase64(parts[3]);
  const serverKey = strictBase64(parts[4]);
  if (salt === null || salt.length === 0) return 'the salt is not base64';
  if (storedKey === null || storedKey.length !== KEY_BYTES || serverKey === null || serverKey.length !== KEY_BYTES) {
    return `the keys are not base64 of ${KEY_BYTES} bytes`;
  }
  return { iterations, salt, storedKey, serverKey, text };
}

/** Reads lines `username:SCRAM-SHA-256$...`; throws AUTH-SOURCE with file and line. */
export function parseScramFile(file: TextFile): Map<string, ScramKeys> {
  const users = new Map<string, ScramKeys>();
  for (let i = 0; i < file.lines.length; i++) {
    const line = file.lines[i].trim();
    if (line === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    if (colon <= 0) throw lineError(file.path, i + 1, 'no user name');
    const name = line.slice(0, colon);
    const keys = parseScram(line.slice(colon + 1));
    if (typeof keys === 'string') throw lineError(file.path, i + 1, keys);
    if (users.has(name)) throw lineError(file.path, i + 1, 'the user is there already');
    users.set(name, keys);
  }
  return users;
}

export async function loadScramFile(path: string): Promise<Map<string, ScramKeys>> {
  return parseScramFile(await readTextFile(path));
}
