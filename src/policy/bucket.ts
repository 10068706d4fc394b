// A token bucket: so much a second, and a burst at once. Used by quota.ts. It may go into debt, which is waited off:
// what has come already is handled whole. Pure; the time is handed in.

export class Bucket {
  /** Tokens a second. */
  private readonly rate: number;
  private readonly capacity: number;
  private tokens: number;
  private lastMs: number;

  /** @param burst tokens that may be taken at once; at least one. @param nowMs monotonic */
  constructor(rate: number, burst: number, nowMs: number) {
    this.rate = rate;
    this.capacity = Math.max(1, burst);
    this.tokens = this.capacity;
    this.lastMs = nowMs;
  }

  /** Whole tokens that are there; 0 or less in debt. */
  available(nowMs: number): number {
    this.tokens = Math.min(this.capacity, this.tokens + ((nowMs - this.lastMs) * this.rate) / 1000);
    this.lastMs = nowMs;
    return Math.floor(this.tokens);
  }

  take(count: number): void {
    this.tokens -= count;
  }

  /** Milliseconds until a token is there, behind everybody who has taken one ahead of its time. */
  waitMs(nowMs: number): number {
    if (this.available(nowMs) > 0) return 0;
    return Math.ceil(((1 - this.tokens) * 1000) / this.rate);
  }

  /** Nothing is missing. */
  isFull(nowMs: number): boolean {
    this.available(nowMs);
    return this.tokens >= this.capacity;
  }
}
