// Properties as a store keeps them: what goes in comes out.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packProperties, unpackProperties } from '../../src/codec/property.ts';
import { PROPERTIES, type PropertyType } from '../../src/mqtt/property.ts';

const TEXT = fc.string({ unit: 'grapheme', maxLength: 20 });
const VALUES: Record<PropertyType, fc.Arbitrary<unknown>> = {
  byte: fc.nat(255),
  flag: fc.boolean(),
  uint16: fc.nat(0xffff),
  uint32: fc.nat(0xffffffff),
  varint: fc.nat(268_435_455),
  string: TEXT,
  binary: fc.uint8Array({ maxLength: 30 }).map((bytes) => new Uint8Array(bytes)),
  pair: fc.tuple(TEXT, TEXT),
};
const properties = fc.record(
  Object.fromEntries(
    PROPERTIES.map((row) => [row.key, row.repeats ? fc.array(VALUES[row.type], { minLength: 1 }) : VALUES[row.type]]),
  ),
  { requiredKeys: [] },
);

test('any set of properties comes back as it was', () => {
  fc.assert(
    fc.property(properties, (set) => {
      expect(unpackProperties(packProperties(set))).toEqual(set);
    }),
  );
});

test('bytes that are no properties give null or a set, and never throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const set = unpackProperties(bytes);
      expect(set === null || typeof set === 'object').toBe(true);
    }),
  );
});
