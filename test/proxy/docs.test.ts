// docs/proxy-features.md promises things and names the tests that hold them: each of these has to exist, under this very name.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

const rows = read('docs/proxy-features.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| what |'))
  .map((line) => line.slice(2, -2).split(' | '));
const NAMED = /^`(test\/[\w/-]+\.test\.ts)`: "(.+)"$/;

describe('the features of the proxy', () => {
  it('stand in rows of what, how and test', () => {
    expect(rows.length).toBeGreaterThan(50);
    for (const row of rows) expect(row, row[0]).toHaveLength(3);
  });

  it.each(rows)('%s: the test exists, or it is said that there is none', (what, _how, test) => {
    if (test === 'not built' || test === 'measured') return;
    const [, file, name] = NAMED.exec(test) ?? [];
    expect(file, `${what} names no test`).toBeDefined();
    expect(existsSync(new URL(file, root)), file).toBe(true);
    const text = read(file);
    expect(
      [`'${name}'`, `\`${name}\``].some((title) => text.includes(title)),
      `${file} has no "${name}"`,
    ).toBe(true);
  });

  it('are reached from the page of the proxy', () => {
    expect(read('docs/proxy.md')).toContain('(proxy-features.md)');
  });
});
