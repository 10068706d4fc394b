// Sessions, queues and retained messages over disconnects and over restarts of the broker on a real store.
// The tags B0nn are rows of the casebook.
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, type Version } from '../../src/mqtt/packet.ts';
import type { Journal } from '../../src/store/store.ts';
import { openRoom, type Room, type RoomOptions, settled } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { settled as committed, crashCopy, storeClock, storePath, testJournal } from '../harness/journal.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function room(options: RoomOptions = {}): Promise<Room> {
  const made = await openRoom(options);
  cleanups.push(() => made.stop());
  return made;
}

/** Brokers one after the other on the same database. */
class Place {
  readonly path = storePath();
  private room: Room | null = null;
  private journal: Journal | null = null;
  readonly clock = new FakeClock(Date.now());

  constructor() {
    cleanups.push(async () => {
      await this.room?.stop();
      rmSync(dirname(dirname(this.path)), { recursive: true, force: true });
    });
  }

  /** A power cut, after which the wall clock reads as if `downMs` had passed; the machine has been up for `upMs`. */
  async reboot(downMs: number, upMs: number): Promise<Room> {
    if (this.journal !== null) await committed(this.journal);
    const stored = crashCopy(this.path);
    await this.room?.stop();
    const clock = new FakeClock(this.clock.now() + downMs);
    clock.bootedMs = upMs;
    const { journal } = testJournal(stored, { clock: storeClock(clock) });
    this.journal = journal;
    this.room = await openRoom({ journal, clock });
    Object.assign(this, { path: stored, clock });
    return this.room;
  }

  /** Starts a broker; the one before is stopped as SIGTERM does it, `downMs` before. */
  async next(options: RoomOptions = {}, downMs = 0): Promise<Room> {
    await this.room?.stop();
    this.clock.setWall(this.clock.now() + downMs);
    const { journal } = testJournal(this.path, { clock: storeClock(this.clock) });
    this.journal = journal;
    this.room = await openRoom({ ...options, journal, clock: this.clock });
    return this.room;
  }
}

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const keep = (version: Version) => (version === 5 ? { ...KEEP, version } : { cleanStart: false, version });

describe('a session that is kept', () => {
  it.each([3, 4, 5] as const)(
    'survives a normal DISCONNECT in version %s; only its will is gone [B066] [MQTT-3.1.2-4]',
    async (version) => {
      const { client } = bind(await room());
      const watcher = await client('watcher');
      await watcher.subscribe('will', 0);
      const will = {
        topicName: 'will',
        payload: Buffer.from('x'),
        qos: 0,
        retain: false,
        properties: null,
        delayInterval: 0,
      } as const;
      const first = await client('c', { ...keep(version), will });
      await first.subscribe('t', 1);
      first.disconnect();
      await first.untilClosed();
      await watcher.published('t', 'missed', 1);
      const again = await client('c', keep(version));
      expect(again.present).toBe(version > 3);
      expect(await again.message()).toMatchObject({ payload: 'missed', qos: 1, dup: false });
      expect(await watcher.messages()).toEqual([]);
    },
  );

  it('gets 100 messages of a shared subscription in order as fast as its window allows, without a timer between [B067]', async () => {
    const { client } = bind(await room());
    const member = await client('m', KEEP);
    await member.subscribe('$share/g/t', 1);
    await member.subscribe('plain', 1);
    await member.drop();
    const publisher = await client('p');
    for (let n = 0; n < 100; n++) {
      await publisher.published('t', `${n}`, 1);
      await publisher.published('plain', `${n}`, 1);
    }
    const back = await client('m', { ...KEEP, properties: { receiveMaximum: 7 } });
    const got: string[] = [];
    for (let n = 0; n < 200; n++) {
      const { topic, payload } = await back.message();
      got.push(`${topic} ${payload}`);
    }
    const numbers = Array.from({ length: 100 }, (_, n) => n);
    expect(got.filter((t) => t.startsWith('t '))).toEqual(numbers.map((n) => `t ${n}`));
    expect(got.filter((t) => t.startsWith('plain '))).toEqual(numbers.map((n) => `plain ${n}`));
  });

  it('keeps QoS 1 of a plain subscription that overlaps a shared one of QoS 0 [B067]', async () => {
    const { client } = bind(await room());
    const member = await client('m', KEEP);
    await member.subscribe('$share/g/t', 0);
    await member.subscribe('t', 1);
    await member.drop();
    await (await client('p')).published('t', 'x', 1);
    const back = await client('m', KEEP);
    expect((await back.messages()).map((m) => m.qos)).toEqual([1]);
  });

  it('keeps QoS 0 subscriptions too [B071]', async () => {
    const { client } = bind(await room());
    const first = await client('c', KEEP);
    await first.subscribe('a', 0);
    await first.drop();
    const back = await client('c', KEEP);
    (await client('p')).publish('a', 'x');
    expect(await back.message()).toMatchObject({ topic: 'a', payload: 'x' });
  });

  it('completes the QoS 2 delivery of a retained message and forgets it [B075]', async () => {
    const { broker, client } = bind(await room());
    const publisher = await client('p');
    await publisher.published('t', 'x', 2, { retain: true });
    const c = await client('c', KEEP);
    await c.subscribe('t', 2);
    const message = await c.message(false);
    expect(message).toMatchObject({ qos: 2, retain: true, payload: 'x' });
    c.ack(PUBREC, message.packetId);
    await c.packet(PUBREL);
    c.ack(PUBCOMP, message.packetId);
    await c.messages();
    expect(broker.client('c')).toMatchObject({ inflight: 0, queued: 0 });
  });

  it('continued by another user where a client id is the owner gives only what that user may read [B076]', async () => {
    const { room: r, client } = bind(await room({ limits: { sessionOwner: 'client_id' } }));
    const a = await client('x', { ...KEEP, username: 'a' });
    await a.subscribe('t/#', 1);
    await a.drop();
    const p = await client('p');
    await p.published('t/secret', 's', 1);
    await p.published('t/open', 'o', 1);
    r.authorizer.deliver = ({ username }, topic) => username === 'a' || topic !== 't/secret';
    const b = await client('x', { ...KEEP, username: 'b' });
    expect(b.present).toBe(true);
    expect((await b.messages()).map((m) => m.payload)).toEqual(['o']);
  });

  it('gets nothing that its rights forbid now, neither queued nor in flight [B076]', async () => {
    const { room: r, client } = bind(await room());
    const c = await client('c', KEEP);
    await c.subscribe('t/#', 1);
    const publisher = await client('p');
    await publisher.published('t/secret', 'in flight', 1);
    await c.message(false);
    await c.drop();
    await publisher.published('t/secret', 'queued', 1);
    await publisher.published('t/open', 'open', 1);
    r.authorizer.deliver = (_, topic) => topic !== 't/secret';
    (r.authorizer as { version: number }).version++;
    r.broker.accessChanged();
    const back = await client('c', KEEP);
    expect((await back.messages()).map((m) => m.payload)).toEqual(['open']);
    expect(r.metric('publish_dropped_total', { reason: 'forbidden' })).toBe(2);
    expect(r.broker.client('c')).toMatchObject({ inflight: 0, queued: 0 });
  });

  it('has one owner at a time when many connections race for it, and the last one gets its messages [B070]', async () => {
    const { room: r, broker, client } = bind(await room());
    const publisher = await client('p');
    const filters = Array.from({ length: 50 }, (_, n) => `f/${n}`);
    for (let round = 0; round < 20; round++) {
      const racers = Array.from({ length: 50 }, () => r.open(4));
      for (const [n, racer] of racers.entries()) {
        racer.connect('x', { version: 4, cleanStart: false });
        const subscriptions = filters.map((topicFilter) => ({
          topicFilter,
          qos: 1 as const,
          noLocal: false,
          retainAsPublished: false,
          retainHandling: 0 as const,
        }));
        racer.send({ type: 8, packetId: 1, subscriptions, properties: null });
        publisher.publish(`f/${n}`, 'x', 1);
      }
      for (const racer of racers) await racer.drop();
    }
    const last = await client('x', { version: 4, cleanStart: false });
    expect(last.present).toBe(true);
    await publisher.messages();
    await publisher.published('f/7', 'last', 1);
    expect((await drained(last)).at(-1)).toBe('last');
    expect(broker.client('x')).toMatchObject({ subscriptions: 50, connected: true });
    expect([...broker.clients()].length).toBe(2);
    expect(r.log.filter((line) => line.level === 'error')).toEqual([]);
  });
});

describe('shared subscriptions', () => {
  it('give everything to the member that is online; an offline one gets its share only when all are away [B078]', async () => {
    const { client } = bind(await room());
    const a = await client('a', KEEP);
    const b = await client('b', KEEP);
    await a.subscribe('$share/g/t', 1);
    await b.subscribe('$share/g/t', 1);
    await b.drop();
    const publisher = await client('p');
    for (let n = 0; n < 10; n++) await publisher.published('t', `${n}`, 1);
    expect((await drained(a)).length).toBe(10);
    await a.drop();
    for (let n = 0; n < 10; n++) await publisher.published('t', `${n}`, 1);
    const got = [...(await drained(await client('a', KEEP))), ...(await drained(await client('b', KEEP)))];
    expect(got.sort()).toEqual(Array.from({ length: 10 }, (_, n) => `${n}`));
  });

  it('give what a member has not acknowledged to another one when its session ends [B078]', async () => {
    const { client } = bind(await room());
    const a = await client('a');
    await a.subscribe('$share/g/t', 1);
    const publisher = await client('p');
    await publisher.published('t', 'x', 1);
    await a.message(false);
    const b = await client('b');
    await b.subscribe('$share/g/t', 1);
    await a.drop();
    expect(await b.message()).toMatchObject({ payload: 'x' });
  });

  it('never give a QoS 2 message that was sent to one member to another [MQTT-4.8.2-5]', async () => {
    const { client } = bind(await room());
    const a = await client('a');
    await a.subscribe('$share/g/t', 2);
    const publisher = await client('p');
    await publisher.published('t', 'sent', 2);
    await a.message(false);
    const b = await client('b');
    await b.subscribe('$share/g/t', 2);
    await a.drop();
    expect(await b.messages()).toEqual([]);
  });
});

describe('over a restart', () => {
  it('names with quotes, SQL and emoji and payloads with any byte are text like others [B068]', async () => {
    const place = new Place();
    const names = [
      "x'); DROP TABLE session;--",
      "x' UNION SELECT zeroblob(1),4 -- ",
      'a"b',
      "a'b",
      '100%_',
      '\u{1F6AA}',
    ];
    const body = Buffer.from(Array.from({ length: 128 }, (_, n) => n));
    const before = bind(await place.next());
    const publisher = await before.client('p');
    for (const name of names) {
      const c = await before.client(name, KEEP);
      await c.subscribe(`f/${name}`, 1);
      await c.drop();
      await publisher.published(`f/${name}`, body, 1);
      await publisher.published(`r/${name}`, body, 1, { retain: true });
    }
    const after = bind(await place.next());
    for (const name of names) {
      const c = await after.client(name, KEEP);
      expect(c.present).toBe(true);
      expect(await c.message()).toMatchObject({ topic: `f/${name}`, payload: body.toString() });
    }
    const reader = await after.client('reader');
    await reader.subscribe('r/#', 1);
    const topics = (await reader.messages()).map((m) => m.topic);
    expect(topics.sort()).toEqual(names.map((name) => `r/${name}`).sort());
  });

  it('a will of a client that said goodbye is gone; one of a client that does not come back is sent once [B072]', async () => {
    const place = new Place();
    const will = (topicName: string) =>
      ({ topicName, payload: Buffer.from('x'), qos: 1, retain: false, properties: null, delayInterval: 0 }) as const;
    const before = bind(await place.next());
    const watcher = await before.client('watcher', KEEP);
    await watcher.subscribe('will/#', 1);
    const done = await before.client('done', { ...KEEP, will: will('will/done') });
    done.disconnect();
    await done.untilClosed();
    await before.client('back', { ...KEEP, keepAlive: 60, will: will('will/back') });
    await before.client('never', { ...KEEP, keepAlive: 2, will: will('will/never') });
    const after = bind(await place.next());
    const again = await after.client('watcher', KEEP);
    await after.client('back', { ...KEEP, keepAlive: 60, will: will('will/back') });
    await after.room.advance(4000);
    expect((await again.messages()).map((m) => m.topic)).toEqual(['will/never']);
    await after.room.advance(30_000);
    expect(await again.messages()).toEqual([]);
  });

  it('what was in flight goes to its subscriber again with DUP and its id, and not to the publisher [B073] [MQTT-4.4.0-1]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const c = await before.client('c', KEEP);
    await c.subscribe('t', 1);
    await (await before.client('p', KEEP)).published('t', 'x', 1);
    const first = await c.message(false);
    const after = bind(await place.next());
    const publisher = await after.client('p', KEEP);
    const back = await after.client('c', KEEP);
    expect(await back.message()).toMatchObject({ payload: 'x', dup: true, packetId: first.packetId });
    expect(await publisher.messages()).toEqual([]);
  });

  it('what a member of a shared subscription does not finish still goes to another one when its session ends [MQTT-4.8.2-5] [B078]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const gone = await before.client('gone', { cleanStart: false, expiry: 60 });
    await gone.subscribe('$share/g/t', 1);
    const publisher = await before.client('p');
    await publisher.published('t', 'sent', 1);
    await gone.message(false);
    await gone.drop();
    await publisher.published('t', 'queued', 1);
    const other = await before.client('other', KEEP);
    await other.subscribe('$share/g/t', 1);
    await other.drop();
    const after = bind(await place.next());
    const heir = await after.client('other', KEEP);
    expect(await heir.messages()).toEqual([]);
    await after.room.advance(61_000);
    expect((await heir.messages()).map((m) => m.payload)).toEqual(['sent', 'queued']);
  });

  it('a member whose session ended meanwhile leaves its messages to a member that is restored after it [MQTT-4.8.2-5]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const gone = await before.client('gone', { cleanStart: false, expiry: 60 });
    await gone.subscribe('$share/g/t', 1);
    await gone.drop();
    await (await before.client('p')).published('t', 'x', 1);
    const other = await before.client('other', KEEP);
    await other.subscribe('$share/g/t', 1);
    await other.drop();
    const after = bind(await place.next({}, 120_000));
    expect((await (await after.client('other', KEEP)).messages()).map((m) => m.payload)).toEqual(['x']);
    // What has moved is stored in its new place.
    const later = bind(await place.next());
    expect(await (await later.client('other', KEEP)).messages()).toEqual([]);
  });

  it('a will that came due with the end of its session reaches a session that is restored after it [MQTT-3.1.2-8]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 600,
    } as const;
    const gone = await before.client('gone', { cleanStart: false, expiry: 60, will });
    await gone.drop();
    const watcher = await before.client('watcher', KEEP);
    await watcher.subscribe('will', 1);
    await watcher.drop();
    const after = bind(await place.next({}, 120_000));
    await after.room.advance(0);
    expect((await (await after.client('watcher', KEEP)).messages()).map((m) => m.payload)).toEqual(['x']);
    const later = bind(await place.next());
    await later.room.advance(1_000_000);
    expect(await (await later.client('watcher', KEEP)).messages()).toEqual([]);
  });

  it('a Will Delay goes on while the broker is down, and the will is published once [MQTT-3.1.3-9]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const watcher = await before.client('watcher', KEEP);
    await watcher.subscribe('will', 1);
    const will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 600,
    } as const;
    await (await before.client('gone', { ...KEEP, will })).drop();
    const after = bind(await place.next({}, 400_000));
    const again = await after.client('watcher', KEEP);
    await after.room.advance(190_000);
    expect(await again.messages()).toEqual([]);
    await after.room.advance(20_000);
    expect((await again.messages()).map((m) => m.topic)).toEqual(['will']);
    const later = bind(await place.next({}, 1_000_000));
    await later.room.advance(1_000_000);
    expect(await (await later.client('watcher', KEEP)).messages()).toEqual([]);
  });

  it('the grace of a will after a crash begins once, however often the gateway crashes again', async () => {
    const place = new Place();
    const before = bind(await place.next());
    await (await before.client('watcher', KEEP)).subscribe('will', 1);
    const will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 0,
    } as const;
    await before.client('gone', { ...KEEP, keepAlive: 60, will });
    // Keep alive 60 gives 90 s; it is not renewed by a crash every 40 s.
    let room = await place.reboot(0, 0);
    for (let n = 0; n < 2; n++) {
      await room.advance(40_000);
      room = await place.reboot(0, 0);
    }
    const again = await bind(room).client('watcher', KEEP);
    expect(await again.messages()).toEqual([]);
    await room.advance(11_000);
    expect((await again.messages()).map((m) => m.topic)).toEqual(['will']);
  });

  /** A queued and a retained message that expire after 100 s. */
  async function expiring(room: Room): Promise<void> {
    const { client } = bind(room);
    const reader = await client('reader', KEEP);
    await reader.subscribe('q', 1);
    await reader.drop();
    const publisher = await client('publisher');
    const properties = { messageExpiryInterval: 100 };
    await publisher.published('q', 'x', 1, { properties });
    await publisher.published('r', 'x', 1, { retain: true, properties });
  }

  /** Message Expiry Intervals that a client gets. */
  async function intervals(room: Room): Promise<(number | undefined)[]> {
    const reader = await bind(room).client('reader', KEEP);
    const queued = await reader.messages();
    await reader.subscribe('r', 0);
    return [...queued, ...(await reader.messages())].map((m) => m.properties?.messageExpiryInterval);
  }

  const JUMPS = { 'an hour on': 3_600_000, 'an hour back': -3_600_000, 'to 1970': -Date.UTC(2026, 0, 1) } as const;

  for (const [how, byMs] of Object.entries(JUMPS)) {
    it(`what waits expires by what has passed when the wall clock jumps ${how} [MQTT-3.3.2-6]`, async () => {
      const place = new Place();
      const room = await place.next();
      await expiring(room);
      place.clock.setWall(place.clock.now() + byMs);
      await room.advance(40_000);
      expect(await intervals(room)).toEqual([60, 60]);
    });

    it(`a power cut after which the wall clock reads ${how} makes no interval larger [MQTT-3.3.2-6]`, async () => {
      const place = new Place();
      await expiring(await place.next());
      const room = await place.reboot(byMs, 10_000);
      expect(await intervals(room)).toEqual(byMs > 0 ? [] : [90, 90]);
    });
  }

  it('a session ends at the time it would have ended without it, not later [MQTT-3.1.2-23]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    await (await before.client('short', { cleanStart: false, expiry: 100 })).drop();
    await (await before.client('long', { cleanStart: false, expiry: 300 })).drop();
    const between = bind(await place.next({}, 60_000));
    await between.room.advance(30_000);
    const after = bind(await place.next({}, 60_000));
    expect((await after.client('short', { cleanStart: false, expiry: 100 })).present).toBe(false);
    expect((await after.client('long', { cleanStart: false, expiry: 300 })).present).toBe(true);
  });

  it('Message Expiry goes on while the broker is down: what is over is gone, the rest says what is left [MQTT-3.3.2-5] [MQTT-3.3.2-6] [B052]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const c = await before.client('c', KEEP);
    await c.subscribe('t', 1);
    await c.drop();
    const publisher = await before.client('p');
    for (const messageExpiryInterval of [50, 500]) {
      const properties = { messageExpiryInterval };
      await publisher.published('t', `${messageExpiryInterval}`, 1, { properties });
      await publisher.published(`r/${messageExpiryInterval}`, 'x', 1, { properties, retain: true });
    }
    const after = bind(await place.next({}, 100_000));
    const back = await after.client('c', KEEP);
    const left = (m: { properties: { messageExpiryInterval?: number } | null }) => m.properties?.messageExpiryInterval;
    expect((await back.messages()).map((m) => [m.payload, left(m)])).toEqual([['500', 400]]);
    await back.subscribe('r/#');
    expect((await back.messages()).map((m) => [m.topic, left(m)])).toEqual([['r/500', 400]]);
  });

  it('messages from before and after it arrive in order [B074]', async () => {
    const place = new Place();
    const filters = ['t'];
    for (let life = 0; life < 4; life++) {
      const now = bind(await place.next());
      if (life === 0) {
        const c = await now.client('c', KEEP);
        for (const filter of filters) await c.subscribe(filter, 1);
        await c.drop();
      }
      const publisher = await now.client('p');
      for (let n = 0; n < 5; n++) await publisher.published('t', `${life * 5 + n}`, 1);
    }
    const end = bind(await place.next());
    const back = await end.client('c', KEEP);
    const got: string[] = [];
    for (let n = 0; n < 20; n++) got.push((await back.message()).payload);
    expect(got).toEqual(Array.from({ length: 20 }, (_, n) => `${n}`));
  });

  it('a PUBREL that was due is sent again, and nothing else [MQTT-4.4.0-1]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const c = await before.client('c', KEEP);
    await c.subscribe('t', 2);
    await (await before.client('p')).published('t', 'x', 2);
    const { packetId } = await c.message(false);
    c.ack(PUBREC, packetId);
    await c.packet(PUBREL);
    const after = bind(await place.next());
    const back = await after.client('c', KEEP);
    expect(await back.packet(PUBREL)).toMatchObject({ packetId });
    back.ack(PUBCOMP, packetId);
    expect(await back.messages()).toEqual([]);
  });

  it('a QoS 2 publish whose PUBREC was sent is known, and delivered once [MQTT-4.3.3-10]', async () => {
    const place = new Place();
    const before = bind(await place.next());
    const watcher = await before.client('watcher', KEEP);
    await watcher.subscribe('t', 1);
    await watcher.drop();
    const publisher = await before.client('p', KEEP);
    const packetId = publisher.publish('t', 'x', 2);
    await publisher.packet(PUBREC);
    const after = bind(await place.next());
    const back = await after.client('p', KEEP);
    back.publish('t', 'x', 2, { dup: true, packetId });
    expect(await back.packet(PUBREC)).toMatchObject({ packetId, reasonCode: 0 });
    back.ack(PUBREL, packetId);
    await back.packet(PUBCOMP);
    expect((await (await after.client('watcher', KEEP)).messages()).map((m) => m.payload)).toEqual(['x']);
  });
});

describe('retained messages', () => {
  it('that expire are swept though nobody asks for them [B077]', async () => {
    const { room: r, client } = bind(await room());
    const publisher = await client('p');
    for (let n = 0; n < 2000; n++)
      publisher.publish(`t/${n}`, 'x', 0, { retain: true, properties: { messageExpiryInterval: 1 } });
    await publisher.messages();
    expect(r.metric('retained_messages')).toBe(2000);
    await r.advance(3000);
    expect(r.metric('retained_messages')).toBe(0);
    expect(r.metric('retained_bytes')).toBe(0);
  });

  it('all reach a slow subscriber of #, whatever its queue may hold [B040]', async () => {
    const { client } = bind(await room({ limits: { outbox: { queueLength: 100, inflight: 10 } } }));
    const publisher = await client('p');
    for (let n = 0; n < 1000; n++) publisher.publish(`t/${n}`, 'x', 0, { retain: true });
    await publisher.published('t/q1', 'x', 1, { retain: true });
    const slow = await client('slow', KEEP);
    slow.connection.pause();
    void slow.subscribe('#', 1);
    await settled();
    slow.connection.resume();
    const topics = new Set<string>();
    while (topics.size < 1001) {
      const packet = await slow.next();
      if (packet === null) throw new Error('closed');
      if (packet.type !== PUBLISH) continue;
      topics.add(packet.topic);
      if (packet.qos === 1) slow.ack(PUBACK, packet.packetId);
    }
  });

  it('5,000 at QoS 1 all reach a subscriber of # and are acknowledged [B127]', async () => {
    const { broker, client } = bind(await room());
    const publisher = await client('p');
    for (let n = 0; n < 5000; n++) await publisher.published(`/${n}`, 'x', 1, { retain: true });
    const c = await client('c', KEEP);
    await c.subscribe('#', 1);
    const topics = new Set<string>();
    for (let n = 0; n < 5000; n++) topics.add((await c.message()).topic);
    expect(topics.size).toBe(5000);
    await c.messages();
    expect(broker.client('c')).toMatchObject({ inflight: 0, queued: 0 });
  });
});

function bind(of: Room) {
  return { room: of, broker: of.broker, client: of.client.bind(of) };
}

/** Payloads of everything that comes, acknowledged, until nothing more does. */
async function drained(client: Awaited<ReturnType<Room['client']>>): Promise<string[]> {
  const got: string[] = [];
  for (;;) {
    const some = await client.messages();
    if (some.length === 0) return got;
    got.push(...some.map((m) => m.payload));
  }
}
