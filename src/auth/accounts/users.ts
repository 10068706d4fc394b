// The users of a listener where some are managed at run time: their accounts first, then what files say. Built by
// realms.ts, asked at CONNECT. An account decides alone on its name. Times tell nothing: names that nobody has cost
// what an account's do.
import { randomBytes } from 'node:crypto';
import { DIGEST_BYTES, type PasswordHash, SHORT_SALT_BYTES } from '../../base/passwordhash.ts';
import { NOT_AUTHORIZED, SERVER_BUSY } from '../../mqtt/reason.ts';
import type { Credentials, EnhancedExchange, EnhancedMethod, EnhancedStep } from '../auth.ts';
import type { Asker, Gate } from '../gate.ts';
import { type Argon2, DEFAULT_ITERATIONS, verifyHash } from '../hash.ts';
import type { Answer } from '../source.ts';
import type { UserTable } from '../users.ts';
import type { Accounts } from './accounts.ts';

function refused(why: string, reasonCode = NOT_AUTHORIZED): Answer {
  return { kind: 'refuse', reasonCode, why };
}

export class AccountUsers implements UserTable {
  private readonly accounts: Accounts;
  private readonly others: UserTable | null;
  private readonly gate: Gate;
  private readonly argon2: Argon2 | null;
  /** Checked for names without an account where no account has a password. */
  private readonly spare: PasswordHash = {
    kind: 'pbkdf2',
    iterations: DEFAULT_ITERATIONS,
    salt: randomBytes(SHORT_SALT_BYTES),
    digest: randomBytes(DIGEST_BYTES),
  };

  /** @param others users of files, asked about names that have no account; null = none */
  constructor(accounts: Accounts, others: UserTable | null, gate: Gate, argon2: Argon2 | null) {
    this.accounts = accounts;
    this.others = others;
    this.gate = gate;
    this.argon2 = argon2;
  }

  mark(username: string): string | null {
    const account = this.accounts.get(username);
    if (account === undefined) return this.others?.mark(username) ?? null;
    return account.disabled ? null : `account:${account.hash?.text ?? ''}`;
  }

  *names(): Iterable<string> {
    const { accounts } = this.accounts.book;
    yield* accounts.keys();
    for (const name of this.others?.names() ?? []) if (!accounts.has(name)) yield name;
  }

  check(
    username: string,
    password: Uint8Array,
    last: boolean,
    asker: Asker,
    clientId: string,
  ): Answer | Promise<Answer> {
    const account = this.accounts.get(username);
    if (account === undefined && this.others !== null)
      return this.others.check(username, password, last, asker, clientId);
    if (account === undefined && !last) return { kind: 'unknown' };
    const hash = account?.hash?.parsed ?? this.decoy();
    const verified = this.gate.run(() => verifyHash(hash, password, this.argon2), asker);
    if (verified === null) return refused('busy', SERVER_BUSY);
    return verified.then(
      (same) => {
        if (same === null) return refused('busy', SERVER_BUSY);
        if (account === undefined) return { kind: 'unknown' };
        // Changed while the hash was computed: what holds now has not been asked.
        if (this.accounts.get(username)?.hash !== account.hash) return refused('changed');
        if (!same || account.hash === null) return refused('bad-password');
        const bar = this.accounts.bar(username, clientId);
        return bar === null ? { kind: 'accept', via: 'users' } : refused(bar);
      },
      () => refused('hash-error'),
    );
  }

  /** A hash that costs what those of accounts do. */
  private decoy(): PasswordHash {
    for (const { hash } of this.accounts.book.accounts.values()) if (hash !== null) return hash.parsed;
    return this.spare;
  }
}

/** A method that never lets in a name that has an account: accounts hold no keys for it. */
export function withoutAccounts(method: EnhancedMethod, accounts: Accounts): EnhancedMethod {
  const begin = (credentials: Credentials): EnhancedExchange => {
    const exchange = method.begin(credentials);
    const judged = (step: EnhancedStep): EnhancedStep =>
      step.kind === 'accept' && accounts.get(step.username) !== undefined
        ? { kind: 'refuse', reasonCode: NOT_AUTHORIZED, why: 'account' }
        : step;
    return { step: async (data) => judged(await exchange.step(data)) };
  };
  return { name: method.name, begin };
}
