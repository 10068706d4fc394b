// Batches as bytes between the threads: what goes in comes out, for any event.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Origin } from '../../src/mqtt/message.ts';
import { FrameReader, FrameWriter, unpackOrigin } from '../../src/store/frame.ts';
import { message } from '../harness/journal.ts';

const TEXT = fc.string({ unit: 'grapheme', maxLength: 200 });

test('texts, numbers and bytes come back as they were, over any growth of the frame', () => {
  const value = fc.oneof(TEXT, fc.double({ noNaN: true }), fc.uint8Array({ maxLength: 100_000 }));
  fc.assert(
    fc.property(fc.array(value, { maxLength: 12 }), (values) => {
      const writer = new FrameWriter();
      for (const v of values) {
        if (typeof v === 'string') writer.text(v);
        else if (typeof v === 'number') writer.f64(v);
        else writer.blob(v);
      }
      const reader = new FrameReader(writer.buffer, writer.at);
      for (const v of values) {
        if (typeof v === 'string') expect(reader.text()).toBe(v);
        else if (typeof v === 'number') expect(reader.f64()).toBe(v);
        else expect(Buffer.from(reader.blob() ?? []).equals(Buffer.from(v))).toBe(true);
      }
      expect(reader.more).toBe(false);
    }),
    { numRuns: 50 },
  );
});

test('null is told from empty', () => {
  const writer = new FrameWriter();
  for (const v of [null, '']) writer.text(v);
  for (const v of [null, new Uint8Array(0)]) writer.blob(v);
  const reader = new FrameReader(writer.buffer, writer.at);
  expect([reader.text(), reader.text()]).toEqual([null, '']);
  expect([reader.blob(), reader.blob()?.length]).toEqual([null, 0]);
});

test('an origin comes back as it was', () => {
  const name = fc.option(TEXT);
  const origin: fc.Arbitrary<Origin> = fc.record({
    kind: fc.constantFrom('client' as const, 'bridge' as const, 'api' as const, 'server' as const),
    clientId: TEXT,
    username: name,
    bridge: name,
  });
  fc.assert(
    fc.property(origin, (o) => {
      const writer = new FrameWriter();
      writer.message(message('t', '', { origin: o }));
      const reader = new FrameReader(writer.buffer, writer.at);
      reader.text();
      reader.u8();
      reader.f64();
      reader.blob();
      expect(unpackOrigin(reader.blob())).toEqual(o);
    }),
  );
});

test('bytes that are no origin give nobody', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(typeof unpackOrigin(bytes).clientId).toBe('string');
    }),
  );
});
