// QoS 2 exchanges with one remote broker: how many are under way, and whether some were a moment ago. Made by
// outbox.ts, which doubts acknowledgements of QoS 1 while there are any (doubt.ts): a remote may count some that are
// over here.
import type { Clock } from '../../base/clock.ts';

/** Time after a QoS 2 exchange in which acknowledgements of QoS 1 may be in doubt. */
const MIXED_MS = 10_000;

export class Exchanges {
  private readonly clock: Clock;
  /** Under way on this connection. */
  private count = 0;
  /** When the last one began. */
  private begunMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A new connection: none is under way. */
  open(): void {
    this.count = 0;
  }

  begin(): void {
    this.count++;
    this.begunMs = this.clock.mono();
  }

  end(): void {
    if (this.count > 0) this.count--;
  }

  /** Some are under way, or were a moment ago. */
  get mix(): boolean {
    return this.count > 0 || this.clock.mono() - this.begunMs < MIXED_MS;
  }
}
