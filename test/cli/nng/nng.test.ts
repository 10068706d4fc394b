// `tidegate nng pub` and `nng sub`: src/cli/nng/nng.ts through the command line, against each other and against native sockets.
import { afterEach, describe, expect, test } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import type { Protocol, SpSocket } from '../../../src/sp/sp.ts';
import { type FakeIo, fakeIo } from '../../harness/io.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../../harness/spsockets.ts';

let sockets: SpSocket[] = [];
afterEach(async () => {
  await Promise.all(sockets.map((socket) => socket.stop(200)));
  sockets = [];
});

interface Run {
  readonly io: FakeIo;
  readonly code: Promise<number>;
}
function run(args: string[], input: string | null = ''): Run {
  const io = fakeIo(input);
  return { io, code: runCli(['nng', ...args], io) };
}
/** A socket that listens; gives its URL with the port. */
async function listening(protocol: Protocol): Promise<{ socket: SpSocket; watch: Watch; url: string }> {
  const socket = testDriver().open(protocol, SP_DEFAULTS);
  sockets.push(socket);
  const watch = new Watch(socket);
  if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
  socket.listen('tcp://127.0.0.1:0');
  return { socket, watch, url: await watch.state('tcp://127.0.0.1:0', 'listening') };
}

describe('nng pub', () => {
  test('sends topic, delimiter and data and ends with 0', async () => {
    const sub = await listening('sub0');
    expect(await run(['pub', '--dial', sub.url, '--topic', 'can', '--delimiter', ':', '--data', 'hé']).code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length > 0);
    expect(Buffer.from(sub.watch.bodies[0], 'latin1').toString()).toBe('can:hé');
  });
  test('sends --count times', async () => {
    const sub = await listening('sub0');
    const args = ['pub', '--dial', sub.url, '--topic', 't', '--data', 'x', '--count', '3', '--interval', '1ms'];
    expect(await run(args).code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length === 3);
    expect(sub.watch.bodies).toEqual(['t/x', 't/x', 't/x']);
  });
  test('sends hexadecimal data, with --raw without topic', async () => {
    const sub = await listening('sub0');
    expect(await run(['pub', '--dial', sub.url, '--topic', 't', '--hex', '--data', '00 ff']).code).toBe(0);
    expect(await run(['pub', '--dial', sub.url, '--topic', 't', '--raw', '--data', 'alone']).code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length === 2);
    expect(sub.watch.bodies).toEqual(['t/\x00\xff', 'alone']);
  });
  test('sends every line of standard input', async () => {
    const sub = await listening('sub0');
    expect(await run(['pub', '--dial', sub.url], 'one\n\ntwo').code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length === 3);
    expect(sub.watch.bodies).toEqual(['one', '', 'two']);
  });
  test('tells once why a peer does not fit', async () => {
    const { url, watch } = await listening('pub0');
    const { io, code } = run(['pub', '--dial', url, '--data', 'x', '--timeout', '1s']);
    await watch.until(() => watch.refused().length > 1);
    expect(await code).toBe(1);
    const lines = io.stderr.text().trim().split('\n');
    expect(lines).toEqual([
      expect.stringContaining('SP socket of a kind that does not go with this one'),
      'tidegate: timed out',
    ]);
  });
  test('ends with 1 when nobody comes in time', async () => {
    const { io, code } = run(['pub', '--listen', 'tcp://127.0.0.1:0', '--data', 'x', '--timeout', '1ms']);
    expect(await code).toBe(1);
    expect(io.stderr.text()).toMatch(/timed out/);
  });
});

describe('nng sub', () => {
  /** Publishes until the command ends. */
  async function fed(args: string[], ...texts: string[]): Promise<FakeIo> {
    const pub = await listening('pub0');
    const { io, code } = run(['sub', '--dial', pub.url, ...args]);
    const timer = setInterval(() => {
      for (const text of texts) sendText(pub.socket, text);
    }, 5);
    expect(await code).toBe(0);
    clearInterval(timer);
    return io;
  }
  test('prints what begins with the topic, one a line, and ends after --count', async () => {
    const io = await fed(['--topic', 'can', '--count', '2'], 'other:no', 'can:yes');
    expect(io.stdout.text()).toBe('can:yes\ncan:yes\n');
  });
  test('prints raw bytes with --raw and digits with --hex', async () => {
    expect((await fed(['--raw', '--count', '1'], 'a\x01\xff')).stdout.bytes().toString('hex')).toBe('6101ff');
    expect((await fed(['--hex', '--count', '1'], 'a\x01\xff')).stdout.text()).toBe('6101ff\n');
  });
  test('prints nothing that a terminal would obey', async () => {
    expect((await fed(['--count', '1'], 'a\x1b[31m')).stdout.text()).toBe('a\\x1b[31m\n');
    expect((await fed(['--count', '1'], 'a\xff')).stdout.text()).toBe('a\\xff\n');
  });
  test('with a delimiter takes only messages where it follows the topic', async () => {
    const io = await fed(['--topic', 'a', '--delimiter', ':', '--count', '1'], 'ab:no', 'a:yes');
    expect(io.stdout.text()).toBe('a:yes\n');
  });
});

describe('nng frames and trace headers', () => {
  const HEADER = `\x0a\xce${'0123456789abcdefghijklmn'}`;
  test('pub --frame payload sends the data alone', async () => {
    const sub = await listening('sub0');
    expect(await run(['pub', '--dial', sub.url, '--frame', 'payload', '--data', '{}']).code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length === 1);
    expect(sub.watch.bodies).toEqual(['{}']);
  });
  test('--trace add puts a header of its own between topic and data of each message', async () => {
    const sub = await listening('sub0');
    const args = ['pub', '--dial', sub.url, '--topic', 't', '--trace', 'add', '--data', '{}', '--count', '2'];
    expect(await run(args).code).toBe(0);
    await sub.watch.until(() => sub.watch.bodies.length === 2);
    for (const body of sub.watch.bodies) {
      expect([body.slice(0, 4), body.length, body.slice(-2)]).toEqual(['t/\n\xce', 30, '{}']);
    }
    expect(sub.watch.bodies[0]).not.toBe(sub.watch.bodies[1]);
  });
  test('--trace strip takes the header off data that has one, --trace add leaves it', async () => {
    const sub = await listening('sub0');
    const data = Buffer.from(`${HEADER}{}`, 'latin1').toString('hex');
    for (const trace of ['strip', 'add']) {
      const args = ['pub', '--dial', sub.url, '--frame', 'payload', '--hex', '--data', data, '--trace', trace];
      expect(await run(args).code).toBe(0);
    }
    await sub.watch.until(() => sub.watch.bodies.length === 2);
    expect(sub.watch.bodies).toEqual(['{}', `${HEADER}{}`]);
  });
  test.each([
    ['the payload alone', [], `${HEADER}{"a":1}`, '{"a":1}\n'],
    ['topic and payload', ['--delimiter', ':'], `t:${HEADER}{"a":1}`, 't:{"a":1}\n'],
    ['what has none', ['--delimiter', ':'], 't:{"a":1}', 't:{"a":1}\n'],
  ])('pair --trace strip prints %s without the header', async (_name, args, frame, printed) => {
    const pair = await listening('pair0');
    const command = ['pair', '--dial', pair.url, '--data', '{}', '--count', '1', '--trace', 'strip', ...args];
    const { io, code } = run(command);
    await pair.watch.until(() => pair.watch.bodies.length === 1);
    pair.socket.send(new Uint8Array(0), Buffer.from(frame, 'latin1'), 0, frame.length);
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe(printed);
  });
});

describe('nng usage', () => {
  for (const args of [
    [],
    ['bogus'],
    ['pub'],
    ['pub', '--dial', 'nope://x', '--data', 'x'],
    ['pub', '--dial', 'ipc://relative', '--data', 'x'],
    ['pub', '--dial', 'tcp://127.0.0.1:1', '--hex', '--data', 'xyz'],
    ['pub', '--dial', 'tcp://127.0.0.1:1', '--data', 'x', '--count', 'many'],
    ['pub', '--dial', 'tcp://127.0.0.1:1', '--data', 'x', '--interval', 'soon'],
    ['sub', '--dial', 'tcp://127.0.0.1:1', '--protocol', 'pub0'],
    ['sub', '--dial', 'tcp://127.0.0.1:1', '--trace', 'add'],
    ['pub', '--dial', 'tcp://127.0.0.1:1', '--data', 'x', '--frame', 'json'],
    ['pub', '--dial', 'tcp://127.0.0.1:1', '--data', 'x', '--frame', 'payload', '--topic', 't'],
    ['pair', '--dial', 'tcp://127.0.0.1:1', '--data', 'x', '--trace', 'off'],
  ]) {
    test(`nng ${args.join(' ')} is a usage error`, async () => {
      const { io, code } = run(args);
      expect(await code).toBe(64);
      expect(io.stderr.text()).not.toBe('');
    });
  }
});

describe('nng push, pull and pair', () => {
  test('what push sends pull prints', async () => {
    const pull = await listening('pull0');
    expect(await run(['push', '--dial', pull.url, '--topic', 'job', '--data', '1']).code).toBe(0);
    await pull.watch.until(() => pull.watch.bodies.length === 1);
    expect(pull.watch.bodies).toEqual(['job/1']);
    const push = await listening('push0');
    const { io, code } = run(['pull', '--dial', push.url, '--count', '1']);
    await push.watch.until(() => push.watch.count('pipe-up') === 1);
    sendText(push.socket, 'done:2');
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe('done:2\n');
  });
  test.each(['pair0', 'pair1'] as const)('pair sends and prints over %s', async (protocol) => {
    const pair = await listening(protocol);
    const args = ['pair', '--dial', pair.url, '--protocol', protocol, '--topic', 'set', '--data', 'on', '--count', '1'];
    const { io, code } = run(args);
    await pair.watch.until(() => pair.watch.bodies.length === 1);
    expect(pair.watch.bodies).toEqual(['set/on']);
    sendText(pair.socket, 'state/on');
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe('state/on\n');
  });
});

describe('nng req, rep, survey, respond, bus', () => {
  test('req asks and prints the answer', async () => {
    const rep = await listening('rep0');
    rep.socket.onRequest?.((bytes, start, end, answer) => answer(Buffer.from(`re:${bytes.subarray(start, end)}`)));
    const { io, code } = run(['req', '--dial', rep.url, '--data', 'A', '--count', '2']);
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe('re:A\nre:A\n');
  });
  test('req without an answer in time ends with 1', async () => {
    const rep = await listening('rep0');
    rep.socket.onRequest?.(() => {});
    const { io, code } = run(['req', '--dial', rep.url, '--wait', '50ms']);
    expect(await code).toBe(1);
    expect(io.stderr.text()).toContain('no answer within 50 ms');
  });
  test('rep answers with its data and ends after --count', async () => {
    const req = await listening('req0');
    const { io, code } = run(['rep', '--dial', req.url, '--data', 'pong', '--count', '1']);
    sendText(req.socket, 'ping');
    await req.watch.until(() => req.watch.bodies.length === 1);
    expect(req.watch.bodies).toEqual(['pong']);
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe('ping\n');
  });
  test('survey prints what respondents say', async () => {
    const surveyor = await listening('surveyor0');
    const answering = run(['respond', '--dial', surveyor.url, '--echo', '--count', '1']);
    await surveyor.watch.until(() => surveyor.watch.count('pipe-up') === 1);
    sendText(surveyor.socket, 'who');
    await surveyor.watch.until(() => surveyor.watch.bodies.length === 1);
    expect(await answering.code).toBe(0);
    const respondent = await listening('respondent0');
    respondent.socket.onRequest?.((_bytes, _start, _end, answer) => answer(Buffer.from('me')));
    const asking = run(['survey', '--dial', respondent.url, '--wait', '100ms']);
    expect(await asking.code).toBe(0);
    expect(asking.io.stdout.text()).toBe('me\n');
  });
  test('bus sends and prints what comes', async () => {
    const bus = await listening('bus0');
    const { io, code } = run(['bus', '--dial', bus.url, '--data', 'hello', '--count', '1']);
    await bus.watch.until(() => bus.watch.bodies.length === 1);
    sendText(bus.socket, 'welcome');
    expect(await code).toBe(0);
    expect(io.stdout.text()).toBe('welcome\n');
  });
  test('rep without an answer to give is a usage error', async () => {
    const { io, code } = run(['rep', '--listen', 'tcp://127.0.0.1:0']);
    expect(await code).toBe(64);
    expect(io.stderr.text()).toContain('--data or --echo');
  });
});
