// Password hashes as mosquitto writes them, as text: the one grammar for password files, http_server and `tidegate
// passwd`. Pure. Called by auth/hash.ts, auth/passwordfile.ts, auth/scram.ts, config/webusers.ts, gateway/ and cli/;
// auth/hash.ts makes and verifies them. Text forms (H = base64 with padding, 64 bytes; salt 12 bytes in mosquitto 1.6
// and 2.0, 64 bytes in 2.1):
//   $6$<salt>$<H>                SHA-512 of password then salt, one round
//   $7$<iterations>$<salt>$<H>   PBKDF2 with HMAC-SHA-512 (RFC 8018)
//   $argon2id$v=19$m=,t=,p=$<salt>$<hash>   PHC string, base64 without padding (RFC 9106)
// Must never show a password or hash in an error.

export type PasswordHash =
  | { readonly kind: 'sha512'; readonly salt: Buffer; readonly digest: Buffer }
  | { readonly kind: 'pbkdf2'; readonly iterations: number; readonly salt: Buffer; readonly digest: Buffer }
  | { readonly kind: 'argon2id'; readonly encoded: string };

/** About half a second of one core: what a peer without a password may cost. */
export const MOST_ITERATIONS = 1_000_000;
export const DIGEST_BYTES = 64;
export const SHORT_SALT_BYTES = 12;
export const LONG_SALT_BYTES = 64;
/** Kibibytes, passes, lanes: limits against a file that would take the machine down, far above usual values. */
const ARGON2_MOST = { memory: 1_048_576, passes: 64, lanes: 64 } as const;

/** Standard base64 with padding, or null. */
export function strictBase64(text: string): Buffer | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  return Buffer.from(text, 'base64');
}

function saltAndDigest(salt64: string, digest64: string): { salt: Buffer; digest: Buffer } | string {
  const salt = strictBase64(salt64);
  if (salt === null || (salt.length !== SHORT_SALT_BYTES && salt.length !== LONG_SALT_BYTES)) {
    return `the salt is not base64 of ${SHORT_SALT_BYTES} or ${LONG_SALT_BYTES} bytes`;
  }
  const digest = strictBase64(digest64);
  if (digest === null || digest.length !== DIGEST_BYTES) return `the hash is not base64 of ${DIGEST_BYTES} bytes`;
  return { salt, digest };
}

function parseArgon2(text: string): PasswordHash | string {
  const parts = /^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/.exec(
    text,
  );
  if (parts === null) return 'not a complete argon2id hash';
  if (+parts[1] > ARGON2_MOST.memory || +parts[2] > ARGON2_MOST.passes || +parts[3] > ARGON2_MOST.lanes) {
    return 'the argon2id hash asks for too much memory or time';
  }
  return { kind: 'argon2id', encoded: text };
}

/** Reads one encoded hash; a string is what is wrong with it, without any part of it. */
export function parseHash(text: string): PasswordHash | string {
  if (text.startsWith('$argon2id$')) return parseArgon2(text);
  const parts = text.split('$');
  if (text.startsWith('$6$') && parts.length === 4) {
    const both = saltAndDigest(parts[2], parts[3]);
    return typeof both === 'string' ? both : { kind: 'sha512', ...both };
  }
  if (text.startsWith('$7$') && parts.length === 5) {
    const iterations = /^\d{1,9}$/.test(parts[2]) ? Number(parts[2]) : 0;
    if (iterations < 1 || iterations > MOST_ITERATIONS) {
      return `the number of iterations is not between 1 and ${MOST_ITERATIONS}`;
    }
    const both = saltAndDigest(parts[3], parts[4]);
    return typeof both === 'string' ? both : { kind: 'pbkdf2', iterations, ...both };
  }
  return 'not a password hash ($6$, $7$ or $argon2id$)';
}

/** True when the text has the form of a hash, whole or damaged: such a line is never taken for a plain password. */
export function looksHashed(text: string): boolean {
  return text.startsWith('$6$') || text.startsWith('$7$') || text.startsWith('$argon2');
}
