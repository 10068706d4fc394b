// Fuzz target: a whole broker, fed by one client with mutated packets in pieces, while another watches.
// Holds: no internal error, whatever comes; the watcher is served afterwards.
import type { Version } from '../../src/mqtt/packet.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { bytes, loadVectors, type PacketVector, packetFiles } from '../harness/packets.ts';
import type { Random } from '../harness/random.ts';
import { type TalkPlace, talkPlace } from '../harness/talkplace.ts';

const VECTORS = packetFiles().flatMap((file) => loadVectors<PacketVector>(file));
const CONNECTS: Readonly<Record<Version, Buffer>> = {
  3: bytes('10 0f 00 06 4d 51 49 73 64 70 03 00 00 00 00 01 61'),
  4: bytes('10 0d 00 04 4d 51 54 54 04 00 00 00 00 01 61'),
  5: bytes('10 13 00 04 4d 51 54 54 05 00 00 00 05 11 00 00 00 0a 00 01 61'),
};
/** CONNECT of the watcher, SUBSCRIBE to everything at QoS 2. */
const WATCH = bytes('10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 77 82 06 00 01 00 01 23 02');
const PINGREQ = bytes('c0 00');
const PINGRESP = bytes('d0 00');
const PATIENCE_MS = 5000;

export const target: FuzzTarget = {
  async once(random: Random): Promise<void> {
    const place = await talkPlace({ maxPacketSize: 5000, maxAwaitingRel: 5 }, random.pick([0, 0, 1, 7]));
    const watcher = place.open();
    watcher.send(WATCH);
    for (let turn = 0; turn < 2; turn++) await attack(place, random);
    watcher.send(PINGREQ);
    let heard = Buffer.alloc(0);
    const timer = setTimeout(() => void watcher.drop(), PATIENCE_MS);
    while (!heard.subarray(-2).equals(PINGRESP)) {
      const more = await watcher.next();
      if (more === null) throw new Error(`the watcher was closed or not served: ${place.errors.join(' ')}`);
      heard = Buffer.concat([heard, more]);
    }
    clearTimeout(timer);
    await place.advance(20_000);
    await place.stop();
    if (place.errors.length > 0) throw new Error(place.errors.join('\n'));
  },
};

/** One connection: a good CONNECT mostly, then packets of its version, most of them mutated, and an end of some kind. */
async function attack(place: TalkPlace, random: Random): Promise<void> {
  const peer = place.open();
  const version = random.pick<Version>([3, 4, 5]);
  if (random.below(8) > 0) peer.send(CONNECTS[version]);
  for (let count = random.below(7); count > 0; count--) {
    const vector = random.pick(VECTORS);
    const wire = bytes(vector.hex);
    peer.send(random.below(3) === 0 ? random.mutated(wire) : wire);
    if (random.below(4) === 0) await place.advance(random.below(2000));
  }
  await place.advance(1);
  if (random.below(2) === 0) await peer.drop();
}
