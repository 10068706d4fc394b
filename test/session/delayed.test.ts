// Delayed messages: published when they are due, by the rights of then; kept over crashes once they are acknowledged.
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { PUBACK } from '../../src/mqtt/packet.ts';
import { TopicPolicies } from '../../src/policy/topics.ts';
import type { Journal } from '../../src/store/store.ts';
import { openRoom, type Room, type RoomOptions, settled } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { settled as committed, crashCopy, storeClock, storePath, testJournal } from '../harness/journal.ts';

const LIMITS = { maxSeconds: 100, messages: 3, bytes: 1000 };
const policies = (limits = LIMITS): TopicPolicies =>
  new TopicPolicies({ rewrite: [], autoSubscribe: [], exclusive: false, delayed: limits, mounts: new Map() }, null);

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function place(more: RoomOptions = {}): Promise<Room> {
  const room = await openRoom({ policies: policies(), ...more });
  cleanups.push(() => room.stop());
  return room;
}

describe('a delayed message', () => {
  test('is published when it is due, retained then and not before, once', async () => {
    const room = await place();
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#', 1);
    expect(await a.published('$delayed/10/t/x', 'later', 1, { retain: true })).toBe(0);
    a.publish('$delayed/5/t/y', 'sooner');
    await settled();
    expect([...room.broker.retained('#')]).toEqual([]);
    expect([...room.broker.delayedMessages()].map(({ topic, inMs }) => `${topic} ${inMs}`)).toEqual([
      't/x 10000',
      't/y 5000',
    ]);
    await room.advance(5000);
    expect(await b.message()).toMatchObject({ topic: 't/y', payload: 'sooner' });
    await room.advance(5000);
    expect(await b.message()).toMatchObject({ topic: 't/x', payload: 'later', qos: 1 });
    expect([...room.broker.retained('#')].map(({ topic }) => topic)).toEqual(['t/x']);
    expect([...room.broker.delayedMessages()]).toEqual([]);
    expect(room.metric('delayed_total', { outcome: 'published' })).toBe(2);
    await room.advance(100_000);
    a.publish('end', '');
    expect(await b.message()).toMatchObject({ topic: 'end' });
  });

  test('that is malformed, too far away or delayed twice is refused', async () => {
    const room = await place();
    const a = await room.client('a');
    for (const topic of ['$delayed/101/t', '$delayed/x/t', '$delayed/1/', '$delayed/-1/t', '$delayed/1/$delayed/1/t'])
      expect(await a.published(topic, 'x', 1), topic).toBe(0x90);
    const old = await room.client('old', { version: 4 });
    expect(await old.published('$delayed/101/t', 'x', 1)).toBe(0);
    expect(room.metric('publish_misplaced_total')).toBe(6);
    expect([...room.broker.delayedMessages()]).toEqual([]);
  });

  test('has bounds in number and bytes; before 5.0 the connection that is over them is closed', async () => {
    const room = await place();
    const a = await room.client('a');
    expect(await a.published('$delayed/9/t', Buffer.alloc(1001), 1)).toBe(0x97);
    for (let i = 0; i < 3; i++) expect(await a.published('$delayed/9/t', 'x', 2)).toBe(0);
    expect(await a.published('$delayed/9/t', 'x', 1)).toBe(0x97);
    expect(await a.published('$delayed/9/t', 'x', 2)).toBe(0x97);
    const old = await room.client('old', { version: 4 });
    old.publish('$delayed/9/t', 'x', 1);
    expect(await old.next()).toBeNull();
    expect(room.metric('limited_total', { limit: 'delayed' })).toBe(4);
    await room.advance(9000);
    expect(await a.published('$delayed/9/t', 'x', 1)).toBe(0);
  });

  test('is judged when it comes and again when it is due', async () => {
    const room = await place({ authorizer: { publish: (_, topic) => topic !== 'no' } });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    expect(await a.published('$delayed/1/no', 'x', 1)).toBe(0x87);
    expect(await a.published('$delayed/1/t', 'x', 1)).toBe(0);
    a.disconnect();
    room.authorizer.publish = () => false;
    room.authorizer.version = 2;
    await room.advance(1000);
    expect(room.metric('delayed_total', { outcome: 'denied' })).toBe(1);
    room.authorizer.publish = () => true;
    room.authorizer.version = 3;
    b.publish('end', '');
    expect(await b.message()).toMatchObject({ topic: 'end' });
  });

  test('of a user who is gone by then is not published', async () => {
    let there = true;
    const room = await place({ vouches: () => there });
    const a = await room.client('a', { username: 'joe' });
    expect(await a.published('$delayed/1/t', 'x', 1)).toBe(0);
    there = false;
    await room.advance(1000);
    expect(room.metric('delayed_total', { outcome: 'denied' })).toBe(1);
  });

  test('waits where the source of rights cannot say', async () => {
    let answers = true;
    const publish = (): boolean | Promise<boolean> => (answers ? true : Promise.reject(new Error('down')));
    const room = await place({ authorizer: { publish } });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    expect(await a.published('$delayed/1/t', 'x', 1)).toBe(0);
    answers = false;
    await room.advance(1000);
    answers = true;
    await room.advance(5000);
    expect(await b.message()).toMatchObject({ topic: 't' });
  });

  test('has its time to live from when it is published', async () => {
    const room = await place();
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    await a.published('$delayed/10/t', 'x', 1, { properties: { messageExpiryInterval: 3 } });
    await room.advance(10_000);
    expect((await b.message()).properties).toEqual({ messageExpiryInterval: 3 });
  });

  test('comes from wills and from inside the process too, and can be taken back', async () => {
    const room = await place();
    const will = { topicName: '$delayed/5/w', payload: Buffer.from('w'), qos: 0, retain: false, properties: null };
    const a = await room.client('a', { will: { ...will, qos: 0, delayInterval: 0 } });
    await a.drop();
    const local = room.broker.attach({ clientId: 'in', username: null, kind: 'api', bridge: null, trusted: true });
    expect(local.publish('$delayed/5/in', Buffer.from('x'), 0, 1, 1, false)).toBe('accepted');
    expect(local.publishSoon('$delayed/5/soon', Buffer.from('x'), 0, 1)).toBe('accepted');
    const waiting = [...room.broker.delayedMessages()];
    expect(waiting.map(({ topic }) => topic)).toEqual(['w', 'in', 'soon']);
    expect(room.broker.removeDelayed(waiting[1].id)).toBe(true);
    expect(room.broker.removeDelayed(waiting[1].id)).toBe(false);
    const b = await room.client('b');
    await b.subscribe('#');
    await room.advance(5000);
    expect([(await b.message()).topic, (await b.message()).topic]).toEqual(['w', 'soon']);
  });

  test('without the setting is a message on a topic like others', async () => {
    const room = await openRoom();
    cleanups.push(() => room.stop());
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('$delayed/#');
    a.publish('$delayed/5/t', 'x');
    expect(await b.message()).toMatchObject({ topic: '$delayed/5/t' });
  });
});

describe('on a store', () => {
  const clock = new FakeClock(Date.now());

  function opened(path: string): Journal {
    cleanups.push(() => rmSync(dirname(dirname(path)), { recursive: true, force: true }));
    return testJournal(path, { clock: storeClock(clock) }).journal;
  }

  test.each([1, 2] as const)('what is acknowledged at QoS %s survives a crash at that moment', async (qos) => {
    const path = storePath();
    const first = await place({ journal: opened(path), clock });
    const a = await first.client('a', { cleanStart: false, expiry: 1000, username: 'joe' });
    expect(await a.published('$delayed/50/t', 'kept', qos, { retain: true })).toBe(0);
    const left = crashCopy(path);
    const second = await place({ journal: opened(left), clock });
    expect([...second.broker.delayedMessages()]).toMatchObject([{ topic: 't', clientId: 'a', qos, retain: true }]);
    // None of it is a session that people or the client see.
    expect([...second.broker.clients()].map(({ clientId }) => clientId)).toEqual(['a']);
    const b = await second.client('b');
    await b.subscribe('#', 2);
    await second.advance(50_000);
    expect(await b.message()).toMatchObject({ topic: 't', payload: 'kept', qos });
    expect([...second.broker.retained('#')].map(({ topic, origin }) => [topic, origin.username])).toEqual([
      ['t', 'joe'],
    ]);
  });

  test('what was published is not there again, and what is refused by a full store never was', async () => {
    const path = storePath();
    const journal = opened(path);
    const room = await place({ journal, clock });
    const a = await room.client('a');
    await a.published('$delayed/1/t', 'x', 1);
    await room.advance(1000);
    await committed(journal);
    const again = await place({ journal: opened(crashCopy(path)), clock });
    expect([...again.broker.delayedMessages()]).toEqual([]);
    Object.defineProperty(journal, 'accepting', { value: false });
    expect(await a.published('$delayed/1/t', 'x', 1)).toBe(0x97);
    const old = await room.client('old', { version: 4 });
    old.publish('$delayed/1/t', 'x', 1);
    expect(await old.next()).toBeNull();
    expect([...room.broker.delayedMessages()]).toEqual([]);
  });

  test('rights at delivery are those of the listener and user it came by, also after a restart', async () => {
    const path = storePath();
    const judged: unknown[] = [];
    const first = await place({ journal: opened(path), clock });
    const a = await first.client('a', { username: 'joe', listener: 'tcp.plant', remoteAddress: '10.0.0.7' });
    a.publish('$delayed/5/t', 'x', 1);
    await a.packet(PUBACK);
    const left = crashCopy(path);
    const second = await place({
      journal: opened(left),
      clock,
      authorizer: {
        publish: (identity) => {
          judged.push(identity);
          return false;
        },
      },
    });
    await second.advance(5000);
    expect(judged).toMatchObject([
      { clientId: 'a', username: 'joe', listener: 'tcp.plant', remoteAddress: '10.0.0.7', internal: false },
    ]);
    expect(second.metric('delayed_total', { outcome: 'denied' })).toBe(1);
  });
});
