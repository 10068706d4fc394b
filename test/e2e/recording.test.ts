// Recorded messages and what happened, over REST, across a kill and a restart of the gateway; a replay in its own time.
import mqtt, { type MqttClient } from 'mqtt';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayProgram, KillGateway, type Program } from '../harness/killgateway.ts';
import { freePort } from '../harness/port.ts';

let program: Program;
let gateway: KillGateway;
let http: number;

beforeAll(async () => {
  program = await gatewayProgram();
  http = await freePort();
  gateway = new KillGateway(
    program,
    `listeners.tcp { bind = "127.0.0.1:0" }
     persistence { path = "{dir}/data/t.db" }
     record { topics = ["plant/#"] }
     http_server { port = ${http} }`,
  );
  await gateway.start();
}, 60_000);
afterAll(async () => {
  await gateway?.stop();
  await gateway?.remove();
  program?.remove();
});

async function ask(path: string, init?: RequestInit): Promise<{ status: number; text: string; json: () => Answer }> {
  const response = await fetch(`http://127.0.0.1:${http}/api/v4/${path}`, init);
  const text = await response.text();
  return { status: response.status, text, json: () => JSON.parse(text) as Answer };
}
interface Answer {
  readonly code: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of the REST API, looked into by each test
  readonly data: any;
  readonly meta?: { readonly next: string | number | null };
}

/** Asks again until it is so: recordings are written a few times a second. */
async function until(path: string, so: (answer: Answer) => boolean): Promise<Answer> {
  for (;;) {
    const { status, json } = await ask(path);
    if (status === 200 && so(json())) return json();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function connect(): Promise<MqttClient> {
  return mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { reconnectPeriod: 0, protocolVersion: 5 });
}

function post(body: object): RequestInit {
  return { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

test('what was recorded is there after a kill, with properties, as a list, a series and a file', {
  timeout: 60_000,
}, async () => {
  const client = await connect();
  for (let i = 0; i < 20; i++) {
    const payload = JSON.stringify({ t: i });
    const properties = i === 0 ? { contentType: 'application/json', userProperties: { unit: 'C' } } : {};
    await client.publishAsync(`plant/${i % 2}/temp`, payload, { qos: 1, properties });
  }
  await client.publishAsync('other', 'x', { qos: 1 });
  await client.publishAsync('plant/bin', Buffer.from([0xff, 0x00]), { qos: 1 });
  await until('recording', ({ data }) => data.messages === 21);
  await client.endAsync(true);
  // Asking has them written: what is younger than two seconds may be lost by a kill.
  await until('happenings?kinds=gateway', ({ data }) => data.length === 1);
  await gateway.kill();
  await gateway.start();
  const all = await until(
    'recording/messages?topic=plant/%2B/temp&order=asc&limit=1000',
    ({ data }) => data.length === 20,
  );
  expect(all.data.map(({ payload }: { payload: string }) => JSON.parse(payload).t)).toEqual(
    Array.from({ length: 20 }, (_, i) => i),
  );
  expect(all.data[0]).toMatchObject({
    topic: 'plant/0/temp',
    qos: 1,
    retain: false,
    properties: { content_type: 'application/json', user_properties: [['unit', 'C']] },
  });
  const { json: binary } = await ask('recording/messages?topic=plant/bin');
  expect(binary().data[0]).toMatchObject({ payload_base64: '/wA=', bytes: 2 });
  const { json: series } = await ask('recording/series?topic=plant/1/temp&field=t&points=1');
  expect(series().data[0].points[0]).toMatchObject({ count: 10, min: 1, max: 19, mean: 10, last: 19 });
  const lines = (await ask('recording/export')).text.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).topic).filter((topic) => topic === 'plant/bin')).toHaveLength(1);
  expect(lines).toHaveLength(21);
  const csv = (await ask('recording/export?format=csv&topic=plant/0/temp')).text.split('\r\n');
  expect(csv[0]).toBe('time,at,topic,qos,retain,payload,payload_base64,from,properties');
  expect(csv[1]).toContain('"{""t"":0}"');
  const { json: topics } = await ask('recording/topics?search=BIN');
  expect(topics().data.map(({ topic }: { topic: string }) => topic)).toEqual(['plant/bin']);
});

test('a replay publishes below its prefix in the order and with the gaps of the recording', {
  timeout: 60_000,
}, async () => {
  const client = await connect();
  await client.publishAsync('plant/r', 'a', { qos: 1 });
  await new Promise((resolve) => setTimeout(resolve, 400));
  await client.publishAsync('plant/r', 'b', { qos: 1 });
  await until('recording/messages?topic=plant/r', ({ data }) => data.length === 2);
  const came: { text: string; ms: number }[] = [];
  await client.subscribeAsync('again/#', { qos: 1 });
  const both = new Promise<void>((resolve) => {
    client.on('message', (topic, payload) => {
      came.push({ text: `${topic} ${payload}`, ms: performance.now() });
      if (came.length === 2) resolve();
    });
  });
  const started = await ask('recording/replays', post({ topic: 'plant/r', prefix: 'again/', speed: 2 }));
  expect(started.status).toBe(201);
  await both;
  expect(came.map(({ text }) => text)).toEqual(['again/plant/r a', 'again/plant/r b']);
  expect(came[1].ms - came[0].ms).toBeGreaterThan(150);
  const { id } = started.json().data;
  const ended = await until('recording/replays', ({ data }) =>
    data.some((one: { id: number; state: string }) => one.id === id && one.state === 'finished'),
  );
  expect(ended.data.find((one: { id: number }) => one.id === id)).toMatchObject({ published: 2, refused: 0 });
  await client.endAsync(true);
});

test('a replay can be stopped, and wrong ones are refused with the key', { timeout: 30_000 }, async () => {
  for (const [body, key] of [
    [{ topic: 'a/#/b' }, 'topic'],
    [{ prefix: 'x/+' }, 'prefix'],
    [{ prefix: '$SYS/' }, 'prefix'],
    [{ speed: -1 }, 'speed'],
    [{ from: 'yesterday' }, 'from'],
    [{ nonsense: 1 }, 'nonsense'],
  ] as const) {
    const { status, text } = await ask('recording/replays', post(body));
    expect(status, text).toBe(400);
    expect(text).toContain(key);
  }
  const started = await ask('recording/replays', post({ topic: 'plant/r', speed: 0.0001 }));
  const { id } = started.json().data;
  expect((await ask(`recording/replays/${id}`, { method: 'DELETE' })).status).toBe(200);
  await until('recording/replays', ({ data }) =>
    data.some((one: { id: number; state: string }) => one.id === id && one.state === 'stopped'),
  );
  expect((await ask('recording/replays/999', { method: 'DELETE' })).status).toBe(404);
});

test('what happened survives a restart and is filtered by kind and text', { timeout: 60_000 }, async () => {
  await until(
    'happenings?kinds=gateway',
    ({ data }) => data.filter((one: { text: string }) => one.text === 'ready').length >= 2,
  );
  const { json } = await ask('happenings?kinds=gateway&search=ready&limit=1');
  expect(json().data).toHaveLength(1);
  expect(json().meta?.next).toBe(json().data[0].id);
  const lines = (await ask('happenings?format=jsonl')).text.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThanOrEqual(2);
  expect((await ask('happenings?kinds=nonsense')).status).toBe(400);
});

test('figures reach back over the restart', { timeout: 60_000 }, async () => {
  const { data } = await until('history?step=1&from=-1h', ({ data: now }) => now.times.length >= 2);
  expect(data.values.clients).toHaveLength(data.times.length);
  expect(data.values.memory.at(-1)).toBeGreaterThan(1e6);
  expect((await ask('history?figures=A%20B')).status).toBe(400);
});
