// One write per peer per turn: what was appended to output buffers while one chunk was read leaves together at its end.
// Called by whoever reads a chunk (enter/leave) and by every output buffer (touch). Outside a turn a flush is scheduled.

export interface Flushable {
  /** Set while the object waits in a turn's list; only Turn changes it. */
  dirty: boolean;
  flush(): void;
}

export class Turn {
  private readonly waiting: Flushable[] = [];
  private depth = 0;
  private scheduled = false;
  private flushing = false;
  private readonly later = (): void => {
    this.scheduled = false;
    if (this.depth === 0) this.flush();
  };

  /** Begins a turn; every enter() has its leave(). */
  enter(): void {
    this.depth++;
  }

  /** Ends it: the outermost leave() flushes all that was touched. */
  leave(): void {
    if (--this.depth === 0 && !this.flushing) this.flush();
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

  private flush(): void {
    const waiting = this.waiting;
    this.flushing = true;
    try {
      // A flush may touch again (a sink that completes at once), and may hold turns of its own: the list grows while it is walked.
      for (let i = 0; i < waiting.length; i++) {
        const f = waiting[i];
        f.dirty = false;
        f.flush();
      }
    } finally {
      waiting.length = 0;
      this.flushing = false;
    }
  }
}
