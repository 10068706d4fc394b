// The users a listener knows by itself: password file, auth.password and SCRAM file as one table. Built by chain.ts at
// start and reload, asked at CONNECT. The time an answer takes tells nothing: unknown names cost what known ones do,
// comparisons are constant. Slow hashes run off the event loop, at most a few at once; when the line is full the client
// is refused, not queued without end.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { PasswordHash } from '../base/passwordhash.ts';
import { NOT_AUTHORIZED, SERVER_BUSY } from '../mqtt/reason.ts';
import type { Asker, Gate } from './gate.ts';
import { type Argon2, verifyHash } from './hash.ts';
import type { PasswordFile } from './passwordfile.ts';
import { type ScramKeys, verifyScram } from './scram.ts';
import type { Answer } from './source.ts';

export type Secret =
  | { readonly kind: 'plain'; readonly digest: Buffer }
  | { readonly kind: 'scram'; readonly keys: ScramKeys }
  | PasswordHash;

interface User {
  readonly secret: Secret;
  /** Equal text = same password; compared at reload. */
  readonly mark: string;
}

/** What makes up the table; the first that has a name decides on it. */
export interface UsersInput {
  readonly file: PasswordFile | null;
  /** auth.password: passwords as they are typed. */
  readonly passwords: ReadonlyMap<string, string> | null;
  readonly scram: ReadonlyMap<string, ScramKeys> | null;
}

const BAD_PASSWORD: Answer = { kind: 'refuse', reasonCode: NOT_AUTHORIZED, why: 'bad-password' };
const BUSY: Answer = { kind: 'refuse', reasonCode: SERVER_BUSY, why: 'busy' };
const UNKNOWN: Answer = { kind: 'unknown' };
const ACCEPT: Answer = { kind: 'accept', via: 'users' };

/** The users that a listener knows by itself. */
export interface UserTable {
  /** What identifies the password of a user, null for a name nobody has. For comparison only, never shown. */
  mark(username: string): string | null;
  names(): Iterable<string>;
  /**
   * Checks a name and password. 'unknown' when there is no such user.
   * @param last no other source follows: an unknown name takes as long as a wrong password
   * @param asker for whom slow hashes are computed
   */
  check(
    username: string,
    password: Uint8Array,
    last: boolean,
    asker: Asker,
    clientId: string,
  ): Answer | Promise<Answer>;
}

export class Users implements UserTable {
  private readonly users = new Map<string, User>();
  private readonly gate: Gate;
  private readonly argon2: Argon2 | null;
  /** Plain passwords are compared by their keyed digests: same length whatever their own. */
  private readonly key = randomBytes(32);
  /** A secret of the most common cost, checked for names that nobody has. */
  private readonly decoy: Secret;

  constructor(input: UsersInput, gate: Gate, argon2: Argon2 | null) {
    this.gate = gate;
    this.argon2 = argon2;
    for (const [name, entry] of input.file?.users ?? []) {
      this.users.set(name, { secret: entry.hash, mark: entry.encoded });
    }
    for (const [name, password] of input.passwords ?? []) {
      if (this.users.has(name)) continue;
      this.users.set(name, { secret: { kind: 'plain', digest: this.digest(password) }, mark: `plain:${password}` });
    }
    for (const [name, keys] of input.scram ?? []) {
      if (!this.users.has(name)) this.users.set(name, { secret: { kind: 'scram', keys }, mark: `scram:${keys.text}` });
    }
    this.decoy = commonest(this.users) ?? { kind: 'plain', digest: randomBytes(32) };
  }

  get size(): number {
    return this.users.size;
  }

  /** What identifies the password of a user, null for a name nobody has. For comparison only, never shown. */
  mark(username: string): string | null {
    return this.users.get(username)?.mark ?? null;
  }

  names(): Iterable<string> {
    return this.users.keys();
  }

  /**
   * Checks a name and password. 'unknown' when there is no such user.
   * @param asker for whom slow hashes are computed
   * @param last no other source follows: an unknown name takes as long as a wrong password.
   */
  check(username: string, password: Uint8Array, last: boolean, asker: Asker = { key: '' }): Answer | Promise<Answer> {
    const user = this.users.get(username);
    if (user === undefined && !last) return UNKNOWN;
    const secret = user?.secret ?? this.decoy;
    if (secret.kind === 'plain') {
      const same = timingSafeEqual(this.digest(password), secret.digest);
      return user === undefined ? UNKNOWN : same ? ACCEPT : BAD_PASSWORD;
    }
    const verified = this.gate.run(() => this.verify(secret, password), asker);
    if (verified === null) return BUSY;
    return verified.then(
      (same) => (same === null ? BUSY : user === undefined ? UNKNOWN : same ? ACCEPT : BAD_PASSWORD),
      () => ({ kind: 'refuse', reasonCode: NOT_AUTHORIZED, why: 'hash-error' }),
    );
  }

  private verify(secret: Exclude<Secret, { kind: 'plain' }>, password: Uint8Array): Promise<boolean> {
    return secret.kind === 'scram' ? verifyScram(secret.keys, password) : verifyHash(secret, password, this.argon2);
  }

  private digest(password: string | Uint8Array): Buffer {
    return createHmac('sha256', this.key).update(password).digest();
  }
}

function costOf(secret: Secret): string {
  if (secret.kind === 'pbkdf2') return `pbkdf2:${secret.iterations}`;
  if (secret.kind === 'scram') return `scram:${secret.keys.iterations}`;
  return secret.kind;
}

function commonest(users: ReadonlyMap<string, User>): Secret | null {
  const counts = new Map<string, { count: number; secret: Secret }>();
  let best: { count: number; secret: Secret } | null = null;
  for (const { secret } of users.values()) {
    const cost = costOf(secret);
    const known = counts.get(cost);
    const row = known ?? { count: 0, secret };
    row.count++;
    if (known === undefined) counts.set(cost, row);
    if (best === null || row.count > best.count) best = row;
  }
  return best === null ? null : best.secret;
}
