// `tidegate pub` and `tidegate sub` against a broker in the process; a few compared with the programs of mosquitto.
import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import mqtt, { type MqttClient } from 'mqtt';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { lines } from '../../../src/cli/mqtt/pub.ts';
import { type SubFlags, sub } from '../../../src/cli/mqtt/sub.ts';
import { encodeAck } from '../../../src/codec/ack.ts';
import { PacketCutter } from '../../../src/codec/cutter.ts';
import { CONNECT, PUBACK, PUBLISH } from '../../../src/mqtt/packet.ts';
import { type TestGateway, testGateway } from '../../harness/gateway.ts';
import { fakeIo } from '../../harness/io.ts';

interface Seen {
  readonly topic: string;
  readonly payload: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly properties: mqtt.IPublishPacket['properties'];
}

let broker: TestGateway;
let watcher: MqttClient;
let seen: Seen[];
let folder: string;
let unique = 0;
let topic: string;

beforeAll(async () => {
  broker = await testGateway('listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n');
  folder = mkdtempSync(path.join(os.tmpdir(), 'pubsub-'));
});
afterAll(async () => {
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  topic = `test${++unique}`;
  seen = [];
  watcher = await mqtt.connectAsync({ host: '127.0.0.1', port: broker.port, protocolVersion: 5 });
  watcher.on('message', (name, payload, packet) =>
    seen.push({
      topic: name,
      payload: payload.toString(),
      qos: packet.qos,
      retain: packet.retain,
      properties: packet.properties,
    }),
  );
  await watcher.subscribeAsync(`${topic}/#`, { qos: 2 });
});
afterEach(() => watcher.endAsync(true));

async function tide(argv: string[], input: string | Uint8Array = '') {
  const io = fakeIo(input);
  const code = await runCli(argv, io);
  return { code, out: io.stdout.text(), err: io.stderr.text() };
}

function pub(...argv: string[]) {
  return tide(['pub', '-h', '127.0.0.1', '-p', String(broker.port), ...argv]);
}

function subscribe(...argv: string[]) {
  return tide(['sub', '-h', '127.0.0.1', '-p', String(broker.port), ...argv]);
}

/** The first `count` messages of the watcher. */
async function messages(count: number): Promise<Seen[]> {
  while (seen.length < count) await new Promise((resolve) => watcher.once('message', resolve));
  return seen;
}

/** Publishes as somebody else. */
async function publish(
  name: string,
  payload: string | Buffer,
  options: mqtt.IClientPublishOptions = {},
): Promise<void> {
  await watcher.publishAsync(`${topic}/${name}`, payload, { qos: 1, ...options });
}

describe('pub', () => {
  it('sends a payload with QoS, retain and version as asked', async () => {
    expect(await pub('-t', `${topic}/m`, '-m', 'hello wörld', '-q', '1', '-V', 'mqttv311')).toMatchObject({
      code: 0,
      out: '',
      err: '',
    });
    expect((await messages(1))[0]).toMatchObject({
      topic: `${topic}/m`,
      payload: 'hello wörld',
      qos: 1,
      retain: false,
    });
  });

  it.each(['mqttv31', '311', '5'])('speaks version %s', async (version) => {
    expect((await pub('-t', `${topic}/v`, '-m', version, '-V', version, '-q', '2')).code).toBe(0);
    expect((await messages(1))[0]).toMatchObject({ payload: version, qos: 2 });
  });

  it('sends each line of standard input', async () => {
    await tide(['pub', '-p', String(broker.port), '-h', '127.0.0.1', '-t', `${topic}/l`, '-l'], 'a\nb b\n\nlast');
    expect((await messages(4)).map((m) => m.payload)).toEqual(['a', 'b b', '', 'last']);
  });

  it('sends all of standard input, a file, nothing', async () => {
    const file = path.join(folder, 'payload');
    writeFileSync(file, 'line one\nline two\n');
    await tide(['pub', '-p', String(broker.port), '-h', '127.0.0.1', '-t', `${topic}/1`, '-s'], 'all\nof it');
    await pub('-t', `${topic}/2`, '-f', file);
    await pub('-t', `${topic}/3`, '-n');
    expect((await messages(3)).map((m) => m.payload)).toEqual(['all\nof it', 'line one\nline two\n', '']);
  });

  it('sets the retained message and clears it', async () => {
    await pub('-t', `${topic}/r`, '-m', 'keep', '-r', '-q', '1');
    expect((await subscribe('-t', `${topic}/r`, '-C', '1', '-F', '%r %p')).out).toBe('1 keep\n');
    await pub('-t', `${topic}/r`, '-n', '-r', '-q', '1');
    expect(broker.gateway.broker.retained(`${topic}/#`)[Symbol.iterator]().next().done).toBe(true);
  });

  it('repeats', async () => {
    await pub('-t', `${topic}/n`, '-m', 'x', '--repeat', '3', '--repeat-delay', '0.01');
    expect((await messages(3)).map((m) => m.payload)).toEqual(['x', 'x', 'x']);
  });

  it('sends properties of MQTT 5.0', async () => {
    const given = [
      'user-property',
      'k',
      'v w',
      '-D',
      'publish',
      'content-type',
      'ct',
      '-D',
      'publish',
      'message-expiry-interval',
      '60',
    ];
    await pub('-t', `${topic}/5`, '-m', 'x', '-V', '5', '-D', 'publish', ...given);
    const [message] = await messages(1);
    expect(message.properties?.contentType).toBe('ct');
    expect({ ...message.properties?.userProperties }).toEqual({ k: 'v w' });
    expect(message.properties?.messageExpiryInterval).toBeLessThanOrEqual(60);
  });

  it('takes everything from a URL', async () => {
    expect((await tide(['pub', '-L', `mqtt://127.0.0.1:${broker.port}/${topic}/u/v`, '-m', 'url'])).code).toBe(0);
    expect((await messages(1))[0]).toMatchObject({ topic: `${topic}/u/v`, payload: 'url' });
  });

  it('takes over a client id, whose will is then published', async () => {
    const will = { topic: `${topic}/w`, payload: Buffer.from('gone'), qos: 0 as const, retain: false };
    const other = await mqtt.connectAsync({
      host: '127.0.0.1',
      port: broker.port,
      clientId: `taken-${topic}`,
      will,
      reconnectPeriod: 0,
    });
    await pub('-i', `taken-${topic}`, '-t', `${topic}/x`, '-m', 'x');
    expect((await messages(2)).map((m) => m.payload).sort()).toEqual(['gone', 'x']);
    await other.endAsync(true);
  });

  it('fails with 1 and says why when nobody listens', async () => {
    const { code, err } = await tide(['pub', '-h', '127.0.0.1', '-p', '1', '-t', 'x', '-m', 'x']);
    expect(code).toBe(1);
    expect(err).toContain('127.0.0.1:1: connection refused (ECONNREFUSED)');
  });

  it('prints what a session holds, which comes together with CONNACK', async () => {
    const publish = Buffer.from([0x32, 8, 0, 1, 97, 0, 7, 111, 110, 101]);
    const acknowledged: number[] = [];
    const server = createServer((socket) => {
      socket.once('data', () => socket.write(Buffer.concat([Buffer.from([0x20, 2, 1, 0]), publish])));
      socket.on('data', (chunk: Buffer) => {
        if (chunk[0] === 0x40) acknowledged.push(chunk.readUInt16BE(2));
        const subscribe = chunk.indexOf(0x82);
        if (subscribe >= 0) socket.write(Buffer.from([0x90, 3, chunk[subscribe + 2], chunk[subscribe + 3], 1]));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const words = [
      'sub',
      '-h',
      '127.0.0.1',
      '-p',
      `${port}`,
      '-i',
      'panel',
      '-c',
      '-q',
      '1',
      '-t',
      'a',
      '-C',
      '1',
      '-W',
      '10',
    ];
    const { code, out } = await tide(words);
    server.close();
    expect({ code, out, acknowledged }).toEqual({ code: 0, out: 'one\n', acknowledged: [7] });
  });

  it('says that what answers is no MQTT', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, err } = await tide(['pub', '-h', '127.0.0.1', '-p', `${port}`, '-t', 'x', '-m', 'x']);
    server.close();
    expect(code).toBe(1);
    expect(err).toContain(`127.0.0.1:${port}: the answer is no MQTT`);
  });

  it('says nothing with --quiet', async () => {
    expect(await tide(['pub', '--quiet', '-h', '127.0.0.1', '-p', '1', '-t', 'x', '-m', 'x'])).toMatchObject({
      code: 1,
      err: '',
    });
  });

  it('fails with 1 when the file cannot be read', async () => {
    const { code, err } = await pub('-t', `${topic}/x`, '-f', '/nonexistent/file');
    expect(code).toBe(1);
    expect(err).toContain('/nonexistent/file');
  });

  it.each([
    [['-h', '127.0.0.1']],
    [['-t', 'a']],
    [['-t', 'a/#', '-m', 'x']],
    [['-t', 'a', '-m', 'x', '-n']],
    [['-t', 'a', '-m', 'x', '-q', '3']],
    [['-t', 'a', '-m', 'x', '-V', '6']],
    [['-t', 'a', '-m', 'x', '-D', 'publish', 'content-type', 'x']],
    [['-t', 'a', '-m', 'x', '-V', '5', '-D', 'publish', 'receive-maximum', '5']],
    [['-t', 'a', '-m', 'x', '-V', '5', '-D', 'publish', 'nope', '5']],
    [['-t', 'a', '-m', 'x', '-V', '5', '-D', 'publish', 'content-type']],
    [['-t', 'a', '-m', 'x', '-c']],
    [['-t', 'a', '-m', 'x', '--will-qos', '1']],
    [['-t', 'a', '-m', 'x', '--cert', 'x']],
    [['-L', 'http://x/y', '-m', 'x']],
    [['-t', 'a', '-m', 'x', '--bogus']],
  ])('%j is wrong usage: 64', async (argv) => {
    const { code, err } = await tide(['pub', ...argv]);
    expect(code).toBe(64);
    expect(err).toMatch(/\S/);
  });

  it('shows packets with -d, and no payload', async () => {
    const { err } = await pub('-t', `${topic}/d`, '-m', 'secret', '-d', '-q', '1');
    expect(err).toMatch(/sending PUBLISH m\d+ /);
    expect(err).not.toContain('secret');
  });
});

describe('lines', () => {
  it('are put together from cutter of any size', async () => {
    const found: string[] = [];
    for await (const line of lines(Readable.from([Buffer.from('a'), Buffer.from('b\nc'), Buffer.from('\n\nd')])))
      found.push(line.toString());
    expect(found).toEqual(['ab', 'c', '', 'd']);
  });
});

describe('sub', () => {
  it('prints the payload, and with -v the topic, and ends after -C', async () => {
    await publish('1', 'one', { retain: true });
    await publish('2', 'two 2', { retain: true });
    expect(await subscribe('-t', `${topic}/1`, '-C', '1')).toMatchObject({ code: 0, out: 'one\n', err: '' });
    const { out } = await subscribe('-t', `${topic}/#`, '-C', '2', '-v', '-q', '1');
    expect(out.split('\n').sort()).toEqual(['', `${topic}/1 one`, `${topic}/2 two 2`]);
  });

  it('prints a format', async () => {
    await publish('f', 'two 2', { qos: 2, retain: true, properties: { userProperties: { k: 'v' }, contentType: 'c' } });
    const { out } = await subscribe(
      '-t',
      `${topic}/f`,
      '-C',
      '1',
      '-q',
      '2',
      '-V',
      '5',
      '-F',
      '%t|%p|%q|%r|%l|%x|%X|%P|%C|%%\\t@Y',
    );
    expect(out).toMatch(
      new RegExp(`^${topic}/f\\|two 2\\|2\\|1\\|5\\|74776f2032\\|74776F2032\\|k:v\\|c\\|%\\t20\\d\\d\\n$`),
    );
  });

  it('prints JSON', async () => {
    await publish('j', '{"a":1}', { retain: true });
    const { out } = await subscribe('-t', `${topic}/j`, '-C', '1', '-F', '%j');
    expect(JSON.parse(out)).toMatchObject({
      topic: `${topic}/j`,
      qos: 0,
      retain: 1,
      payloadlen: 7,
      payload: '{"a":1}',
    });
    expect(JSON.parse((await subscribe('-t', `${topic}/j`, '-C', '1', '-F', '%J')).out)).toMatchObject({
      payload: { a: 1 },
    });
  });

  it('prints bytes as they are, without a line end with -N', async () => {
    const bytes = Buffer.from([0, 255, 27, 10, 128]);
    await publish('b', bytes, { retain: true });
    const io = fakeIo();
    await runCli(['sub', '-h', '127.0.0.1', '-p', String(broker.port), '-t', `${topic}/b`, '-C', '1', '-N'], io);
    expect(io.stdout.bytes()).toEqual(bytes);
  });

  it('leaves out what -T and -R say', async () => {
    await publish('a', 'old', { retain: true });
    await publish('b', 'kept', { retain: true });
    expect((await subscribe('-t', `${topic}/#`, '-T', '+/a', '-C', '1')).out).toBe('kept\n');
    expect((await subscribe('-t', `${topic}/#`, '-R', '-W', '1')).out).toBe('');
  });

  it('clears retained messages with --remove-retained', async () => {
    await publish('c', 'old', { retain: true });
    await subscribe('-t', `${topic}/c`, '--remove-retained', '-C', '1');
    expect((await messages(2))[1]).toMatchObject({ topic: `${topic}/c`, payload: '' });
  });

  it('ends with 1 when -W passes before -C', async () => {
    expect((await subscribe('-t', `${topic}/none`, '-C', '1', '-W', '1')).code).toBe(1);
  });

  it('ends after the subscription with -E', async () => {
    expect((await subscribe('-t', `${topic}/none`, '-E')).code).toBe(0);
  });

  it.each([[['-t', 'a/#/b']], [[]], [['-t', 'a', '-F', '%z']], [['-t', 'a', '-F', '@q']], [['-t', 'a', '-C', '0']]])(
    '%j is wrong usage: 64',
    async (argv) => {
      expect((await tide(['sub', ...argv])).code).toBe(64);
    },
  );

  const flags: SubFlags = {
    topic: [],
    filterOut: [],
    unsubscribe: [],
    property: [],
    end: true,
    stale: true,
    randomFilter: 100,
    keepalive: 60,
    protocol: 4,
    qos: 0,
  };

  it('disconnects and ends with 0 at SIGTERM', async () => {
    const signals = new EventEmitter();
    const id = `term-${topic}`;
    const running = sub({ ...flags, host: '127.0.0.1', port: broker.port, id, topic: [`${topic}/x`] }, fakeIo(), {
      signals,
      tty: false,
      now: () => 0,
    });
    while (broker.gateway.broker.client(id)?.subscriptions !== 1) await wait(1);
    signals.emit('SIGTERM');
    expect(await running).toBe(0);
    while (broker.gateway.broker.client(id)?.connected === true) await wait(1);
  });

  it('shows control characters as text on a terminal', async () => {
    await publish('t', 'a\u001b[2J\u009bb\tc', { retain: true });
    const io = fakeIo();
    await sub({ ...flags, host: '127.0.0.1', port: broker.port, topic: [`${topic}/t`], count: 1 }, io, {
      signals: new EventEmitter(),
      tty: true,
      now: () => 0,
    });
    expect(io.stdout.text()).toBe('a\\x1b[2J\\x9bb\tc\n');
  });

  it('fails with 1 when the broker lets nobody in', async () => {
    const closed = await testGateway(
      'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth { allow_anonymous = false, password { "bob" : "pw1" } }\n',
    );
    const at = ['-h', '127.0.0.1', '-p', String(closed.port), '-t', 'x'];
    expect((await tide(['pub', ...at, '-m', 'kept', '-r', '-q', '1', '-u', 'bob', '-P', 'pw1'])).code).toBe(0);
    expect((await tide(['sub', ...at, '-C', '1', '-u', 'bob', '-P', 'pw1'])).out).toBe('kept\n');
    for (const version of ['311', '5']) {
      const { code, err } = await tide(['sub', ...at, '-C', '1', '-u', 'bob', '-P', 'wrong', '-V', version]);
      expect(code).toBe(1);
      expect(err).toMatch(/not authori[sz]ed|Not authori[sz]ed/i);
    }
    await closed.stop();
  });
});

describe('lines of standard input', () => {
  it('go on over a new connection, and what was not acknowledged is sent again', async () => {
    const got: string[] = [];
    const arrived = new EventEmitter();
    const server = createServer((socket) => {
      const isFirst = got.length === 0;
      socket.on('error', () => {});
      const cutter = new PacketCutter(1000);
      socket.on('data', (chunk) =>
        cutter.feed(chunk, (buffer) => {
          const { type, bodyStart, end } = cutter.frame;
          if (type === CONNECT) socket.write(Buffer.of(0x20, 2, 0, 0));
          if (type !== PUBLISH) return true;
          // Topic "a" and the packet identifier come before the payload.
          got.push(buffer.toString('utf8', bodyStart + 5, end));
          if (isFirst) socket.destroy();
          else socket.write(encodeAck(4, PUBACK, buffer.readUInt16BE(bodyStart + 3)));
          arrived.emit('message');
          return !isFirst;
        }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const stdin = new PassThrough();
    const io = { ...fakeIo(), stdin };
    const running = runCli(['pub', '-h', '127.0.0.1', '-p', String(port), '-t', 'a', '-q', '1', '-l'], io);
    stdin.write('one\n');
    while (got.length < 2) await new Promise((resolve) => arrived.once('message', resolve));
    stdin.end('two\n');
    expect(await running).toBe(0);
    server.close();
    expect(got).toEqual(['one', 'one', 'two']);
    expect(io.stderr.text()).toContain('trying again');
  });
});
