// The fixed header (MQTT 5.0 section 2.1, 3.1.1 section 2.2): where one packet begins and ends in a chunk.
// Called for every packet by every reader of MQTT bytes; allocates nothing. Must not look past `end`.
//
//   byte 1      type (bits 7-4), flags (bits 3-0)
//   bytes 2-5   Remaining Length: Variable Byte Integer, 7 bits a byte, least significant first, at most 4 bytes
import { ProtocolError } from '../base/errors.ts';
import { MALFORMED_PACKET, PACKET_TOO_LARGE } from '../mqtt/reason.ts';
import type { Frame } from './codec.ts';

/**
 * Reads the fixed header at `at` into `frame`. Returns 1 when buffer[at, end) holds the whole packet, 0 when more bytes
 * are needed: frame.end is then where the packet will end, or 0 while even that is not known. Throws ProtocolError 0x81
 * for a five-byte length [MQTT-1.5.5-1], 0x95 when the packet is larger than `maxBytes` in all.
 */
export function readFrame(buffer: Uint8Array, at: number, end: number, frame: Frame, maxBytes: number): 0 | 1 {
  frame.end = 0;
  if (end - at < 2) return 0;
  const first = buffer[at];
  frame.type = first >> 4;
  frame.flags = first & 15;
  frame.packetStart = at;
  let o = at + 1;
  let byte = buffer[o++];
  let length = byte & 127;
  let shift = 7;
  while (byte > 127) {
    if (shift > 21) throw new ProtocolError(MALFORMED_PACKET, 'Remaining Length has more than four bytes');
    if (o >= end) return 0;
    byte = buffer[o++];
    length |= (byte & 127) << shift;
    shift += 7;
  }
  frame.bodyStart = o;
  frame.end = o + length;
  if (frame.end - at > maxBytes) {
    throw new ProtocolError(PACKET_TOO_LARGE, `packet of ${frame.end - at} bytes, the limit is ${maxBytes}`);
  }
  return frame.end <= end ? 1 : 0;
}
