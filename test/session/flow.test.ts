// Flow control, limits of packets, and what happens while something is waited for: commits, rights, authentication.
import { afterEach, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../src/auth/auth.ts';
import {
  CONNACK,
  DISCONNECT,
  PINGREQ,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
  type Will,
} from '../../src/mqtt/packet.ts';
import { Diary } from '../broker/diary.ts';
import { openRoom, type Room, type RoomClient, type RoomOptions, settled } from '../broker/room.ts';

let room: Room;
afterEach(() => room.stop());

async function begin(options: RoomOptions = {}): Promise<Room> {
  room = await openRoom(options);
  return room;
}

const KEEP = { cleanStart: false, expiry: 3600 } as const;

function will(topicName: string, more: Partial<Will> = {}): Will {
  return {
    topicName,
    payload: Buffer.from('gone'),
    qos: 0,
    retain: false,
    properties: null,
    delayInterval: 0,
    ...more,
  };
}

async function packets(client: RoomClient): Promise<number[]> {
  return (await client.untilClosed()).map((packet) => packet.type);
}

describe('Receive Maximum of the broker', () => {
  it('counts a QoS 2 publish once while its PUBREC waits for a commit [MQTT-3.3.4-7]', async () => {
    const diary = new Diary();
    await begin({ journal: diary, limits: { maxAwaitingRel: 4 } });
    const c = await room.client('c', KEEP);
    diary.mode = 'held';
    for (let n = 0; n < 4; n++) c.publish('t', `${n}`, 2);
    await settled();
    diary.commit();
    for (let n = 1; n <= 4; n++) expect(await c.packet(PUBREC)).toMatchObject({ packetId: n });
  });

  it('begins anew with each connection, whatever the session still has open', async () => {
    await begin({ limits: { maxAwaitingRel: 2 } });
    const c = await room.client('c', KEEP);
    c.publish('t', '1', 2);
    c.publish('t', '2', 2);
    await c.packet(PUBREC);
    await c.packet(PUBREC);
    await c.drop();
    const again = await room.client('c', KEEP);
    again.publish('t', '3', 2, { packetId: 3 });
    again.publish('t', '4', 2, { packetId: 4 });
    expect(await again.packet(PUBREC)).toMatchObject({ packetId: 3 });
    expect(await again.packet(PUBREC)).toMatchObject({ packetId: 4 });
  });

  it('closes nobody before 5.0: such a client is read no further until its publishes are acknowledged', async () => {
    const diary = new Diary();
    await begin({ journal: diary, limits: { maxAwaitingRel: 4 } });
    const keeper = await room.client('keeper', KEEP);
    await keeper.subscribe('t', 1);
    await keeper.drop();
    const c = await room.client('c', { version: 4 });
    diary.mode = 'held';
    for (let n = 0; n < 50; n++) c.publish('t', `${n}`, 1);
    await settled();
    expect(room.broker.client('keeper')?.queued).toBeLessThan(10);
    for (let n = 1; n <= 50; ) {
      diary.commit();
      const puback = await c.packet(PUBACK);
      expect(puback.packetId).toBe(n++);
    }
    expect(room.broker.client('keeper')?.queued).toBe(50);
  });
});

describe('Receive Maximum of a client', () => {
  it('holds over a reconnect with a smaller one: what is above it keeps its place, its id and DUP [MQTT-4.4.0-1]', async () => {
    await begin();
    const c = await room.client('c', KEEP);
    await c.subscribe('t', 2);
    const publisher = await room.client('p');
    for (let n = 0; n < 6; n++) await publisher.published('t', `${n}`, 2);
    const first: number[] = [];
    for (let n = 0; n < 6; n++) first.push((await c.message(false)).packetId);
    c.ack(PUBREC, first[0]);
    await c.packet(PUBREL);
    await c.drop();
    const back = await room.client('c', { ...KEEP, properties: { receiveMaximum: 2 } });
    const got: [string, number, boolean][] = [];
    expect(await back.packet(PUBREL)).toMatchObject({ packetId: first[0] });
    // One slot is taken by the PUBREL.
    let message = await back.message(false);
    got.push([message.payload, message.packetId, message.dup]);
    back.send({ type: PINGREQ });
    await back.packet(13);
    back.ack(PUBCOMP, first[0]);
    while (got.length < 5) {
      const came = await back.next();
      if (came === null || came.type !== PUBLISH) throw new Error('a message is due');
      got.push([came.payload, came.packetId, came.dup]);
      back.ack(PUBREC, message.packetId);
      await back.packet(PUBREL);
      back.ack(PUBCOMP, message.packetId);
      message = came;
    }
    expect(got).toEqual([1, 2, 3, 4, 5].map((n) => [`${n}`, first[n], true]));
  });

  it('is never exceeded by a client that acknowledges nothing; the rest is queued to its bound and counted [B126] [MQTT-3.3.4-9]', async () => {
    await begin({ limits: { outbox: { queueLength: 50 } } });
    const c = await room.client('c', { properties: { receiveMaximum: 10 } });
    await c.subscribe('t', 1);
    const publisher = await room.client('p');
    for (let n = 0; n < 1000; n++) await publisher.published('t', `${n}`, 1);
    for (let n = 0; n < 10; n++) expect((await c.message(false)).payload).toBe(`${n}`);
    expect(await c.messages()).toEqual([]);
    expect(room.broker.client('c')).toMatchObject({ inflight: 10, queued: 50, dropped: 940 });
    expect(room.metric('publish_dropped_total', { reason: 'queue_full' })).toBe(940);
  });

  it('of 65,535 with no bound of ours never runs out of packet ids', async () => {
    await begin({ limits: { outbox: { inflight: 0, queueLength: 0, writeBuffer: 0 } } });
    const c = await room.client('c');
    await c.subscribe('t', 1);
    const publisher = await room.client('p', { properties: {} });
    const many = Array.from({ length: 70_000 }, (_, n) =>
      publisher.publishBytes('t', 'x', 1, { packetId: 1 + (n % 50) }),
    );
    publisher.raw(Buffer.concat(many));
    const ids = new Set<number>();
    for (let n = 0; n < 65_534; n++) ids.add((await c.message(false)).packetId);
    expect(ids.size).toBe(65_534);
    expect(ids.has(0)).toBe(false);
    expect(room.broker.client('c')).toMatchObject({ inflight: 65_534, queued: 70_000 - 65_534 });
  });
});

describe('Maximum Packet Size of a client', () => {
  it('holds for SUBACK and UNSUBACK: a client that takes none of them is told and closed [MQTT-3.1.2-24]', async () => {
    await begin();
    const subscriptions = Array.from({ length: 100 }, (_, n) => ({
      topicFilter: `t/${n}`,
      qos: 0 as const,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0 as const,
    }));
    const a = await room.client('a', { properties: { maximumPacketSize: 60 } });
    a.send({ type: SUBSCRIBE, packetId: 1, subscriptions, properties: null });
    expect(await packets(a)).toEqual([DISCONNECT]);
    const b = await room.client('b', { properties: { maximumPacketSize: 60 } });
    b.send({ type: UNSUBSCRIBE, packetId: 1, topicFilters: subscriptions.map((s) => s.topicFilter), properties: null });
    expect(await packets(b)).toEqual([DISCONNECT]);
    expect(b.lastBytes).toBeLessThanOrEqual(60);
  });

  it('holds for CONNACK: a client that cannot take it is closed without one, and keeps no session', async () => {
    await begin();
    const c = room.open();
    c.connect('c', { properties: { maximumPacketSize: 6 } });
    expect(await packets(c)).toEqual([]);
    expect(room.broker.client('c')).toBeUndefined();
  });

  it('leaves out reason strings that might not fit', async () => {
    await begin({ authorizer: { publish: () => false, subscribe: () => false } });
    const c = await room.client('c', { properties: { maximumPacketSize: 40 } });
    c.publish('t', 'x', 1);
    expect(await c.packet(PUBACK)).toMatchObject({ reasonCode: 0x87, properties: null });
    c.send({
      type: SUBSCRIBE,
      packetId: 1,
      subscriptions: [{ topicFilter: 't', qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 }],
      properties: null,
    });
    expect(await c.packet(SUBACK)).toMatchObject({ reasonCodes: [0x87], properties: null });
    c.send({ type: UNSUBSCRIBE, packetId: 2, topicFilters: ['none'], properties: null });
    expect(await c.packet(UNSUBACK)).toMatchObject({ reasonCodes: [0x11], properties: null });
  });

  it('lets a message that is too large count as delivered, at every QoS [MQTT-3.1.2-25]', async () => {
    await begin();
    const c = await room.client('c', { ...KEEP, properties: { maximumPacketSize: 60 } });
    await c.subscribe('t', 2);
    const publisher = await room.client('p');
    for (const qos of [1, 2] as const) {
      await publisher.published('t', 'x'.repeat(100), qos);
      await publisher.published('t', 'small', qos);
    }
    expect((await c.message()).payload).toBe('small');
    expect((await c.message()).payload).toBe('small');
    await c.messages();
    expect(room.broker.client('c')).toMatchObject({ inflight: 0, queued: 0, dropped: 2 });
  });
});

describe('topic aliases towards a client', () => {
  it('are sent with their topic once, and begin anew with each connection [MQTT-3.3.2-8]', async () => {
    await begin({ limits: { outbox: { topicAliases: 10 } } });
    const options = { ...KEEP, properties: { topicAliasMaximum: 2 } };
    const c = await room.client('c', options);
    await c.subscribe('#', 1);
    const publisher = await room.client('p');
    for (const topic of ['a', 'a', 'b', 'c', 'c', 'b']) await publisher.published(topic, 'x', 1);
    const got: [string, number | undefined][] = [];
    for (let n = 0; n < 6; n++) {
      const m = await c.message(false);
      got.push([m.topic, m.properties?.topicAlias]);
    }
    expect(got).toEqual([
      ['a', 1],
      ['', 1],
      ['b', 2],
      ['c', undefined],
      ['c', undefined],
      ['', 2],
    ]);
    await c.drop();
    const back = await room.client('c', options);
    const again: [string, number | undefined][] = [];
    for (let n = 0; n < 6; n++) {
      const m = await back.message();
      expect(m.dup).toBe(true);
      again.push([m.topic, m.properties?.topicAlias]);
    }
    expect(again).toEqual([
      ['a', 1],
      ['', 1],
      ['b', 2],
      ['c', undefined],
      ['c', undefined],
      ['', 2],
    ]);
  });
});

describe('subscription identifiers', () => {
  it('are those of the session after a resume, in one copy for overlapping subscriptions [MQTT-3.3.4-3]', async () => {
    await begin();
    const c = await room.client('c', KEEP);
    await c.subscribe('a/#', 1, { subscriptionIdentifier: 5 });
    await c.subscribe('a/b', 0, { subscriptionIdentifier: 7 });
    await c.drop();
    const publisher = await room.client('p');
    await publisher.published('a/b', 'queued', 1);
    const back = await room.client('c', KEEP);
    await publisher.published('a/b', 'live', 1);
    for (const payload of ['queued', 'live']) {
      const m = await back.message();
      expect(m).toMatchObject({ payload, qos: 1 });
      expect([...(m.properties?.subscriptionIdentifiers ?? [])].sort()).toEqual([5, 7]);
    }
    expect(await back.messages()).toEqual([]);
  });

  it('of a shared and a plain subscription come in a copy each', async () => {
    await begin();
    const c = await room.client('c');
    await c.subscribe('$share/g/t', 1, { subscriptionIdentifier: 1 });
    await c.subscribe('t', 1, { subscriptionIdentifier: 2 });
    await (await room.client('p')).published('t', 'x', 1);
    const ids = (await c.messages()).map((m) => m.properties?.subscriptionIdentifiers);
    expect(ids.sort()).toEqual([[1], [2]]);
  });
});

describe('No Local', () => {
  it('counts for each subscription: the others still bring own messages [MQTT-3.8.3-3]', async () => {
    await begin();
    const c = await room.client('c');
    await c.subscribe('t', 2, { noLocal: true, subscriptionIdentifier: 1 });
    await c.subscribe('#', 1, { subscriptionIdentifier: 2 });
    c.publish('t', 'own', 2);
    expect((await c.messages()).map((m) => [m.qos, m.properties?.subscriptionIdentifiers])).toEqual([[1, [2]]]);
    (await room.client('p')).publish('t', 'other', 2);
    const other = await c.message(false);
    expect(other.qos).toBe(2);
    expect([...(other.properties?.subscriptionIdentifiers ?? [])].sort()).toEqual([1, 2]);
  });

  it('holds for what was queued while the client was away', async () => {
    await begin();
    const c = await room.client('c', KEEP);
    await c.subscribe('t', 1, { noLocal: true });
    c.publish('t', 'own', 1);
    await c.packet(PUBACK);
    await c.drop();
    expect(await (await room.client('c', KEEP)).messages()).toEqual([]);
  });
});

describe('while a commit is waited for', () => {
  it('nothing is acknowledged, and then everything in order [MQTT-4.6.0-2]', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    const keeper = await room.client('keeper', KEEP);
    await keeper.subscribe('stored', 1);
    const c = await room.client('c');
    diary.mode = 'held';
    c.publish('stored', 'x', 1);
    c.publish('nobody', 'x', 1);
    c.send({ type: PINGREQ });
    await c.packet(13);
    diary.commit();
    expect((await c.packet(PUBACK)).packetId).toBe(1);
    expect((await c.packet(PUBACK)).packetId).toBe(2);
  });

  it('CONNACK of a stored session waits, and a second connection with its id takes over meanwhile', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    diary.mode = 'held';
    const a = room.open();
    a.connect('c', KEEP);
    await settled();
    const b = room.open();
    b.connect('c', KEEP);
    expect(await packets(a)).toEqual([]);
    diary.commit();
    expect(await b.packet(CONNACK)).toMatchObject({ reasonCode: 0, sessionPresent: true });
    expect([...room.broker.clients()].map((c) => c.connected)).toEqual([true]);
  });

  it('the will of a client that is lost before its CONNACK left is sent: an older one does not wait any more', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    const watcher = await room.client('watcher');
    await watcher.subscribe('will/#');
    const first = await room.client('c', { ...KEEP, will: will('will/old', { delayInterval: 60 }) });
    await first.drop();
    diary.mode = 'held';
    const second = room.open();
    second.connect('c', { ...KEEP, will: will('will/new') });
    await settled();
    await second.drop();
    diary.commit();
    await room.advance(120_000);
    expect((await watcher.messages()).map((m) => m.topic)).toEqual(['will/new']);
  });

  it('a broker that has stopped sends no will and ends no session any more', async () => {
    await begin({});
    const c = await room.client('c', { ...KEEP, will: will('will/late', { delayInterval: 60 }) });
    await c.drop();
    await room.broker.stop(0);
    await room.advance(1000 * 86_400);
    expect(room.log.filter(({ id }) => id === 'SES-WILL' || id === 'SES-EXPIRED')).toEqual([]);
  });

  it('a PUBCOMP that cannot be kept ends the connection and carries no failure; so does its repetition', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    for (const version of [4, 5] as const) {
      const keep = version === 5 ? { ...KEEP, version } : { cleanStart: false, version };
      let c = await room.client('c', keep);
      const packetId = c.publish('t', 'x', 2);
      await c.packet(PUBREC);
      diary.mode = 'failing';
      c.ack(PUBREL, packetId);
      expect(await packets(c)).toEqual(version === 5 ? [DISCONNECT] : []);
      c = await room.client('c', keep);
      c.ack(PUBREL, packetId);
      expect(await packets(c)).toEqual(version === 5 ? [DISCONNECT] : []);
      diary.mode = 'at once';
      c = await room.client('c', keep);
      c.ack(PUBREL, packetId);
      expect(await c.packet(PUBCOMP)).toMatchObject({ packetId, reasonCode: version === 5 ? 0x92 : 0 });
      c.disconnect();
      await c.untilClosed();
    }
  });

  it('a stored will is forgotten after what it brought was told, not before', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    const keeper = await room.client('keeper', KEEP);
    await keeper.subscribe('w', 1);
    await keeper.drop();
    const c = await room.client('c', { ...KEEP, will: will('w', { qos: 1 }) });
    diary.told.length = 0;
    await c.drop();
    expect(diary.told.filter((line) => !line.startsWith('sessionPut'))).toEqual([
      'messageQueued keeper',
      'willDelete c',
    ]);
  });
});

describe('while rights are waited for', () => {
  it('the will of a client that is back already does not take its new one out of the store', async () => {
    const diary = new Diary();
    let answer: (allowed: boolean) => void = () => {};
    await begin({ journal: diary, authorizer: { publish: () => new Promise((resolve) => (answer = resolve)) } });
    const c = await room.client('c', { ...KEEP, will: will('w') });
    await c.drop();
    await room.client('c', { ...KEEP, will: will('w') });
    diary.told.length = 0;
    answer(true);
    await settled();
    expect(diary.told).toEqual([]);
  });

  it('nothing behind a PUBLISH is handled, and DISCONNECT in the same write still keeps the will away [MQTT-3.1.4-5]', async () => {
    let answer: (allowed: boolean) => void = () => {};
    const pending = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    await begin({ authorizer: { publish: (_, topic) => (topic === 'slow' ? pending : true) } });
    const watcher = await room.client('watcher');
    await watcher.subscribe('#');
    const c = await room.client('c', { will: will('w') });
    c.publish('slow', '1');
    c.publish('fast', '2');
    c.disconnect();
    expect(await watcher.messages()).toEqual([]);
    answer(true);
    expect((await watcher.message()).topic).toBe('slow');
    expect((await watcher.message()).topic).toBe('fast');
    await c.untilClosed();
    expect(await watcher.messages()).toEqual([]);
  });
});

it('a client whose token has expired is disconnected, and not before', async () => {
  const authenticator: Authenticator = {
    authenticate: ({ clientId, username, remoteAddress, listener }) => {
      const validUntil = room.clock.now() + 60_000;
      const identity = { clientId, username, remoteAddress, listener, claims: null, internal: false, validUntil };
      return { accepted: true, identity };
    },
  };
  await begin({ authenticator });
  const client = room.open();
  client.connect('c', { keepAlive: 0 });
  await client.packet(CONNACK);
  await room.advance(58_000);
  expect(await client.messages()).toEqual([]);
  await room.advance(4000);
  expect(await client.packet(DISCONNECT)).toMatchObject({ reasonCode: 0x87 });
  await client.untilClosed();
});

describe('while a client is being authenticated', () => {
  /** Lets in who is called for. */
  class Door implements Authenticator {
    readonly waiting: { clientId: string; let: (accepted: boolean) => void }[] = [];

    authenticate({ clientId, username, remoteAddress, listener }: Parameters<Authenticator['authenticate']>[0]) {
      return new Promise<Awaited<ReturnType<Authenticator['authenticate']>>>((resolve) => {
        const identity = { clientId, username, remoteAddress, listener, claims: null, internal: false };
        this.waiting.push({
          clientId,
          let: (accepted) =>
            resolve(accepted ? { accepted: true, identity } : { accepted: false, reasonCode: 0x87, why: 'test' }),
        });
      });
    }
  }

  async function knocking(clientId: string, more = {}): Promise<RoomClient> {
    const client = room.open();
    client.connect(clientId, more);
    await settled();
    return client;
  }

  it('of two with one client id the one that is let in last stays [B119]', async () => {
    const door = new Door();
    await begin({ authenticator: door });
    const a = await knocking('c');
    const b = await knocking('c');
    door.waiting[1].let(true);
    await b.packet(CONNACK);
    door.waiting[0].let(true);
    await a.packet(CONNACK);
    expect(await b.packet(DISCONNECT)).toMatchObject({ reasonCode: 0x8e });
    expect(await a.messages()).toEqual([]);
  });

  it('one that is refused leaves the client with that id alone, and its will is not kept [B118] [B119]', async () => {
    const door = new Door();
    await begin({ authenticator: door });
    const good = await knocking('c');
    door.waiting[0].let(true);
    await good.packet(CONNACK);
    await good.subscribe('#');
    const evil = await knocking('c', { will: will('w'), username: 'evil', password: Buffer.from('bad') });
    door.waiting[1].let(false);
    expect(await evil.packet(CONNACK)).toMatchObject({ reasonCode: 0x87 });
    expect(await packets(evil)).toEqual([]);
    expect(await good.messages()).toEqual([]);
    expect([...room.broker.clients()].map((c) => c.connected)).toEqual([true]);
  });

  it('and leaves, its answer makes no client of it', async () => {
    const door = new Door();
    await begin({ authenticator: door });
    const a = await knocking('c');
    await a.drop();
    door.waiting[0].let(true);
    await settled();
    expect([...room.broker.clients()]).toEqual([]);
    expect(room.metric('clients_connected')).toBe(0);
  });
});
