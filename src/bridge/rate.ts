// A rate limit for one rule: so many messages a second on average, a second's worth at once.
// Called by bridge/nng/forward.ts and bridge/nng/in.ts for rules that have one. Monotonic time comes from outside.

export class RateLimit {
  private readonly perSecond: number;
  private readonly mono: () => number;
  private left: number;
  private atMs: number;

  constructor(perSecond: number, mono: () => number) {
    this.perSecond = perSecond;
    this.mono = mono;
    this.left = Math.max(1, perSecond);
    this.atMs = mono();
  }

  /** Takes one message out of the bucket; false when it is empty. */
  allow(): boolean {
    if (this.left < 1) {
      const nowMs = this.mono();
      this.left = Math.min(Math.max(1, this.perSecond), this.left + ((nowMs - this.atMs) * this.perSecond) / 1000);
      this.atMs = nowMs;
      if (this.left < 1) return false;
    }
    this.left--;
    return true;
  }
}
