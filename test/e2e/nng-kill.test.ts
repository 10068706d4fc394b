// kill -9 of the gateway and of its peers: the spool keeps what was acknowledged, the other side recovers by itself.
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Protocol, SpSocket } from '../../src/sp/sp.ts';
import { Firehose } from '../harness/firehose.ts';
import { gatewayProgram, KillGateway, type Program } from '../harness/killgateway.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

let program: Program;
let gateway: KillGateway;
let sockets: SpSocket[] = [];
let clients: Firehose[] = [];
beforeAll(async () => {
  program = await gatewayProgram();
});
afterAll(() => program.remove());
afterEach(async () => {
  for (const client of clients) client.end();
  await Promise.all(sockets.map((socket) => socket.stop(50)));
  await gateway.remove();
  sockets = [];
  clients = [];
});

async function start(conf: string): Promise<void> {
  gateway = new KillGateway(
    program,
    `listeners.tcp { bind = "127.0.0.1:0" }\nlog { level = info, format = json }\n${conf}`,
  );
  await gateway.start();
}
const SPOOL = `persistence { path = "{dir}/data/t.db", sync = ack }
  bridges.nng.push.p { enable = true, push_url = "ipc://{dir}/p.ipc", spool = 64MB,
    forwards = [ { local_topic = "b", remote_topic = "b", nng_delimiter = ":", qos = 1 } ] }`;

async function firehose(): Promise<Firehose> {
  const client = await Firehose.connect(gateway.port);
  clients.push(client);
  return client;
}
function peer(protocol: Protocol, url: string): { socket: SpSocket; watch: Watch } {
  const socket = testDriver().open(protocol, SP_DEFAULTS);
  sockets.push(socket);
  const watch = new Watch(socket);
  if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
  socket.dial(url);
  return { socket, watch };
}
const numbered = (i: number): Buffer => Buffer.from(`${String(i).padStart(8, '0')}${'.'.repeat(200)}`);
const numbers = (bodies: readonly string[]): number[] => bodies.map((body) => Number(body.slice(2, 10)));
const counted = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
/** Each number once, in the order in which they first came. */
const firsts = (list: readonly number[]): number[] => [...new Set(list)];

test('acknowledged frames survive a kill and reach the first peer in order, once', async () => {
  await start(SPOOL);
  const client = await firehose();
  await client.publish('b', 1, 5000, numbered);
  await client.until(() => client.acknowledged === 5000);
  await gateway.kill();
  await gateway.start();
  const { watch } = peer('pull0', `ipc://${gateway.folder}/p.ipc`);
  await watch.until(() => watch.bodies.length >= 5000);
  const again = await firehose();
  await again.publish('b', 1, 10, (i) => numbered(5000 + i));
  await watch.until(() => watch.bodies.length >= 5010);
  expect(numbers(watch.bodies)).toEqual(counted(5010));
}, 60_000);

test('a kill while the spool is being sent loses nothing and keeps the order', async () => {
  await start(SPOOL);
  const client = await firehose();
  const total = 30_000;
  const sent = client.publish('b', 1, total, numbered);
  await client.until(() => client.acknowledged === total);
  await sent;
  const { watch } = peer('pull0', `ipc://${gateway.folder}/p.ipc`);
  await watch.until(() => watch.bodies.length >= 1000);
  await gateway.kill();
  const before = watch.bodies.length;
  await gateway.start();
  await watch.until(() => watch.bodies.at(-1)?.startsWith(`b:${String(total - 1).padStart(8, '0')}`) === true);
  expect(firsts(numbers(watch.bodies))).toEqual(counted(total));
  // What had left a moment before the kill may come again, no more than that.
  expect(watch.bodies.length - total).toBeLessThanOrEqual(before);
}, 60_000);

test('a kill while clients publish loses nothing that was acknowledged', async () => {
  await start(SPOOL);
  const client = await firehose();
  const sent = client.publish('b', 1, 60_000, numbered);
  await client.until(() => client.acknowledged > 5000);
  await gateway.kill();
  await sent;
  const acknowledged = client.acknowledged;
  await gateway.start();
  const { watch } = peer('pull0', `ipc://${gateway.folder}/p.ipc`);
  await watch.until(() => watch.bodies.length >= acknowledged);
  expect(numbers(watch.bodies.slice(0, acknowledged))).toEqual(counted(acknowledged));
}, 60_000);

test('what a peer that does not read was not sent yet survives a kill, though it was acknowledged', async () => {
  await start(SPOOL);
  const client = await firehose();
  const { socket, watch } = peer('pull0', `ipc://${gateway.folder}/p.ipc`);
  await watch.until(() => watch.count('pipe-up') === 1);
  socket.pause();
  const large = (i: number): Buffer => Buffer.from(`${String(i).padStart(8, '0')}${'.'.repeat(4000)}`);
  const sent = client.publish('b', 1, 500, large);
  await client.until(() => client.acknowledged > 100);
  const { acknowledged } = client;
  await gateway.kill();
  await sent;
  await gateway.start();
  socket.resume();
  await watch.until(() => watch.count('pipe-up') === 2);
  const again = await firehose();
  await again.publish('b', 1, 1, () => numbered(9999));
  await watch.until(() => numbers(watch.bodies).includes(9999));
  expect(firsts(numbers(watch.bodies)).slice(0, acknowledged)).toEqual(counted(acknowledged));
}, 60_000);

test('peers find a gateway that was killed in a burst and go on in order', async () => {
  await start(`persistence { enable = false }
    bridges.nng.pub.p { enable = true, pub_url = "ipc://{dir}/p.ipc", forwards = [ { local_topic = "b", remote_topic = "b", nng_delimiter = ":" } ] }
    bridges.nng.sub.s { enable = true, sub_url = "ipc://{dir}/s.ipc", subscription = [ { remote_topic = "in", nng_delimiter = ":", local_topic = "l" } ] }`);
  const reader = peer('sub0', `ipc://${gateway.folder}/p.ipc`);
  const writer = peer('pub0', `ipc://${gateway.folder}/s.ipc`);
  await reader.watch.until(() => reader.watch.count('pipe-up') === 1);
  const client = await firehose();
  void client.publish('b', 0, 200_000, numbered);
  await reader.watch.until(() => reader.watch.bodies.length > 1000);
  await gateway.kill();
  await reader.watch.until(() => reader.watch.count('pipe-down') === 1);
  const before = numbers(reader.watch.bodies);
  expect(before).toEqual(counted(before.length));
  await gateway.start();
  await reader.watch.until(() => reader.watch.count('pipe-up') === 2);
  await writer.watch.until(() => writer.watch.count('pipe-up') === 2);
  const again = await firehose();
  await again.subscribe('l', 0);
  sendText(writer.socket, 'in:back');
  await again.until(() => again.received.length === 1);
  await again.publish('b', 0, 100, numbered);
  await reader.watch.until(() => reader.watch.bodies.length === before.length + 100);
  expect(numbers(reader.watch.bodies.slice(before.length))).toEqual(counted(100));
}, 60_000);

test('a peer that is gone in the middle of a frame disturbs nobody and may come back', async () => {
  await start(`persistence { enable = false }
    bridges.nng.pull.s { enable = true, pull_url = "ipc://{dir}/s.ipc", subscription = [ { remote_topic = "in", nng_delimiter = ":", local_topic = "l" } ] }`);
  const path = `${gateway.folder}/s.ipc`;
  const client = await firehose();
  await client.subscribe('l', 0);
  const other = peer('push0', `ipc://${path}`);
  await other.watch.until(() => other.watch.count('pipe-up') === 1);
  // The greeting of push0, a whole frame, and half of one that says it has 1,000 bytes.
  const broken = connect(path);
  const frame = Buffer.from('0100000000000000046162', 'hex');
  const whole = Buffer.concat([Buffer.from('010000000000000004', 'hex'), Buffer.from('in:1')]);
  const half = Buffer.concat([Buffer.from('0100000000000003e8', 'hex'), Buffer.from('in:lost')]);
  broken.on('error', () => {});
  await new Promise((resolve) => broken.once('connect', resolve));
  broken.write(Buffer.concat([Buffer.from('0053500000500000', 'hex'), whole, half, frame]));
  await client.until(() => client.received.length === 1);
  broken.destroy();
  sendText(other.socket, 'in:2');
  const back = peer('push0', `ipc://${path}`);
  await back.watch.until(() => back.watch.count('pipe-up') === 1);
  sendText(back.socket, 'in:3');
  await client.until(() => client.received.length === 3);
  expect(client.received.map(String).sort()).toEqual(['1', '2', '3']);
  rmSync(path, { force: true });
}, 60_000);
