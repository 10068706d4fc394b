// Finds where packets begin and end in a stream of bytes: refuses one that is too large by its header, before any of it
// is kept. Used by front.ts in front of a parser that has no bound of its own. Keeps no byte of what passes. Source:
// fixed header, MQTT 3.1.1 section 2.2.
import { CONNECT } from '../../mqtt/packet.ts';

const MOST_LENGTH_BYTES = 4;

export class Guard {
  private first = -1;
  private length = 0;
  private lengthBytes = 0;
  /** Of the packet that has begun, still to come. */
  private left = 0;

  /** What is wrong with the next bytes, null = nothing. @param maxBytes of a whole packet, 0 = no limit */
  check(chunk: Uint8Array, maxBytes: number): string | null {
    for (let at = 0; at < chunk.length; ) {
      if (this.left > 0) {
        const step = Math.min(this.left, chunk.length - at);
        this.left -= step;
        at += step;
        continue;
      }
      const byte = chunk[at++];
      if (this.first < 0) {
        this.first = byte;
        if (byte >> 4 === CONNECT) return 'a second CONNECT'; // [MQTT-3.1.0-2]
        continue;
      }
      this.length += (byte & 127) * 128 ** this.lengthBytes++;
      if (byte > 127) {
        if (this.lengthBytes === MOST_LENGTH_BYTES) return 'Remaining Length has more than four bytes';
        continue;
      }
      const whole = this.length + 1 + this.lengthBytes;
      if (maxBytes > 0 && whole > maxBytes) return `packet of ${whole} bytes, the limit is ${maxBytes}`;
      this.left = this.length;
      this.first = -1;
      this.length = 0;
      this.lengthBytes = 0;
    }
    return null;
  }
}
