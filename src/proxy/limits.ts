// Limits of a proxy: connections of one key at a time, and events a second. Kept over reloads by entrance.ts, which asks before it lets
// a client on. Bounded: a key costs memory only while a connection of it is open.

/** Open connections by key (an address, a client id). */
export class ConnectionCount {
  private readonly open = new Map<string, number>();

  /** Counts one more unless there are `most` already (0 = no limit); false = refused and not counted. */
  enter(key: string, most: number): boolean {
    const count = this.open.get(key) ?? 0;
    if (most > 0 && count >= most) return false;
    this.open.set(key, count + 1);
    return true;
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
  private lastMs = Number.NEGATIVE_INFINITY;

  /** Whether one more fits; `perSecond` 0 = no limit. */
  take(perSecond: number, nowMs: number): boolean {
    if (perSecond === 0) return true;
    const most = Math.max(1, perSecond);
    // The first one finds a full bucket.
    const came = this.lastMs === Number.NEGATIVE_INFINITY ? most : ((nowMs - this.lastMs) / 1000) * perSecond;
    this.tokens = Math.min(most, this.tokens + came);
    this.lastMs = nowMs;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}
