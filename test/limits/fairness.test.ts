// What one client can cost the others: memory that is refused at its bound, filters that match one topic, rights that nobody can tell,
// work that takes turns. In one process, on packets; the models of memory and time are beside it.
import { expect, test } from 'vitest';
import { ProtocolError } from '../../src/base/errors.ts';
import { CONNACK, DISCONNECT, PUBACK, SUBACK, SUBSCRIBE } from '../../src/mqtt/packet.ts';
import { Pace } from '../../src/session/pace.ts';
import { inSlices } from '../../src/session/slices.ts';
import { Room, type RoomClient, type RoomOptions } from '../broker/room.ts';

const MB = 1 << 20;
const NOBODY_KNOWS = (): Promise<boolean> => Promise.reject(new ProtocolError(0x89, 'nobody could say'));

function subscribeAll(client: RoomClient, topicFilters: readonly string[]): void {
  const more = { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
  const subscriptions = topicFilters.map((topicFilter) => ({ topicFilter, ...more }));
  client.send({ type: SUBSCRIBE, packetId: 1, subscriptions, properties: null });
}

/** Types of the packets that still come until the broker closes. */
async function untilClosed(client: RoomClient): Promise<number[]> {
  const types: number[] = [];
  for (let came = await client.next(); came !== null; came = await client.next()) types.push(came.type);
  return types;
}

async function begin(options: RoomOptions = {}): Promise<Room> {
  const room = new Room(options);
  await room.broker.start();
  return room;
}

test('a session that does not fit is refused with 0x97, those that are there go on', async () => {
  const room = await begin({ limits: { keptBudget: MB } });
  const first = await room.client('first', { expiry: 600 });
  const codes: number[] = [];
  for (let n = 0; n < 40 && !codes.includes(0x97); n++) {
    const client = room.open(5);
    client.connect(`${n}${'x'.repeat(50_000)}`, {});
    codes.push((await client.packet(CONNACK)).reasonCode);
  }
  expect(codes.at(-1)).toBe(0x97);
  expect(codes.length).toBeGreaterThan(5);
  await first.drop();
  expect((await room.client('first', { cleanStart: false, expiry: 600 })).present).toBe(true);
  expect(room.metric('limited_total', { limit: 'memory' })).toBeGreaterThan(0);
});

test('filters take half of the memory at most, and leave room for sessions and retained messages', async () => {
  const room = await begin({ limits: { keptBudget: MB } });
  const client = await room.client('c');
  const codes: number[] = [];
  for (let n = 0; n < 60 && !codes.includes(0x97); n++) {
    subscribeAll(client, [`${n}/${'a/'.repeat(120)}b`]);
    codes.push(...(await client.packet(SUBACK)).reasonCodes);
  }
  expect(codes.at(-1)).toBe(0x97);
  expect(room.metric('memory_counted_bytes', { kind: 'subscriptions' })).toBeLessThanOrEqual(MB / 2);
  const other = await room.client('other');
  expect(await other.published('r', 'x', 1, { retain: true })).toBeLessThan(0x80);
});

test('where too many filters of a client match one topic the newest end and the client is told 0x97', async () => {
  const room = await begin({ limits: { maxMatching: 3 } });
  const client = await room.client('many', { expiry: 600 });
  for (const filter of ['a/b', 'a/+', '+/b', '+/+', 'a/#', 'other']) await client.subscribe(filter, 0);
  const publisher = await room.client('p');
  await publisher.published('a/b', 'x', 1);
  expect((await client.message()).payload).toBe('x');
  expect((await client.packet(DISCONNECT)).reasonCode).toBe(0x97);
  const left = [...room.broker.subscriptions('many')].map(({ topicFilter }) => topicFilter);
  expect(left).toEqual(['a/b', 'a/+', '+/b', 'other']);
});

test.each([3, 4, 5] as const)('a publish that nobody can judge is not acknowledged (version %i)', async (version) => {
  const room = await begin({ authorizer: { publish: NOBODY_KNOWS } });
  const client = await room.client('c', { version });
  client.publish('t', 'x', 1, { packetId: 7 });
  expect(await untilClosed(client)).not.toContain(PUBACK);
});

test('a SUBSCRIBE that nobody can judge is not answered', async () => {
  const room = await begin({ authorizer: { subscribe: NOBODY_KNOWS } });
  const client = await room.client('c', { version: 4 });
  subscribeAll(client, ['a', 'b']);
  expect(await untilClosed(client)).not.toContain(SUBACK);
});

test('verdicts of one SUBSCRIBE are asked for a few at a time', async () => {
  let under = 0;
  let most = 0;
  const subscribe = async (): Promise<boolean> => {
    most = Math.max(most, ++under);
    await new Promise((resolve) => setImmediate(resolve));
    under--;
    return true;
  };
  const room = await begin({ authorizer: { subscribe } });
  const client = await room.client('c');
  subscribeAll(
    client,
    Array.from({ length: 40 }, (_, n) => `t/${n}`),
  );
  expect((await client.packet(SUBACK)).reasonCodes).toHaveLength(40);
  expect(most).toBeLessThanOrEqual(4);
});

test('a will that nobody can judge is asked about again, and published once somebody can', async () => {
  let knows = false;
  const publish = (_: unknown, topic: string): boolean | Promise<boolean> =>
    topic !== 'will' || knows ? true : NOBODY_KNOWS();
  const room = await begin({ authorizer: { publish } });
  const reader = await room.client('reader');
  await reader.subscribe('will', 0);
  const will = { topicName: 'will', payload: Buffer.from('gone'), qos: 0, retain: false } as const;
  const dying = await room.client('dying', { will: { ...will, properties: null, delayInterval: 0 } });
  await dying.drop();
  await room.advance(5000);
  expect(await reader.messages()).toEqual([]);
  knows = true;
  await room.advance(5000);
  expect((await reader.messages()).map(({ payload }) => payload)).toEqual(['gone']);
});

test('steps in slices give way when their time is over, and stop when the client has gone', async () => {
  let nowMs = 0;
  const pace = new Pace(() => nowMs);
  const order: string[] = [];
  const step =
    (name: string) =>
    (i: number): undefined => {
      nowMs += 1;
      if (i % 10 === 0) order.push(name);
    };
  const a = inSlices(pace, 100, step('a'), () => true);
  const b = inSlices(pace, 100, step('b'), () => true);
  let here = true;
  const c = inSlices(pace, 1000, step('c'), () => here);
  here = false;
  expect(await Promise.all([a, b, c])).toEqual([true, true, false]);
  // Each has its turn before the other has its next.
  expect(order.join('')).toMatch(/^a+b+c+(a+b+)+a*b*$/);
});
