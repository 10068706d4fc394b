// Time as a dependency, so that tests own it (test/harness/clock.ts has the fake one).
// Called by every stage that waits or stamps. Timers never keep the process alive.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch; may jump. */
  now(): number;
  /** Monotonic milliseconds; only differences mean anything. */
  mono(): number;
  /** Calls `fn` once after `delayMs` (any size: longer than setTimeout can count is cut into pieces). */
  after(delayMs: number, fn: () => void): Timer;
  /** Calls `fn` every `periodMs` until cancelled. */
  every(periodMs: number, fn: () => void): Timer;
}

/** setTimeout counts in a signed 32-bit number of milliseconds. */
const LONGEST_MS = 0x7fffffff;

class LongTimer implements Timer {
  private handle: NodeJS.Timeout | null = null;
  private leftMs: number;
  private readonly fn: () => void;

  constructor(delayMs: number, fn: () => void) {
    this.leftMs = Math.max(0, delayMs);
    this.fn = fn;
    this.arm();
  }

  private arm(): void {
    const pieceMs = Math.min(this.leftMs, LONGEST_MS);
    this.leftMs -= pieceMs;
    this.handle = setTimeout(() => {
      if (this.leftMs > 0) this.arm();
      else {
        this.handle = null;
        this.fn();
      }
    }, pieceMs).unref();
  }

  cancel(): void {
    if (this.handle !== null) clearTimeout(this.handle);
    this.handle = null;
  }
}

/** Resolves when `promise` has settled, or after `limitMs`. */
export function within(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(limitMs, resolve);
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    promise.then(done, done);
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  after: (delayMs, fn) => new LongTimer(delayMs, fn),
  every: (periodMs, fn) => {
    const handle = setInterval(fn, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
};
