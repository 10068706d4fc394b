// Slabs: pieces are copies, stay apart from each other, and large ones have memory of their own.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Slab } from '../../src/base/slab.ts';
import { WordView } from '../../src/base/words.ts';

describe('a slab', () => {
  it('gives pieces that keep their bytes whatever becomes of the chunk and of later pieces', () => {
    const piece = fc.record({ start: fc.nat(500), bytes: fc.oneof(fc.nat(40), fc.nat(1500)), fill: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const slab = new Slab(new WordView());
        const chunk = Buffer.alloc(2048);
        const kept = pieces.map(({ start, bytes, fill }) => {
          for (let i = 0; i < bytes; i++) chunk[start + i] = fill + i;
          const expected = Buffer.from(chunk.subarray(start, start + bytes));
          const copy = slab.copy(chunk, start, bytes);
          chunk.fill(0);
          return { copy, expected };
        });
        for (const { copy, expected } of kept) expect(copy.equals(expected)).toBe(true);
      }),
    );
  });

  it('has no part in a piece that is large', () => {
    const slab = new Slab(new WordView());
    const small = slab.copy(Buffer.alloc(10), 0, 10);
    expect(slab.copy(Buffer.alloc(5000), 0, 5000).buffer).not.toBe(small.buffer);
  });
});
