// Packets out of chunks: whatever the cuts, each is shown once, whole and in order.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PacketCutter } from '../../src/codec/cutter.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { pattern } from '../contract/transport.ts';

function packet(bytes: number, seed: number): Buffer {
  const payload = pattern(bytes, seed);
  return encodePublish(4, { topic: 't', payload, qos: 0, retain: false, dup: false, packetId: 0, properties: null });
}

/** The packets that a cutter shows of `stream` in pieces of `cuts` bytes, in turn. */
function shown(cutter: PacketCutter, stream: Buffer, cuts: readonly number[]): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0, turn = 0; at < stream.length; turn++) {
    const end = at + cuts[turn % cuts.length];
    // A chunk is the reader's own: it is written over when the next one comes.
    const chunk = Buffer.from(stream.subarray(at, end));
    cutter.feed(chunk, (buffer) => {
      found.push(Buffer.from(buffer.subarray(cutter.frame.packetStart, cutter.frame.end)));
      return true;
    });
    chunk.fill(0xee);
    at = end;
  }
  return found;
}

it('shows each packet once, whole and in order, whatever the cuts', () => {
  const sizes = fc.array(fc.oneof(fc.nat(300), fc.nat(20_000)), { minLength: 1, maxLength: 8 });
  const cuts = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 30_000 })), {
    minLength: 1,
  });
  fc.assert(
    fc.property(sizes, cuts, (bytes, list) => {
      const packets = bytes.map((size, n) => packet(size, n + 1));
      const found = shown(new PacketCutter(Number.POSITIVE_INFINITY), Buffer.concat(packets), list);
      expect(found.length).toBe(packets.length);
      for (const [n, one] of found.entries()) if (!one.equals(packets[n])) throw new Error(`packet ${n} differs`);
    }),
    { numRuns: 60 },
  );
});

it('refuses a packet above the limit by its header, before its bytes have come', () => {
  const cutter = new PacketCutter(100);
  const header = packet(200, 1).subarray(0, 4);
  expect(() => cutter.feed(header, () => true)).toThrow('the limit is 100');
});

it('shows nothing more once a packet has ended the connection', () => {
  const cutter = new PacketCutter(1000);
  let count = 0;
  cutter.feed(Buffer.concat([packet(10, 1), packet(10, 2), packet(10, 3)]), () => ++count < 2);
  expect(count).toBe(2);
});
