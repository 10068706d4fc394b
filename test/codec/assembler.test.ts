// A packet in pieces: whatever the cuts, it comes whole; a large one is read to where it belongs, and memory follows
// what has come.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SpareBuffers } from '../../src/base/sharedbytes.ts';
import { Assembler } from '../../src/codec/assembler.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { pattern } from '../contract/transport.ts';

function packet(bytes: number, seed: number): Buffer {
  const payload = pattern(bytes, seed);
  return encodePublish(4, { topic: 't', payload, qos: 0, retain: false, dup: false, packetId: 0, properties: null });
}

it('packets of any size come whole through any cuts, in chunks or to the region that is asked for', () => {
  const sizes = fc.oneof(fc.nat(300), fc.nat(20_000), fc.integer({ min: 30_000, max: 400_000 }));
  const cuts = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 90_000 }));
  fc.assert(
    fc.property(
      fc.array(sizes, { minLength: 1, maxLength: 6 }),
      fc.array(cuts, { minLength: 1 }),
      fc.boolean(),
      (bytes, list, obeys) => {
        const assembler = new Assembler(new SpareBuffers());
        assembler.direct = true;
        const frame = newFrame();
        let turn = 0;
        for (const [n, size] of bytes.entries()) {
          const whole = packet(size, n + 1);
          let at = 0;
          while (at < whole.length) {
            // Large packets in large pieces, or the test takes minutes.
            const cut = Math.min(Math.max(list[turn++ % list.length], whole.length >> 7), whole.length - at);
            const { region } = assembler;
            // Now and then bytes come another way although a region was asked for.
            if (region !== null && (obeys || turn % 3 > 0)) {
              const part = Math.min(cut, region.length);
              whole.copy(region, 0, at, at + part);
              assembler.filled(part);
              at += part;
            } else {
              region?.fill(0xee);
              at = assembler.feed(whole, at, at + cut, frame, Number.POSITIVE_INFINITY);
              region?.fill(0xee);
            }
            if (assembler.complete !== (at === whole.length)) throw new Error(`complete at ${at} of ${whole.length}`);
          }
          const taken = assembler.take();
          expect(taken.bytes.equals(whole)).toBe(true);
          taken.handled();
          expect(assembler.active).toBe(false);
        }
      },
    ),
    { numRuns: 100 },
  );
});

it('who announces much and sends little gets little memory; who has sent much once gets its size at once', () => {
  const assembler = new Assembler(new SpareBuffers());
  assembler.direct = true;
  const whole = packet(1_000_000, 1);
  const feed = (from: number, to: number): number => assembler.feed(whole, from, to, newFrame(), 2_000_000);
  feed(0, 100);
  expect(assembler.region).toBeNull();
  for (let at = 100; at < whole.length; ) at = feed(at, at + 50_000);
  assembler.take();
  feed(0, 100);
  expect(assembler.region?.length).toBe(whole.length - 100);
});

it('a connection that does not read to a region costs one copy of the bytes, however small its chunks are', () => {
  let taken = 0;
  const spare = new SpareBuffers();
  const take = spare.take.bind(spare);
  spare.take = (bytes) => {
    taken++;
    return take(bytes);
  };
  const assembler = new Assembler(spare);
  const packet = Buffer.concat([Buffer.from([0x30, 0x80, 0x80, 0x04]), Buffer.alloc(65_536)]);
  for (const byte of packet) assembler.feed(Buffer.of(byte), 0, 1, newFrame(), 1_000_000);
  expect(assembler.complete).toBe(true);
  expect(taken).toBeLessThan(10);
});
