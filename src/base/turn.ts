// One write per peer per turn: what was appended to output buffers while one chunk was read leaves together at its end.
// Called by whoever reads a chunk (enter/leave) and by every output buffer (touch). Outside a turn a flush is
// scheduled.

import type { Clock } from './clock.ts';
import type { Histogram } from './metrics.ts';
import { WordView } from './words.ts';

/** One turn in so many is measured, so that asking for the time costs nothing that counts. */
const MEASURED = 64;

export interface Flushable {
  /** Set while the object waits in a turn's list; only Turn changes it. */
  dirty: boolean;
  flush(): void;
}

export class Turn {
  /** The chunk that is being read, for those who copy many short pieces out of it. */
  readonly source = new WordView();
  /** Rises with each turn: what changes only between turns needs one look in each. */
  number = 0;
  private readonly waiting: Flushable[] = [];
  private depth = 0;
  private scheduled = false;
  private flushing = false;
  private measured: { readonly clock: Clock; readonly seconds: Histogram } | null = null;
  /** Turns until one is measured. */
  private untilMeasured = MEASURED;
  /** When the measured turn began, -1 for others. */
  private beganMs = -1;
  private readonly later = (): void => {
    this.scheduled = false;
    if (this.depth === 0) this.flush();
  };

  /** From now on every 64th turn is measured, from the outermost enter() to the end of its flush. */
  measure(clock: Clock, seconds: Histogram): void {
    this.measured = { clock, seconds };
  }

  /** Begins a turn; every enter() has its leave(). */
  enter(): void {
    if (this.depth++ > 0) return;
    this.number++;
    if (--this.untilMeasured === 0) this.begin();
  }

  /** Ends it: the outermost leave() flushes all that was touched. */
  leave(): void {
    if (--this.depth !== 0 || this.flushing) return;
    this.flush();
    if (this.beganMs >= 0) this.end();
  }

  /** Has `f` flushed at the end of this turn. */
  touch(f: Flushable): void {
    if (f.dirty) return;
    f.dirty = true;
    this.waiting.push(f);
    if (this.depth === 0 && !this.scheduled && !this.flushing) {
      this.scheduled = true;
      setImmediate(this.later);
    }
  }

  private begin(): void {
    this.untilMeasured = MEASURED;
    // Turns within a flush are part of the one that flushes.
    if (this.measured !== null && !this.flushing) this.beganMs = this.measured.clock.mono();
  }

  private end(): void {
    if (this.measured !== null) this.measured.seconds.observe((this.measured.clock.mono() - this.beganMs) / 1000);
    this.beganMs = -1;
  }

  private flush(): void {
    const waiting = this.waiting;
    this.flushing = true;
    try {
      // A flush may touch again (a sink that completes at once), and may hold turns of its own: the list grows while it
      // is walked.
      for (let i = 0; i < waiting.length; i++) {
        const f = waiting[i];
        f.dirty = false;
        f.flush();
      }
    } finally {
      waiting.length = 0;
      this.flushing = false;
      this.source.clear();
    }
  }
}
