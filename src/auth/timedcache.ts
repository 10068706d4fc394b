// Answers that hold for a while, bounded in number. Used by http.ts.
// Keys may hold secrets: they are kept as keyed digests.
import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';

export class TimedCache<T> {
  private readonly most: number;
  private readonly ttlMs: number;
  private readonly clock: Clock;
  private readonly secret = randomBytes(32);
  private readonly entries = new Map<string, { readonly value: T; readonly until: number }>();

  /** @param ttlMs 0 keeps nothing. */
  constructor(most: number, ttlMs: number, clock: Clock) {
    this.most = most;
    this.ttlMs = ttlMs;
    this.clock = clock;
  }

  get(key: string): T | undefined {
    if (this.ttlMs <= 0) return undefined;
    const entry = this.entries.get(this.digest(key));
    return entry === undefined || entry.until <= this.clock.mono() ? undefined : entry.value;
  }

  set(key: string, value: T): void {
    if (this.ttlMs <= 0) return;
    const digest = this.digest(key);
    this.entries.delete(digest);
    this.entries.set(digest, { value, until: this.clock.mono() + this.ttlMs });
    if (this.entries.size > this.most) {
      const oldest = this.entries.keys().next();
      if (!oldest.done) this.entries.delete(oldest.value);
    }
  }

  private digest(key: string): string {
    return createHmac('sha256', this.secret).update(key).digest('base64');
  }
}
