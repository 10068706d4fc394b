// Rules in a whole gateway: from MQTT and NNG, to topics, bridges and the webhook; loops, pace, changes while running, what costs nothing.

import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Command } from 'commander';
import mqtt, { type IPublishPacket, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, test } from 'vitest';
import { registerCtl } from '../../src/cli/ctl/ctl.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { fakeIo } from '../harness/io.ts';
import { HEAD, peerOf } from '../harness/nnggateway.ts';
import { sendText } from '../harness/spsockets.ts';

let gateway: TestGateway;
const clients: MqttClient[] = [];
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.endAsync(true)));
  for (const server of servers.splice(0)) server.close();
  await gateway.stop();
});

interface Seen {
  readonly client: MqttClient;
  readonly messages: { topic: string; text: string; qos: number; retain: boolean; packet: IPublishPacket }[];
  until(count: number): Promise<string[]>;
}
async function listener(filter: string, version: 4 | 5 = 4): Promise<Seen> {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { protocolVersion: version });
  clients.push(client);
  const messages: Seen['messages'] = [];
  let look = (): void => {};
  client.on('message', (topic, payload, packet) => {
    messages.push({ topic, text: payload.toString(), qos: packet.qos, retain: packet.retain, packet });
    look();
  });
  await client.subscribeAsync(filter, { qos: 2 });
  const until = (count: number): Promise<string[]> =>
    new Promise((resolve) => {
      look = () => {
        if (messages.length >= count) resolve(messages.map(({ topic, text }) => `${topic} ${text}`));
      };
      look();
    });
  return { client, messages, until };
}
const start = async (conf: string): Promise<void> => {
  gateway = await testGateway(HEAD + conf);
};
const status = (name: string) => gateway.gateway.rules.list().find((rule) => rule.name === name);

describe('rules', () => {
  test('a rule filters, makes a new object and publishes it with its QoS', async () => {
    await start(`rules.hot { from = ["sensor/+/data"], where = "payload.temp > 20",
      set = { device = "topic", temp = "payload.temp" }, to = "out/{1}", qos = 1 }`);
    const out = await listener('out/#');
    for (const temp of [19, 21.5, 20])
      await out.client.publishAsync('sensor/k1/data', JSON.stringify({ temp }), { qos: 0 });
    await out.client.publishAsync('sensor/k2/data', '{"temp":30}', { qos: 2 });
    expect(await out.until(2)).toEqual([
      'out/k1 {"device":"sensor/k1/data","temp":21.5}',
      'out/k2 {"device":"sensor/k2/data","temp":30}',
    ]);
    expect(out.messages.map(({ qos }) => qos)).toEqual([1, 1]);
    expect(status('hot')).toMatchObject({ matched: 4, passed: 2, dropped: { filtered: 2 }, lastError: null });
  });
  test('what cannot be applied is counted with the last error, the message itself goes its way', async () => {
    await start(`rules.r { from = "s/#", where = "payload.t > 1", to = "out" }`);
    const all = await listener('#');
    await all.client.publishAsync('s/1', '{"x":1}', { qos: 1 });
    await all.client.publishAsync('s/1', '{"t":2}', { qos: 1 });
    expect((await all.until(3)).sort()).toEqual(['out {"t":2}', 's/1 {"t":2}', 's/1 {"x":1}']);
    expect(status('r')).toMatchObject({
      dropped: { error: 1 },
      lastError: { topic: 's/1', text: 'where: No such key: t' },
    });
    expect(gateway.messages.filter(({ id }) => id === 'RULE-ERROR')).toHaveLength(1);
  });
  test('a message that two filters of a rule match comes in once', async () => {
    await start(`rules.r { from = ["a/#", "a/+"], to = "out/{1}" }`);
    const out = await listener('out/#');
    await out.client.publishAsync('a/x', '1', { qos: 1 });
    await out.client.publishAsync('a/end', '2', { qos: 1 });
    expect(await out.until(2)).toEqual(['out/x 1', 'out/end 2']);
  });
  test('a rule does not get what it made itself', async () => {
    await start(`rules.r { from = "#", to = "copy/{topic}" }`);
    const out = await listener('copy/#');
    await out.client.publishAsync('a', '1', { qos: 1 });
    await out.client.publishAsync('b', '2', { qos: 1 });
    expect(await out.until(2)).toEqual(['copy/a 1', 'copy/b 2']);
    expect(status('r')).toMatchObject({ matched: 2, passed: 2, dropped: {} });
  });
  test('rules that feed each other end with an alarm', async () => {
    await start(`rules.a { from = "ping", to = "pong" }, rules.b { from = "pong", to = "ping" }`.replace('}, ', '}\n'));
    const out = await listener('#');
    await out.client.publishAsync('ping', '1', { qos: 1 });
    await out.client.publishAsync('end', '1', { qos: 1 });
    const seen = await out.until(4);
    expect(seen).toEqual(['ping 1', 'pong 1', 'ping 1', 'end 1']);
    expect(status('a')).toMatchObject({ dropped: { loop: 1 } });
    expect(gateway.messages.find(({ id }) => id === 'RULE-LOOP')?.fields).toMatchObject({ rules: ['a', 'b', 'a'] });
  });
  test('a chain of nine rules ends behind the eighth', async () => {
    const rules = Array.from({ length: 9 }, (_, i) => `rules.r${i} { from = "c/${i}", to = "c/${i + 1}" }`);
    await start(rules.join('\n'));
    const out = await listener('c/#');
    await out.client.publishAsync('c/0', 'x', { qos: 1 });
    expect(await out.until(9)).toEqual(Array.from({ length: 9 }, (_, i) => `c/${i} x`));
    expect(status('r8')).toMatchObject({ passed: 0, dropped: { loop: 1 } });
    expect(gateway.messages.filter(({ id }) => id === 'RULE-LOOP')).toHaveLength(1);
  });
  test('only what has changed by enough goes on, topic by topic', async () => {
    await start(`rules.r { from = "s/+", changed = "payload.t", by = 0.5, to = "out/{1}" }`);
    const out = await listener('out/#');
    for (const [topic, t] of [
      ['a', 20],
      ['a', 20.4],
      ['b', 20.4],
      ['a', 20.5],
      ['a', 20.9],
      ['a', 20],
      ['b', 21],
    ])
      await out.client.publishAsync(`s/${topic}`, JSON.stringify({ t }), { qos: 1 });
    expect(await out.until(5)).toEqual([
      'out/a {"t":20}',
      'out/b {"t":20.4}',
      'out/a {"t":20.5}',
      'out/a {"t":20}',
      'out/b {"t":21}',
    ]);
    expect(status('r')?.dropped).toEqual({ unchanged: 2 });
  });
  test('a throttle lets the first message of a topic go at once and the last one when the time is over', async () => {
    await start(`rules.r { from = "s/+", throttle = 150ms, to = "out/{1}" }`);
    const out = await listener('out/#');
    for (let i = 1; i <= 20; i++) out.client.publish('s/a', String(i), { qos: 0 });
    await out.client.publishAsync('s/b', '1', { qos: 1 });
    expect(await out.until(3)).toEqual(['out/a 1', 'out/b 1', 'out/a 20']);
    expect(status('r')).toMatchObject({ matched: 21, passed: 3, dropped: { throttled: 18 } });
  });
  test('properties travel, and say that a new object is JSON', async () => {
    await start(`rules.same { from = "p/a", to = "out/a" }
      rules.made { from = "p/b", set = { u = "properties.userProperties[\\"site\\"]" }, to = "out/b" }`);
    const out = await listener('out/#', 5);
    const properties = { userProperties: { site: 'n' }, contentType: 'text/plain' };
    await out.client.publishAsync('p/a', 'x', { qos: 1, properties });
    await out.client.publishAsync('p/b', 'x', { qos: 1, properties });
    expect(await out.until(2)).toEqual(['out/a x', 'out/b {"u":"n"}']);
    expect(out.messages.map(({ packet }) => packet.properties?.contentType)).toEqual([
      'text/plain',
      'application/json',
    ]);
    expect(out.messages.map(({ packet }) => ({ ...packet.properties?.userProperties }))).toEqual([
      { site: 'n' },
      { site: 'n' },
    ]);
  });
  test("NanoMQ's repub SQL is a rule", async () => {
    await start(`rules.repub { rules = [ { server = "mqtt-tcp://localhost:1883", topic = "topic/repub1", keepalive = "60s",
      sql = "SELECT topic, payload FROM \\"abc\\"" },
      { topic = "y", sql = "SELECT payload.x.y as y, payload.z as z FROM \\"#\\" WHERE y > 10 and z != 'str'" } ] }
      rules.sqlite { path = "/x.db", rules = [ { sql = "SELECT * FROM \\"t\\"", table = t } ] }`);
    const out = await listener('#');
    await out.client.publishAsync('abc', 'aaa', { qos: 1 });
    await out.client.publishAsync('m', '{"x":{"y":11},"z":"v"}', { qos: 1 });
    await out.client.publishAsync('m', '{"x":{"y":9}}', { qos: 1 });
    const seen = await out.until(5);
    expect(seen.filter((line) => /^(?:topic|y)/.test(line))).toEqual([
      'topic/repub1 {"topic":"abc","payload":"aaa"}',
      'y {"y":11,"z":"v"}',
    ]);
  });
  test('what comes in through an NNG bridge is a source, a bridge that sends a target', async () => {
    await start(`bridges.nng.sub.in { enable = true, sub_url = "tcp://127.0.0.1:0", subscription = [ { frame = payload, local_topic = "raw/x" } ] }
      bridges.nng.pub.out { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "never", remote_topic = r, nng_delimiter = ":" } ] }
      bridges.nng.push.bare { enable = true, push_url = "tcp://127.0.0.1:0" }
      rules.a { from = "nng:in", where = "payload.n > 1", set = { m = "payload.n * 2" }, to_nng = out, to = "x" }
      rules.b { from = "nng:in", to_nng = bare }
      rules.c { from = "nng:in", to_nng = nobody }`);
    const sender = await peerOf(gateway, 'sub', 'in', 'pub0');
    const taker = await peerOf(gateway, 'pub', 'out', 'sub0');
    const bare = await peerOf(gateway, 'push', 'bare', 'pull0');
    for (const n of [1, 2, 3]) sendText(sender.socket, JSON.stringify({ n }));
    await taker.watch.until(() => taker.watch.bodies.length === 2);
    await bare.watch.until(() => bare.watch.bodies.length === 3);
    expect(taker.watch.bodies).toEqual(['r:{"m":4}', 'r:{"m":6}']);
    expect(bare.watch.bodies).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
    expect(status('c')).toMatchObject({ passed: 0, dropped: { 'no-bridge': 3 } });
    await Promise.all([sender, taker, bare].map(({ socket }) => socket.stop(100)));
  });
  test('the webhook gets the result', async () => {
    const bodies: string[] = [];
    let look = (): void => {};
    const server = createServer((request, response) => {
      request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()));
      request.on('end', () => {
        response.end();
        look();
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await start(`webhook { enable = true, url = "http://127.0.0.1:${port}/" }
      rules.r { from = "s/#", set = { v = "payload.v" }, to = "alarm", to_webhook = true }`);
    const out = await listener('alarm');
    await out.client.publishAsync('s/1', '{"v":1,"w":2}', { qos: 1 });
    expect(await out.until(1)).toEqual(['alarm {"v":1}']);
    await new Promise<void>((resolve) => {
      look = () => bodies.length > 0 && resolve();
      look();
    });
    expect(JSON.parse(bodies[0])).toMatchObject({ topic: 'alarm', payload: '{"v":1}' });
  });
  test('a reload adds, changes and removes rules; a wrong expression changes nothing and says where', async () => {
    await start(`rules.a { from = "s", to = "a" }\nrules.b { from = "s", to = "b" }\n`);
    const out = await listener('#');
    const file = path.join(gateway.folder, 'test.conf');
    writeFileSync(
      file,
      `${HEAD}rules.a { from = "s", to = "a" }\nrules.c { from = "s",\n  where = "payload.", to = "c" }\n`,
    );
    const refused = await gateway.gateway.reload();
    expect(refused).toMatchObject({ ok: false });
    expect(JSON.stringify(refused)).toMatch(/test\.conf:5:\d+: rules\.c\.where: Expected IDENTIFIER/);
    await out.client.publishAsync('s', '1', { qos: 1 });
    expect((await out.until(3)).sort()).toEqual(['a 1', 'b 1', 's 1']);
    writeFileSync(file, `${HEAD}\nrules.a { from = "s", to = "a" }\nrules.c { from = "s", to = "c" }\n`);
    expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
    await out.client.publishAsync('s', '2', { qos: 1 });
    expect((await out.until(6)).slice(3).sort()).toEqual(['a 2', 'c 2', 's 2']);
    // The one that is the same goes on counting.
    expect(status('a')).toMatchObject({ matched: 2 });
    expect(status('b')).toBeUndefined();
  });
  test('a wrong expression does not start', async () => {
    await expect(start('rules.a { from = "s", to = "a", where = "nobody == 1" }')).rejects.toThrow(
      /rules\.a\.where: Unknown variable: nobody/,
    );
    await start('');
  });
});

describe('rules by REST and ctl', () => {
  const HTTP = 'http_server { port = 0, ip_addr = "127.0.0.1", username = admin, password = "a-long-password" }\n';
  let url = '';
  const begin = async (conf: string): Promise<void> => {
    await start(HTTP + conf);
    const ready = gateway.messages.find(({ id }) => id === 'GW-READY');
    url = String(ready?.fields?.http);
    if (!url.startsWith('http')) url = `http://${url}`;
  };
  const call = async (method: string, where: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
    const authorization = `Basic ${Buffer.from('admin:a-long-password').toString('base64')}`;
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/v4${where}`, { method, headers, ...text });
    return { status: response.status, body: await response.json() };
  };
  const ctl = async (...words: string[]): Promise<string> => {
    const io = fakeIo('');
    const env = { TIDEGATE_URL: url, TIDEGATE_USER: 'admin', TIDEGATE_PASSWORD: 'a-long-password' };
    const program = new Command('tidegate').exitOverride().enablePositionalOptions();
    registerCtl(program, { io, exit: () => {} }, env, false);
    await program.parseAsync(['ctl', ...words], { from: 'user' });
    return io.stdout.text();
  };

  test('a rule is added, shown, sent back, changed and removed', async () => {
    await begin('');
    const rule = { from: ['s/+'], where: 'payload.t > 1', set: { t: 'payload.t' }, to: 'out/{1}', throttle: '1500ms' };
    expect(await call('PUT', '/rules/a', rule)).toMatchObject({ status: 201 });
    const out = await listener('out/#');
    await out.client.publishAsync('s/1', '{"t":2}', { qos: 1 });
    expect(await out.until(1)).toEqual(['out/1 {"t":2}']);
    const shown = (await call('GET', '/rules/a')).body as { data: Record<string, unknown> };
    expect(shown.data).toMatchObject({ ...rule, name: 'a', matched: 1, passed: 1, last_error: null });
    expect(await call('PUT', '/rules/a', shown.data)).toMatchObject({ status: 200 });
    expect(await call('PUT', '/rules/a', { ...rule, where: 'payload.t >', set: {} })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('where:') },
    });
    expect(await call('DELETE', '/rules/a')).toMatchObject({ status: 200 });
    expect(await call('GET', '/rules/a')).toMatchObject({ status: 404 });
  });
  test('a kept rule holds after the next reload', async () => {
    await begin('');
    expect(await call('PUT', '/rules/k?keep=true', { from: ['s'], to: 'out', set: { a: '1' } })).toMatchObject({
      status: 201,
    });
    expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
    expect(status('k')).toMatchObject({ enabled: true });
    expect(await call('DELETE', '/rules/k?keep=true')).toMatchObject({ status: 200 });
    expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
    expect(status('k')).toBeUndefined();
  });
  test('ctl tries a rule on a sample and says why nothing comes out', async () => {
    await begin('rules.r { from = "s/+", where = "payload.t > 1", set = { v = "payload.t * 2" }, to = "out/{1}" }');
    expect(await ctl('rule', 'test', 'r', '--topic', 's/k', '--payload', '{"t":4}')).toMatch(
      /outcome +passed[\s\S]*topic +out\/k[\s\S]*payload +\{"v":8\}/,
    );
    expect(await ctl('rule', 'test', 'r', '--topic', 's/k', '--payload', '{"t":0}')).toContain('where is false');
    expect(await ctl('rule', 'test', 'r', '--topic', 's/k', '--payload', 'x')).toContain('where: No such key: t');
    expect(await ctl('rule', 'test', 'r', '--topic', 'other')).toContain('matches nothing of from');
    expect(status('r')).toMatchObject({ matched: 0 });
    expect(await ctl('rule', 'list')).toMatch(/RULE +STATE +MATCHED/);
  });
  test('a rule is tried on live messages', async () => {
    await begin('rules.r { from = "s/+", where = "payload.t > 1", to = "out/{1}" }');
    const out = await listener('out/#');
    const tried = ctl('rule', 'test', 'r', '--live', '20', '--count', '2');
    const timer = setInterval(() => {
      out.client.publish('s/a', '{"t":2}');
      out.client.publish('s/a', '{"t":0}');
    }, 10);
    const text = await tried;
    clearInterval(timer);
    expect(text).toContain('s/a {"t":2}');
    expect(text).toContain('where is false');
  });
});
