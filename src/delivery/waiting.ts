// Messages of one session that wait to be sent, in order, with the bytes of their payloads. Used by outbox.ts.
// Its bounds are max_mqueue_len and max_mqueue_bytes; what does not fit is the outbox's to count.
import { Fifo } from '../base/queue.ts';
import type { OutboxLimits } from './delivery.ts';
import type { Entry } from './entry.ts';

export class Waiting {
  /** Payload bytes of all entries. */
  bytes = 0;
  private readonly entries = new Fifo<Entry>();

  get length(): number {
    return this.entries.length;
  }

  /** Whether one more message of so many bytes is taken. */
  fits(limits: OutboxLimits, bytes: number): boolean {
    const { queueLength, queueBytes } = limits;
    return (
      (queueLength === 0 || this.entries.length < queueLength) && (queueBytes === 0 || this.bytes + bytes <= queueBytes)
    );
  }

  push(entry: Entry): void {
    this.entries.push(entry);
    this.bytes += entry.message.bytes;
  }

  /** Puts an entry in front of all others. */
  unshift(entry: Entry): void {
    this.entries.unshift(entry);
    this.bytes += entry.message.bytes;
  }

  peek(): Entry | undefined {
    return this.entries.peek();
  }

  /** Takes the first one out. */
  shift(): void {
    const entry = this.entries.shift();
    if (entry !== undefined) this.bytes -= entry.message.bytes;
  }

  clear(): void {
    this.entries.clear();
    this.bytes = 0;
  }

  [Symbol.iterator](): Iterator<Entry> {
    return this.entries[Symbol.iterator]();
  }
}
