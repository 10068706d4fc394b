// The memory that all clients together may hold in unsent output and queues. Above it the sources are slowed down, one
// chunk each every few milliseconds: nobody is shut out for good, because those who are held may also be the ones whose
// acknowledgements free the memory. Built by broker/, asked by reader.ts after each chunk and by clients inside the
// process.
import type { Clock, Timer } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Source } from '../broker/broker.ts';

/** While over the budget, each held source is read once in this time. */
const DRIP_MS = 20;

export class Budget {
  /** Bytes; 0 = no limit. */
  limit = 0;
  private readonly used: () => number;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly held = new Set<Source>();
  private timer: Timer | null = null;

  constructor(clock: Clock, log: Log, used: () => number) {
    this.clock = clock;
    this.used = used;
    this.log = limitLog(log, () => clock.mono(), 10_000);
  }

  get exceeded(): boolean {
    return this.limit > 0 && this.used() > this.limit;
  }

  /** Stops reading from a source until memory is free, or for a moment. */
  hold(source: Source): void {
    source.pause();
    this.held.add(source);
    if (this.timer !== null) return;
    this.log('warn', 'GW-BUDGET', { usedBytes: this.used(), limitBytes: this.limit });
    this.arm();
  }

  /** The source has ended. */
  release(source: Source): void {
    this.held.delete(source);
  }

  private arm(): void {
    this.timer = this.clock.after(DRIP_MS, () => {
      this.timer = null;
      const held = [...this.held];
      this.held.clear();
      for (const source of held) source.resume();
      // Those that go on being over the budget come back through hold() after their next chunk.
      if (this.held.size > 0 && this.timer === null) this.arm();
    });
  }
}
