// A store that is full or cannot write: nothing is acknowledged that a restart would not find, and what needs no store goes on.
import { rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  CONNACK,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBREC,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
  type Version,
} from '../../src/mqtt/packet.ts';
import { SQLITE_FULL } from '../../src/store/driver.ts';
import type { SqliteOptions } from '../../src/store/options.ts';
import type { Journal } from '../../src/store/store.ts';
import { type Came, openRoom, type Room, type RoomClient, type RoomOptions } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { crashCopy, faultyWriter, storePath, testJournal } from '../harness/journal.ts';

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const keep = (version: Version) => (version === 5 ? { ...KEEP, version } : { cleanStart: false, version });
const VERSIONS = [4, 5] as const;
/** What a version says where there is no room. */
const CONNECT_CODE = { 4: 3, 5: 0x97 } as const;
const SUBSCRIBE_CODE = { 4: 0x80, 5: 0x97 } as const;

let worker: URL;
beforeAll(async () => {
  worker = await faultyWriter();
});
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A broker whose disk fails on demand. */
class Place {
  readonly path: string;
  readonly journal: Journal;
  readonly room: Room;

  private constructor(path: string, journal: Journal, room: Room) {
    this.path = path;
    this.journal = journal;
    this.room = room;
  }

  static async open(path = storePath(), store: Partial<SqliteOptions> = {}, options: RoomOptions = {}): Promise<Place> {
    const { journal } = testJournal(path, { worker, ...store });
    const room = await openRoom({ clock: new FakeClock(Date.now()), ...options, journal });
    cleanups.push(async () => {
      rmSync(`${path}.fail`, { force: true });
      await room.stop();
      rmSync(dirname(dirname(path)), { recursive: true, force: true });
    });
    return new Place(path, journal, room);
  }

  /** What a crash at this moment leaves, started. */
  crashed(): Promise<Place> {
    return Place.open(crashCopy(this.path));
  }

  fail(): void {
    writeFileSync(`${this.path}.fail`, `${SQLITE_FULL}`);
  }

  async recover(): Promise<void> {
    rmSync(`${this.path}.fail`);
    while (!this.journal.accepting) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  /** CONNACK of a client that may be refused. */
  async connect(clientId: string, more: Parameters<RoomClient['connect']>[1] & { version?: Version }): Promise<number> {
    const client = this.room.open(more.version ?? 5);
    client.connect(clientId, more);
    return (await client.packet(CONNACK)).reasonCode;
  }

  subscriptions(clientId: string): string[] {
    return [...this.room.broker.subscriptions(clientId)].map((s) => s.topicFilter).sort();
  }
}

async function unsubscribe(client: RoomClient, topicFilter: string): Promise<number | undefined> {
  client.send({ type: UNSUBSCRIBE, packetId: 7, topicFilters: [topicFilter], properties: null });
  return (await client.packet(UNSUBACK)).reasonCodes[0];
}

describe.each(VERSIONS)('while the disk fails, version %i', (version) => {
  it('a new session that is to be kept is refused, and there is none afterwards [MQTT-3.2.2-6]', async () => {
    const place = await Place.open();
    place.fail();
    // The first one finds out that nothing can be written, the second is refused before anything is tried.
    for (const clientId of ['first', 'second']) {
      expect(await place.connect(clientId, keep(version))).toBe(CONNECT_CODE[version]);
      expect(place.room.broker.client(clientId)).toBeUndefined();
    }
    expect(place.room.metric('limited_total', { limit: 'store' })).toBe(2);
    await place.recover();
    expect(await place.connect('first', keep(version))).toBe(0);
  });

  it('the will of a client whose session could not be stored is not published', async () => {
    const place = await Place.open();
    const watcher = await place.room.client('watcher');
    await watcher.subscribe('will');
    place.fail();
    const will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 0,
      retain: false,
      properties: null,
      delayInterval: 0,
    } as const;
    expect(await place.connect('c', { ...keep(version), will })).toBe(CONNECT_CODE[version]);
    await place.room.advance(1000);
    expect(await watcher.messages()).toEqual([]);
  });

  it('a session that is stored goes on, and one that is not to be kept begins', async () => {
    const place = await Place.open();
    await (await place.room.client('kept', keep(version))).drop();
    place.fail();
    expect(await place.connect('new', keep(version))).toBe(CONNECT_CODE[version]);
    expect((await place.room.client('kept', keep(version))).present).toBe(true);
    const passing = await place.room.client('passing', { cleanStart: true, version });
    await passing.subscribe('t');
    passing.publish('t', 'x');
    expect(await passing.message()).toMatchObject({ payload: 'x' });
  });

  it('a clean start does not end a stored session for one that cannot be stored', async () => {
    const place = await Place.open();
    const first = await place.room.client('c', KEEP);
    await first.subscribe('t', 1);
    place.fail();
    expect(await place.connect('other', KEEP)).toBe(0x97);
    const code = version === 5 ? await place.connect('c', { expiry: 60, cleanStart: true }) : 0x97;
    expect(code).toBe(0x97);
    expect(place.subscriptions('c')).toEqual(['t']);
    expect(await first.messages()).toEqual([]);
  });

  it('a subscription of a kept session is refused and not in force; one that is stored is granted again [MQTT-3.9.3-1]', async () => {
    const place = await Place.open();
    const client = await place.room.client('c', keep(version));
    expect(await client.subscribe('stored', 1)).toBe(1);
    place.fail();
    for (const filter of ['first', 'second']) expect(await client.subscribe(filter, 1)).toBe(SUBSCRIBE_CODE[version]);
    expect(await client.subscribe('stored', 1)).toBe(1);
    expect(await client.subscribe('stored', 0)).toBe(SUBSCRIBE_CODE[version]);
    expect(place.subscriptions('c')).toEqual(['stored']);
    expect([...place.room.broker.subscriptions('c')][0].qos).toBe(1);
    await place.recover();
    expect(await client.subscribe('first', 1)).toBe(1);
    expect((await place.crashed()).subscriptions('c')).toEqual(['first', 'stored']);
  });

  it('a subscription brings no stored messages when it could not be stored', async () => {
    const place = await Place.open();
    const publisher = await place.room.client('p');
    await publisher.published('r', 'x', 1, { retain: true });
    const client = await place.room.client('c', keep(version));
    place.fail();
    expect(await client.subscribe('r', 1)).toBe(SUBSCRIBE_CODE[version]);
    expect(await client.messages()).toEqual([]);
  });

  it('two SUBSCRIBE packets for one filter on their way are both refused', async () => {
    const place = await Place.open();
    const client = await place.room.client('c', keep(version));
    place.fail();
    const request = { topicFilter: 't', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
    for (const packetId of [1, 2])
      client.send({ type: SUBSCRIBE, packetId, subscriptions: [request], properties: null });
    for (const packetId of [1, 2])
      expect(await client.packet(SUBACK)).toMatchObject({ packetId, reasonCodes: [SUBSCRIBE_CODE[version]] });
    expect(place.subscriptions('c')).toEqual([]);
  });

  it('the end of a subscription is not acknowledged, and it stays [MQTT-3.10.4-4]', async () => {
    const place = await Place.open();
    const client = await place.room.client('c', keep(version));
    await client.subscribe('t', 1);
    place.fail();
    if (version === 5) {
      expect(await unsubscribe(client, 't')).toBe(0x80);
      expect(await unsubscribe(client, 't')).toBe(0x80);
    } else {
      client.send({ type: UNSUBSCRIBE, packetId: 7, topicFilters: ['t'], properties: null });
      expect((await client.untilClosed()).filter((p) => p.type === UNSUBACK)).toEqual([]);
    }
    expect(place.subscriptions('c')).toEqual(['t']);
    await place.recover();
    const again = version === 5 ? client : await place.room.client('c', keep(version));
    expect((await unsubscribe(again, 't')) ?? 0).toBe(0);
    expect((await place.crashed()).subscriptions('c')).toEqual([]);
  });

  it('a retained publish is not acknowledged with success', async () => {
    const place = await Place.open();
    const publisher = await place.room.client('p', { version, cleanStart: true });
    await publisher.published('r', 'old', 1, { retain: true });
    place.fail();
    publisher.publish('r', 'new', 1, { retain: true });
    if (version === 5) expect(await publisher.packet(PUBACK)).toMatchObject({ reasonCode: 0x97 });
    else expect((await publisher.untilClosed()).filter((p) => p.type === PUBACK)).toEqual([]);
  });

  it('QoS 0 reaches everybody', async () => {
    const place = await Place.open();
    const reader = await place.room.client('reader', keep(version));
    await reader.subscribe('t', 1);
    place.fail();
    const publisher = await place.room.client('p');
    expect(await publisher.published('t', 'refused', 1)).toBe(0x97);
    publisher.publish('t', 'passed');
    const got = (await reader.messages()).map((m) => m.payload);
    expect(got).toContain('passed');
  });
});

describe.each(VERSIONS)('QoS 2, version %i', (version) => {
  const ids = Array.from({ length: 10 }, (_, n) => n + 1);

  async function listeners(place: Place): Promise<{ reader: RoomClient; live: RoomClient }> {
    const reader = await place.room.client('reader', KEEP);
    await reader.subscribe('t', 2);
    const live = await place.room.client('live');
    await live.subscribe('t', 2);
    return { reader, live };
  }

  function publishAll(publisher: RoomClient, dup: boolean): void {
    for (const packetId of ids) publisher.publish('t', `${packetId}`, 2, { packetId, dup });
  }

  /** Sends all again on new connections, as often as it takes, until each has its PUBREC and PUBCOMP. */
  async function insist(place: Place): Promise<void> {
    for (const received = new Set<number>(); received.size < ids.length; ) {
      const publisher = await place.room.client('p', keep(version));
      publishAll(publisher, true);
      for (const packet of await answers(publisher)) {
        if (packet.type !== PUBREC || packet.reasonCode >= 0x80) continue;
        received.add(packet.packetId);
        publisher.ack(PUBREL, packet.packetId);
        await publisher.packet(PUBCOMP);
      }
    }
  }

  /** As many as were asked for, or all until the connection is closed. */
  async function answers(publisher: RoomClient): Promise<Came[]> {
    const came: Came[] = [];
    for (let packet = await publisher.next(); packet !== null; packet = await publisher.next()) {
      came.push(packet);
      if (came.length === ids.length) break;
    }
    return came;
  }

  it('what a failing disk has not taken arrives once after it recovers, whatever became of the connection [MQTT-4.3.3-10]', async () => {
    const place = await Place.open();
    const { reader, live } = await listeners(place);
    const publisher = await place.room.client('p', keep(version));
    place.fail();
    publishAll(publisher, false);
    // No PUBREC of failure: the messages are on their way, and the client would send them as others.
    const came = await publisher.untilClosed();
    expect(came.filter((packet) => packet.type === PUBREC)).toEqual([]);
    await place.recover();
    await insist(place);
    const each = ids.map(String);
    expect((await live.messages()).map((m) => m.payload)).toEqual(each);
    expect((await reader.messages()).map((m) => m.payload)).toEqual(each);
  });

  it('a full store refuses before anybody has the message, and remembers no identifier of it', async () => {
    const place = await Place.open(storePath(), { maxSize: 512 * 1024 });
    const { reader, live } = await listeners(place);
    await reader.drop();
    await (await place.room.client('p', keep(version))).drop();
    const filler = await place.room.client('filler');
    while ((await filler.published('t', Buffer.alloc(20_000, 'x'), 1)) === 0);
    while ((await live.messages()).length > 0);
    const publisher = await place.room.client('p', keep(version));
    publishAll(publisher, false);
    const codes = (await answers(publisher)).map((packet) => (packet.type === PUBREC ? packet.reasonCode : -1));
    expect(codes).toEqual(version === 5 ? ids.map(() => 0x97) : []);
    expect(await live.messages()).toEqual([]);
    const drained = await place.room.client('reader', KEEP);
    while ((await drained.messages()).length > 0);
    while (!place.journal.accepting) await new Promise((resolve) => setTimeout(resolve, 5));
    await insist(place);
    expect((await live.messages()).map((m) => m.payload)).toEqual(ids.map(String));
  });
});

it('a 3.1.1 publisher to a kept session gets no PUBACK while the disk fails, and is closed', async () => {
  const place = await Place.open();
  const reader = await place.room.client('reader', KEEP);
  await reader.subscribe('t', 1);
  await reader.drop();
  place.fail();
  const publisher = await place.room.client('p', { version: 4, cleanStart: true });
  publisher.publish('t', 'x', 1);
  const came = await publisher.untilClosed();
  expect(came.filter((p) => p.type === PUBACK || p.type === DISCONNECT)).toEqual([]);
});

it('a disk that hangs holds back what waits for it, and nobody else', async () => {
  const place = await Place.open();
  const reader = await place.room.client('reader', KEEP);
  await reader.subscribe('t', 1);
  await reader.drop();
  const live = await place.room.client('live');
  await live.subscribe('#', 1);
  const publisher = await place.room.client('p');
  const other = await place.room.client('other');
  writeFileSync(`${place.path}.fail`, 'hang');
  const packetId = publisher.publish('t', 'kept', 1);
  expect(await live.message()).toMatchObject({ payload: 'kept' });
  // Nothing is stored of these: their acknowledgements do not wait for the disk.
  for (let n = 0; n < 100; n++) {
    expect(await other.published('passing', `${n}`, 1)).toBe(0);
    expect(await live.message()).toMatchObject({ payload: `${n}` });
  }
  expect((await place.room.client('new')).present).toBe(false);
  expect(await publisher.arrived()).toBe(0);
  rmSync(`${place.path}.fail`);
  expect(await publisher.packet(PUBACK)).toMatchObject({ packetId, reasonCode: 0 });
});

describe('while the store is full', () => {
  const payload = Buffer.alloc(20_000, 'x');

  /** Full, with a kept client that waits for nothing. */
  async function full(): Promise<{ place: Place; asker: RoomClient }> {
    const place = await Place.open(storePath(), { maxSize: 512 * 1024 });
    const reader = await place.room.client('reader', KEEP);
    await reader.subscribe('fill', 1);
    await reader.drop();
    const asker = await place.room.client('asker', KEEP);
    await asker.subscribe('own', 1);
    const publisher = await place.room.client('filler');
    await publisher.published('r/known', 'old', 1, { retain: true });
    while ((await publisher.published('fill', payload, 1)) === 0);
    expect(place.journal.accepting).toBe(false);
    return { place, asker };
  }

  it('new sessions, subscriptions and retained topics are refused, counted and told once in ten seconds', async () => {
    const { place, asker } = await full();
    const { room } = place;
    for (let n = 0; n < 5; n++) expect(await place.connect(`new${n}`, KEEP)).toBe(0x97);
    expect(await asker.subscribe('more', 1)).toBe(0x97);
    expect(room.metric('limited_total', { limit: 'store' })).toBe(6);
    expect(room.log.filter((line) => line.id === 'SES-LIMIT')).toHaveLength(1);
    const publisher = await room.client('p');
    expect(await publisher.published('r/new', 'x', 1, { retain: true })).toBe(0x97);
    publisher.publish('r/new', 'x', 0, { retain: true });
    // A value that takes the place of another is stored: nothing grows.
    expect(await publisher.published('r/known', 'new', 1, { retain: true })).toBeLessThan(0x80);
    const seer = await room.client('seer');
    await seer.subscribe('r/#');
    expect((await seer.messages()).map((m) => `${m.topic} ${m.payload}`)).toEqual(['r/known new']);
    const after = await place.crashed();
    const again = await after.room.client('seer');
    await again.subscribe('r/#');
    expect((await again.messages()).map((m) => m.payload)).toEqual(['new']);
  });

  it('subscriptions end, acknowledgements count, and room makes it take more by itself', async () => {
    const { place, asker } = await full();
    expect(await unsubscribe(asker, 'own')).toBe(0);
    const reader = await place.room.client('reader', KEEP);
    while ((await reader.messages()).length > 0);
    while (!place.journal.accepting) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await asker.subscribe('more', 1)).toBe(1);
    expect(await place.connect('new', KEEP)).toBe(0);
  });

  it('a message of a shared subscription still moves to another member when its session ends [MQTT-4.8.2-5]', async () => {
    const place = await Place.open(storePath(), { maxSize: 512 * 1024 });
    const { room } = place;
    for (const clientId of ['gone', 'heir']) {
      const member = await room.client(clientId, { cleanStart: false, expiry: clientId === 'gone' ? 60 : 3600 });
      await member.subscribe('$share/g/t', 1);
      await member.drop();
    }
    const publisher = await room.client('p');
    for (let n = 0; n < 4; n++) expect(await publisher.published('t', `${n}`, 1)).toBe(0);
    const filler = await room.client('filled', KEEP);
    await filler.subscribe('fill', 1);
    await filler.drop();
    while ((await publisher.published('fill', payload, 1)) === 0);
    await room.advance(61_000);
    const heir = await room.client('heir', KEEP);
    expect((await heir.messages()).map((m) => m.payload).sort()).toEqual(['0', '1', '2', '3']);
  });

  it('a will still reaches a kept session: CONNACK promised it', async () => {
    const place = await Place.open(storePath(), { maxSize: 512 * 1024 });
    const { room } = place;
    const will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 0,
    } as const;
    const watcher = await room.client('watcher', KEEP);
    await watcher.subscribe('will', 1);
    await watcher.subscribe('fill', 1);
    await watcher.drop();
    const dying = await room.client('dying', { will });
    const publisher = await room.client('p');
    while ((await publisher.published('fill', payload, 1)) === 0);
    await dying.drop();
    const back = await room.client('watcher', KEEP);
    expect((await back.messages()).map((m) => m.topic)).toContain('will');
  });
});
