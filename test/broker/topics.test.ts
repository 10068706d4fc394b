// What the native engine tells of topics: what was accepted is counted once, whoever published it, by payload bytes.
import { afterEach, expect, test } from 'vitest';
import type { TopicView } from '../../src/broker/broker.ts';
import { openRoom, type Room, type RoomOptions, settled } from './room.ts';

let room: Room;
afterEach(() => room.stop());

function counted(): Map<string, readonly [number, number]> {
  const found = new Map<string, readonly [number, number]>();
  for (const { topic, messages, bytes } of room.broker.traffic().topics)
    if (!topic.startsWith('$')) found.set(topic, [messages, bytes]);
  return found;
}

function view(topic: string): TopicView | undefined {
  return [...room.broker.traffic().topics].find((one) => one.topic === topic);
}

async function open(options?: RoomOptions): Promise<void> {
  room = await openRoom(options);
}

test.each([4, 5] as const)(
  'messages of a %s client are counted at every QoS, one by one and in runs',
  async (version) => {
    await open();
    const client = await room.client('c', { version });
    await client.published('t', 'four', 1);
    await client.published('t', 'four', 2);
    client.raw(Buffer.concat([1, 200, 3].map((bytes) => client.publishBytes('t', Buffer.alloc(bytes), 0))));
    client.publish('kept', 'x', 0, { retain: true });
    await client.published('end', '', 1);
    expect(counted()).toEqual(
      new Map([
        ['t', [5, 212]],
        ['kept', [1, 1]],
        ['end', [1, 0]],
      ]),
    );
  },
);

test('a message that is sent again at QoS 2 is counted once', async () => {
  await open();
  const client = await room.client('c');
  client.publish('t', 'x', 2, { packetId: 7 });
  client.publish('t', 'x', 2, { packetId: 7, dup: true });
  await settled();
  expect(counted()).toEqual(new Map([['t', [1, 1]]]));
});

test('what rights refuse is not counted', async () => {
  await open({ authorizer: { publish: (_, topic) => topic !== 'no' } });
  const client = await room.client('c');
  client.publish('no', 'x');
  await client.published('no', 'x', 1);
  await client.published('yes', 'x', 1);
  expect(counted()).toEqual(new Map([['yes', [1, 1]]]));
});

test('what bridges bring is counted, one by one and gathered', async () => {
  await open();
  const local = room.broker.attach({ clientId: 'b', username: null, kind: 'bridge', bridge: 'nng:b', trusted: true });
  const bytes = Buffer.from('0123456789');
  local.publish('t', bytes, 2, 5, 0, false);
  local.publishSoon('t', bytes, 0, 2, 5, 2);
  local.publish('t', bytes, 0, 1, 1, false);
  expect(counted()).toEqual(new Map([['t', [7, 14]]]));
});

test('rates come with time, and go', async () => {
  await open();
  const client = await room.client('c');
  for (let n = 0; n < 10; n++) await client.published('t', 'abc', 1);
  await room.advance(5000);
  await room.advance(5000);
  expect(room.broker.traffic().windowMs).toBe(5000);
  expect(view('t')).toMatchObject({ messages: 10, messageRate: 0 });
  for (let n = 0; n < 10; n++) await client.published('t', 'abc', 1);
  await room.advance(2000);
  expect(view('t')?.messageRate).toBeCloseTo(10 / 7);
  expect(view('t')?.byteRate).toBeCloseTo(30 / 7);
});

test('what a bridge gathers on several topics reaches each receiver in order, by the subscriptions at delivery, and is counted', async () => {
  await open();
  const [all, some, late] = [
    await room.client('all', { version: 4 }),
    await room.client('some'),
    await room.client('late'),
  ];
  await all.subscribe('#', 0);
  await some.subscribe('b', 0);
  const local = room.broker.attach({ clientId: 'l', username: null, kind: 'bridge', bridge: 'nng:l', trusted: true });
  const bytes = Buffer.from('0123456789');
  // Gathered until the turn ends: topics with the same receivers, one with others, a subscription in between.
  const order = ['a', 'c', 'a', 'b', 'c', 'longer', 'longer', 'a'];
  for (const [n, topic] of order.entries()) local.publishSoon(topic, bytes, n, n + 1);
  await late.subscribe('c', 0);
  for (const [n, topic] of order.entries()) local.publishSoon(topic, bytes, n, n + 2);
  await settled();
  const came = async (client: typeof all): Promise<string[]> =>
    (await client.messages()).map(({ topic, payload }) => `${topic} ${payload}`);
  const first = order.map((topic, n) => `${topic} ${n}`);
  const second = order.map((topic, n) => `${topic} ${'0123456789'.slice(n, n + 2)}`);
  expect(await came(all)).toEqual([...first, ...second]);
  expect(await came(some)).toEqual([first[3], second[3]]);
  expect(await came(late)).toEqual([second[1], second[4]]);
  expect(counted()).toEqual(
    new Map([
      ['a', [6, 9]],
      ['c', [4, 6]],
      ['b', [2, 3]],
      ['longer', [4, 6]],
    ]),
  );
});
