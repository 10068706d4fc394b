// Fuzz target: property blocks for every packet type. Holds: only ProtocolError, bounds, and what is decoded is encoded to as many
// bytes as it says and decoded again to the same.
import { ProtocolError } from '../../src/base/errors.ts';
import { decodeProperties, encodeProperties, propertiesBytes } from '../../src/codec/property.ts';
import { PROPERTIES } from '../../src/mqtt/property.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const IDS = PROPERTIES.map((row) => row.id);

export const target: FuzzTarget = {
  once(random: Random): void {
    const packet = 1 + random.below(16);
    const body = Buffer.concat(Array.from({ length: random.below(6) }, () => property(random)));
    const block = Buffer.concat([Buffer.from([body.length & 127]), body.subarray(0, body.length & 127)]);
    const wire = random.below(3) === 0 ? random.mutated(block) : block;
    let result: ReturnType<typeof decodeProperties>;
    try {
      result = decodeProperties(Buffer.concat([wire, Buffer.alloc(300, 0x61)]), 0, wire.length, packet);
    } catch (error) {
      if (error instanceof ProtocolError) return;
      throw error;
    }
    if (result.end > wire.length) throw new Error('read past the end');
    const again = encodeProperties(result.properties, packet);
    if (again.length !== propertiesBytes(result.properties, packet)) throw new Error('size and bytes differ');
    const back = decodeProperties(again, 0, again.length, packet).properties;
    if (JSON.stringify(back) !== JSON.stringify(result.properties))
      throw new Error('encoded and decoded again they differ');
  },
};

/** Something like a property: a known identifier, then bytes that are a number or a short string. */
function property(random: Random): Buffer {
  const id = random.below(12) === 0 ? random.below(256) : random.pick(IDS);
  const kind = random.below(5);
  if (kind === 4) return Buffer.concat([Buffer.from([id, 0, 1, 0x61, 0, 1]), random.bytes(1)]);
  const value =
    kind === 0
      ? [random.below(3)]
      : kind === 1
        ? [0, random.below(3)]
        : kind === 2
          ? [0, 0, 0, random.below(3)]
          : [0, 2, 0x61, 0x62];
  return Buffer.from([id, ...value]);
}
