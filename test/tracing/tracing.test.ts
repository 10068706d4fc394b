// Traces of messages through a whole gateway, at a collector of the test that checks every field.
import mqtt, { type MqttClient } from 'mqtt';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Collector } from '../harness/collector.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

let collector: Collector;
let gateway: TestGateway | null = null;
const clients: MqttClient[] = [];

beforeEach(async () => {
  collector = await new Collector().start();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.end(true);
  await gateway?.stop();
  gateway = null;
  await collector.stop();
  expect(collector.problems).toEqual([]);
});

async function start(tracing: string, more = ''): Promise<void> {
  gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth { allow_anonymous = true }
tracing { url = "${collector.url}", interval = "10ms", metrics_interval = 0, ${tracing} }
${more}`);
}

async function client(clientId: string, protocolVersion: 4 | 5 = 5): Promise<MqttClient> {
  const made = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway?.port}`, { clientId, protocolVersion });
  clients.push(made);
  return made;
}

function traced(flags: string): { properties: { userProperties: Record<string, string> } } {
  return { properties: { userProperties: { traceparent: `00-${TRACE}-${PARENT}-${flags}` } } };
}

/** The next messages of a subscriber: topic and traceparent. */
function received(subscriber: MqttClient, count: number): Promise<{ topic: string; traceparent: string }[]> {
  return new Promise((resolve) => {
    const seen: { topic: string; traceparent: string }[] = [];
    subscriber.on('message', (topic, _payload, { properties }) => {
      seen.push({ topic, traceparent: String(properties?.userProperties?.traceparent ?? '') });
      if (seen.length === count) resolve(seen);
    });
  });
}

test('a sampled message has spans for receive, rule, bridge and deliver, all of the trace it came with', async () => {
  await start(
    'parents = true',
    `rules.warm { from = "in/#", to = "out/warm", set { t = "payload.t" } }
bridges.nng.pub.p { enable = true, pub_url = "inproc://traced", forwards = [ { local_topic = "in/#" } ] }`,
  );
  const subscriber = await client('sub-1');
  await subscriber.subscribeAsync('in/#', { qos: 1 });
  const got = received(subscriber, 1);
  const publisher = await client('pub-1');
  await publisher.publishAsync('in/a', '{"t":1}', { qos: 1, ...traced('01') });
  expect(await got).toEqual([{ topic: 'in/a', traceparent: `00-${TRACE}-${PARENT}-01` }]);
  await collector.until(() => collector.spans.length >= 5);
  const named = (name: string) => collector.spans.filter((span) => span.name === name);
  const receive = named('receive').find((span) => span.attributes['messaging.destination.name'] === 'in/a');
  expect(receive).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, kind: 5 });
  expect(receive?.attributes).toMatchObject({
    'messaging.system': 'mqtt',
    'messaging.client.id': 'pub-1',
    'messaging.message.body.size': '7',
    'mqtt.qos': '1',
  });
  const inside = { traceId: TRACE, parentSpanId: receive?.spanId };
  expect(named('rule')).toMatchObject([{ ...inside, kind: 1, attributes: { 'tidegate.rule': 'warm' } }]);
  expect(named('bridge')).toMatchObject([{ ...inside, kind: 4, attributes: { 'tidegate.part': 'nng:p' } }]);
  expect(named('deliver')).toMatchObject([{ ...inside, kind: 4, attributes: { 'messaging.client.id': 'sub-1' } }]);
  // What the rule made of it goes on with the trace.
  expect(named('receive').map((span) => [span.traceId, span.attributes['messaging.destination.name']])).toContainEqual([
    TRACE,
    'out/warm',
  ]);
});

test('a message whose traceparent is not sampled is passed on and not traced', async () => {
  await start('ratio = 1');
  const subscriber = await client('sub');
  await subscriber.subscribeAsync('a');
  const got = received(subscriber, 1);
  const publisher = await client('pub');
  await publisher.publishAsync('a', 'x', { qos: 1, ...traced('00') });
  expect((await got)[0].traceparent).toBe(`00-${TRACE}-${PARENT}-00`);
  await publisher.publishAsync('b', 'x', { qos: 1 });
  await collector.until(() => collector.spans.length > 0);
  expect(collector.spans.every((span) => span.traceId !== TRACE)).toBe(true);
});

test('a chosen message without a traceparent gets one, which names its receive span', async () => {
  await start('ratio = 1');
  const subscriber = await client('sub');
  await subscriber.subscribeAsync('a');
  const got = received(subscriber, 1);
  const publisher = await client('pub', 4);
  publisher.publish('a', 'x');
  const [{ traceparent }] = await got;
  await collector.until(() => collector.spans.length >= 2);
  const receive = collector.spans.find((span) => span.name === 'receive');
  expect(traceparent).toBe(`00-${receive?.traceId}-${receive?.spanId}-01`);
  expect(receive?.parentSpanId).toBeUndefined();
});

test('a run of QoS 0 messages arrives whole and in order while some of it are traced', async () => {
  await start('ratio = 0.2, max_rate = 100000');
  const subscribers = [await client('old', 4), await client('new', 5)];
  const all: Promise<string[]>[] = subscribers.map(
    (subscriber) =>
      new Promise((resolve) => {
        const seen: string[] = [];
        subscriber.on('message', (topic, payload) => {
          if (seen.push(`${topic} ${payload.toString().slice(0, 8)} ${payload.length}`) === 600) resolve(seen);
        });
      }),
  );
  for (const subscriber of subscribers) await subscriber.subscribeAsync('run/#');
  const publisher = await client('pub', 4);
  const sent: string[] = [];
  for (let i = 0; i < 600; i++) {
    const payload = `${String(i).padStart(8, '0')}${'x'.repeat(i % 7 === 0 ? 20_000 : i % 50)}`;
    publisher.publish(`run/${i % 3}`, payload);
    sent.push(`run/${i % 3} ${payload.slice(0, 8)} ${payload.length}`);
  }
  for (const seen of await Promise.all(all)) expect(seen).toEqual(sent);
  await collector.until(() => collector.spans.some((span) => span.name === 'receive'));
  const counted = [...(gateway?.gateway.broker.traffic?.().topics ?? [])].filter(({ topic }) =>
    topic.startsWith('run/'),
  );
  expect(counted.map(({ messages }) => messages)).toEqual([200, 200, 200]);
});

test('more messages than max_rate are not traced, and counted', async () => {
  await start('ratio = 1, max_rate = 1');
  const publisher = await client('pub');
  for (let i = 0; i < 50; i++) await publisher.publishAsync('a', 'x', { qos: 1 });
  const value = (name: string) => gateway?.gateway.metrics.value(`tidegate_tracing_${name}_total`) ?? 0;
  expect(value('skipped')).toBeGreaterThan(0);
  expect(value('messages') + value('skipped')).toBe(50);
});

test('a refused message has an error in its receive span', async () => {
  await start('parents = true', 'mqtt { max_retained_messages = 1 }');
  const publisher = await client('pub');
  await publisher.publishAsync('a', 'x', { qos: 1, retain: true, ...traced('01') });
  await expect(publisher.publishAsync('b', 'x', { qos: 1, retain: true, ...traced('01') })).rejects.toThrow();
  await collector.until(() => collector.spans.length === 2);
  const statuses = collector.spans.map(({ attributes, status }) => [attributes['messaging.destination.name'], status]);
  expect(statuses).toEqual([
    ['a', {}],
    ['b', { code: 2, message: 'reason code 0x97' }],
  ]);
});

test('$SYS and commands are not traced', async () => {
  await start('ratio = 1', 'mqtt { sys_interval = "1s" }');
  const subscriber = await client('sub');
  const got = received(subscriber, 1);
  await subscriber.subscribeAsync('$SYS/#');
  await got;
  const publisher = await client('pub');
  await publisher.publishAsync('a', 'x', { qos: 1 });
  await collector.until(() => collector.spans.length > 0);
  expect(collector.spans.map((span) => span.attributes['messaging.destination.name'])).toEqual(['a']);
});

test('without tracing the router is the ordinary one', async () => {
  gateway = await testGateway();
  const { router } = (gateway.gateway.broker as unknown as { core: { router: object } }).core;
  expect(router.constructor.name).toBe('Routes');
});
