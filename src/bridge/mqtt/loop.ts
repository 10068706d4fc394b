// Notices when messages go round in circles: one forwarded message is remembered at a time, and counted when it comes
// by again. Used by guard.ts for what it forwards. Only tells; bridges stop the loops they can know of themselves
// (rules.ts, via.ts, No Local). A device that repeats one value very fast looks the same, so this is a suspicion and
// never a reason to drop; trial.ts finds out.
import type { Clock } from '../../base/clock.ts';

/** The same message so often within the time of one look. */
const SUSPICIOUS = 50;
const LOOK_MS = 1000;
/** Larger payloads are not remembered. */
const MOST_BYTES = 4096;

export class LoopProbe {
  private readonly clock: Clock;
  private topic = '';
  private payload = Buffer.alloc(0);
  private seen = 0;
  private sinceMs = Number.NEGATIVE_INFINITY;
  /** Messages until the clock is asked again. */
  private patience = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A message with payload bytes[start, end) passes; true when it has passed suspiciously often. */
  passes(topic: string, bytes: Uint8Array, start: number, end: number): boolean {
    if (--this.patience < 0) this.look(topic, bytes, start, end);
    else if (topic === this.topic && end - start === this.payload.length && this.equals(bytes, start))
      return ++this.seen === SUSPICIOUS;
    return false;
  }

  private equals(bytes: Uint8Array, start: number): boolean {
    const { payload } = this;
    for (let i = 0; i < payload.length; i++) if (bytes[start + i] !== payload[i]) return false;
    return true;
  }

  /** Remembers this message unless the one before is still watched. The clock is asked for one message in 16. */
  private look(topic: string, bytes: Uint8Array, start: number, end: number): void {
    this.patience = 16;
    const nowMs = this.clock.mono();
    if (nowMs - this.sinceMs < LOOK_MS || end - start > MOST_BYTES) return;
    this.sinceMs = nowMs;
    this.topic = topic;
    this.payload = Buffer.from(bytes.subarray(start, end));
    this.seen = 1;
  }
}
