// Whole gateways with broker.engine = aedes: clients of mosquitto, an NNG bridge, users and rights, two gateways over one Redis.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mqtt from 'mqtt';
import { afterEach, describe, expect, test } from 'vitest';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { programPath } from '../harness/mosquitto.ts';
import { boundOf, peerOf } from '../harness/nnggateway.ts';
import { noRedis, startRedis } from '../harness/redis.ts';

let undo: (() => unknown)[] = [];
afterEach(async () => {
  const steps = undo.reverse();
  undo = [];
  for (const step of steps) await step();
});

const HEAD = 'listeners.tcp { bind = "127.0.0.1:0" }\nbroker.engine = aedes\n';
const client = programPath('mosquitto_pub');

async function gatewayWith(conf: string): Promise<TestGateway> {
  const made = await testGateway(`${HEAD}${conf}`);
  undo.push(() => made.stop());
  return made;
}

/** Runs a client of mosquitto to its end; gives its output and exit code. */
function run(name: string, ...args: string[]): Promise<{ code: number; text: string }> {
  const child = spawn(name, args);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code: code ?? -1, text })));
}

async function connect(port: number, options: mqtt.IClientOptions = {}): Promise<mqtt.MqttClient> {
  const made = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0, ...options });
  undo.push(() => made.endAsync(true));
  return made;
}

describe.skipIf(client === null)(
  `mosquitto's clients${client === null ? ' (mosquitto-clients is not installed)' : ''}`,
  () => {
    test('publish and subscribe at every QoS; version 5 is told why not', async () => {
      const { port } = await gatewayWith('');
      const to = ['-h', '127.0.0.1', '-p', String(port)];
      for (const qos of ['0', '1', '2']) {
        const sent = await run('mosquitto_pub', ...to, '-r', '-q', qos, '-t', `t/${qos}`, '-m', `m${qos}`);
        expect(sent.code).toBe(0);
      }
      const got = await run('mosquitto_sub', ...to, '-q', '2', '-t', 't/#', '-C', '3', '-W', '10');
      expect(got.text.trim().split('\n').sort()).toEqual(['m0', 'm1', 'm2']);
      const five = await run('mosquitto_pub', ...to, '-V', '5', '-t', 't', '-m', 'x');
      expect(five.code).not.toBe(0);
      expect(five.text.toLowerCase()).toContain('protocol version');
    });
  },
);

test('messages cross an NNG bridge both ways', async () => {
  const gateway = await gatewayWith(
    `bridges.nng.pub.p { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "up/#", remote_topic = "" } ] }
     bridges.nng.sub.s { enable = true, sub_url = "tcp://127.0.0.1:0", subscription = [ { remote_topic = "down", local_topic = "" } ] }`,
  );
  const sub = await peerOf(gateway, 'pub', 'p', 'sub0');
  undo.push(() => sub.socket.stop(200));
  expect(boundOf(gateway, 'sub', 's')).toMatch(/^tcp:/);
  const one = await connect(gateway.port);
  await one.publishAsync('up/x', '1', { qos: 1 });
  await sub.watch.until(() => sub.watch.bodies.length > 0);
  expect(sub.watch.bodies).toEqual(['up/x/1']);
  await one.subscribeAsync('down/#', { qos: 1 });
  const pub = await peerOf(gateway, 'sub', 's', 'pub0');
  undo.push(() => pub.socket.stop(200));
  const came = new Promise<string>((resolve) =>
    one.once('message', (topic, payload) => resolve(`${topic} ${payload}`)),
  );
  const body = Buffer.from('down/a/2');
  pub.socket.send(new Uint8Array(0), body, 0, body.length);
  expect(await came).toMatch(/^down/);
});

test('users and rights of files hold, and a reload closes who may not stay', async () => {
  const gateway = await gatewayWith('auth { allow_anonymous = false, password { "u" : "secret", "v" : "other" } }');
  await expect(connect(gateway.port)).rejects.toThrow(/Not authorized/i);
  await expect(connect(gateway.port, { username: 'u', password: 'wrong' })).rejects.toThrow(/Not authorized/i);
  const one = await connect(gateway.port, { username: 'u', password: 'secret' });
  const closed = new Promise<void>((resolve) => one.once('close', () => resolve()));
  writeFileSync(
    join(gateway.folder, 'test.conf'),
    `${HEAD}auth { allow_anonymous = false, password { "v" : "other" } }`,
  );
  await gateway.gateway.reload();
  await closed;
});

const redisMissing = noRedis();
test.skipIf(redisMissing !== null)(
  `two gateways over one Redis are one broker${redisMissing === null ? '' : ` (${redisMissing})`}`,
  async () => {
    const redis = await startRedis();
    undo.push(() => redis.stop());
    const a = await gatewayWith(`broker.redis = "${redis.url}"\n`);
    const b = await gatewayWith(`broker.redis = "${redis.url}"\n`);
    const subscriber = await connect(b.port, { clientId: 's', clean: false });
    await subscriber.subscribeAsync('t', { qos: 1 });
    const came = new Promise<string>((resolve) => subscriber.once('message', (_, payload) => resolve(String(payload))));
    const publisher = await connect(a.port);
    await publisher.publishAsync('t', '1', { qos: 1 });
    expect(await came).toBe('1');
    await subscriber.endAsync();
    await publisher.publishAsync('t', '2', { qos: 1 });
    const there = mqtt.connect(`mqtt://127.0.0.1:${a.port}`, { clientId: 's', clean: false, reconnectPeriod: 0 });
    undo.push(() => there.endAsync(true));
    expect(await new Promise((resolve) => there.once('message', (_, payload) => resolve(String(payload))))).toBe('2');
  },
);

test('a Redis that does not answer ends the start with its code and one line', async () => {
  const error = await testGateway(`${HEAD}broker.redis = "redis://127.0.0.1:1"\n`).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: 'BROKER-ENGINE', exit: 1 });
  expect(String(error)).not.toContain('\n');
});
