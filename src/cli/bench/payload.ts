// What stands in each payload of the load generator, so that loss, order and latency can be told from the bytes
// received. Written by publishers into prebuilt blocks, read by subscribers at fixed offsets. Allocates nothing.
//
//   0  u32  time of sending, microseconds of a monotonic clock, modulo 2^32
//   4  u32  sequence number of this publisher, from 0, modulo 2^32
//   8  u16  publisher
//  10  u16  mark: these are our bytes
//  12  ...  filler up to the size asked for

export const MIN_PAYLOAD = 12;
const MARK_HIGH = 0x74;
const MARK_LOW = 0x67;

/** Microseconds of the monotonic clock; only differences modulo 2^32 mean anything. */
export function nowUs(): number {
  return performance.now() * 1000;
}

/** A payload of `size` bytes of one publisher; stamp() fills in the rest. */
export function makePayload(size: number, publisher: number): Buffer {
  const payload = Buffer.alloc(size, 'x');
  payload.writeUInt16BE(publisher, 8);
  payload[10] = MARK_HIGH;
  payload[11] = MARK_LOW;
  return payload;
}

/** Puts time and sequence number into the payload at `at`. */
export function stamp(buffer: Uint8Array, at: number, timeUs: number, sequence: number): void {
  buffer[at] = timeUs >>> 24;
  buffer[at + 1] = timeUs >>> 16;
  buffer[at + 2] = timeUs >>> 8;
  buffer[at + 3] = timeUs;
  buffer[at + 4] = sequence >>> 24;
  buffer[at + 5] = sequence >>> 16;
  buffer[at + 6] = sequence >>> 8;
  buffer[at + 7] = sequence;
}

export function isOurs(buffer: Uint8Array, at: number): boolean {
  return buffer[at + 10] === MARK_HIGH && buffer[at + 11] === MARK_LOW;
}

export function readU32(buffer: Uint8Array, at: number): number {
  return ((buffer[at] << 24) | (buffer[at + 1] << 16) | (buffer[at + 2] << 8) | buffer[at + 3]) >>> 0;
}

export function publisherOf(buffer: Uint8Array, at: number): number {
  return (buffer[at + 8] << 8) | buffer[at + 9];
}
