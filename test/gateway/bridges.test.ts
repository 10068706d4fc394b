// Bridges to remote brokers added, changed, switched and removed while two gateways run: by REST, kept or not.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask, type Reply } from '../console/request.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';
let here: TestGateway;
let remote: TestGateway;
let port = 0;
const clients: MqttClient[] = [];

beforeEach(async () => {
  remote = await testGateway(`${BASE}auth { allow_anonymous = true, password { bridge = "Bridge-Secret-1" } }`);
  here = await testGateway(`${BASE}http_server { port = 0 }`);
  const ready = here.messages.find(({ id }) => id === 'GW-READY')?.fields as { http: string };
  port = Number(ready.http.split(':').at(-1));
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.endAsync(true)));
  await here.stop();
  await remote.stop();
});

function call(method: string, where: string, body?: unknown): Promise<Reply> {
  return ask(port, method, `/api/v4${where}`, { user: null, body });
}

async function client(gateway: TestGateway): Promise<MqttClient> {
  const made = await connectAsync(`mqtt://127.0.0.1:${gateway.port}`);
  clients.push(made);
  return made;
}

/** Topic and payload of the next message. */
function received(from: MqttClient): Promise<[string, Buffer]> {
  return new Promise((resolve) => from.once('message', (topic, payload) => resolve([topic, payload])));
}

function block(more: object = {}): Record<string, unknown> {
  return {
    name: 'cloud',
    server: `mqtt-tcp://127.0.0.1:${remote.port}`,
    username: 'bridge',
    password: 'Bridge-Secret-1',
    keepalive: '45s',
    forwards: [{ local_topic: 'up/#', remote_topic: '', qos: 1 }],
    ...more,
  };
}

async function until(state: string): Promise<void> {
  await expect
    .poll(async () => (await call('GET', '/mqtt/bridges/cloud')).json.data?.state, { timeout: 5000 })
    .toBe(state);
}

test('a bridge added by REST carries messages, shows no password, and is gone when removed', async () => {
  expect((await call('POST', '/mqtt/bridges', block())).status).toBe(201);
  await until('connected');
  const far = await client(remote);
  await far.subscribeAsync('up/#');
  const came = received(far);
  await (await client(here)).publishAsync('up/a', 'hello', { qos: 1 });
  const [topic, payload] = await came;
  expect([topic, String(payload)]).toEqual(['up/a', 'hello']);
  for (const where of ['/mqtt/bridges', '/mqtt/bridges/cloud', '/bridges', '/configuration/bridge']) {
    const { text } = await call('GET', where);
    expect(text, where).toContain('cloud');
    expect(text, where).not.toContain('Bridge-Secret-1');
  }
  expect((await call('DELETE', '/mqtt/bridges/cloud')).json).toEqual({ code: 0 });
  expect((await call('GET', '/mqtt/bridges/cloud')).status).toBe(404);
  expect((await call('GET', '/bridges')).json.data.bridge.nodes).toEqual([]);
});

test('a document that was read can be sent back: the password stays, another rule holds', async () => {
  await call('POST', '/mqtt/bridges', block());
  await until('connected');
  const { data } = (await call('GET', '/mqtt/bridges/cloud')).json;
  expect([data.password, data.keepalive]).toEqual(['***', '45s']);
  const forwards = [{ local_topic: 'other/#', remote_topic: 'far', qos: 1 }];
  expect((await call('PUT', '/mqtt/bridges/cloud', { ...data, forwards })).json).toEqual({ code: 0 });
  await until('connected');
  const far = await client(remote);
  await far.subscribeAsync('far/#');
  const came = received(far);
  await (await client(here)).publishAsync('other/a', 'hello', { qos: 1 });
  expect((await came)[0]).toMatch(/^far/);
});

test('a document that is wrong changes nothing and says which field', async () => {
  await call('POST', '/mqtt/bridges', block());
  await until('connected');
  for (const [more, pointer] of [
    [{ server: 'http://x' }, '/server'],
    [{ proto_ver: 9 }, '/proto_ver'],
    [{ forwards: [{ local_topic: 'a/#/b' }] }, '/forwards/0/local_topic'],
    [{ subscription: [{ remote_topic: 'a', qos: 7 }] }, '/subscription/0/qos'],
    [{ keepalive: 'soon' }, '/keepalive'],
    [{ name: 'other' }, '/name'],
  ] as const) {
    const { status, json } = await call('PUT', '/mqtt/bridges/cloud', block(more));
    expect([status, json.code, json.pointer], pointer).toEqual([400, 108, pointer]);
  }
  for (const [document, status, pointer] of [
    [{ ...block(), name: 'a b' }, 400, '/name'],
    [{ server: 'x' }, 400, '/name'],
    [block(), 409, ''],
    [{ name: 'n' }, 400, '/server'],
  ] as const) {
    const { status: got, json } = await call('POST', '/mqtt/bridges', document);
    expect([got, json.pointer]).toEqual([status, pointer]);
  }
  const { data } = (await call('GET', '/mqtt/bridges')).json;
  expect([data.length, data[0].state, data[0].forwards[0].local_topic]).toEqual([1, 'connected', 'up/#']);
});

test('a bridge is switched off and on', async () => {
  await call('POST', '/mqtt/bridges', block({ enable: false }));
  await until('disabled');
  expect((await call('POST', '/mqtt/bridges/cloud/enable')).json).toEqual({ code: 0 });
  await until('connected');
  expect((await call('POST', '/mqtt/bridges/cloud/disable')).json).toEqual({ code: 0 });
  await until('disabled');
});

test('kept, a bridge is there after a reload, and removed it stays away', async () => {
  const file = path.join(here.folder, 'tidegate.d', '50-console.conf');
  expect((await call('POST', '/mqtt/bridges?keep=true', block())).json.data.kept).toBe(file);
  expect(readFileSync(file, 'utf8')).toContain('up/#');
  await here.gateway.reload();
  await until('connected');
  expect((await call('DELETE', '/mqtt/bridges/cloud?keep=true')).status).toBe(200);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').not.toContain('cloud');
  await here.gateway.reload();
  expect((await call('GET', '/mqtt/bridges')).json.data).toEqual([]);
});

test("NanoMQ's path takes and removes a bridge too, in the shape of its PUT", async () => {
  const { name: _, ...document } = block();
  expect((await call('POST', '/bridges', { cloud: document })).status).toBe(201);
  await until('connected');
  const wrong = await call('POST', '/bridges', { second: { ...document, proto_ver: 9 } });
  expect([wrong.status, wrong.json.pointer]).toEqual([400, '/second/proto_ver']);
  expect((await call('DELETE', '/bridges/cloud')).json).toEqual({ code: 0 });
  expect((await call('DELETE', '/bridges/cloud')).json.code).toBe(115);
});
