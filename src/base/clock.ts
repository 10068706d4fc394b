// Time as a dependency, so that tests own it (test/harness/clock.ts has the fake one).
// Called by every stage that waits or stamps. Timers never keep the process alive.
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

export interface Timer {
  cancel(): void;
}

/** One boot of a machine. */
export interface Boot {
  /** null where the system gives none. */
  readonly id: string | null;
  /** Suspended time included. */
  readonly uptimeMs: number;
}

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch; may jump. */
  now(): number;
  /** Monotonic milliseconds; only differences mean anything. */
  mono(): number;
  /**
   * Milliseconds since the epoch as the wall clock told it once, going on evenly whatever it tells later: what expires
   * is measured with it. With a store it goes on over restarts (store/time.ts), and is then not the wall clock's time
   * at all.
   */
  steady(): number;
  /** The boot of this machine. Reads files. */
  boot(): Boot;
  /** Calls `fn` once after `delayMs` (any size: longer than setTimeout can count is cut into pieces). */
  after(delayMs: number, fn: () => void): Timer;
  /** Calls `fn` every `periodMs` until cancelled. */
  every(periodMs: number, fn: () => void): Timer;
}

/** setTimeout counts in a signed 32-bit number of milliseconds. */
const LONGEST_MS = 0x7fffffff;

/**
 * A timer that fires later than this was held up with the whole loop: by a long task, SIGSTOP, a suspended machine.
 * What has come over sockets meanwhile is read first, so that nothing is taken for silent whose bytes are waiting.
 */
const LATE_MS = 100;

/** Calls `fn` at once, or behind what is waiting to be read when the loop is late. */
class Punctual {
  private immediate: NodeJS.Immediate | null = null;
  private readonly fn: () => void;

  constructor(fn: () => void) {
    this.fn = fn;
  }

  due(dueMs: number): void {
    if (performance.now() - dueMs < LATE_MS) {
      this.fn();
      return;
    }
    // Immediates run after the loop has polled its sockets.
    this.immediate ??= setImmediate(() => {
      this.immediate = null;
      this.fn();
    });
  }

  cancel(): void {
    if (this.immediate !== null) clearImmediate(this.immediate);
    this.immediate = null;
  }
}

class LongTimer implements Timer {
  private handle: NodeJS.Timeout | null = null;
  private leftMs: number;
  private readonly punctual: Punctual;

  constructor(delayMs: number, fn: () => void) {
    this.leftMs = Math.max(0, delayMs);
    this.punctual = new Punctual(fn);
    this.arm();
  }

  private arm(): void {
    const pieceMs = Math.min(this.leftMs, LONGEST_MS);
    const dueMs = performance.now() + pieceMs;
    this.leftMs -= pieceMs;
    this.handle = setTimeout(() => {
      if (this.leftMs > 0) this.arm();
      else {
        this.handle = null;
        this.punctual.due(dueMs);
      }
    }, pieceMs).unref();
  }

  cancel(): void {
    if (this.handle !== null) clearTimeout(this.handle);
    this.handle = null;
    this.punctual.cancel();
  }
}

function repeat(periodMs: number, fn: () => void): Timer {
  const punctual = new Punctual(fn);
  let dueMs = performance.now() + periodMs;
  const handle = setInterval(() => {
    punctual.due(dueMs);
    dueMs = performance.now() + periodMs;
  }, periodMs).unref();
  return {
    cancel: () => {
      clearInterval(handle);
      punctual.cancel();
    },
  };
}

/**
 * Finds out whether the loop was away for so long that the silence of others proves nothing. Asked once a period by
 * whoever judges silence: the engines of broker/.
 */
export class Absence {
  private readonly periodMs: number;
  private lastMs: number;

  constructor(periodMs: number, nowMs: number) {
    this.periodMs = periodMs;
    this.lastMs = nowMs;
  }

  /** Whether the last period was longer than twice its length. */
  over(nowMs: number): boolean {
    const wasAway = nowMs - this.lastMs > 2 * this.periodMs;
    this.lastMs = nowMs;
    return wasAway;
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

function systemBoot(): Boot {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    const uptimeMs = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000;
    if (id !== '' && Number.isFinite(uptimeMs)) return { id, uptimeMs: Math.round(uptimeMs) };
  } catch {
    // Not Linux.
  }
  return { id: null, uptimeMs: Math.round(uptime() * 1000) };
}

/**
 * A clock whose steady time can be set once, at the start, to go on where an earlier process stopped. Used by
 * gateway/gateway.ts.
 */
export class ResumedClock implements Clock {
  private readonly clock: Clock;
  private shiftMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  now(): number {
    return this.clock.now();
  }

  mono(): number {
    return this.clock.mono();
  }

  steady(): number {
    return this.clock.steady() + this.shiftMs;
  }

  boot(): Boot {
    return this.clock.boot();
  }

  after(delayMs: number, fn: () => void): Timer {
    return this.clock.after(delayMs, fn);
  }

  every(periodMs: number, fn: () => void): Timer {
    return this.clock.every(periodMs, fn);
  }

  resume(steadyMs: number): void {
    this.shiftMs = Math.round(steadyMs) - this.clock.steady();
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  // Whole milliseconds, as the wall clock gives: they are stored.
  steady: () => Math.floor(performance.timeOrigin + performance.now()),
  boot: systemBoot,
  after: (delayMs, fn) => new LongTimer(delayMs, fn),
  every: repeat,
};

/** Processor milliseconds that this process has used. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
