// Finds where packets begin and end in a stream of bytes: refuses one that is too large by its header, before any of it
// is kept. Used by front.ts in front of a parser that has no bound of its own. Keeps no byte of what passes. Source:
// fixed header, MQTT 3.1.1 section 2.2.
import { ProtocolError } from '../../base/errors.ts';
import { newFrame } from '../../codec/codec.ts';
import { readFrame } from '../../codec/frame.ts';
import { CONNECT } from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR } from '../../mqtt/reason.ts';
import { VARINT_MAX } from '../../mqtt/varint.ts';

/** The longest fixed header. */
const HEADER_BYTES = 5;

export class Guard {
  private readonly frame = newFrame();
  /** The fixed header that has begun. */
  private readonly header = new Uint8Array(HEADER_BYTES);
  private headerBytes = 0;
  /** Of the packet that has begun, still to come. */
  private left = 0;

  /** What is wrong with the next bytes, null = nothing. @param maxBytes of a whole packet, 0 = no limit */
  check(chunk: Uint8Array, maxBytes: number): string | null {
    try {
      this.pass(chunk, maxBytes > 0 ? maxBytes : VARINT_MAX + HEADER_BYTES);
      return null;
    } catch (error) {
      if (error instanceof ProtocolError) return error.message;
      throw error;
    }
  }

  private pass(chunk: Uint8Array, maxBytes: number): void {
    const { frame, header } = this;
    for (let at = 0; at < chunk.length; ) {
      if (this.left > 0) {
        const step = Math.min(this.left, chunk.length - at);
        this.left -= step;
        at += step;
        continue;
      }
      header[this.headerBytes++] = chunk[at++];
      readFrame(header, 0, this.headerBytes, frame, maxBytes);
      if (this.headerBytes === 1 && header[0] >> 4 === CONNECT)
        throw new ProtocolError(PROTOCOL_ERROR, 'a second CONNECT'); // [MQTT-3.1.0-2]
      if (frame.end === 0) continue;
      this.left = frame.end - this.headerBytes;
      this.headerBytes = 0;
    }
  }
}
