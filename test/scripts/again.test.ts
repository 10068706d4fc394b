// A failed run gets one second look: what fails twice fails, what passes alone is named as unsteady, and nothing else turns a failure into a pass.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const SCRIPT = path.join(import.meta.dirname, '../../scripts/again.mjs');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'again-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface TestFile {
  readonly name: string;
  readonly status: 'passed' | 'failed';
  readonly assertionResults: readonly object[];
}
function testFile(name: string, passes: boolean): TestFile {
  const status = passes ? 'passed' : 'failed';
  const test = {
    status,
    title: 'works',
    ancestorTitles: ['it'],
    failureMessages: passes ? [] : ['Error: not 5\n at x'],
  };
  return { name, status, assertionResults: [test] };
}
const reportOf = (files: readonly TestFile[]): object => ({
  numPassedTests: files.filter(({ status }) => status === 'passed').length,
  numFailedTests: files.filter(({ status }) => status === 'failed').length,
  success: files.every(({ status }) => status === 'passed'),
  testResults: files,
});

/** Runs the script on a first report; the second run, where there is one, writes the second. */
function again(first: readonly TestFile[], second: readonly TestFile[] | null, unhandled: number | null = 0) {
  const report = path.join(folder, 'report.json');
  const command = path.join(folder, 'command');
  writeFileSync(report, JSON.stringify(reportOf(first)));
  if (unhandled !== null) writeFileSync(`${report}.unhandled`, String(unhandled));
  writeFileSync(path.join(folder, 'second.json'), second === null ? 'nothing' : JSON.stringify(reportOf(second)));
  const lines = [
    `echo "$@" > ${folder}/words`,
    `for w; do case $w in --outputFile=*) cp ${folder}/second.json "\${w#*=}";; esac; done`,
  ];
  writeFileSync(command, `#!/bin/sh\n${lines.join('\n')}\n`, { mode: 0o755 });
  const { stdout, status } = spawnSync(process.execPath, [SCRIPT, report, command], { encoding: 'utf8' });
  return { text: stdout, code: status, report: JSON.parse(readFileSync(report, 'utf8')) };
}

it('a test that passes alone is named with its first error, and the report counts it as passed', () => {
  const { text, code, report } = again([testFile('a', true), testFile('b', false)], [testFile('b', true)]);
  expect(code).toBe(0);
  expect(text).toMatch(/Unsteady.*\n {2}b: it > works\n {6}Error: not 5/);
  expect(text).not.toContain('Failed:');
  expect(report).toMatchObject({ numPassedTests: 2, numFailedTests: 0, success: true });
  expect(readFileSync(path.join(folder, 'words'), 'utf8')).toMatch(/--maxWorkers=1 .* b\n$/);
});

it('a test that fails twice fails the run', () => {
  const { text, code, report } = again([testFile('a', true), testFile('b', false)], [testFile('b', false)]);
  expect(code).toBe(1);
  expect(text).toMatch(/Failed:\n {2}b: it > works\n {6}Error: not 5/);
  expect(report).toMatchObject({ numPassedTests: 1, numFailedTests: 1, success: false });
});

it.each([
  ['a second run that does not end', [testFile('b', false)], null, 0],
  ['a second run without the file', [testFile('b', false)], [], 0],
  ['a file that cannot be loaded either time', [{ ...testFile('b', false), assertionResults: [] }], [], 0],
  ['an error outside of tests', [testFile('b', false)], [testFile('b', true)], 1],
  ['an error outside of tests and no failed test', [testFile('b', true)], [], 2],
  ['no word on errors outside of tests', [testFile('b', false)], [testFile('b', true)], null],
  ['many failed files', 'abcdef'.split('').map((name) => testFile(name, false)), [testFile('a', true)], 0],
] as const)('%s fails the run', (_name, first, second, unhandled) => {
  expect(again(first, second, unhandled).code).toBe(1);
});
