// How often a rule may speak about a topic: only when a value has changed, at most once in a while with the last
// message kept. Used by rule.ts, one of each for a rule that asks for it. Bounded in topics: the oldest one is
// forgotten, what it kept is sent.
import type { Clock, Timer } from '../base/clock.ts';

/** Topics remembered by one rule. */
const MOST_TOPICS = 100_000;

export interface ChangedValue {
  readonly text: string;
  /** NaN where the value is no number. */
  readonly number: number;
}

/** `changed` and `by`. */
export class Changes {
  private readonly by: number;
  private readonly last = new Map<string, ChangedValue>();

  constructor(by: number) {
    this.by = by;
  }

  /** Whether the value of a topic differs enough from the last one that did. */
  differs(topic: string, value: ChangedValue): boolean {
    const before = this.last.get(topic);
    if (before !== undefined && !this.far(before, value)) return false;
    if (before === undefined && this.last.size >= MOST_TOPICS) forgetOldest(this.last);
    this.last.set(topic, value);
    return true;
  }

  private far(before: ChangedValue, value: ChangedValue): boolean {
    if (Number.isNaN(before.number) || Number.isNaN(value.number) || this.by <= 0) return before.text !== value.text;
    // 20.1 - 19.6 is a little less than 0.5 in doubles: a difference that is written as `by` counts.
    return Math.abs(value.number - before.number) >= this.by * (1 - 1e-9);
  }
}

/**
 * `throttle`: the first message of a topic goes at once, of those that follow within the time the last one when it is
 * over.
 */
export class Throttle<T> {
  private readonly ms: number;
  private readonly clock: Clock;
  private readonly send: (kept: T) => void;
  /** By topic, the one that is due first in front: every wait is as long. */
  private readonly waits = new Map<string, { dueMs: number; kept: T | null }>();
  private timer: Timer | null = null;

  constructor(ms: number, clock: Clock, send: (kept: T) => void) {
    this.ms = ms;
    this.clock = clock;
    this.send = send;
  }

  /** Whether a message of the topic may go now; when not, keep() has it sent later. */
  allows(topic: string): boolean {
    const wait = this.waits.get(topic);
    if (wait !== undefined) return false;
    if (this.waits.size >= MOST_TOPICS) this.release(this.waits.keys().next().value ?? '');
    this.waits.set(topic, { dueMs: this.clock.mono() + this.ms, kept: null });
    this.arm();
    return true;
  }

  /** Keeps the last message of a topic that may not go yet; true when it took the place of another one. */
  keep(topic: string, message: T): boolean {
    const wait = this.waits.get(topic);
    if (wait === undefined) return false;
    const replaced = wait.kept !== null;
    wait.kept = message;
    return replaced;
  }

  /** Sends what is kept and forgets everything. */
  stop(): void {
    this.timer?.cancel();
    this.timer = null;
    for (const topic of [...this.waits.keys()]) this.release(topic);
  }

  private release(topic: string): void {
    const wait = this.waits.get(topic);
    this.waits.delete(topic);
    if (wait !== undefined && wait.kept !== null) this.send(wait.kept);
  }

  private arm(): void {
    if (this.timer !== null) return;
    const first = this.waits.values().next();
    if (first.done === true) return;
    this.timer = this.clock.after(Math.max(0, first.value.dueMs - this.clock.mono()), () => this.due());
  }

  private due(): void {
    this.timer = null;
    const nowMs = this.clock.mono();
    for (const [topic, wait] of this.waits) {
      if (wait.dueMs > nowMs) break;
      const { kept } = wait;
      this.waits.delete(topic);
      if (kept === null) continue;
      // What is sent now begins the next wait.
      this.waits.set(topic, { dueMs: nowMs + this.ms, kept: null });
      this.send(kept);
    }
    this.arm();
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
