// The built command needs nothing beside it: copied to a folder without node_modules it reads both dialects and starts.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'package-'));
  cpSync(path.join(ROOT, 'dist'), path.join(folder, 'dist'), { recursive: true });
  cpSync(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...words: string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/main.js', ...words], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
  return { status, out: stdout, err: stderr };
}

it.each([
  ['x.toml', '[listeners.tcp]\nbind = "127.0.0.1:0"\n'],
  ['x.conf', 'listeners.tcp.bind = "127.0.0.1:0"\n'],
])('checks %s', (name, text) => {
  writeFileSync(path.join(folder, name), text);
  const { status, out, err } = run('check', '-c', name, '--print');
  expect(err).toBe('');
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ listeners: { tcp: { bind: '127.0.0.1:0' } } });
});

it('a feature whose package is missing is named in one line', () => {
  writeFileSync(path.join(folder, 'a.conf'), 'listeners.tcp.bind = "127.0.0.1:0"\nbroker.engine = aedes\n');
  const { status, err } = run('start', '-c', 'a.conf');
  expect(status).not.toBe(0);
  expect(err.trim().split('\n')).toHaveLength(1);
  expect(err).toMatch(/aedes/);
});

it('the package asks for no other one, and brings the licences of all that is bundled', () => {
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  expect(manifest.dependencies ?? {}).toEqual({});
  const bill = JSON.parse(readFileSync(path.join(folder, 'dist/sbom.cdx.json'), 'utf8'));
  const notices = readFileSync(path.join(folder, 'dist/THIRD-PARTY-NOTICES'), 'utf8');
  expect(bill.components.length).toBeGreaterThan(10);
  for (const { name, version } of bill.components) expect(notices).toContain(`\n${name} ${version} (`);
  expect(bill.components.map((one: { name: string }) => one.name)).toEqual(
    expect.arrayContaining(['@iarna/toml', 'hono', 'mqtt', 'pino', 'preact', 'ws']),
  );
});
