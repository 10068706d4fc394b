// Quotas by packets, on a clock that stands still: what each limit does to who exceeds it, and that nobody else notices.
import { afterEach, describe, expect, test } from 'vitest';
import type { Hold, Publication } from '../../src/mqtt/message.ts';
import { CONNACK, DISCONNECT, PUBACK } from '../../src/mqtt/packet.ts';
import { type QuotaOptions, QuotaSet } from '../../src/policy/quota.ts';
import { openRoom, type Room, type RoomClient, type RoomOptions, settled } from '../broker/room.ts';

const NONE: QuotaOptions = {
  name: 'q',
  per: 'client',
  listener: '',
  username: '',
  connects: 0,
  publishes: 0,
  bytes: 0,
  burst: 1,
  subscriptions: 0,
  sessions: 0,
  retained: 0,
  inflight: 0,
  action: 'delay',
};

let room: Room;
afterEach(() => room.stop());

async function place(quotas: readonly Partial<QuotaOptions>[], more: RoomOptions = {}): Promise<void> {
  const options = quotas.map((one) => ({ ...NONE, ...one }));
  room = await openRoom({ ...more, quotas: (metrics) => new QuotaSet(options, metrics) });
}

/** `count` publishes of one client in one write. */
function flood(client: RoomClient, count: number, topic = 't'): void {
  client.raw(Buffer.concat(Array.from({ length: count }, (_, i) => client.publishBytes(topic, String(i), 0))));
}

/** Payloads that have come to a client so far; a message of its own marks the end. */
async function came(client: RoomClient, mark: RoomClient): Promise<string[]> {
  mark.publish('mark', 'mark');
  const found: string[] = [];
  for (;;) {
    const { topic, payload } = await client.message();
    if (topic === 'mark') return found;
    found.push(payload);
  }
}

async function watched(): Promise<{ all: RoomClient; mark: RoomClient }> {
  const all = await room.client('all');
  await all.subscribe('#');
  return { all, mark: await room.client('mark') };
}

describe('publishes a second', () => {
  const ten = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => String(from + i));

  test('delayed: all of them come, in order, in their time; nobody else waits', async () => {
    await place([{ publishes: 10, username: 'joe' }]);
    const { all, mark } = await watched();
    const joe = await room.client('joe', { username: 'joe' });
    flood(joe, 25);
    expect(await came(all, mark)).toEqual(ten(0, 10));
    await room.advance(500);
    expect(await came(all, mark)).toEqual(ten(10, 15));
    await room.advance(1000);
    expect(await came(all, mark)).toEqual(ten(15, 25));
    expect(room.metric('quota_total', { quota: 'q', what: 'publishes', outcome: 'delayed' })).toBeGreaterThan(0);
    expect(room.broker.quotas()).toMatchObject([{ name: 'q', scopes: 1, limits: { publishes: 10 } }]);
  });

  test('one client alone gets no more by many packets in one chunk, and QoS 1 is answered in order', async () => {
    await place([{ publishes: 5, burst: 2 }]);
    const a = await room.client('a');
    for (let i = 0; i < 12; i++) a.publish('t', 'x', 1);
    for (let i = 1; i <= 10; i++) expect(await a.packet(PUBACK)).toMatchObject({ packetId: i });
    await room.advance(200);
    expect(await a.packet(PUBACK)).toMatchObject({ packetId: 11 });
    await room.advance(200);
    expect(await a.packet(PUBACK)).toMatchObject({ packetId: 12 });
  });

  test('shared by all of a user, who are served in turn', async () => {
    await place([{ publishes: 2, per: 'user' }]);
    const { all, mark } = await watched();
    const clients = [];
    for (const id of ['a', 'b', 'c']) clients.push(await room.client(id, { username: 'joe' }));
    for (const client of clients) {
      flood(client, 4, client === clients[0] ? 'a' : 'bc');
      await settled();
    }
    const first = await came(all, mark);
    expect(first).toHaveLength(2);
    await room.advance(3000);
    const later = await came(all, mark);
    // Two a second, each of the three now and then.
    expect(later).toHaveLength(6);
    await room.advance(2000);
    expect(await came(all, mark)).toHaveLength(4);
  });

  test('dropped: QoS 0 is, with its alias kept; QoS 1 waits', async () => {
    await place([{ publishes: 1, action: 'drop' }]);
    const { all, mark } = await watched();
    const a = await room.client('a');
    a.publish('t', '0');
    a.publish('aliased', '1', 0, { properties: { topicAlias: 1 } });
    a.publish('t', '2', 1);
    expect(await came(all, mark)).toEqual(['0']);
    await room.advance(1000);
    await a.packet(PUBACK);
    expect(await came(all, mark)).toEqual(['2']);
    await room.advance(1000);
    a.publish('', '3', 0, { properties: { topicAlias: 1 } });
    expect(await all.message()).toMatchObject({ topic: 'aliased', payload: '3' });
    expect(room.metric('quota_total', { quota: 'q', what: 'publishes', outcome: 'dropped' })).toBe(1);
  });

  test('disconnected with 0x96', async () => {
    await place([{ publishes: 3, action: 'disconnect' }]);
    const { all, mark } = await watched();
    const a = await room.client('a');
    flood(a, 5);
    expect(await a.packet(DISCONNECT)).toMatchObject({ reasonCode: 0x96 });
    expect(await came(all, mark)).toEqual(['0', '1', '2']);
  });

  test('other quotas hold at once, and a client that waits does not wait for the old one', async () => {
    await place([{ publishes: 1, burst: 1 }]);
    const { all, mark } = await watched();
    const a = await room.client('a');
    flood(a, 5);
    expect(await came(all, mark)).toEqual(['0']);
    room.broker.setQuotas(null);
    await settled();
    expect(await came(all, mark)).toEqual(ten(1, 5));
    room.broker.setQuotas(new QuotaSet([{ ...NONE, publishes: 2 }], room.metrics));
    flood(a, 5);
    expect(await came(all, mark)).toEqual(['0', '1']);
  });
});

test('bytes a second are those of whole packets; one that is larger than the rate comes through', async () => {
  await place([{ bytes: 1000 }]);
  const { all, mark } = await watched();
  const a = await room.client('a');
  a.publish('t', Buffer.alloc(3000, 120));
  a.publish('t', 'small');
  expect(await came(all, mark)).toHaveLength(1);
  await room.advance(1900);
  expect(await came(all, mark)).toEqual([]);
  await room.advance(200);
  expect(await came(all, mark)).toEqual(['small']);
});

describe('connects a second', () => {
  test('of an address are judged before anybody is authenticated, and wait or are refused', async () => {
    let asked = 0;
    await place([{ per: 'address', connects: 1 }], {
      authenticator: {
        authenticate: ({ clientId, username, remoteAddress, listener }) => {
          asked++;
          const identity = { clientId, username, remoteAddress, listener, claims: null, internal: false };
          return { accepted: true, identity };
        },
      },
    });
    await room.client('0', { remoteAddress: '10.0.0.1' });
    const late = room.open(5, 'test', '10.0.0.1');
    late.connect('1');
    await settled();
    expect(asked).toBe(1);
    await room.client('other', { remoteAddress: '10.0.0.2' });
    await room.advance(1000);
    expect(await late.packet(CONNACK)).toMatchObject({ reasonCode: 0 });
    const many = Array.from({ length: 8 }, () => room.open(5, 'test', '10.0.0.1'));
    for (const [i, client] of many.entries()) client.connect(`m${i}`);
    expect(await many[7].packet(CONNACK)).toMatchObject({ reasonCode: 0x9f });
    expect(asked).toBe(3);
  });

  test('of a client id are refused where they do not wait', async () => {
    await place([{ connects: 1, action: 'disconnect' }]);
    await room.client('a');
    const again = room.open();
    again.connect('a');
    expect(await again.packet(CONNACK)).toMatchObject({ reasonCode: 0x9f });
    await room.client('b');
    await room.advance(1000);
    await room.client('a');
  });

  test('of IPv6 are those of a network of 64 bits', async () => {
    await place([{ per: 'address', connects: 1, action: 'disconnect' }]);
    await room.client('a', { remoteAddress: '2001:db8:0:1::5' });
    const next = room.open(5, 'test', '2001:db8:0:1:ffff::6');
    next.connect('b');
    expect(await next.packet(CONNACK)).toMatchObject({ reasonCode: 0x9f });
    await room.client('c', { remoteAddress: '2001:db8:0:2::5' });
  });
});

describe('what is there at the same time', () => {
  test('subscriptions of a user: more get 0x97 until one ends, also by the end of a session', async () => {
    await place([{ per: 'user', subscriptions: 2 }]);
    const a = await room.client('a', { username: 'joe' });
    const b = await room.client('b', { username: 'joe', cleanStart: false, expiry: 60 });
    const other = await room.client('c', { username: 'ann' });
    expect([await a.subscribe('1'), await b.subscribe('2'), await b.subscribe('3')]).toEqual([0, 0, 0x97]);
    await room.advance(20);
    expect(await b.subscribe('2', 1)).toBe(1);
    expect(await other.subscribe('1')).toBe(0);
    a.disconnect();
    await settled();
    expect(await b.subscribe('3')).toBe(0);
    await b.drop();
    const again = await room.client('b', { username: 'joe', cleanStart: false, expiry: 60 });
    expect(await again.subscribe('4')).toBe(0x97);
    await again.drop();
    await room.advance(61_000);
    const fresh = await room.client('d', { username: 'joe' });
    expect([await fresh.subscribe('1'), await fresh.subscribe('2')]).toEqual([0, 0]);
  });

  test('sessions of an address: a new one is refused with 0x97, one that is there goes on', async () => {
    await place([{ per: 'address', sessions: 1 }]);
    const keep = { remoteAddress: '10.0.0.1', cleanStart: false, expiry: 60 };
    const a = await room.client('a', keep);
    const second = room.open(5, 'test', '10.0.0.1');
    second.connect('b');
    expect(await second.packet(CONNACK)).toMatchObject({ reasonCode: 0x97 });
    await a.drop();
    await room.client('a', keep);
    // It comes from elsewhere from now on.
    await room.client('a', { ...keep, remoteAddress: '10.0.0.2' });
    await room.client('b', keep);
  });

  test('retained messages of a client: a new topic is refused, a new value and room are not', async () => {
    await place([{ retained: 2 }]);
    const [a, b] = [await room.client('a'), await room.client('b')];
    const put = (client: RoomClient, topic: string, payload = 'x') =>
      client.published(topic, payload, 1, { retain: true });
    await put(a, '1');
    await put(a, '2');
    expect(await put(a, '3')).toBe(0x97);
    await room.advance(20);
    expect(await put(a, '2', 'new')).not.toBe(0x97);
    expect(await put(b, '3')).not.toBe(0x97);
    await put(a, '1', '');
    expect(await put(a, '4')).not.toBe(0x97);
    expect([...room.broker.retained('#')].map(({ topic }) => topic).sort()).toEqual(['2', '3', '4']);
    // Counted again for other quotas.
    room.broker.setQuotas(new QuotaSet([{ ...NONE, retained: 2 }], room.metrics));
    expect(await put(a, '5')).toBe(0x97);
    expect(await put(b, '5')).not.toBe(0x97);
  });

  test('messages in flight: a client whose answers wait is not read, or has to go', async () => {
    await place([
      { inflight: 2, username: 'slow' },
      { name: 'r', inflight: 2, username: 'rude', action: 'disconnect' },
    ]);
    const { all, mark } = await watched();
    const holds: Hold[] = [];
    const local = room.broker.attach({ clientId: 'in', username: null, kind: 'api', bridge: null, trusted: true });
    const receive = (publication: Publication): void => {
      publication.hold().add();
      holds.push(publication.hold());
    };
    local.subscribe({ topicFilter: 't', qos: 2, receiver: { receive }, retainHandling: 2 });
    const slow = await room.client('slow', { username: 'slow' });
    for (let i = 1; i <= 4; i++) slow.publish('t', String(i), i % 2 === 0 ? 2 : 1, { packetId: i });
    await settled();
    expect(await came(all, mark)).toEqual(['1', '2']);
    await room.advance(100);
    expect(await came(all, mark)).toEqual([]);
    for (const hold of holds.splice(0)) hold.done();
    await room.advance(100);
    expect(await came(all, mark)).toEqual(['3', '4']);
    const rude = await room.client('rude', { username: 'rude' });
    for (let i = 1; i <= 3; i++) rude.publish('t', 'r', 1, { packetId: i });
    expect(await rude.packet(DISCONNECT)).toMatchObject({ reasonCode: 0x97 });
  });
});

test('a client that goes on asking for what is refused is not read for a moment; others of its scope are', async () => {
  await place([{ per: 'listener', retained: 1, subscriptions: 2 }]);
  const { all, mark } = await watched();
  const a = await room.client('a');
  const texts = ['1', '2', '3'];
  a.raw(Buffer.concat(texts.map((text) => a.publishBytes(`r/${text}`, text, 0, { retain: true }))));
  expect(await came(all, mark)).toEqual(['1', '2']);
  await room.advance(20);
  expect(await came(all, mark)).toEqual(['3']);
  await room.advance(20);
  expect(await a.subscribe('1')).toBe(0);
  expect(await a.subscribe('2')).toBe(0x97);
  a.publish('t', 'late');
  expect(await came(all, mark)).toEqual([]);
  await room.advance(20);
  expect(await came(all, mark)).toEqual(['late']);
});

test('scopes are forgotten when nothing of them is left', async () => {
  await place([{ publishes: 5, per: 'client' }]);
  for (let i = 0; i < 20; i++) {
    const client = await room.client(`c${i}`);
    client.disconnect();
  }
  await room.advance(3000);
  expect(room.broker.quotas()).toMatchObject([{ scopes: 0 }]);
});
