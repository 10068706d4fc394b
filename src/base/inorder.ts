// Answers that leave in the order in which their requests came, each when what it waits for is settled. Used by
// session/acks.ts and bridge/mqtt/acks.ts. Knows no packet: the user says what an entry is and how it leaves.
import { Fifo } from './queue.ts';

export interface Settled {
  /** What the entry waits for has come. Changed by settle() alone. */
  settled: boolean;
}

export class InOrder<T extends Settled> {
  private readonly waiting = new Fifo<T>();
  private readonly leave: (entry: T) => void;

  /** @param leave called for each entry in turn, once it and all earlier ones are settled */
  constructor(leave: (entry: T) => void) {
    this.leave = leave;
  }

  get length(): number {
    return this.waiting.length;
  }

  push(entry: T): void {
    this.waiting.push(entry);
  }

  /** Marks it, and lets go of all that wait for nothing any more. */
  settle(entry: T): void {
    entry.settled = true;
    for (let first = this.waiting.peek(); first?.settled === true; first = this.waiting.peek()) {
      this.waiting.shift();
      this.leave(first);
    }
  }

  /** Forgets all that waits. */
  clear(): void {
    this.waiting.clear();
  }
}
