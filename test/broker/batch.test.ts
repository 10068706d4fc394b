// Runs of PUBLISH packets of clients inside the process: src/broker/batch.ts.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Batch } from '../../src/broker/batch.ts';
import { encodePublish } from '../../src/codec/publish.ts';

const packetOf = (topic: string, payload: Uint8Array): Buffer =>
  encodePublish(4, { topic, payload, qos: 0, retain: false, dup: false, packetId: 0, properties: null });

test('a batch holds the packets that a client would send', () => {
  const payload = fc.uint8Array({ maxLength: 400 });
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40 }), fc.array(payload, { maxLength: 60 }), (topic, payloads) => {
      const batch = new Batch();
      // All in one chunk, the last one at its very end: nothing beyond may be read.
      const chunk = Buffer.concat(payloads);
      for (let round = 0; round < 2; round++) {
        let at = 0;
        for (const one of payloads) {
          expect(batch.add(Buffer.from(topic), chunk, at, at + one.length)).toBe(true);
          at += one.length;
        }
        const packets = payloads.map((one) => packetOf(topic, one));
        expect(batch.buffer.subarray(0, batch.bytes).equals(Buffer.concat(packets))).toBe(true);
        expect(batch.count).toBe(payloads.length);
        expect(batch.longest).toBe(Math.max(0, ...packets.map((packet) => packet.length)));
        batch.clear();
      }
    }),
    { numRuns: 300 },
  );
});
test('a batch takes nothing that does not fit, and nothing large', () => {
  const batch = new Batch();
  const chunk = Buffer.alloc(10_000);
  const topic = Buffer.from('t');
  expect(batch.add(topic, chunk, 0, 9000)).toBe(false);
  let count = 0;
  while (batch.add(topic, chunk, 0, 1000)) count++;
  expect(count).toBe(Math.floor((65_536 - 8) / 1006));
  expect(batch.bytes).toBe(count * 1006);
});
test('a batch takes payloads that lie in a row as it takes each of them', () => {
  const sizes = fc.record({ bytes: fc.integer({ min: 0, max: 300 }), gap: fc.integer({ min: 8, max: 20 }) });
  fc.assert(
    fc.property(
      sizes,
      fc.integer({ min: 1, max: 50 }),
      fc.string({ maxLength: 30 }),
      ({ bytes, gap }, count, topic) => {
        const stride = bytes + gap;
        const chunk = Buffer.from(Array.from({ length: stride * count - gap }, (_, i) => (i * 31 + (i >> 8)) & 255));
        const [one, many] = [new Batch(), new Batch()];
        const utf8 = Buffer.from(topic);
        for (let i = 0; i < count; i++) one.add(utf8, chunk, i * stride, i * stride + bytes);
        for (let i = 0; i < count; ) {
          many.add(utf8, chunk, i * stride, i * stride + bytes);
          i++;
          if (i < count) i += many.addMany(chunk, i * stride, bytes, stride, count - i);
        }
        expect(many.count).toBe(count);
        expect(many.bytes).toBe(one.bytes);
        expect(many.longest).toBe(one.longest);
        expect(many.buffer.subarray(0, many.bytes).equals(one.buffer.subarray(0, one.bytes))).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});
