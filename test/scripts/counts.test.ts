// The last line of a CI run, from the report of the test run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const SCRIPT = path.join(import.meta.dirname, '../../scripts/counts.mjs');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'counts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function counts(report: unknown): { line: string; code: number | null } {
  const file = path.join(folder, 'report.json');
  writeFileSync(file, typeof report === 'string' ? report : JSON.stringify(report));
  const { stdout, status } = spawnSync(process.execPath, [SCRIPT, file], { encoding: 'utf8' });
  return { line: stdout, code: status };
}

const good = {
  numPassedTests: 5,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  success: true,
  testResults: [],
};

describe('counts', () => {
  it('tells what passed, failed and was skipped', () => {
    expect(counts(good)).toEqual({ line: '5 passed, 0 failed\n', code: 0 });
    expect(counts({ ...good, numPendingTests: 2, numTodoTests: 1 })).toEqual({
      line: '5 passed, 0 failed, 3 skipped\n',
      code: 0,
    });
    expect(counts({ ...good, numFailedTests: 1, success: false })).toEqual({ line: '5 passed, 1 failed\n', code: 1 });
  });

  it('takes a file that could not be loaded for a failed test', () => {
    const testResults = [{ status: 'failed', assertionResults: [] }];
    expect(counts({ ...good, success: false, testResults })).toEqual({ line: '5 passed, 1 failed\n', code: 1 });
  });

  it.each([[{ ...good, numPassedTests: 0 }], [{ ...good, success: false }], ['no json']])('fails for %j', (report) => {
    expect(counts(report).code).toBe(1);
  });
});
