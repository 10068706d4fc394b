// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
// Changes that are kept: what REST writes to tidegate.d, that a restart and a reload give the same, and what cannot be kept.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Loaded } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { folder } from '../harness/configfiles.ts';

const MAIN = `# mine
listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
http_server { port = 0 }
bridges.nng.pub.plant {
  enable = true
  pub_url = "inproc://plant"   # the plant
  forwards = [ { local_topic = "a/#" } ]
  send_buffer = 7
}
bridges.mqtt.cloud { enable = false, server = "mqtt-tcp://127.0.0.1:1", password = \${?PW}, clientid = c, keepalive = 30s }
`;
const NEW = {
  type: 'sub',
  name: 'can',
  sub_url: 'inproc://can',
  subscription: [{ remote_topic: 'x', local_topic: 'y' }],
};

let dir = '';
let gateway: Gateway | null = null;
let base = '';
let logged: { id: string; fields: unknown }[] = [];
afterEach(async () => {
  await gateway?.stop(1000);
  gateway = null;
});

const env = { PW: 'Secret-9' };

function read(set: readonly string[] = [], kept?: string): Loaded {
  return loadConfig({ file: 'tidegate.conf', set, env, cwd: dir, kept });
}

async function start(load: typeof read = read): Promise<void> {
  await gateway?.stop(1000);
  logged = [];
  const log = (_level: string, id: string, fields: object = {}): void => {
    logged.push({ id, fields });
  };
  gateway = createGateway(load(), { log, clock: systemClock, load, relog: () => {} });
  await gateway.start();
  const ready = logged.find(({ id }) => id === 'GW-READY')?.fields as { http: string };
  base = ready.http.startsWith('http') ? ready.http : `http://${ready.http}`;
}

async function given(main = MAIN, files: Record<string, string> = {}): Promise<void> {
  dir = folder({ 'tidegate.conf': main, ...files });
  await start();
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into by the tests
type Body = any;
async function ask(method: string, target: string, body?: unknown): Promise<{ status: number; body: Body }> {
  const answer = await fetch(`${base}/api/v4${target}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

const keptPath = (): string => path.join(dir, 'tidegate.d/50-console.conf');
const keptText = (): string => readFileSync(keptPath(), 'utf8');

/** Bridges as REST shows them, without what changes by itself. */
async function blocks(): Promise<unknown> {
  const nng = (await ask('GET', '/nng/bridges')).body.data as Record<string, unknown>[];
  const mqtt = (await ask('GET', '/bridges')).body.data.bridge.nodes as Record<string, unknown>[];
  const words = [
    'name',
    'type',
    'enable',
    'forwards',
    'subscription',
    'send_buffer',
    'connector',
    'pub_url',
    'sub_url',
  ];
  const pick = (row: Record<string, unknown>): unknown => words.map((word) => row[word] ?? null);
  return [...nng, ...mqtt]
    .map(pick)
    .map((row) => JSON.stringify(row))
    .sort();
}

/** What runs now is what runs after a reload and after a restart; the main file is untouched. */
async function sameAgain(): Promise<void> {
  const before = await blocks();
  expect(await gateway?.reload()).toMatchObject({ ok: true });
  expect(await blocks()).toEqual(before);
  await start();
  expect(await blocks()).toEqual(before);
  expect(readFileSync(path.join(dir, 'tidegate.conf'), 'utf8')).toBe(MAIN);
}

test('a bridge added with keep is there after reload and restart, in a file only its owner may read', async () => {
  await given();
  const { status, body } = await ask('POST', '/nng/bridges?keep=true', NEW);
  expect([status, body.data.kept]).toEqual([201, keptPath()]);
  expect(statSync(keptPath()).mode & 0o777).toBe(0o600);
  expect(logged.some(({ id }) => id === 'CFG-KEPT')).toBe(true);
  await sameAgain();
  expect((await ask('GET', '/nng/bridges/can')).body.data.enable).toBe(true);
});

test('without keep nothing is written and a restart forgets', async () => {
  await given();
  expect((await ask('POST', '/nng/bridges', NEW)).status).toBe(201);
  expect(existsSync(keptPath())).toBe(false);
  await start();
  expect((await ask('GET', '/nng/bridges/can')).status).toBe(404);
});

test('a kept change writes only what differs, and what is left out goes back to its default', async () => {
  await given();
  const wanted = { pub_url: 'inproc://plant', forwards: [{ local_topic: 'b/#' }] };
  expect((await ask('PUT', '/nng/bridges/plant?keep=true', wanted)).body).toMatchObject({ code: 0 });
  expect(keptText()).toContain('send_buffer = null');
  expect(keptText()).not.toContain('inproc://plant');
  await sameAgain();
});

test('a bridge that was read and sent back unchanged writes nothing about it', async () => {
  await given();
  const { data } = (await ask('GET', '/nng/bridges/plant')).body;
  expect((await ask('PUT', '/nng/bridges/plant?keep=true', data)).status).toBe(200);
  expect(keptText()).not.toContain('plant');
  await sameAgain();
});

test('switching is kept for bridges of the main file and for those that were only running', async () => {
  await given();
  const off = (await ask('POST', '/nng/bridges/plant/disable?keep=true')).body;
  expect(off).toMatchObject({ code: 0 });
  await ask('POST', '/nng/bridges', NEW);
  expect((await ask('POST', '/nng/bridges/can/disable?keep=true')).body).toMatchObject({ code: 0 });
  expect((await ask('POST', '/bridges/switch/cloud?keep=true', { data: { bridge_switch: true } })).status).toBe(200);
  await sameAgain();
});

test('a kept bridge is removed for good, one of the main file is kept disabled and the answer says so', async () => {
  await given();
  await ask('POST', '/nng/bridges?keep=true', NEW);
  expect((await ask('DELETE', '/nng/bridges/can?keep=true')).body.data.note).toBeUndefined();
  const { body } = await ask('DELETE', '/nng/bridges/plant?keep=true');
  expect(body.data.note).toContain('kept disabled');
  expect((await ask('GET', '/nng/bridges/plant')).body.data.enable).toBe(false);
  expect((await ask('GET', '/nng/bridges/can')).status).toBe(404);
  await sameAgain();
});

test('a bridge to a remote broker is kept without copying a secret that stays where it is', async () => {
  await given();
  const document = { server: 'mqtt-tcp://127.0.0.1:2', password: '***', clientid: 'c', keepalive: '45s' };
  const { body } = await ask('PUT', '/bridges/cloud?keep=true', { cloud: document });
  expect(body).toMatchObject({ code: 0 });
  expect(keptText()).not.toContain('Secret-9');
  expect(keptText()).toContain('45s');
  await sameAgain();
});

test('subscriptions added at a remote broker are kept', async () => {
  await given();
  const rule = { remote_topic: 'r/#', local_topic: 'l/#', qos: 1 };
  expect((await ask('POST', '/bridges/sub/cloud?keep=true', { data: { subscription: [rule] } })).body).toMatchObject({
    code: 0,
  });
  await sameAgain();
});

test('keys are kept by POST /config and POST /reload, and hold without being set again', async () => {
  await given();
  const values = { 'mqtt.max_mqueue_len': 77, 'mqtt.max_packet_size': '2MB' };
  expect((await ask('POST', '/config?keep=true', { values })).body.data.kept).toBe(keptPath());
  expect((await ask('POST', '/reload?keep=true', { data: { keepalive_backoff: 2 } })).body).toMatchObject({ code: 0 });
  const limits = async (): Promise<unknown> => {
    const { mqtt } = (await ask('GET', '/config')).body.data;
    return [mqtt.max_mqueue_len, mqtt.max_packet_size, mqtt.keepalive_multiplier];
  };
  expect(await limits()).toEqual([77, 2 * 1024 * 1024, 2]);
  await start();
  expect(await limits()).toEqual([77, 2 * 1024 * 1024, 2]);
  expect((await ask('POST', '/config', { values: { 'mqtt.max_mqueue_len': 78 } })).status).toBe(200);
  expect(keptText()).toContain('max_mqueue_len = "77"');
});

test('what is not valid is not kept and changes nothing', async () => {
  await given();
  const refused = await ask('POST', '/config?keep=true', { values: { 'mqtt.max_qos': 9 } });
  expect(refused.status).toBe(400);
  expect(refused.body.message).toContain('mqtt.max_qos');
  expect((await ask('POST', '/nng/bridges?keep=true', { ...NEW, colour: 'red' })).status).toBe(400);
  expect(existsSync(keptPath())).toBe(false);
});

test('what a later file says otherwise is refused, because it would not hold', async () => {
  await given(MAIN, { 'tidegate.d/90-mine.conf': 'mqtt.max_mqueue_len = 5\nbridges.nng.pub.plant.enable = true' });
  const { status, body } = await ask('POST', '/config?keep=true', { values: { 'mqtt.max_mqueue_len': 77 } });
  expect([status, body.message]).toEqual([400, expect.stringContaining('would not hold')]);
  expect((await ask('POST', '/nng/bridges/plant/disable?keep=true')).status).toBe(400);
  expect((await ask('GET', '/nng/bridges/plant')).body.data.enable).toBe(true);
  expect(existsSync(keptPath())).toBe(false);
});

test('a file that cannot be written leaves everything as it is and says why', async () => {
  await given();
  // The place of the file is taken by a folder that is not empty: true for root too.
  mkdirSync(path.join(dir, 'tidegate.d/.50-console.conf.new/x'), { recursive: true });
  const { status, body } = await ask('POST', '/nng/bridges?keep=true', NEW);
  expect([status, body.message]).toEqual([503, expect.stringContaining('it cannot be kept')]);
  expect((await ask('GET', '/nng/bridges/can')).status).toBe(404);
  expect(existsSync(keptPath())).toBe(false);
});

test('a change that cannot come into force takes the file back', async () => {
  await given();
  await ask('POST', '/config?keep=true', { values: { 'mqtt.max_mqueue_len': 77 } });
  const before = keptText();
  const values = { 'auth.password_file': path.join(dir, 'none') };
  expect((await ask('POST', '/config?keep=true', { values })).status).toBe(400);
  expect(keptText()).toBe(before);
});

test('a reference that somebody wrote into the file is not lost: the change is refused', async () => {
  await given(MAIN, { 'tidegate.d/50-console.conf': 'bridges.mqtt.cloud.username = ${?PW}' });
  const text = keptText();
  expect((await ask('POST', '/nng/bridges?keep=true', NEW)).status).toBe(400);
  expect(keptText()).toBe(text);
});

test('a second bridge of the same name is refused and the file stays', async () => {
  await given();
  await ask('POST', '/nng/bridges?keep=true', NEW);
  const before = keptText();
  expect((await ask('POST', '/nng/bridges?keep=true', { ...NEW, sub_url: 'inproc://other' })).status).toBe(409);
  expect(keptText()).toBe(before);
});

test('two changes at the same time are both kept', async () => {
  await given();
  const names = ['n1', 'n2', 'n3'];
  const all = await Promise.all(
    names.map((name) => ask('POST', '/nng/bridges?keep=true', { ...NEW, name, sub_url: `inproc://${name}` })),
  );
  expect(all.map(({ status }) => status)).toEqual([201, 201, 201]);
  await sameAgain();
});

test('without a configuration file nothing can be kept, and the answer says so', async () => {
  dir = folder();
  const text = MAIN.replace('${?PW}', 'x');
  const load = (set: readonly string[] = [], kept?: string): Loaded =>
    loadConfig({ text: { text, dialect: 'hocon' }, set, env, cwd: dir, kept });
  await start(load as typeof read);
  expect((await ask('GET', '/config/kept')).body.data).toEqual({ file: null });
  const { status, body } = await ask('POST', '/nng/bridges?keep=true', NEW);
  expect([status, body.message]).toEqual([400, expect.stringContaining('configuration file')]);
});
