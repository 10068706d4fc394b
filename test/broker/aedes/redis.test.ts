// Several gateways as one broker through a real Redis: what is published at one reaches clients of all, queues and retained messages are
// shared, and a Redis that goes away loses nothing that was acknowledged.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { noRedis, startRedis, type TestRedis } from '../../harness/redis.ts';
import type { Room } from '../room.ts';
import { openAedesRoom } from './room.ts';

const V4 = { version: 4 } as const;
const KEEP = { version: 4, cleanStart: false } as const;
const missing = noRedis();

/** Turns of the loop until something holds; the test's own time limit ends it. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

describe.skipIf(missing !== null)(`gateways that share a broker${missing === null ? '' : ` (${missing})`}`, () => {
  let redis: TestRedis;
  let a: Room;
  let b: Room;
  beforeEach(async () => {
    redis = await startRedis();
    [a, b] = [await openAedesRoom({}, redis.url), await openAedesRoom({}, redis.url)];
  });
  afterEach(async () => {
    await Promise.all([a.stop(), b.stop()]);
    await redis.stop();
  });

  test('a client gets what a client of another one publishes, once and in order, at every QoS', async () => {
    const subscriber = await b.client('s', V4);
    await subscriber.subscribe('t/#', 2);
    const publisher = await a.client('p', V4);
    publisher.publish('t/0', '0', 0);
    await publisher.published('t/1', '1', 1);
    await publisher.published('t/2', '2', 2);
    for (const [topic, qos] of [
      ['t/0', 0],
      ['t/1', 1],
      ['t/2', 2],
    ] as const)
      expect(await subscriber.message()).toMatchObject({ topic, qos });
    expect(await subscriber.messages()).toEqual([]);
  });

  test('clients inside a gateway publish to all and hear all', async () => {
    const heard: string[] = [];
    let wake = (): void => {};
    const options = { clientId: 'bridge', username: null, kind: 'bridge', bridge: 'nng:x', trusted: true } as const;
    const receiver = {
      receive: (publication: { topic: string; origin: { bridge: string | null } }) => {
        heard.push(`${publication.topic} ${publication.origin.bridge}`);
        wake();
      },
    };
    b.broker.attach(options).subscribe({ topicFilter: '#', qos: 1, receiver, retainHandling: 2 });
    const came = new Promise<void>((resolve) => (wake = resolve));
    a.broker.attach(options).publish('x', Buffer.from('1'), 0, 1, 0, false);
    await came;
    expect(heard).toEqual(['x nng:x']);
  });

  test('a session goes on at another gateway with what came meanwhile', async () => {
    const first = await b.client('s', KEEP);
    await first.subscribe('t', 1);
    await first.drop();
    const publisher = await a.client('p', V4);
    await publisher.published('t', '1', 1);
    const there = await a.client('s', KEEP);
    expect(there.present).toBe(true);
    expect(await there.message()).toMatchObject({ payload: '1', qos: 1 });
    await publisher.published('t', '2', 1);
    expect((await there.message()).payload).toBe('2');
    const shown = [...b.broker.clients()].map((c) => `${c.clientId} ${c.connected} ${c.listener.split(' ')[0]}`);
    expect(shown.sort()).toEqual(['p true gateway', 's true gateway']);
  });

  test('a client that connects elsewhere is closed where it was', async () => {
    const first = await a.client('s', KEEP);
    const second = await b.client('s', KEEP);
    expect(await first.untilClosed()).toEqual([]);
    expect(await second.messages()).toEqual([]);
  });

  test('retained messages are known to all, also to one that starts later, and are removed for all', async () => {
    const publisher = await a.client('p', V4);
    await publisher.published('r/1', 'x', 1, { retain: true });
    await publisher.published('r/2', 'y', 1, { retain: true });
    await publisher.published('r/2', '', 1, { retain: true });
    const late = await openAedesRoom({}, redis.url);
    const client = await late.client('c', V4);
    await client.subscribe('r/#', 1);
    expect(await client.message()).toMatchObject({ topic: 'r/1', payload: 'x', retain: true });
    expect([...late.broker.retained('#')].map((m) => m.topic)).toEqual(['r/1']);
    const watcher = await b.client('w', V4);
    await watcher.subscribe('r/1', 1);
    expect(await watcher.message()).toMatchObject({ retain: true });
    await late.stop();
  });

  test('a stored queue of thousands arrives in one connection', async () => {
    const count = 2500;
    const limits = { outbox: { queueLength: 0, inflight: 100 } };
    const place = await openAedesRoom({ limits }, redis.url);
    const client = await place.client('s', KEEP);
    await client.subscribe('t', 1);
    await client.drop();
    const publisher = await place.client('p', V4);
    for (let n = 0; n < count; n++) await publisher.published('t', `${n}`, 1);
    const again = await place.client('s', KEEP);
    for (let n = 0; n < count; n++) expect((await again.message()).payload).toBe(`${n}`);
    await place.stop();
  });

  test('the queue of a session is bounded wherever it is filled', async () => {
    const limits = { outbox: { queueLength: 2, inflight: 0 } };
    const small = await openAedesRoom({ limits }, redis.url);
    const client = await b.client('s', KEEP);
    await client.subscribe('t', 1);
    await client.drop();
    const publisher = await small.client('p', V4);
    for (const payload of ['1', '2', '3']) await publisher.published('t', payload, 1);
    expect(small.metric('publish_dropped_total', { reason: 'queue_full' })).toBe(1);
    await small.stop();
  });

  test('while Redis is away QoS 1 is not acknowledged; clients here still get QoS 0', async () => {
    const subscriber = await a.client('s', V4);
    await subscriber.subscribe('#', 0);
    const publisher = await a.client('p', V4);
    // Both are in to the end: what aedes still asks of Redis after CONNACK is answered.
    await publisher.published('t', 'first', 1);
    expect((await subscriber.message()).payload).toBe('first');
    await redis.pause();
    await until(() => a.metric('redis_connections') === 0);
    publisher.publish('t', '0', 0);
    expect((await subscriber.message()).payload).toBe('0');
    publisher.publish('t', '1', 1);
    expect(await publisher.untilClosed()).toEqual([]);
    await redis.start();
    await until(() => a.metric('redis_in_step') === 1);
    const again = await a.client('p', V4);
    expect(await again.published('t', '1', 1)).toBe(0);
  });
});

describe('a Redis that does not answer', () => {
  test('is one clear error at start', async () => {
    const error = await openAedesRoom({}, 'redis://127.0.0.1:1').catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'BROKER-ENGINE', exit: 1 });
    expect(String(error)).toMatch(/Redis does not answer/);
  });
});
