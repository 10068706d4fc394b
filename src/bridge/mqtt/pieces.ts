// Whole packets out of the chunks of a connection: a packet is read where it lies, and only one that is cut is copied.
// Used by remote.ts. A peer that announces much and sends little costs little: the buffer grows with what has come.
import { newFrame } from '../../codec/codec.ts';
import { readFrame } from '../../codec/frame.ts';

const NOTHING = Buffer.alloc(0);

export class Pieces {
  /** The packet that is being read. */
  readonly frame = newFrame();
  private readonly maxBytes: number;
  /** The beginning of a packet whose rest has not come: rest[0, restBytes). */
  private rest: Buffer = NOTHING;
  private restBytes = 0;

  /** @param maxBytes of a packet */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /**
   * Calls `packet` for each whole packet, `frame` saying where it lies; false ends it. Throws ProtocolError as
   * readFrame does.
   */
  feed(chunk: Buffer, packet: (buffer: Buffer) => boolean): void {
    const { frame, maxBytes } = this;
    let buffer = chunk;
    if (this.restBytes > 0) {
      this.keep(chunk, 0);
      if (readFrame(this.rest, 0, this.restBytes, frame, maxBytes) === 0) return;
      buffer = this.rest.subarray(0, this.restBytes);
      this.rest = NOTHING;
      this.restBytes = 0;
    }
    let at = 0;
    while (readFrame(buffer, at, buffer.length, frame, maxBytes) === 1) {
      at = frame.end;
      if (!packet(buffer)) return;
    }
    if (at < buffer.length) this.keep(buffer, at);
  }

  private keep(source: Buffer, from: number): void {
    const needed = this.restBytes + source.length - from;
    if (this.rest.length < needed) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.rest.length * 2));
      this.rest.copy(larger, 0, 0, this.restBytes);
      this.rest = larger;
    }
    source.copy(this.rest, this.restBytes, from);
    this.restBytes = needed;
  }
}
