// Maps of folders: one line a file from its own head, in the head of the seam, the same however often they are made.
import { expect, it } from 'vitest';
import { phraseOf, withMap } from '../../scripts/maps.ts';

it.each([
  ['// Cuts bytes. Called by x.ts.\n', 'Cuts bytes'],
  ['// Cuts bytes into\n// packets [MQTT-4.6.0-2]: whole ones. More.\n', 'Cuts bytes into packets: whole ones'],
  [
    '// Cuts bytes: it is a long story, with a clause that nobody reads (for good reasons).\n',
    'Cuts bytes: it is a long story',
  ],
  ['// Cuts (bytes, words, and what else there is to cut), then more: no.\n', 'Cuts'],
  ['// Reads x.ts files. More.\n', 'Reads x.ts files'],
])('the phrase of %j is %j', (head, phrase) => {
  expect(phraseOf(head, 40)).toBe(phrase);
});

it('a file without a head, or with one that cannot be cut, has no phrase', () => {
  expect(() => phraseOf('const a = 1;\n', 40)).toThrow('has no head');
  expect(() => phraseOf(`// ${'word '.repeat(30)}.\n`, 40)).toThrow('no clause');
});

it('the map stands at the end of the head, files before folders, and is made again to the same text', () => {
  const files = new Map([
    ['b/z.ts', '// Z.\n'],
    ['y.ts', '// Y.\n'],
  ]);
  const once = withMap("// SEAM.\nimport './y.ts';\n", files);
  expect(once).toBe("// SEAM.\n//\n// Map (made by `make docs`):\n//   y.ts    Y\n//   b/z.ts  Z\nimport './y.ts';\n");
  expect(withMap(once, files)).toBe(once);
});
