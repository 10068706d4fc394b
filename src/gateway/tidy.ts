// Gives memory back after a crowd has gone. V8 collects when something is allocated, so a gateway that has become quiet
// would keep the memory of its busiest hour: measured after 14,000 connections, 147 MB instead of 87. Made by
// cli/start.ts, never for a gateway inside another program. Must not disturb: it collects only while there is little to
// do, and a large heap only while there is nothing to do. Source: https://nodejs.org/docs/latest-v20.x/api/v8.html
// (setFlagsFromString, getHeapStatistics).
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Timer } from '../base/clock.ts';

const LOOK_MS = 5000;
/** Shares of one processor: below the first there is little to do, below the second nothing. */
const LITTLE = 0.15;
const NOTHING = 0.03;
/** Looks in a row that must have found little to do. */
const QUIET_LOOKS = 2;
/** What may have been added since the last time without being worth a collection: a share, and bytes. */
const WORTH = 1.2;
const WORTH_BYTES = 8 * 1024 * 1024;
/** A heap in use that is collected in about 100 ms. */
const SMALL_BYTES = 64 * 1024 * 1024;
/** After a collection that was of no use the next one waits for so many looks, doubling each time. */
const FIRST_PAUSE = 6;
const LONGEST_PAUSE = 120;

export interface TidyParts {
  readonly clock: Clock;
  /** Collects everything; null where this engine does not let itself be asked. */
  readonly collect: (() => void) | null;
  readonly heap: () => { readonly total: number; readonly used: number };
  /** Microseconds of processor time that this process has used. */
  readonly cpuUs: () => number;
}

export class Tidy {
  private readonly parts: TidyParts;
  private timer: Timer | null = null;
  private cpuUs = 0;
  private lookedMs = 0;
  private quiet = 0;
  /** Bytes of the heap after the last collection, or at the start. */
  private settled = 0;
  private pause = 0;
  private nextPause = FIRST_PAUSE;

  constructor(parts: TidyParts) {
    this.parts = parts;
  }

  start(): void {
    const { clock, cpuUs, heap } = this.parts;
    this.cpuUs = cpuUs();
    this.lookedMs = clock.mono();
    this.settled = heap().total;
    this.timer = clock.every(LOOK_MS, () => this.look());
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  private look(): void {
    const { collect, heap } = this.parts;
    const share = this.share();
    this.quiet = share < LITTLE ? this.quiet + 1 : 0;
    if (this.pause > 0) this.pause--;
    if (collect === null || this.quiet < QUIET_LOOKS || this.pause > 0) return;
    const before = heap();
    if (before.total < Math.max(this.settled * WORTH, this.settled + WORTH_BYTES)) return;
    if (before.used > SMALL_BYTES && share > NOTHING) return;
    collect();
    const after = heap();
    this.settled = after.total;
    const useless = after.total * WORTH > before.total;
    this.pause = useless ? this.nextPause : FIRST_PAUSE;
    this.nextPause = useless ? Math.min(LONGEST_PAUSE, this.nextPause * 2) : FIRST_PAUSE;
  }

  /** Of one processor, since the last look. */
  private share(): number {
    const nowMs = this.parts.clock.mono();
    const cpuUs = this.parts.cpuUs();
    const share = (cpuUs - this.cpuUs) / 1000 / Math.max(1, nowMs - this.lookedMs);
    this.cpuUs = cpuUs;
    this.lookedMs = nowMs;
    return share;
  }
}

/** The heap grows in small steps: collected more often, and never twice as large as what is in use. */
export function thrift(): void {
  setFlagsFromString('--heap-growing-percent=20');
}

/** Ends what main.ts has set for the start. The young generation of a small machine stays as it is. */
export function fullSpeed(small: boolean): void {
  setFlagsFromString('--opt');
  if (!small) setFlagsFromString('--semi-space-growth-factor=2');
}

/** The parts of this process. */
export function processParts(clock: Clock): TidyParts {
  setFlagsFromString('--expose-gc');
  let collect: (() => void) | undefined;
  return {
    clock,
    // A context of its own costs half a megabyte until it is collected itself: made when it is wanted.
    collect: () => {
      collect ??= collector();
      collect();
    },
    heap: () => {
      const { total_heap_size: total, used_heap_size: used } = getHeapStatistics();
      return { total, used };
    },
    cpuUs: () => {
      const { user, system } = process.cpuUsage();
      return user + system;
    },
  };
}

/** The engine's own collector, or nothing where it does not let itself be asked. */
function collector(): () => void {
  const found: unknown = runInNewContext('typeof gc === "function" ? gc : null');
  return typeof found === 'function' ? () => collectAll(found as () => void) : () => {};
}

/** The second one shrinks the young generation and frees what finalizers of the first have let go. */
function collectAll(gc: () => void): void {
  gc();
  gc();
}
