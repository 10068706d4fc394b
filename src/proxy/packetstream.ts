// A stream of MQTT bytes cut into packets, each of which may be passed on, replaced or dropped. Base of both directions
// of inspect.ts. Payloads are passed on in the pieces they come in; what has to be held is bounded by HELD_BYTES.
// Ranges that stay as they are, are not copied. Throws ProtocolError for what is no MQTT. Source: MQTT 5.0 section 2.1.
import { ProtocolError } from '../base/errors.ts';
import { newFrame } from '../codec/codec.ts';
import { readFrame } from '../codec/frame.ts';
import { PACKET_TOO_LARGE } from '../mqtt/reason.ts';
import { VARINT_MAX } from '../mqtt/varint.ts';

/** A SUBSCRIBE with thousands of filters, or a PUBLISH whose properties are larger than most payloads, and no more. */
const HELD_BYTES = 256 * 1024;

/** Where the bytes of one direction go. */
export type Out = (bytes: Buffer) => void;

/** `packet` decides about each packet. */
export abstract class PacketStream {
  private readonly out: Out;
  private held: Buffer | null = null;
  /** Bytes of the present packet that are still to come, and whether they are passed on. */
  private left = 0;
  private passing = true;
  private pieces: Buffer[] = [];
  protected readonly frame = newFrame();

  constructor(out: Out) {
    this.out = out;
  }

  /** Takes a chunk, which must not change afterwards. */
  push(chunk: Buffer): void {
    let bytes = chunk;
    let at = 0;
    if (this.held !== null) {
      bytes = Buffer.concat([this.held, chunk]);
      this.held = null;
    } else if (this.left > 0) {
      at = Math.min(this.left, bytes.length);
      this.left -= at;
      if (this.passing) this.pass(bytes, 0, at);
    }
    while (at < bytes.length) {
      const next = this.one(bytes, at);
      if (next < 0) {
        this.held = at === 0 ? bytes : bytes.subarray(at);
        break;
      }
      at = next;
    }
    this.flush();
  }

  /** Deals with the packet at `at`; gives the offset behind it (or the end of the bytes), -1 when more are needed. */
  private one(bytes: Buffer, at: number): number {
    const { frame } = this;
    readFrame(bytes, at, bytes.length, frame, VARINT_MAX + 5);
    if (frame.end === 0) return -1;
    const whole = frame.end <= bytes.length;
    if (!whole && this.wantsWhole(frame.type)) {
      if (frame.end - at > HELD_BYTES) throw new ProtocolError(PACKET_TOO_LARGE, 'packet is too large to be inspected');
      return -1;
    }
    const verdict = this.packet(bytes, Math.min(frame.end, bytes.length));
    if (verdict === 'more') {
      if (bytes.length - at > HELD_BYTES)
        throw new ProtocolError(PACKET_TOO_LARGE, 'header is too large to be inspected');
      return -1;
    }
    const end = Math.min(frame.end, bytes.length);
    this.left = frame.end - end;
    this.passing = verdict !== 'drop';
    if (typeof verdict === 'number') this.pass(bytes, verdict, end);
    return end;
  }

  /** Packets that have to be there as a whole. */
  protected abstract wantsWhole(type: number): boolean;

  /**
   * Looks at the packet in `frame`, of which [packetStart, end) is there. Gives the offset from which the bytes are
   * passed on (what comes before has been replaced by put()), 'drop', or 'more'.
   */
  protected abstract packet(bytes: Buffer, end: number): number | 'drop' | 'more';

  protected put(bytes: Buffer): void {
    this.pieces.push(bytes);
  }

  private pass(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    const last = this.pieces.at(-1);
    // Packets that follow each other unchanged leave as one piece.
    if (
      last !== undefined &&
      last.buffer === bytes.buffer &&
      last.byteOffset + last.length === bytes.byteOffset + start
    ) {
      this.pieces[this.pieces.length - 1] = Buffer.from(bytes.buffer, last.byteOffset, last.length + end - start);
    } else this.pieces.push(bytes.subarray(start, end));
  }

  private flush(): void {
    const { pieces } = this;
    if (pieces.length === 0) return;
    this.pieces = [];
    this.out(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
  }
}
