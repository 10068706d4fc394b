// How long to wait before the next attempt: doubling up to a limit, with jitter so that many who lost the same peer do
// not return together. Given by gateway/transports.ts to bridges to remote brokers. Owns at most one timer.
import type { Clock, Timer } from '../base/clock.ts';

export interface BackoffOptions {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** The longest wait; the jitter stays below it. */
  readonly maxMs: number;
  /** The first wait; default 100. */
  readonly initialMs?: number;
}

const INITIAL_MS = 100;
/** The part of a wait that is drawn: half of it is certain, so that a peer is never flooded. */
const JITTER = 0.5;

export class Backoff {
  private readonly options: BackoffOptions;
  private waitMs: number;
  private timer: Timer | null = null;

  constructor(options: BackoffOptions) {
    this.options = options;
    this.waitMs = this.firstMs();
  }

  /** The next wait in milliseconds, between half and all of 100, 200, 400 ... up to the limit. */
  next(): number {
    const fullMs = this.waitMs;
    this.waitMs = Math.min(fullMs * 2, Math.max(this.options.maxMs, this.firstMs()));
    return fullMs * (1 - JITTER * this.options.random());
  }

  /**
   * Calls `again` after the next wait; an earlier one that still waits is forgotten. Returns the wait in milliseconds.
   */
  schedule(again: () => void): number {
    this.timer?.cancel();
    const delayMs = this.next();
    this.timer = this.options.clock.after(delayMs, () => {
      this.timer = null;
      again();
    });
    return delayMs;
  }

  /** An attempt has succeeded: the next wait is the first one again. */
  reset(): void {
    this.waitMs = this.firstMs();
  }

  cancel(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  private firstMs(): number {
    return Math.min(this.options.initialMs ?? INITIAL_MS, this.options.maxMs);
  }
}
