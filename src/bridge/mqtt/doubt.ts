// Messages of QoS 1 that a remote before 5.0 has acknowledged in the middle of QoS 2 exchanges, for a second: one that
// closes the connection because too many are open may have acknowledged what it dropped. Used by outbox.ts, which sends
// them again after such an end.
import type { Clock, Timer } from '../../base/clock.ts';
import { Fifo } from '../../base/queue.ts';

/** So long before such an end acknowledgements are in doubt. */
const DOUBT_MS = 1000;
/** More than a pre-5.0 remote is sent in that time are not kept. */
const MOST = 10_000;

export class Doubts<T> {
  private readonly clock: Clock;
  /** The doubt is over. */
  private readonly trusted: (item: T) => void;
  private readonly items = new Fifo<{ readonly item: T; readonly untilMs: number }>();
  private timer: Timer | null = null;

  constructor(clock: Clock, trusted: (item: T) => void) {
    this.clock = clock;
    this.trusted = trusted;
  }

  /** False when there is no room: it has to be trusted. */
  add(item: T): boolean {
    if (this.items.length >= MOST) return false;
    this.items.push({ item, untilMs: this.clock.mono() + DOUBT_MS });
    this.timer ??= this.clock.after(DOUBT_MS, () => this.look());
    return true;
  }

  /** Those that are in doubt now, oldest first; they are not any more. */
  take(): T[] {
    const items = [...this.items].map(({ item }) => item);
    this.clear();
    return items;
  }

  clear(): void {
    this.items.clear();
    this.timer?.cancel();
    this.timer = null;
  }

  private look(): void {
    this.timer = null;
    const nowMs = this.clock.mono();
    for (let first = this.items.peek(); first !== undefined; first = this.items.peek()) {
      if (first.untilMs > nowMs) {
        this.timer = this.clock.after(first.untilMs - nowMs, () => this.look());
        return;
      }
      this.items.shift();
      this.trusted(first.item);
    }
  }
}
