// The one buffer that all connections of a broker read to: what is read is handled before the next read, so it costs no
// memory of any connection, and reads are as large as what has come. Made by the engines, used by reader.ts.

/** Large enough that a busy sender is read with few calls, and that packets of 16 KB seldom come in pieces. */
const WHOLE_BYTES = 262_144;
/**
 * While a bridge takes messages: the event loop asks one socket up to 32 times in a row (libuv's uv__read), and what
 * comes then must not overrun the queue of an SP peer that does read.
 */
const BRIDGED_BYTES = 65_536;
/**
 * A sender of large packets is first asked for the beginning of the next, which is then read to a buffer of its own.
 */
const HEAD_BYTES = 2048;

export class IntakeBuffer {
  private readonly all: Buffer = Buffer.allocUnsafeSlow(WHOLE_BYTES);
  private readonly part: Buffer = this.all.subarray(0, BRIDGED_BYTES);
  readonly head: Buffer = this.all.subarray(0, HEAD_BYTES);
  /** Subscriptions of bridges. */
  private bridged = 0;

  /** For packets of any length. */
  get whole(): Buffer {
    return this.bridged > 0 ? this.part : this.all;
  }

  /** A bridge has subscribed (1) or has taken a subscription back (-1). */
  bridge(change: 1 | -1): void {
    this.bridged += change;
  }
}

/** After a packet of that many bytes in pieces the next one is expected to be as large. */
export const LARGE_BYTES = 65_536;
