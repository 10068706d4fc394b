// The Variable Byte Integer (MQTT 5.0 section 1.5.5): 7 bits a byte, least significant first, the top bit set on all
// bytes but the last, at most 4 bytes. Called by codec/ and by all who look into a packet where it lies. Knows no
// packet and throws nothing. Where every packet passes (codec/frame.ts, session/run.ts) the loop is written out.

/** Largest value of a Variable Byte Integer. */
export const VARINT_MAX = 268_435_455;

/** Bytes that `value` takes. */
export function varintBytes(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4;
}

/** Writes `value` (0 to VARINT_MAX) at `at`; returns the offset behind it. */
export function writeVarint(buffer: Uint8Array, at: number, value: number): number {
  while (value > 127) {
    buffer[at++] = (value & 127) | 128;
    value >>>= 7;
  }
  buffer[at++] = value;
  return at;
}

/** The number at `at`, which is known to be there whole. */
export function varintAt(buffer: Uint8Array, at: number): number {
  let byte = buffer[at];
  let value = byte & 127;
  for (let shift = 7; byte > 127; shift += 7) {
    byte = buffer[++at];
    value |= (byte & 127) << shift;
  }
  return value;
}

/** Offset behind the number at `at`, which is known to be there whole. */
export function skipVarint(buffer: Uint8Array, at: number): number {
  while (buffer[at++] > 127);
  return at;
}

/** Of varintWithin(): more bytes are needed. */
export const VARINT_CUT = -1;
/** Of varintWithin(): a fifth byte would follow. */
export const VARINT_TOO_LONG = -2;

/** The number at `at` when it is whole before `end`, else VARINT_CUT or VARINT_TOO_LONG. */
export function varintWithin(buffer: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let shift = 0; shift <= 21; shift += 7) {
    if (at >= end) return VARINT_CUT;
    const byte = buffer[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  return VARINT_TOO_LONG;
}
