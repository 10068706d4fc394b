// Packet boundaries in any stream of bytes: what the engine aedes is shielded by.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Guard } from '../../../src/broker/aedes/guard.ts';

/** A packet of this type with so many bytes behind its header. */
function packet(type: number, length: number): Buffer {
  const header = [type << 4];
  let left = length;
  do {
    const byte = left % 128;
    left = Math.floor(left / 128);
    header.push(left > 0 ? byte | 128 : byte);
  } while (left > 0);
  return Buffer.concat([Buffer.from(header), Buffer.alloc(length, 0x10)]);
}

const packets = fc.array(
  fc.record({ type: fc.integer({ min: 2, max: 14 }), length: fc.integer({ min: 0, max: 20_000 }) }),
  {
    minLength: 1,
    maxLength: 8,
  },
);

describe('the guard', () => {
  test('lets whole packets of any size up to the limit pass, however they are cut', () => {
    fc.assert(
      fc.property(packets, fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }), (list, cuts) => {
        const guard = new Guard();
        const bytes = Buffer.concat(list.map(({ type, length }) => packet(type, length)));
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const end = Math.min(bytes.length, at + cuts[i % cuts.length]);
          expect(guard.check(bytes.subarray(at, end), 20_004)).toBeNull();
          at = end;
        }
      }),
    );
  });

  test('refuses a packet of one byte more by its header alone', () => {
    const guard = new Guard();
    const most = packet(3, 1000);
    expect(guard.check(most, most.length)).toBeNull();
    expect(guard.check(packet(3, 1001).subarray(0, 3), most.length)).toBe('packet of 1004 bytes, the limit is 1003');
  });

  test('refuses a second CONNECT and a length of five bytes', () => {
    expect(new Guard().check(packet(1, 10), 0)).toBe('a second CONNECT');
    expect(new Guard().check(Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff]), 0)).toMatch(/four bytes/);
  });
});
