// What a decoder makes of bytes that may be anything: for property tests and fuzzing.
import { ProtocolError } from '../../src/base/errors.ts';
import type { Sender } from '../../src/codec/codec.ts';
import type { Version } from '../../src/mqtt/packet.ts';
import { decodeAny, shown } from './packets.ts';

/** Bytes behind the packet: whatever they are, the outcome has to be the same. */
const POISON = [0x00, 0x61, 0xff];
const POISON_BYTES = 70_000;

/**
 * Decodes the one packet `wire` three times with different bytes behind it. Returns what came out as text, the decoded packet or the
 * refusal. Throws when it depends on bytes behind the packet, or when anything but ProtocolError was thrown.
 */
export function outcome(version: Version, wire: Buffer, from: Sender, poisonBytes = POISON_BYTES): string {
  let first: string | null = null;
  for (const poison of POISON) {
    const chunk = Buffer.concat([wire, Buffer.alloc(poisonBytes, poison)]);
    const result = once(version, chunk, from, wire.length);
    if (first !== null && result !== first) throw new Error(`bytes behind the packet were read: ${first} | ${result}`);
    first = result;
  }
  return first ?? '';
}

function once(version: Version, chunk: Buffer, from: Sender, end: number): string {
  try {
    return JSON.stringify(shown(decodeAny(version, chunk, from, 0, end)));
  } catch (error) {
    if (error instanceof ProtocolError) return `${error.reasonCode} ${error.message}`;
    throw error;
  }
}
