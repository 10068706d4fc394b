// Completion scripts: every command and option is in them, and the shells that are here complete with them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli, wholeProgram } from '../../src/cli/cli.ts';
import { completionScript, placesOf, SHELLS } from '../../src/cli/completion.ts';
import { fakeIo } from '../harness/io.ts';

let folder = '';
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'completion-'));
  const program = await wholeProgram();
  for (const shell of SHELLS) writeFileSync(path.join(folder, shell), completionScript(shell, program));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('names every command, subcommand and option', async () => {
  const places = placesOf(await wholeProgram());
  const paths = places.map((place) => place.path);
  expect(paths).toEqual(
    expect.arrayContaining(['tidegate', 'tidegate start', 'tidegate ctl bridge add', 'tidegate nng pub']),
  );
  const start = places.find((place) => place.path === 'tidegate start');
  expect(start?.options.map((option) => option.name)).toEqual(
    expect.arrayContaining(['--config', '-c', '--set', '--help']),
  );
});

const has = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0;

const CASES: readonly [words: readonly string[], expected: readonly string[]][] = [
  [['tidegate', 'sta'], ['start']],
  [['tidegate', 'ctl', 'bridge', 'en'], ['enable']],
  [['tidegate', 'ctl', '--url', 'ctl', 'bridge', 'en'], ['enable']],
  [['tidegate', 'check', '--pr'], ['--print']],
  [['tidegate', 'ctl', 'explain', '--action', 'sub'], ['subscribe']],
];

describe('bash', () => {
  it.each(CASES)('completes %j', (words, expected) => {
    const script = `source ${path.join(folder, 'bash')}; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _tidegate; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual(expected);
  });
});

describe.skipIf(!has('fish'))('fish (skipped where there is none)', () => {
  it.each(CASES)('completes %j', (words, expected) => {
    const script = `source ${path.join(folder, 'fish')}; complete -C "${words.join(' ')}"`;
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('\t')[0]),
    ).toEqual(expected);
  });
});

it.skipIf(!has('zsh'))('zsh reads its script (skipped where there is none)', () => {
  const { status, stderr } = spawnSync('zsh', ['-n', path.join(folder, 'zsh')], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

it('the command prints the script of a shell it knows and refuses another', async () => {
  const good = fakeIo();
  expect(await runCli(['completion', 'fish'], good)).toBe(0);
  expect(good.stdout.text()).toContain('complete -c tidegate');
  const bad = fakeIo();
  expect(await runCli(['completion', 'csh'], bad)).toBe(64);
  expect(bad.stderr.text()).toContain('bash, zsh, fish');
});
