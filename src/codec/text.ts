// UTF-8 Encoded Strings and Binary Data (MQTT 5.0 sections 1.5.4 and 1.5.6): two bytes of length, then that many bytes.
// Called by every decoder and encoder. The callers have checked that the range lies in the packet (reader.ts does it
// for them). Must not repair text: what is ill-formed is refused, never replaced. Control characters other than U+0000
// pass (mqtt/topic.ts).
import { isUtf8 } from 'node:buffer';
import { ProtocolError } from '../base/errors.ts';
import { MALFORMED_PACKET } from '../mqtt/reason.ts';

/** Longest string or binary value in bytes. */
export const TEXT_MAX_BYTES = 65_535;

/**
 * Up to here a loop finds out that text is ASCII faster than the engine's own check, which costs 80 ns to call (Node
 * 20).
 */
const LOOP_BYTES = 64;

/**
 * The string in buffer[start, end), without its length field. U+FEFF stays where it is [MQTT-1.5.4-3].
 * Throws ProtocolError 0x81 for ill-formed UTF-8 [MQTT-1.5.4-1] and U+0000 [MQTT-1.5.4-2].
 */
export function readText(buffer: Buffer, start: number, end: number): string {
  if (end - start <= LOOP_BYTES) {
    let at = start;
    // 1 to 127 are the bytes that stand for themselves: byte - 1 is then below 127.
    while (at < end && ((buffer[at] - 1) & 255) < 127) at++;
    if (at === end) return start === end ? '' : buffer.toString('latin1', start, end);
  }
  if (!isText(buffer, start, end))
    throw new ProtocolError(MALFORMED_PACKET, 'string is not well-formed UTF-8 or holds U+0000');
  return buffer.toString('utf8', start, end);
}

/** True when buffer[start, end) is well-formed UTF-8 without U+0000. */
export function isText(buffer: Buffer, start: number, end: number): boolean {
  const bytes = buffer.subarray(start, end);
  return isUtf8(bytes) && !bytes.includes(0);
}

/** Bytes that `text` takes with its length field. Throws ProtocolError 0x81 when it is too long for one. */
export function textBytes(text: string): number {
  const bytes = Buffer.byteLength(text);
  if (bytes > TEXT_MAX_BYTES)
    throw new ProtocolError(MALFORMED_PACKET, `string of ${bytes} bytes, the most is ${TEXT_MAX_BYTES}`);
  return 2 + bytes;
}

/**
 * Writes length and text at `at`, where textBytes() are free; returns the offset behind them. Throws ProtocolError 0x81
 * for U+0000.
 */
export function writeText(buffer: Buffer, at: number, text: string): number {
  if (text.includes('\0')) throw new ProtocolError(MALFORMED_PACKET, 'string holds U+0000'); // [MQTT-1.5.4-2]
  const bytes = buffer.write(text, at + 2, 'utf8');
  buffer[at] = bytes >> 8;
  buffer[at + 1] = bytes & 255;
  return at + 2 + bytes;
}

/** Bytes that `data` takes with its length field. Throws ProtocolError 0x81 when it is too long for one. */
export function binaryBytes(data: Uint8Array): number {
  if (data.length > TEXT_MAX_BYTES) {
    throw new ProtocolError(MALFORMED_PACKET, `binary data of ${data.length} bytes, the most is ${TEXT_MAX_BYTES}`);
  }
  return 2 + data.length;
}

/** Writes length and data at `at`, where binaryBytes() are free; returns the offset behind them. */
export function writeBinary(buffer: Buffer, at: number, data: Uint8Array): number {
  buffer[at] = data.length >> 8;
  buffer[at + 1] = data.length & 255;
  buffer.set(data, at + 2);
  return at + 2 + data.length;
}

/** Writes a Two Byte Integer; returns the offset behind it. */
export function writeUint16(buffer: Buffer, at: number, value: number): number {
  buffer[at] = value >> 8;
  buffer[at + 1] = value & 255;
  return at + 2;
}
