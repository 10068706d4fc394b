// What README.md shows has to work: its configurations load, the files it names exist, the targets and commands it names are there.
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { loadConfig } from '../../src/config/load.ts';
import { fakeIo } from '../harness/io.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const README = readFileSync(path.join(ROOT, 'README.md'), 'utf8');

function blocks(language: string): string[] {
  return [...README.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map((match) => match[1]);
}

describe('README.md', () => {
  it.each([
    ['hocon', 'conf'],
    ['toml', 'toml'],
  ])('shows %s that loads without a warning', (language, extension) => {
    expect(blocks(language).length).toBeGreaterThan(0);
    for (const text of blocks(language)) {
      const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'readme-')), `a.${extension}`);
      writeFileSync(file, text);
      expect(loadConfig({ file, env: {}, cwd: ROOT }).warnings).toEqual([]);
    }
  });

  it('links to files that exist', () => {
    const links = [...README.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1]);
    expect(links.filter((link) => !existsSync(path.join(ROOT, link)))).toEqual([]);
  });

  it('names targets of the Makefile', () => {
    const makefile = readFileSync(path.join(ROOT, 'Makefile'), 'utf8');
    const targets = [...README.matchAll(/`?make ((?:[a-z]+ ?)+)/g)].flatMap((match) => match[1].trim().split(' '));
    const real = targets.filter((target) => new RegExp(`^${target}:`, 'm').test(makefile));
    expect(real).toEqual(expect.arrayContaining(['start', 'test', 'build', 'check', 'bench', 'fuzz', 'docs', 'dist']));
  });

  it('names commands that there are', async () => {
    const io = fakeIo();
    await runCli(['--help'], io);
    const names = [...README.matchAll(/`tidegate ([a-z]+)/g)].map((match) => match[1]);
    expect(names.filter((name) => !new RegExp(`^  ${name} `, 'm').test(io.stdout.text()))).toEqual([]);
  });
});
