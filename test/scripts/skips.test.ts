// What a run skipped is listed with its reason; in CI a skip without one that holds here fails the run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const SCRIPT = path.join(import.meta.dirname, '../../scripts/skips.mjs');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'skips-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The output and exit code for one skipped test with these names around it. */
function run(names: readonly string[], strict = true, PATH = process.env.PATH): { text: string; code: number | null } {
  const file = path.join(folder, 'report.json');
  const test = { status: 'skipped', title: names.at(-1), ancestorTitles: names.slice(0, -1) };
  writeFileSync(file, JSON.stringify({ testResults: [{ name: 'test/a.test.ts', assertionResults: [test] }] }));
  const words = [SCRIPT, file, ...(strict ? ['--strict'] : [])];
  const { stdout, status } = spawnSync(process.execPath, words, { encoding: 'utf8', env: { ...process.env, PATH } });
  return { text: stdout, code: status };
}

it('a skip without a reason fails a strict run, and no other', () => {
  expect(run(['a test'])).toMatchObject({ code: 1, text: expect.stringContaining('no reason given') });
  expect(run(['a test'], false).code).toBe(0);
});

it('a reason in the name of a group counts for what is in it', () => {
  expect(run(['a driver', 'sends (the library has no such names)'])).toMatchObject({ code: 0 });
  expect(run(['a driver (the library is not here)', 'sends']).code).toBe(0);
});

it('a program that is missing is a reason and its package is named; one that is there is none', () => {
  const without = mkdtempSync(path.join(folder, 'path-'));
  expect(run(['with fish (skipped without fish)'], true, without)).toMatchObject({
    code: 0,
    text: expect.stringContaining('apt-get install fish'),
  });
  // sh is found by a shell in any case: gcc stands for a program that may be there.
  writeFileSync(path.join(without, 'gcc'), '#!/bin/sh\n', { mode: 0o755 });
  expect(run(['with gcc (skipped without gcc)'], true, `${without}:/usr/bin:/bin`).code).toBe(1);
});
