// `tidegate init`: what it writes passes the checks and starts.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { check } from '../../src/cli/check.ts';
import { runCli } from '../../src/cli/cli.ts';
import { KINDS } from '../../src/cli/init/drafts.ts';
import { fakeIo } from '../harness/io.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'init-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(...argv: string[]) {
  const io = fakeIo();
  const code = await runCli(argv, io);
  return { code, out: io.stdout.text(), err: io.stderr.text() };
}

describe('tidegate init', () => {
  it.each(KINDS)('%s is a configuration that check accepts, for its owner only', async (kind) => {
    const file = path.join(folder, `${kind}.conf`);
    expect(await run('init', kind, '-o', file)).toMatchObject({ code: 0, err: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(path.join(folder, 'passwd'), '');
    const io = fakeIo();
    const env = { CENTRAL_USER: 'u', CENTRAL_PASSWORD: 'p' };
    expect(await check({ config: file }, io, { env, cwd: folder })).toBe(0);
    expect(io.stderr.text()).toBe('');
    expect(await check({ config: file }, fakeIo(), { env: {}, cwd: folder })).toBe(0);
  });

  it('prints without -o and leaves a file that is there alone', async () => {
    const file = path.join(folder, 'own.conf');
    writeFileSync(file, '# mine\n');
    expect((await run('init', 'local')).out).toContain('listeners.tcp');
    expect(await run('init', 'local', '-o', file)).toMatchObject({ code: 1, err: expect.stringContaining('--force') });
    expect(readFileSync(file, 'utf8')).toBe('# mine\n');
    expect((await run('init', 'local', '-o', file, '--force')).code).toBe(0);
  });

  it('takes the server of a central broker, and refuses other words', async () => {
    expect((await run('init', 'central', '--server', 'tls+mqtt-tcp://b.local:8883')).out).toContain(
      'server    = "tls+mqtt-tcp://b.local:8883"',
    );
    expect((await run('init', 'central', '--server', 'x"y')).code).toBe(64);
    expect((await run('init', 'local', '--server', 'mqtt://b')).code).toBe(64);
    expect((await run('init', 'nothing')).code).toBe(64);
  });
});
