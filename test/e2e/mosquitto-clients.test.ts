// The gateway's MQTT clients beside the programs whose options they take: the same words give the same output and the same messages.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { fakeIo } from '../harness/io.ts';
import { programPath } from '../harness/mosquitto.ts';

const run = promisify(execFile);
const missing = programPath('mosquitto_sub') === null || programPath('mosquitto_pub') === null;

let broker: TestGateway;
let at: string[];
beforeAll(async () => {
  broker = await testGateway();
  at = ['-h', '127.0.0.1', '-p', String(broker.port)];
});
afterAll(() => broker.stop());

async function ours(command: 'pub' | 'sub', ...argv: string[]): Promise<string> {
  const io = fakeIo();
  expect(await runCli([command, ...at, ...argv], io)).toBe(0);
  return io.stdout.text();
}

async function theirs(command: 'pub' | 'sub', ...argv: string[]): Promise<string> {
  const { stdout } = await run(`mosquitto_${command}`, [...at, ...argv]);
  return stdout;
}

describe.skipIf(missing)('sub prints what mosquitto_sub prints', () => {
  beforeAll(async () => {
    const properties = [
      'user-property',
      'k',
      'v',
      '-D',
      'publish',
      'content-type',
      'text/plain',
      '-D',
      'publish',
      'response-topic',
      'r/t',
    ];
    const more = ['-D', 'publish', 'correlation-data', 'cd', '-D', 'publish', 'payload-format-indicator', '1'];
    await theirs(
      'pub',
      '-t',
      'f/1',
      '-m',
      'two 2 ü',
      '-r',
      '-q',
      '2',
      '-V',
      '5',
      '-D',
      'publish',
      ...properties,
      ...more,
    );
  });

  it.each([
    ['%p'],
    ['%t %p'],
    ['%t|%q|%r|%l|%x|%X'],
    ['%C|%R|%D|%F|%P'],
    ['%%\\t\\n%t'],
    ['a %t b'],
    ['@@@Y-@m-@d @H'],
  ])('for the format %j', async (format) => {
    const argv = ['-t', 'f/#', '-C', '1', '-q', '2', '-V', '5', '-F', format];
    expect(await ours('sub', ...argv)).toBe(await theirs('sub', ...argv));
  });

  it.each([[['-v']], [['-N']], [['-v', '-q', '1']], [['-R', '-E']], [['--retained-only', '-C', '1']]])(
    'with %j',
    async (more) => {
      const argv = ['-t', 'f/#', ...(more.includes('-E') ? [] : ['-C', '1']), ...more];
      expect(await ours('sub', ...argv)).toBe(await theirs('sub', ...argv));
    },
  );

  it('as JSON, but for the time', async () => {
    const argv = ['-t', 'f/#', '-C', '1', '-V', '5', '-q', '1', '-F', '%j'];
    const [mine, other] = [JSON.parse(await ours('sub', ...argv)), JSON.parse(await theirs('sub', ...argv))];
    const { tst: _mine, mid: _m, ...rest } = mine;
    const { tst, mid: _o, ...wanted } = other;
    expect(rest).toEqual(wanted);
    expect(tst).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    expect(mine.tst).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d{4}$/);
  });
});

describe.skipIf(missing)('pub sends what mosquitto_sub understands', () => {
  it('with properties, QoS and retain', async () => {
    await ours('pub', '-t', 'p/1', '-m', 'x y', '-r', '-q', '1', '-V', '5', '-D', 'publish', 'user-property', 'a', 'b');
    const shown = await theirs('sub', '-t', 'p/1', '-C', '1', '-q', '1', '-V', '5', '-F', '%t %p %q %r %P');
    expect(shown.trimEnd()).toBe('p/1 x y 1 1 a:b');
  });
});
