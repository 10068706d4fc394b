// Password hashes as mosquitto writes them: make and verify; base/passwordhash.ts reads them.
// Must never show a password or hash in an error, and must not compute anything slow on the event loop.
import { createHash, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { DIGEST_BYTES, LONG_SALT_BYTES, type PasswordHash, SHORT_SALT_BYTES } from '../base/passwordhash.ts';

/** mosquitto 2.1 writes 1000; ten times that still checks in 5 ms. */
export const DEFAULT_ITERATIONS = 10_000;
/** What mosquitto 2.1 writes. */
const ARGON2_MAKE = { memoryCost: 47_104, timeCost: 1, parallelism: 1, outputLen: 64 } as const;

const pbkdf2Async = promisify(pbkdf2);

/** The part of @node-rs/argon2 that is used; the package is optional and loaded when a hash asks for it. */
export interface Argon2 {
  hash(password: Uint8Array, options: object): Promise<string>;
  verify(encoded: string, password: Uint8Array): Promise<boolean>;
}

/** The argon2 package, or null when it is not installed. */
export async function loadArgon2(): Promise<Argon2 | null> {
  try {
    const argon2 = await import('@node-rs/argon2');
    return { hash: argon2.hash, verify: argon2.verify };
  } catch {
    return null;
  }
}

/** Compares a password with a hash in a time that does not depend on where they differ. */
export async function verifyHash(hash: PasswordHash, password: Uint8Array, argon2: Argon2 | null): Promise<boolean> {
  switch (hash.kind) {
    case 'sha512':
      return timingSafeEqual(createHash('sha512').update(password).update(hash.salt).digest(), hash.digest);
    case 'pbkdf2': {
      const made = await pbkdf2Async(password, hash.salt, hash.iterations, DIGEST_BYTES, 'sha512');
      return timingSafeEqual(made, hash.digest);
    }
    case 'argon2id':
      return argon2 !== null && (await argon2.verify(hash.encoded, password));
  }
}

/** A new $7$ hash that mosquitto 1.6, 2.0 and 2.1 read: the salt has 12 bytes. */
export async function makePbkdf2(password: Uint8Array, iterations: number): Promise<string> {
  const salt = randomBytes(SHORT_SALT_BYTES);
  const digest = await pbkdf2Async(password, salt, iterations, DIGEST_BYTES, 'sha512');
  return `$7$${iterations}$${salt.toString('base64')}$${digest.toString('base64')}`;
}

/** A new argon2id hash, with the parameters of mosquitto 2.1. */
export function makeArgon2(password: Uint8Array, argon2: Argon2): Promise<string> {
  // 2 is Algorithm.Argon2id of the package, its default.
  return argon2.hash(password, { ...ARGON2_MAKE, algorithm: 2, salt: randomBytes(LONG_SALT_BYTES) });
}
