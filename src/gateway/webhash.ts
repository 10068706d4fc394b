// Passwords of http_server that are kept as hashes: comparing them for console/, which knows no hashes. Loaded by
// console.ts with the console or the metrics server. Never shows a password or hash.
import { loadArgon2, makePbkdf2, verifyHash } from '../auth/hash.ts';
import { GatewayError } from '../base/errors.ts';
import { parseHash } from '../base/passwordhash.ts';
import type { HttpServerConfig } from '../config/config.ts';

/** Whether a password is the one of a hash; a hash that cannot be read fits nothing. */
export async function matchesHash(encoded: string, password: string): Promise<boolean> {
  const hash = parseHash(encoded);
  if (typeof hash === 'string') return false;
  const argon2 = hash.kind === 'argon2id' ? await loadArgon2() : null;
  return verifyHash(hash, Buffer.from(password), argon2);
}

/** Throws CFG-INVALID where a user of the console could never log in, because argon2 is not installed. */
export async function requireHashes(http: HttpServerConfig | null): Promise<void> {
  const user = http?.users.find(({ password }) => password.startsWith('$argon2'));
  if (user === undefined || (await loadArgon2()) !== null) return;
  throw new GatewayError('CFG-INVALID', `http_server: ${user.username} needs the package @node-rs/argon2`);
}

/** About 50 ms of one core: people log in seldom, and a right password is remembered. */
const ITERATIONS = 100_000;

/** A hash for a new password. */
export function makeHash(password: string): Promise<string> {
  return makePbkdf2(Buffer.from(password), ITERATIONS);
}
