// Publishers whose messages are above the length of a bridge's queue: their acknowledgements wait for room, which slows
// them down. Made by outbox.ts. Nobody waits for a remote that has been away for longer than a reconnect takes.
import type { Clock, Timer } from '../../base/clock.ts';
import { Fifo } from '../../base/queue.ts';
import type { Hold } from '../../mqtt/message.ts';

/** A connection that is gone for longer is no reconnect: then a full queue drops what is new. */
const ABSENCE_MS = 5000;

export class Crowd {
  /** The remote has been away for too long: publishers no longer wait. */
  dispersed = false;
  private readonly clock: Clock;
  private readonly holds = new Fifo<Hold>();
  private absence: Timer | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get size(): number {
    return this.holds.length;
  }

  /** The acknowledgement behind `hold` waits. */
  join(hold: Hold): void {
    hold.add();
    this.holds.push(hold);
  }

  /** Lets go of those that came first until `most` are left. */
  release(most: number): void {
    while (this.holds.length > most) this.holds.shift()?.done();
  }

  /** There is no connection: it may be back in a moment. */
  expect(): void {
    this.absence?.cancel();
    this.absence = this.clock.after(ABSENCE_MS, () => {
      this.dispersed = true;
      this.release(0);
    });
  }

  /** The connection is there again. */
  back(): void {
    this.absence?.cancel();
    this.dispersed = false;
  }
}
