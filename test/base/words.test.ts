// Copies of short pieces: src/base/words.ts.
import { expect, test } from 'vitest';
import { copyWords, WordView } from '../../src/base/words.ts';

test('copyWords copies any number of bytes from and to any place, whether views are there or not', () => {
  const source = Buffer.from(Array.from({ length: 1000 }, (_, i) => (i * 7) & 255));
  // Not at the beginning of its memory, as buffers mostly are.
  const target = Buffer.alloc(2000).subarray(100, 1100);
  const from = new WordView();
  const to = new WordView();
  for (const bytes of [0, 1, 7, 8, 12, 13, 16, 20, 63, 64, 65, 255, 256, 257, 700]) {
    for (const offset of [0, 1, 3, 8]) {
      for (let again = 0; again < 3; again++) {
        target.fill(0xaa);
        copyWords(source, from, offset, target, to, 5 + offset, bytes);
        const expected = Buffer.alloc(1000, 0xaa);
        source.copy(expected, 5 + offset, offset, offset + bytes);
        expect(target.equals(expected)).toBe(true);
      }
    }
  }
});
test('a view follows the buffer it is asked for', () => {
  const view = new WordView();
  const [a, b] = [Buffer.alloc(8, 1), Buffer.alloc(8, 2)];
  expect(view.of(a)).toBeNull();
  expect(view.of(a)?.getUint8(0)).toBe(1);
  expect(view.of(b)).toBeNull();
  expect(view.of(b)?.getUint8(0)).toBe(2);
  view.clear();
  expect(view.of(b)).toBeNull();
});
