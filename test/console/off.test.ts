// With the console off nothing of it is loaded: what gateway/gateway.ts imports at once leads to no file of console/, nor to the HTTP router.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const SRC = path.join(import.meta.dirname, '../../src');

/** What a file imports when it is loaded: types and `await import()` are not. */
function imports(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const found = text.matchAll(/^import (?!type )(?:[^'";]* from )?'([^']+)';$/gm);
  return [...found].map(([, from]) => from);
}

/** All files below src/ and all packages that come with loading one. */
function closure(start: string): Set<string> {
  const seen = new Set<string>();
  const waiting = [start];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (!file.endsWith('.ts')) continue;
    for (const from of imports(path.join(SRC, file)))
      waiting.push(from.startsWith('.') ? path.join(path.dirname(file), from) : from);
  }
  return seen;
}

test('the gateway and its command load nothing of the console', () => {
  for (const start of ['gateway/gateway.ts', 'cli/start.ts']) {
    const loaded = [...closure(start)];
    expect(loaded).toContain('base/errors.ts');
    expect(loaded.filter((file) => /^console\/|^hono|^@hono|^jose|^gateway\/(?:keys|webhash)/.test(file))).toEqual([]);
  }
});

test('the console is found by the same search', () => {
  expect([...closure('console/http.ts')]).toContain('console/access.ts');
});
