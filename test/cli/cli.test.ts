// The program itself: commands, usage errors, exit codes, where text goes.
import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { fakeIo } from '../harness/io.ts';

async function run(...argv: string[]) {
  const io = fakeIo();
  const code = await runCli(argv, io);
  return { code, out: io.stdout.text(), err: io.stderr.text() };
}

describe('tidegate', () => {
  it.each([[['--help']], [['start', '--help']], [['help', 'start']]])(
    '%j shows help on standard output and ends with 0',
    async (argv) => {
      const { code, out, err } = await run(...argv);
      expect(code).toBe(0);
      expect(out).toContain('Usage: tidegate');
      expect(err).toBe('');
    },
  );

  it('--version shows the version and ends with 0', async () => {
    const { code, out } = await run('--version');
    expect(code).toBe(0);
    expect(out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [[]],
    [['bogus']],
    [['start', '--bogus']],
    [['start', 'extra']],
    [['start', '-c']],
    [['start', '--set', 'novalue']],
  ])('%j is wrong usage: 64, and a hint on standard error', async (argv) => {
    const { code, out, err } = await run(...argv);
    expect(code).toBe(64);
    expect(out).toBe('');
    expect(err).toMatch(/\S/);
  });

  it.each([
    [['nng', 'pub'], 'tidegate nng pub --help'],
    [['ctl', 'bridge', 'add'], 'tidegate ctl bridge add --help'],
    [['bogus'], 'tidegate --help'],
  ])('%j points to the help of the innermost command', async (argv, hint) => {
    const { code, err } = await run(...argv);
    expect(code).toBe(64);
    expect(err).toContain(`see "${hint}"`);
  });

  it.each([
    [['pub', '-t', 'a', '-l', '-f', '/nonexistent', '-h', '127.0.0.1', '-p', '1']],
    [['ctl', '--cafile', '/nonexistent', 'status']],
    [['passwd', '/nonexistent', 'alice']],
    [['pub', '-t', 'a', '-m', 'x', '--capath', '/nonexistent']],
  ])('%j with a file that is not there fails with one line', async (argv) => {
    const { code, err } = await run(...argv);
    expect(code).toBe(1);
    expect(err.trim().split('\n')).toHaveLength(1);
  });

  it('help shows no empty lists as defaults', async () => {
    for (const name of ['start', 'sub', 'ctl']) expect((await run(name, '--help')).out).not.toContain('[])');
  });

  it('start with a file that is not there ends with 78 and names it', async () => {
    const { code, err } = await run('start', '-c', '/nonexistent/x.conf');
    expect(code).toBe(78);
    expect(err).toContain('/nonexistent/x.conf');
    expect(err).not.toContain('    at ');
  });

  it('start with a wrong file ends with 78 and tells file, line, column and key', async () => {
    const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'cli-')), 'a.conf');
    writeFileSync(file, 'mqtt {\n  max_qos = banana\n}\n');
    const { code, err } = await run('start', '-c', file);
    expect(code).toBe(78);
    expect(err).toMatch(/a\.conf:2:\d+: mqtt\.max_qos: /);
  });
});
