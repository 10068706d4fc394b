// Limits of a proxy: connections of one key at a time, events a second, of all and of one key. Kept over reloads by
// entrance.ts, which asks before it lets a client on. Bounded: a key costs memory only while a connection of it is
// open, or while it is among those that came last.

/** Open connections by key (an address, a client id). */
export class ConnectionCount {
  private readonly open = new Map<string, number>();

  /** Counts one more unless there are `most` already (0 = no limit); false = refused and not counted. */
  enter(key: string, most: number): boolean {
    if (this.full(key, most)) return false;
    this.open.set(key, (this.open.get(key) ?? 0) + 1);
    return true;
  }

  /** Whether enter() would refuse one more. */
  full(key: string, most: number): boolean {
    return most > 0 && (this.open.get(key) ?? 0) >= most;
  }

  /** Takes back one enter(). */
  leave(key: string): void {
    const count = this.open.get(key) ?? 0;
    if (count <= 1) this.open.delete(key);
    else this.open.set(key, count - 1);
  }

  /** Keys that have a connection. */
  get size(): number {
    return this.open.size;
  }
}

/** A token bucket: so many a second, and as many at once after a pause of a second (at least one). */
export class Rate {
  private tokens = Number.POSITIVE_INFINITY;
  private lastMs = 0;

  /** Whether one more fits; `perSecond` 0 = no limit. `most` at once, where that is more than in a second. */
  take(perSecond: number, nowMs: number, most = 1): boolean {
    if (perSecond === 0) return true;
    this.refill(perSecond, nowMs, most);
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }

  /** Takes `count` in any case and gives the milliseconds to wait until they are paid for, 0 = none. */
  owe(count: number, perSecond: number, nowMs: number): number {
    if (perSecond === 0 || count === 0) return 0;
    this.refill(perSecond, nowMs);
    this.tokens -= count;
    return this.tokens >= 0 ? 0 : Math.ceil((-this.tokens / perSecond) * 1000);
  }

  private refill(perSecond: number, nowMs: number, most = 1): void {
    // The first one finds a full bucket.
    this.tokens = Math.min(Math.max(most, perSecond), this.tokens + ((nowMs - this.lastMs) / 1000) * perSecond);
    this.lastMs = nowMs;
  }
}

/** Keys whose rate is known; the one that came longest ago is forgotten first. */
const KEYS = 100_000;

export interface KeyedRateOptions {
  /** 0 = no limit. */
  readonly perSecond: number;
  /** At once, where that is more than in a second. */
  readonly burst: number;
  /** How long a key that was above its rate is refused; 0 = as long as its rate says. */
  readonly banMs: number;
}

/** Events a second of one key each (an address, a client id), and bans for those that are above. */
export class KeyedRate {
  private readonly keys = new Map<string, { readonly rate: Rate; bannedUntilMs: number }>();

  /** Whether one more of this key fits; it is counted. */
  take(key: string, { perSecond, burst, banMs }: KeyedRateOptions, nowMs: number): boolean {
    if (perSecond === 0) return true;
    const known = this.keys.get(key) ?? { rate: new Rate(), bannedUntilMs: 0 };
    this.keys.delete(key);
    this.keys.set(key, known);
    const oldest = this.keys.size > KEYS ? this.keys.keys().next().value : undefined;
    if (oldest !== undefined) this.keys.delete(oldest);
    if (nowMs < known.bannedUntilMs) return false;
    if (known.rate.take(perSecond, nowMs, burst)) return true;
    known.bannedUntilMs = nowMs + banMs;
    return false;
  }

  /** Whether the key is banned: asked before anything costs more than that. */
  banned(key: string, nowMs: number): boolean {
    return nowMs < (this.keys.get(key)?.bannedUntilMs ?? 0);
  }
}
