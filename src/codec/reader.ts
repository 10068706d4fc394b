// A place in a packet that only moves forward and never past the packet's end (MQTT 5.0 section 1.5: the data types).
// Used by the decoders of packets that are not on the hot path: CONNECT, SUBSCRIBE, properties and the like. Every read
// checks its bounds before it touches a byte; a field cut short is a Malformed Packet. Must not look at meaning.
import { ProtocolError } from '../base/errors.ts';
import { MALFORMED_PACKET } from '../mqtt/reason.ts';
import { skipVarint, VARINT_CUT, VARINT_TOO_LONG, varintBytes, varintWithin } from '../mqtt/varint.ts';
import { isText, readText } from './text.ts';

export class Reader {
  readonly buffer: Buffer;
  at: number;
  /** Offset behind the last byte that may be read. */
  end: number;

  constructor(buffer: Buffer, at: number, end: number) {
    this.buffer = buffer;
    this.at = at;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Throws ProtocolError 0x81 unless `bytes` more are there. */
  private need(bytes: number, what: string): void {
    if (this.end - this.at < bytes) throw new ProtocolError(MALFORMED_PACKET, `${what} reaches past the packet`);
  }

  byte(what: string): number {
    this.need(1, what);
    return this.buffer[this.at++];
  }

  uint16(what: string): number {
    this.need(2, what);
    const value = (this.buffer[this.at] << 8) | this.buffer[this.at + 1];
    this.at += 2;
    return value;
  }

  uint32(what: string): number {
    this.need(4, what);
    const value = this.buffer.readUInt32BE(this.at);
    this.at += 4;
    return value;
  }

  /** A Variable Byte Integer in its shortest form, at most four bytes [MQTT-1.5.5-1]. */
  varint(what: string): number {
    const value = varintWithin(this.buffer, this.at, this.end);
    if (value === VARINT_CUT) throw new ProtocolError(MALFORMED_PACKET, `${what} reaches past the packet`);
    const behind = skipVarint(this.buffer, this.at);
    if (value === VARINT_TOO_LONG || behind - this.at > varintBytes(value))
      throw new ProtocolError(MALFORMED_PACKET, `${what} is not a valid variable byte integer`);
    this.at = behind;
    return value;
  }

  text(what: string): string {
    const start = this.field(what);
    return readText(this.buffer, start, this.at);
  }

  /**
   * For the one field where MQTT 3.1 takes any bytes: ill-formed sequences become U+FFFD, U+0000 is refused all the
   * same.
   */
  looseText(what: string): string {
    const start = this.field(what);
    if (isText(this.buffer, start, this.at)) return this.buffer.toString('utf8', start, this.at);
    const text = this.buffer.toString('utf8', start, this.at);
    if (text.includes('\0')) throw new ProtocolError(MALFORMED_PACKET, `${what} holds U+0000`);
    return text;
  }

  /** A copy: what is decoded here outlives the chunk it came in. */
  binary(what: string): Uint8Array {
    const start = this.field(what);
    return new Uint8Array(this.buffer.subarray(start, this.at));
  }

  /** Throws ProtocolError 0x81 when anything is left. */
  finish(what: string): void {
    if (this.at !== this.end)
      throw new ProtocolError(MALFORMED_PACKET, `${what} has ${this.end - this.at} bytes too many`);
  }

  /** Steps over a field with a two-byte length; returns where its content starts, `at` is then its end. */
  private field(what: string): number {
    const bytes = this.uint16(what);
    this.need(bytes, what);
    const start = this.at;
    this.at += bytes;
    return start;
  }
}
