// Time that a test owns: it stands still until advance() moves it. Used wherever a unit takes a Clock.
// Timers fire in the order of their times, those of one time in the order they were set.
import type { Boot, Clock, Timer } from '../../src/base/clock.ts';

interface Pending {
  atMs: number;
  readonly order: number;
  readonly periodMs: number | null;
  readonly fn: () => void;
}

export class FakeClock implements Clock {
  /** Of boot(); null: every start is another boot. */
  bootId: string | null = null;
  bootedMs = 0;
  private wallMs: number;
  private startMs: number;
  private monoMs = 0;
  private order = 0;
  private readonly pending = new Set<Pending>();

  constructor(wallMs = Date.UTC(2024, 0, 1)) {
    this.wallMs = wallMs;
    this.startMs = wallMs;
  }

  now(): number {
    return this.wallMs;
  }

  mono(): number {
    return this.monoMs;
  }

  steady(): number {
    return this.startMs + this.monoMs;
  }

  /** steady() goes on from here. */
  resume(steadyMs: number): void {
    this.startMs = steadyMs - this.monoMs;
  }

  boot(): Boot {
    return { id: this.bootId, uptimeMs: this.bootedMs + this.monoMs };
  }

  after(delayMs: number, fn: () => void): Timer {
    return this.add(Math.max(0, delayMs), null, fn);
  }

  every(periodMs: number, fn: () => void): Timer {
    return this.add(periodMs, periodMs, fn);
  }

  /** Timers that have not fired and were not cancelled. */
  get waiting(): number {
    return this.pending.size;
  }

  /** Moves time on and fires what becomes due on the way, also what those timers set. */
  advance(byMs: number): void {
    const untilMs = this.monoMs + byMs;
    for (let next = this.next(untilMs); next !== undefined; next = this.next(untilMs)) {
      this.move(next.atMs);
      if (next.periodMs === null) this.pending.delete(next);
      else next.atMs += next.periodMs;
      next.fn();
    }
    this.move(untilMs);
  }

  /** Like advance, but lets promises settle before and after each timer. */
  async advanceAsync(byMs: number): Promise<void> {
    const untilMs = this.monoMs + byMs;
    await settle();
    for (let next = this.next(untilMs); next !== undefined; next = this.next(untilMs)) {
      this.move(next.atMs);
      if (next.periodMs === null) this.pending.delete(next);
      else next.atMs += next.periodMs;
      next.fn();
      await settle();
    }
    this.move(untilMs);
  }

  /** The wall clock jumps, as when somebody sets it; monotonic time does not. */
  setWall(wallMs: number): void {
    this.wallMs = wallMs;
  }

  private move(toMs: number): void {
    this.wallMs += toMs - this.monoMs;
    this.monoMs = toMs;
  }

  private next(untilMs: number): Pending | undefined {
    let first: Pending | undefined;
    for (const entry of this.pending) {
      if (entry.atMs > untilMs) continue;
      const earlier = first === undefined || entry.atMs < first.atMs;
      if (earlier || (first !== undefined && entry.atMs === first.atMs && entry.order < first.order)) first = entry;
    }
    return first;
  }

  private add(delayMs: number, periodMs: number | null, fn: () => void): Timer {
    if (periodMs !== null && !(periodMs > 0)) throw new RangeError('a period must be above 0');
    const entry: Pending = { atMs: this.monoMs + delayMs, order: this.order++, periodMs, fn };
    this.pending.add(entry);
    return { cancel: () => this.pending.delete(entry) };
  }
}

/** Lets promises that are ready run to their next wait. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
