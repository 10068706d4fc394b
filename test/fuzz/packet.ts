// Fuzz target: any packet of any version from either side, made by mutating the packet vectors, or random.
// Holds: nothing but ProtocolError is thrown, nothing behind the packet is read, and what was decoded is encoded and decoded again to
// the same packet.
import { ProtocolError } from '../../src/base/errors.ts';
import type { Version } from '../../src/mqtt/packet.ts';
import { writeVarint } from '../../src/mqtt/varint.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { outcome } from '../harness/outcome.ts';
import {
  type AnyPacket,
  bytes,
  decodeAny,
  encodeAny,
  loadVectors,
  type PacketVector,
  packetFiles,
  shown,
} from '../harness/packets.ts';
import type { Random } from '../harness/random.ts';

const SEEDS = packetFiles().flatMap((file) => loadVectors<PacketVector>(file).map((vector) => bytes(vector.hex)));

export const target: FuzzTarget = {
  once(random: Random): void {
    const version = random.pick<Version>([3, 4, 5]);
    const from = random.pick(['client', 'server'] as const);
    const wire = whole(random);
    outcome(version, wire, from, 300);
    const packet = decoded(() => decodeAny(version, wire, from));
    if (packet === null) return;
    // A CONNECT says its version itself; in another one than that of the run nothing else may be encoded.
    const again = encodeAny(version, packet);
    const back = JSON.stringify(shown(decodeAny(version, again, from)));
    const once = JSON.stringify(shown(packet));
    if (sorted(back) !== sorted(once))
      throw new Error(`encoded and decoded again it is another packet: ${once} | ${back}`);
  },
};

/** One packet with a right Remaining Length: mutating the length as well would end nearly every input in readFrame. */
function whole(random: Random): Buffer {
  const seed = random.below(10) === 0 ? random.bytes(2 + random.below(60)) : random.pick(SEEDS);
  let at = 1;
  while (at < 5 && seed[at] > 127) at++;
  const first = random.below(8) === 0 ? random.below(256) : seed[0];
  const body = random.mutated(seed.subarray(Math.min(at + 1, seed.length)));
  const header = Buffer.alloc(5);
  header[0] = first;
  return Buffer.concat([header.subarray(0, writeVarint(header, 1, body.length)), body]);
}

function decoded(decode: () => AnyPacket): AnyPacket | null {
  try {
    return decode();
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

/** The same characters: the Will Delay Interval changes its place, and so the order of the keys. */
function sorted(json: string): string {
  return [...json].sort().join('');
}
