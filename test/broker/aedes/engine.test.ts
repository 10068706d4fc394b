// The engine aedes: what every engine owes its users, and what it makes of clients, rights and limits that aedes does not know of.
import { afterEach, describe, expect, test } from 'vitest';
import { loadAedes } from '../../../src/broker/aedes/parts.ts';
import { CONNACK, PUBACK } from '../../../src/mqtt/packet.ts';
import { brokerContract } from '../../contract/broker.ts';
import { type Room, settled } from '../room.ts';
import { openAedesRoom } from './room.ts';

const V4 = { version: 4 } as const;
const KEEP = { version: 4, cleanStart: false } as const;

brokerContract('the engine aedes', openAedesRoom);

describe('the engine aedes', () => {
  let room: Room;
  afterEach(() => room.stop());

  test('refuses a CONNECT of version 5 with 0x84', async () => {
    room = await openAedesRoom();
    const client = room.open(5);
    client.connect('c');
    expect(await client.packet(CONNACK)).toMatchObject({ reasonCode: 0x84, sessionPresent: false });
    expect(await client.untilClosed()).toEqual([]);
    expect(room.metric('connections_refused_total')).toBe(1);
  });

  test('speaks 3.1, and no level that nobody knows [MQTT-3.1.2-2]', async () => {
    room = await openAedesRoom();
    expect((await room.client('old', { version: 3 })).connack?.reasonCode).toBe(0);
    const unknown = room.open(5);
    unknown.raw('10 0d 0004 4d515454 09 02 0000 0001 63');
    expect(await unknown.packet(CONNACK)).toMatchObject({ reasonCode: 0x84 });
    expect(await unknown.untilClosed()).toEqual([]);
  });

  test('closes for a packet that is too large by its header, before it has come', async () => {
    room = await openAedesRoom({ limits: { maxPacketSize: 1000 } });
    const client = await room.client('c', V4);
    client.raw('30 e9 07 00 01 61');
    expect(await client.untilClosed()).toEqual([]);
  });

  test('closes for a CONNECT that is too large, for another first packet and for a second CONNECT', async () => {
    room = await openAedesRoom({ limits: { maxConnectSize: 100 } });
    const large = room.open(4);
    large.raw('10 65');
    expect(await large.untilClosed()).toEqual([]);
    const other = room.open(4);
    other.raw('c0 00');
    expect(await other.untilClosed()).toEqual([]);
    const twice = await room.client('c', V4);
    twice.connect('c');
    expect(await twice.untilClosed()).toEqual([]);
  });

  test('takes a CONNECT that comes byte by byte, with packets behind it', async () => {
    room = await openAedesRoom();
    const client = room.open(4);
    const bytes = Buffer.from('100d00044d5154540402000000016382020001' + '000161' + '00', 'hex');
    bytes[16] = 6;
    const all = Buffer.concat([bytes.subarray(0, 15), Buffer.from('8206000100016100', 'hex')]);
    for (const byte of all) client.raw(Buffer.from([byte]));
    expect(await client.packet(CONNACK)).toMatchObject({ reasonCode: 0 });
    expect(await client.next()).toMatchObject({ reasonCodes: [0] });
  });

  test('closes a connection without CONNECT in time', async () => {
    room = await openAedesRoom();
    const client = room.open(4);
    await room.advance(10_000);
    expect(await client.untilClosed()).toEqual([]);
  });

  test('lets nobody in whom the authenticator refuses, and says so', async () => {
    room = await openAedesRoom({
      authenticator: { authenticate: async () => ({ accepted: false, reasonCode: 0x87, why: 'bad-password' }) },
    });
    const told: string[] = [];
    room.broker.onEvent((event) => told.push(event.kind));
    const client = room.open(4);
    client.connect('c', { username: 'u', password: Buffer.from('x') });
    expect(await client.packet(CONNACK)).toMatchObject({ reasonCode: 5 });
    expect(await client.untilClosed()).toEqual([]);
    expect(told).toEqual(['refused']);
    expect([...room.broker.clients()]).toEqual([]);
  });

  test('refuses more sessions than there may be with code 3', async () => {
    room = await openAedesRoom({ limits: { maxSessions: 1 } });
    await room.client('a', V4);
    const more = room.open(4);
    more.connect('b');
    expect(await more.packet(CONNACK)).toMatchObject({ reasonCode: 3 });
  });

  test('acknowledges and drops what may not be published, and counts it', async () => {
    room = await openAedesRoom({ authorizer: { publish: (_, topic) => topic !== 'no' } });
    const subscriber = await room.client('s', V4);
    await subscriber.subscribe('#', 2);
    const client = await room.client('c', V4);
    await client.published('no', '1', 1);
    await client.published('no', '2', 2);
    client.publish('no', '3', 0);
    await client.published('yes', '4', 1);
    expect((await subscriber.messages()).map((m) => m.payload)).toEqual(['4']);
    expect(room.metric('denied_total', { action: 'publish' })).toBe(3);
  });

  test('closes for it where deny_action says so', async () => {
    room = await openAedesRoom({ authorizer: { publish: () => false }, denyAction: 'disconnect' });
    const client = await room.client('c', V4);
    client.publish('no', '1', 1);
    expect(await client.untilClosed()).toEqual([]);
  });

  test('keeps the order of publishes whose rights are told later', async () => {
    room = await openAedesRoom({
      authorizer: { publish: (_, topic) => (topic === 'slow' ? settled().then(() => true) : true) },
    });
    const subscriber = await room.client('s', V4);
    await subscriber.subscribe('#', 0);
    const client = await room.client('c', V4);
    client.publish('slow', '1', 0);
    client.publish('fast', '2', 0);
    expect((await subscriber.message()).payload).toBe('1');
    expect((await subscriber.message()).payload).toBe('2');
  });

  test('no client writes below $SYS or reads what brokers tell each other', async () => {
    room = await openAedesRoom();
    const spy = await room.client('spy', V4);
    await spy.subscribe('$SYS/#', 1);
    const client = await room.client('c', V4);
    await client.published('$SYS/sub/add', '{"clientId":"spy","subs":[{"topic":"x","qos":1}]}', 1);
    await client.published('$SYS/x/new/clients', 'spy', 1);
    expect(await spy.messages()).toEqual([]);
  });

  test('a subscription that is refused gets 0x80 and nothing, also not beside one that is granted or after coming back', async () => {
    room = await openAedesRoom({ authorizer: { subscribe: (_, filter) => filter !== 'secret' } });
    const client = await room.client('s', KEEP);
    expect(await client.subscribe('secret', 1)).toBe(0x80);
    client.raw('82 10 0001 0006 736563726574 01 0002 6f6b 01');
    expect(await client.next()).toMatchObject({ reasonCodes: [0x80, 1] });
    await client.drop();
    const publisher = await room.client('p', V4);
    await publisher.published('secret', '1', 1);
    await publisher.published('ok', '2', 1);
    const back = await room.client('s', KEEP);
    expect((await back.message()).payload).toBe('2');
    expect(await back.messages()).toEqual([]);
    expect(await back.subscribe('$share/g/t', 1)).toBe(0x80);
  });

  test('delivery asks rights again: what was queued meanwhile does not leave', async () => {
    let allowed = true;
    room = await openAedesRoom({ authorizer: { deliver: () => allowed } });
    const client = await room.client('s', KEEP);
    await client.subscribe('t', 1);
    await client.drop();
    const publisher = await room.client('p', V4);
    await publisher.published('t', '1', 1);
    allowed = false;
    room.broker.accessChanged();
    const back = await room.client('s', KEEP);
    expect(await back.messages()).toEqual([]);
  });

  test('a will needs the right to publish it', async () => {
    room = await openAedesRoom({ authorizer: { publish: (_, topic) => topic !== 'no' } });
    const subscriber = await room.client('s', V4);
    await subscriber.subscribe('#', 1);
    const will = (topicName: string) => ({
      ...V4,
      will: {
        topicName,
        payload: Buffer.from('w'),
        qos: 1 as const,
        retain: false,
        delayInterval: 0,
        properties: null,
      },
    });
    await (await room.client('a', will('no'))).drop();
    await (await room.client('b', will('yes'))).drop();
    expect((await subscriber.messages()).map((m) => m.topic)).toEqual(['yes']);
  });

  test('a message comes once at the highest QoS of the subscriptions that match [MQTT-3.3.5-1]', async () => {
    room = await openAedesRoom();
    const client = await room.client('s', KEEP);
    await client.subscribe('a/#', 1);
    await client.subscribe('a/+', 0);
    const publisher = await room.client('p', V4);
    await publisher.published('a/b', '1', 2);
    expect(await client.message()).toMatchObject({ payload: '1', qos: 1 });
    expect(await client.messages()).toEqual([]);
    await client.drop();
    await publisher.published('a/b', '2', 2);
    const back = await room.client('s', KEEP);
    expect(await back.message()).toMatchObject({ payload: '2', qos: 1, dup: false });
    expect(await back.messages()).toEqual([]);
  });

  test('QoS 0 behind QoS 1 loses nothing', async () => {
    room = await openAedesRoom();
    const client = await room.client('s', KEEP);
    await client.subscribe('#', 1);
    const publisher = await room.client('p', V4);
    const one = publisher.publishBytes('a', '1', 1, { packetId: 1 });
    const two = publisher.publishBytes('b', '2', 0);
    publisher.raw(Buffer.concat([one, two]));
    await publisher.packet(PUBACK);
    expect((await client.messages()).map((m) => m.payload).sort()).toEqual(['1', '2']);
  });

  test('what was sent and not acknowledged comes again as a duplicate [MQTT-3.3.1-1]', async () => {
    room = await openAedesRoom();
    const client = await room.client('s', KEEP);
    await client.subscribe('t', 1);
    const publisher = await room.client('p', V4);
    await publisher.published('t', '1', 1);
    const first = await client.message(false);
    await client.drop();
    const back = await room.client('s', KEEP);
    expect(await back.message()).toMatchObject({ payload: '1', dup: true, packetId: first.packetId });
  });

  test('a queue that is full drops, counts and tells', async () => {
    room = await openAedesRoom({ limits: { outbox: { queueLength: 2, inflight: 1 } } });
    const told: string[] = [];
    room.broker.onEvent((event) => told.push(event.kind === 'dropped' ? event.reason : event.kind));
    const client = await room.client('s', KEEP);
    await client.subscribe('t', 1);
    await client.drop();
    const publisher = await room.client('p', V4);
    for (const payload of ['1', '2', '3', '4', '5']) await publisher.published('t', payload, 1);
    expect(room.metric('publish_dropped_total', { reason: 'queue_full' })).toBe(2);
    expect(room.broker.client('s')).toMatchObject({ queued: 3, dropped: 2 });
    expect(told).toContain('queue-full');
    const back = await room.client('s', KEEP);
    for (const payload of ['1', '2', '3']) expect((await back.message()).payload).toBe(payload);
    expect(await back.messages()).toEqual([]);
  });

  test('a reader that does not keep up loses QoS 0 past its buffer, counted, and nobody else does', async () => {
    room = await openAedesRoom({ limits: { outbox: { writeBuffer: 10_000 } } });
    const [slow, quick] = [await room.client('slow', V4), await room.client('quick', V4)];
    await slow.subscribe('t', 0);
    await quick.subscribe('t', 0);
    slow.connection.pause();
    const publisher = await room.client('p', V4);
    const payload = 'x'.repeat(5000);
    for (let i = 0; i < 200; i++) {
      publisher.publish('t', payload, 0);
      expect((await quick.message()).payload.length).toBe(5000);
    }
    expect(room.metric('publish_dropped_total', { reason: 'slow_reader' })).toBeGreaterThan(0);
    expect(room.broker.client('slow')?.dropped).toBeGreaterThan(0);
    expect(room.broker.client('quick')?.dropped).toBe(0);
    expect(room.broker.client('slow')?.unsentBytes).toBeLessThan(1 << 20);
  });

  test('another user gets nothing of a session that has the same client id', async () => {
    room = await openAedesRoom();
    const client = await room.client('s', { ...KEEP, username: 'a' });
    await client.subscribe('t', 1);
    await client.drop();
    const publisher = await room.client('p', V4);
    await publisher.published('t', '1', 1);
    for (const cleanStart of [true, false])
      await expect(room.client('s', { ...KEEP, username: 'b', cleanStart })).rejects.toThrow('CONNACK 2');
    const back = await room.client('s', { ...KEEP, username: 'a' });
    expect((await back.messages()).map((m) => m.payload)).toEqual(['1']);
  });

  test('a client id that connects again takes the session over and the older one is closed', async () => {
    room = await openAedesRoom();
    const first = await room.client('s', KEEP);
    await first.subscribe('t', 1);
    const second = await room.client('s', KEEP);
    expect(await first.untilClosed()).toEqual([]);
    expect(second.present).toBe(true);
    const publisher = await room.client('p', V4);
    await publisher.published('t', '1', 1);
    expect((await second.messages()).map((m) => m.payload)).toEqual(['1']);
    expect(room.metric('clients_connected')).toBe(2);
  });

  test('a bridge by its CONNECT does not get its own messages back', async () => {
    room = await openAedesRoom();
    const bridge = await room.client('b', { ...V4, bridge: true });
    await bridge.subscribe('t', 1);
    await bridge.published('t', '1', 1);
    expect(await bridge.messages()).toEqual([]);
  });

  test('limits of subscriptions, levels and retained messages hold', async () => {
    room = await openAedesRoom({ limits: { maxSubscriptions: 1, retained: { messages: 1, bytes: 0 } } });
    const client = await room.client('c', V4);
    expect(await client.subscribe('a', 0)).toBe(0);
    expect(await client.subscribe('b', 0)).toBe(0x80);
    await client.published('r/1', 'x', 1, { retain: true });
    client.publish('r/2', 'y', 0, { retain: true });
    await client.messages();
    expect([...room.broker.retained('#')].map((m) => m.topic)).toEqual(['r/1']);
    client.publish('/'.repeat(200), 'x', 0);
    expect(await client.untilClosed()).toEqual([]);
  });

  test('retained messages come with their flag and at the lower QoS, and not to who may not read them', async () => {
    room = await openAedesRoom({ authorizer: { deliver: (_, topic) => topic !== 'r/2' } });
    const client = await room.client('c', V4);
    await client.published('r/1', 'x', 2, { retain: true });
    await client.published('r/2', 'y', 1, { retain: true });
    await client.subscribe('r/+', 1);
    await settled();
    expect(await client.message()).toMatchObject({ topic: 'r/1', qos: 1, retain: true });
    expect(await client.messages()).toEqual([]);
  });

  test('a session that was away too long ends', async () => {
    room = await openAedesRoom({ limits: { maxSessionExpiryMs: 60_000 } });
    const client = await room.client('s', KEEP);
    await client.subscribe('t', 1);
    await client.drop();
    await room.advance(180_000);
    expect(room.broker.client('s')).toBeUndefined();
    expect((await room.client('s', KEEP)).present).toBe(false);
  });

  test('a missing package is told in one line with exit code 1', async () => {
    room = await openAedesRoom();
    const error = await loadAedes('no-such-package').catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'BROKER-ENGINE', exit: 1 });
    expect(String(error)).not.toContain('\n');
  });
});
