// Fuzz target: a stream of packets cut into chunks anywhere. Holds: the reader finds the same packets, or the same refusal at the same
// place, however the stream was cut; frames never reach past the bytes that are there.
import { ProtocolError } from '../../src/base/errors.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { bytes, loadVectors, type PacketVector, packetFiles } from '../harness/packets.ts';
import type { Random } from '../harness/random.ts';

const SEEDS = packetFiles().flatMap((file) => loadVectors<PacketVector>(file).map((vector) => bytes(vector.hex)));
const LIMIT = 2000;

export const target: FuzzTarget = {
  once(random: Random): void {
    const packets = Array.from({ length: 1 + random.below(5) }, () => random.pick(SEEDS));
    const joined = Buffer.concat(packets);
    const stream = random.below(2) === 0 ? joined : random.mutated(joined);
    const whole = frames(stream, () => stream.length);
    const cut = frames(stream, () => 1 + random.below(9));
    if (whole !== cut) throw new Error(`cut into chunks it reads otherwise: ${whole} | ${cut}`);
  },
};

/** Packet boundaries and the refusal, if any, as text, when `chunk()` more bytes come each time. */
function frames(stream: Buffer, chunk: () => number): string {
  const frame = newFrame();
  const found: string[] = [];
  let at = 0;
  let there = 0;
  while (there < stream.length) {
    there = Math.min(stream.length, there + chunk());
    try {
      while (readFrame(stream, at, there, frame, LIMIT) === 1) {
        if (frame.end > there || frame.bodyStart > frame.end || frame.packetStart !== at)
          throw new Error('frame out of bounds');
        found.push(`${frame.type}/${frame.flags} ${frame.packetStart}-${frame.end}`);
        at = frame.end;
      }
    } catch (error) {
      if (error instanceof ProtocolError) return `${found.join(', ')}; refused ${error.reasonCode}`;
      throw error;
    }
  }
  return found.join(', ');
}
