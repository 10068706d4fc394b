// The check of file heads finds names of files that are not there and claims of use that no import backs.
import { expect, it } from 'vitest';
import { checkHeads } from '../../scripts/heads.ts';

/** What is wrong with these sources: text of the head, then the files it imports. */
function breaches(files: Record<string, readonly [head: string, ...targets: string[]]>): string[] {
  const modules = Object.entries(files).map(([file, [source, ...targets]]) => ({ file, source, targets }));
  return checkHeads(modules, new Set(['test/there.ts'])).map(({ file, text }) => `${file} ${text}`);
}

it('a claim of use is backed by an import, in the same folder or from another', () => {
  expect(breaches({ 'a/x.ts': ['// X. Called by y.ts.', 'a/z.ts'], 'a/y.ts': ['', 'a/x.ts'] })).toEqual([]);
  expect(breaches({ 'a/x.ts': ['// X. Called by y.ts.'], 'a/y.ts': ['', 'a/z.ts'] })).toEqual([
    'a/x.ts is said to be used by y.ts, which does not import it',
  ]);
  expect(breaches({ 'a/x.ts': ['// X. Used by b/ and c/q.ts.'], 'b/y.ts': ['', 'a/x.ts'], 'c/q.ts': [''] })).toEqual([
    'a/x.ts is said to be used by c/q.ts, which does not import it',
  ]);
});

it('a claim may run over lines, and ends where the next verb begins', () => {
  const files = {
    'a/x.ts': ['// X. Made by y.ts and\n// z.ts, asked by w.ts.'] as const,
    'a/y.ts': ['', 'a/x.ts'] as const,
    'a/w.ts': [''] as const,
  };
  expect(breaches({ ...files, 'a/z.ts': ['', 'a/x.ts'] })).toEqual([]);
  expect(breaches({ ...files, 'a/z.ts': [''] })).toEqual([
    'a/x.ts is said to be used by z.ts, which does not import it',
  ]);
});

it('a file that a head names is there: beside it, in a folder above, below src, or among the tests', () => {
  expect(breaches({ 'a/b/x.ts': ['// See c.ts, a/c.ts, test/there.ts.'], 'a/c.ts': [''] })).toEqual([]);
  expect(breaches({ 'a/x.ts': ['// See gone.ts.'] })).toEqual(['a/x.ts names gone.ts, which is not there']);
  expect(breaches({ 'a/x.ts': ['// See gone.ts.'], 'b/gone.ts': [''] })).toEqual([
    'a/x.ts names gone.ts, which is not there',
  ]);
});

it('what stands behind the head is not looked at', () => {
  expect(breaches({ 'a/x.ts': ["// X.\nimport './y.ts';\n// Called by gone.ts."] })).toEqual([]);
});
