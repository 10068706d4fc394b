// A whole gateway with NNG bridges: MQTT bytes in, SP frames out, and back.

import mqtt, { type MqttClient } from 'mqtt';
import { afterEach, expect, test } from 'vitest';
import type { SpSocket } from '../../src/sp/sp.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

let gateway: TestGateway | null = null;
let clients: MqttClient[] = [];
let sockets: SpSocket[] = [];
afterEach(async () => {
  await Promise.all(clients.map((client) => client.endAsync(true)));
  await Promise.all(sockets.map((socket) => socket.stop(200)));
  await gateway?.stop();
  clients = [];
  sockets = [];
  gateway = null;
});

const HEAD = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';

/** Where a bridge listens, with its real port. */
function boundOf(type: string, name: string): string {
  const line = gateway?.messages.findLast(
    ({ id, fields }) => id === 'NNG-STATE' && fields?.bridge === name && fields.type === type,
  );
  const bound = (line?.fields?.bound ?? []) as string[];
  return bound[0];
}
async function client(): Promise<MqttClient> {
  const made = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway?.port}`, { reconnectPeriod: 0 });
  clients.push(made);
  return made;
}
async function peer(kind: 'sub0' | 'pub0', url: string): Promise<{ socket: SpSocket; watch: Watch }> {
  const socket = testDriver().open(kind, SP_DEFAULTS);
  sockets.push(socket);
  const watch = new Watch(socket);
  if (kind === 'sub0') socket.subscribe(new Uint8Array(0));
  socket.dial(url);
  await watch.state(url, 'connected');
  return { socket, watch };
}

test('rules send in the order of the configuration, whatever the filters', async () => {
  gateway = await testGateway(
    `${HEAD}bridges.nng.pub.p { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [
      { local_topic = "end", remote_topic = "end" }, { local_topic = "dup/#", remote_topic = "1" }, { local_topic = "dup/a", remote_topic = "2" },
      { local_topic = "+/a", remote_topic = "3" }, { local_topic = "#", remote_topic = "4" }, { local_topic = "dup/+", remote_topic = "5" } ] }`,
  );
  const sub = await peer('sub0', boundOf('pub', 'p'));
  const publisher = await client();
  // The pipe may come up after the first publishes: what counts is the order once it is there.
  const timer = setInterval(() => publisher.publish('end', '~'), 10);
  await sub.watch.until(() => sub.watch.bodies.some((body) => body.startsWith('end/')));
  clearInterval(timer);
  await publisher.publishAsync('dup/a', 'x', { qos: 1 });
  await sub.watch.until(() => sub.watch.bodies.includes('5/x'));
  expect(sub.watch.bodies.filter((body) => body.endsWith('/x'))).toEqual(['1/x', '2/x', '3/x', '4/x', '5/x']);
});
test('a QoS 1 publish is acknowledged when the frame is in the queue of a blocked peer that reads on', async () => {
  gateway = await testGateway(
    `${HEAD}bridges.nng.pub.p { enable = true, pub_url = "tcp://127.0.0.1:0", send_buffer = 64KB, overflow = block,
      forwards = [ { local_topic = "b/#", remote_topic = "b", nng_delimiter = ":", qos = 1 } ] }`,
  );
  const sub = await peer('sub0', boundOf('pub', 'p'));
  const publisher = await client();
  sub.socket.pause();
  const total = 300;
  const body = Buffer.alloc(50_000, 46);
  let acknowledged = 0;
  const all = Array.from({ length: total }, async (_, i) => {
    body.write(String(i).padStart(8, '0'));
    await publisher.publishAsync('b/1', Buffer.from(body), { qos: 1 });
    acknowledged++;
  });
  // The peer does not read, so most of 15 MB cannot be acknowledged yet.
  await Promise.race(all);
  expect(acknowledged).toBeLessThan(total);
  sub.socket.resume();
  await Promise.all(all);
  await sub.watch.until(() => sub.watch.bodies.length >= total);
  const numbers = sub.watch.bodies.map((frame) => Number(frame.slice(2, 10)));
  expect(numbers).toEqual(Array.from({ length: total }, (_, i) => i));
});
test('frames become publishes and can be forwarded by a bridge of another name, not of the same', async () => {
  gateway = await testGateway(
    `${HEAD}bridges.nng.sub.a { enable = true, sub_url = "tcp://127.0.0.1:0", subscription = [
      { remote_topic = "can", nng_delimiter = ":", local_topic = "l/{topic}", qos = 1 } ] }
    bridges.nng.pub.a { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "#", remote_topic = "same" } ] }
    bridges.nng.pub.b { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "#", remote_topic = "other" } ] }`,
  );
  const same = await peer('sub0', boundOf('pub', 'a'));
  const other = await peer('sub0', boundOf('pub', 'b'));
  const reader = await client();
  const got: string[] = [];
  reader.on('message', (topic, payload, packet) => got.push(`${topic} ${payload} q${packet.qos}`));
  await reader.subscribeAsync('l/#', { qos: 2 });
  const pub = await peer('pub0', boundOf('sub', 'a'));
  const timer = setInterval(() => sendText(pub.socket, 'can/1:21'), 10);
  await other.watch.until(() => other.watch.bodies.includes('other/21'));
  clearInterval(timer);
  await reader.publishAsync('l/direct', 'x', { qos: 1 });
  await same.watch.until(() => same.watch.bodies.includes('same/x'));
  expect(same.watch.bodies).toEqual(['same/x']);
  expect(got[0]).toBe('l/can/1 21 q1');
});
test('payload and rate_limit of a rule are in force', async () => {
  gateway = await testGateway(
    `${HEAD}bridges.nng.sub.a { enable = true, sub_url = "tcp://127.0.0.1:0", subscription = [
      { remote_topic = "b", nng_delimiter = ":", local_topic = "l/b", payload = base64 },
      { remote_topic = "r", nng_delimiter = ":", local_topic = "l/r", rate_limit = 1 }, { remote_topic = "end", nng_delimiter = ":", local_topic = "l/end" } ] }`,
  );
  const reader = await client();
  const got: string[] = [];
  const ended = new Promise<void>((resolve) => {
    reader.on('message', (topic, payload) => {
      got.push(`${topic} ${payload.toString('latin1')}`);
      if (topic === 'l/end') resolve();
    });
  });
  await reader.subscribeAsync('l/#');
  const pub = await peer('pub0', boundOf('sub', 'a'));
  for (const body of ['b:AP8=', 'b:***', 'r:1', 'r:2', 'end:']) sendText(pub.socket, body);
  await ended;
  expect(got).toEqual(['l/b \x00\xff', 'l/r 1', 'l/end ']);
});
