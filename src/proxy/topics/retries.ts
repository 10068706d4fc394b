// How long a server that was lost is left alone, and when it makes no sense to try again. Made by leg.ts. Counts times
// alone.

const FIRST_MS = 500;
const MOST_MS = 10_000;
/** Ended this soon after CONNACK, this often in a row: the server does not want what this client sends. */
const SHORT_MS = 2000;
const SHORT_COUNT = 3;

export class Retries {
  private waitMs = FIRST_MS;
  private openedMs = 0;
  private shortCount = 0;

  /** A session has begun. */
  opened(nowMs: number): void {
    this.openedMs = nowMs;
  }

  /** It has ended; true = as soon as those before it. */
  lost(nowMs: number): boolean {
    const short = nowMs - this.openedMs < SHORT_MS;
    this.shortCount = short ? this.shortCount + 1 : 0;
    if (!short) this.waitMs = FIRST_MS;
    return this.shortCount >= SHORT_COUNT;
  }

  /** Milliseconds until the next try: doubled each time. */
  nextMs(): number {
    const { waitMs } = this;
    this.waitMs = Math.min(waitMs * 2, MOST_MS);
    return waitMs;
  }
}
