// The one buffer that all connections of a broker read to: what is read is handled before the next read, so it costs no
// memory of any connection, and reads are as large as what has come. Made by the engines, used by reader.ts.

/**
 * Large enough that a busy sender is read with few calls. What one read brings may be more than the queue of a peer
 * holds (send_buffer of a bridge): a pipe hands over to the system before it drops.
 */
const WHOLE_BYTES = 262_144;
/**
 * A sender of large packets is first asked for the beginning of the next, which is then read to a buffer of its own.
 */
const HEAD_BYTES = 2048;

export class IntakeBuffer {
  readonly whole: Buffer = Buffer.allocUnsafeSlow(WHOLE_BYTES);
  readonly head: Buffer = this.whole.subarray(0, HEAD_BYTES);
}

/** After a packet of that many bytes in pieces the next one is expected to be as large. */
export const LARGE_BYTES = 65_536;
