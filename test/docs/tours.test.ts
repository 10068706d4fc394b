// The sessions of the guides, command by command, in a network of their own: what a page shows is what is printed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, matches } from './tour.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const pages = readdirSync(path.join(ROOT, 'docs'))
  .filter((name) => /^(?:getting-started|guide-.*)\.md$/.test(name))
  .filter((name) =>
    blocksOf(readFileSync(path.join(ROOT, 'docs', name), 'utf8')).some((block) => block.commands.length > 0),
  );
const isolated = spawnSync('unshare', ['-rn', 'ip', 'link', 'set', 'lo', 'up']).status === 0;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'tour-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!isolated)(`guides${isolated ? '' : ' (no network of its own: unshare -rn is not allowed)'}`, () => {
  it.each(pages)(
    '%s does what it shows',
    (name) => {
      const script = 'ip link set lo up && exec npx tsx test/docs/tour.ts "$0" "$1"';
      const place = mkdtempSync(path.join(folder, 'page-'));
      const words = ['-rn', 'sh', '-c', script, path.join(ROOT, 'docs', name), place];
      const { stdout, stderr, status } = spawnSync('unshare', words, { cwd: ROOT, encoding: 'utf8', timeout: 170_000 });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/everything is as the page shows\n$/);
    },
    180_000,
  );
});

describe('what a page shows', () => {
  it('is compared line by line, with ... for any text and, alone, for any lines', () => {
    expect(matches(['a', 'b ... d'], ['a', 'b c d'])).toBe(true);
    expect(matches(['...', 'b'], ['x', 'y', 'b'])).toBe(true);
    expect(matches(['...', 'b'], ['x', 'b', 'y'])).toBe(false);
    expect(matches(['a'], ['a', 'b'])).toBe(false);
    expect(matches(['a'], [])).toBe(false);
    expect(matches(['a...'], ['ba'])).toBe(false);
  });

  it('is read as commands by terminal, with what they print and lines that go on', () => {
    const page = '```console\n(one)$ a \\\n  b\nout\n$ c\n```\n```hocon\n# file x.conf\nk = 1\n```\n';
    expect(blocksOf(page)).toEqual([
      {
        file: null,
        commands: [
          { terminal: 'one', text: 'a \\\n  b', output: ['out'] },
          { terminal: '', text: 'c', output: [] },
        ],
      },
      { file: { name: 'x.conf', text: '# file x.conf\nk = 1\n' }, commands: [] },
    ]);
  });
});
