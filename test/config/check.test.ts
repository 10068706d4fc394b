// `tidegate check`: what it prints, what it masks, its exit codes.
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type CheckOptions, check } from '../../src/cli/check.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { folder } from '../harness/configfiles.ts';

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

async function run(text: string, options: CheckOptions = {}, files: Record<string, string> = {}) {
  const cwd = folder({ 'a.conf': text, ...files });
  const [stdout, stderr] = [new Sink(), new Sink()];
  const code = await check({ config: 'a.conf', ...options }, { stdout, stderr }, { cwd, env: {} });
  return { code, out: stdout.text, err: stderr.text };
}

describe('check', () => {
  test('a good file gives 0 and nothing on standard error', async () => {
    expect(await run('mqtt.max_qos = 1')).toEqual({ code: 0, out: 'a.conf: ok\n', err: '' });
  });

  test('warnings have their place and keep the exit code 0', async () => {
    const { code, out, err } = await run('plugin { libs = [] }');
    expect([code, out]).toEqual([0, 'a.conf: ok, 2 warnings\n']);
    expect(err).toMatch(/^a\.conf:1:8: plugin: .* \(warning\)$/m);
  });

  test('a wrong file throws what is wrong with it', async () => {
    await expect(run('mqtt.max_qos = 7')).rejects.toBeInstanceOf(ConfigError);
  });

  test('a wrong expression of a rule is told with its place', async () => {
    const wrong = run('rules.r { from = "a", to = "b",\n where = "payload." }');
    await expect(wrong).rejects.toThrow(/a\.conf:\d+:\d+: rules\.r\.where: Expected IDENTIFIER/);
  });

  test('files that cannot be read are warned about', async () => {
    expect((await run('auth.password_file = "none"')).err).toContain(
      'auth.password_file: none cannot be read: no such file',
    );
    expect((await run('auth.password_file = "pw"', {}, { pw: '' })).err).toBe('');
  });

  test('--print shows JSON with defaults, bytes, durations with their unit and no secret', async () => {
    const { out } = await run(
      'mqtt { max_packet_size = 2MB, send_timeout = 5s }\nauth { password { alice = s3cret } }',
      {
        print: true,
      },
    );
    const tree = JSON.parse(out);
    expect(tree).toMatchObject({
      mqtt: { max_packet_size: 2097152, send_timeout: '5s', max_qos: 2 },
      auth: { password: { alice: '***' } },
      listeners: { tcp: { bind: '127.0.0.1:1883' } },
    });
  });

  test('what --print shows is a configuration with the same limits', async () => {
    const { out } = await run(
      'mqtt.max_packet_size = 2MB\nlisteners { tcp.second { connect_timeout = 1500ms, bind = "127.0.0.1:0" } }\nbridges.nng.pub.p { enable = true, pub_url = "inproc://x", forwards = [ { local_topic = a } ] }',
      { print: true },
    );
    expect((await run(out, { print: true })).out).toBe(out);
  });
});
