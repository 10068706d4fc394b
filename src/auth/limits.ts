// Limits against guessing passwords: too many failures from an address, or for a user, lock it for a while that doubles
// each time. Asked by authenticator.ts before a password is checked and told of the outcome. Memory is bounded: keys of
// long names are hashed, and the oldest entries go first. A user that is locked by strangers can still log in from an
// address where it has succeeded before.
import { boundedKey, brief } from '../base/brief.ts';
import type { Clock } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import { addressTest } from './address.ts';

export interface LimitOptions {
  /** Failures within windowMs before a lock; 0 = no limit of that kind. */
  readonly perAddress: number;
  readonly perUser: number;
  /** Of one user from one address: stops a guesser, and harms nobody else behind the same address. */
  readonly perUserAndAddress: number;
  readonly windowMs: number;
  /** The first lock; each further one is twice as long, up to maxLockMs. */
  readonly lockMs: number;
  readonly maxLockMs: number;
  /** Addresses and networks that are never locked: a proxy in front stands for many clients. Unix sockets never are. */
  readonly exempt: readonly string[];
}

interface Record {
  failures: number;
  /** Monotonic milliseconds: start of the window, end of the lock. */
  since: number;
  lockedUntil: number;
  locks: number;
  /** For a user: addresses it has logged in from, newest last. */
  known: string[];
}

/** Addresses of a user that are remembered. */
const KNOWN = 8;
/** Entries of each kind that are remembered: some 3 MB whatever the names. */
export const REMEMBERED = 10_000;
/** A record with its key. */
const RECORD_BYTES = 220;
const LOG_PERIOD_MS = 1000;
/** Characters of a name in the log. */
const LOGGED_CHARACTERS = 128;

export class FailureLimits {
  private options: LimitOptions | null = null;
  private isExempt: (address: string) => boolean = () => true;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly addresses = new Map<string, Record>();
  private readonly users = new Map<string, Record>();
  private readonly pairs = new Map<string, Record>();

  constructor(clock: Clock, log: Log) {
    this.clock = clock;
    this.log = limitLog(log, () => clock.mono(), LOG_PERIOD_MS);
  }

  /** Memory of all tables: keys are short. */
  get bytes(): number {
    return RECORD_BYTES * (this.addresses.size + this.users.size + this.pairs.size);
  }

  /**
   * Sets what holds from now on, null = no limits; failures so far are remembered. Throws AUTH-SOURCE for a wrong
   * network.
   */
  configure(options: LimitOptions | null): void {
    const listed = addressTest(options?.exempt ?? [], 'auth.limits.exempt');
    this.options = options;
    this.isExempt = (address) => address === '' || listed(address);
  }

  /** Whether an attempt is refused without a look at the password. */
  locked(address: string, username: string | null): boolean {
    if (this.options === null) return false;
    const now = this.clock.mono();
    const exempt = this.isExempt(address);
    if (!exempt && isLocked(this.addresses.get(address), now)) return true;
    if (username === null) return false;
    if (!exempt && isLocked(this.pairs.get(pairKey(address, username)), now)) return true;
    const user = this.users.get(boundedKey(username));
    return isLocked(user, now) && user?.known.includes(address) !== true;
  }

  failed(address: string, username: string | null): void {
    if (this.options === null) return;
    const { perAddress, perUser, perUserAndAddress } = this.options;
    const exempt = this.isExempt(address);
    if (perAddress > 0 && !exempt) this.count(this.addresses, address, perAddress, { address });
    if (perUserAndAddress > 0 && !exempt && username !== null) {
      this.count(this.pairs, pairKey(address, username), perUserAndAddress, { address, username: shown(username) });
    }
    // Names that nobody has are counted too: else the answer would tell which names exist.
    if (perUser > 0 && username !== null)
      this.count(this.users, boundedKey(username), perUser, { username: shown(username) });
  }

  passed(address: string, username: string | null): void {
    this.addresses.delete(address);
    if (username === null) return;
    this.pairs.delete(pairKey(address, username));
    if (this.options === null || this.options.perUser === 0) return;
    const key = boundedKey(username);
    const user = this.users.get(key);
    const known = (user?.known ?? []).filter((one) => one !== address).slice(1 - KNOWN);
    known.push(address);
    const fresh = user ?? newRecord(this.clock.mono());
    // A success from a known place does not clear what strangers have tried.
    this.remember(this.users, key, { ...fresh, known });
  }

  private count(records: Map<string, Record>, key: string, most: number, fields: { [key: string]: string }): void {
    if (this.options === null) return;
    const { windowMs, lockMs: firstMs, maxLockMs } = this.options;
    const now = this.clock.mono();
    const record = records.get(key) ?? newRecord(now);
    if (now - record.since > windowMs) {
      // A quiet window forgives failures; a second one forgives the locks as well.
      if (now - record.since > 2 * windowMs && now > record.lockedUntil) record.locks = 0;
      record.since = now;
      record.failures = 0;
    }
    record.failures++;
    if (record.failures >= most) {
      const lockMs = Math.min(firstMs * 2 ** record.locks, Math.max(maxLockMs, firstMs));
      record.lockedUntil = now + lockMs;
      record.locks = Math.min(record.locks + 1, 30);
      record.failures = 0;
      record.since = record.lockedUntil;
      this.log('warn', 'AUTH-LOCKED', { ...fields, lockMs });
    }
    this.remember(records, key, record);
  }

  /** Maps keep the order of insertion: the first is the one that was touched longest ago. */
  private remember(records: Map<string, Record>, key: string, record: Record): void {
    records.delete(key);
    records.set(key, record);
    if (records.size > REMEMBERED) {
      const oldest = records.keys().next();
      if (!oldest.done) records.delete(oldest.value);
    }
  }
}

/** Addresses hold no blank. */
function pairKey(address: string, username: string): string {
  return boundedKey(`${address} ${username}`);
}

function shown(username: string): string {
  return brief(username, LOGGED_CHARACTERS);
}

function newRecord(now: number): Record {
  return { failures: 0, since: now, lockedUntil: 0, locks: 0, known: [] };
}

function isLocked(record: Record | undefined, now: number): boolean {
  return record !== undefined && record.lockedUntil > now;
}
