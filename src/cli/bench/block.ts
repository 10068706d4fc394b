// A run of equal-sized messages in one buffer, built once and sent again and again with new times and sequence numbers.
// Used by publishers. Every message has its payload at the same offset, so that stamping is eight stores a message.
import { stamp } from './payload.ts';

export class Block {
  readonly bytes: Buffer;
  /** Bytes of one message. */
  readonly stride: number;
  private readonly payloadAt: number;
  /** Messages that are out and not yet done with (written, acknowledged). */
  pending = 0;

  /** @param payloadAt offset of the payload in each message */
  constructor(messages: readonly Buffer[], payloadAt: number) {
    this.bytes = Buffer.concat(messages);
    this.stride = messages[0].length;
    this.payloadAt = payloadAt;
  }

  /** The bytes of the first `count` messages, stamped. */
  fill(count: number, timeUs: number, sequence: number): Uint8Array {
    const time = timeUs >>> 0;
    let at = this.payloadAt;
    for (let i = 0; i < count; i++) {
      stamp(this.bytes, at, time, (sequence + i) >>> 0);
      at += this.stride;
    }
    return count * this.stride === this.bytes.length ? this.bytes : this.bytes.subarray(0, count * this.stride);
  }
}
