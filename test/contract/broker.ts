// What every engine behind the seam broker.ts owes its users: listeners, bridges, REST and console. Run by test/broker/native.test.ts.
// Clients speak 3.1.1, which every engine speaks; what only some engines can do is tested with them.
import { afterEach, describe, expect, test } from 'vitest';
import type { BrokerEvent, LocalOptions, LocalReceiver } from '../../src/broker/broker.ts';
import { Hold } from '../../src/mqtt/message.ts';
import type { Qos } from '../../src/mqtt/packet.ts';
import { PUBACK } from '../../src/mqtt/packet.ts';
import { type Room, type RoomOptions, settled } from '../broker/room.ts';

const BRIDGE: LocalOptions = {
  clientId: 'bridge',
  username: null,
  kind: 'bridge',
  bridge: 'nng:test',
  trusted: false,
};
const V4 = { version: 4 } as const;
const KEEP = { version: 4, cleanStart: false } as const;

/** Keeps what it gets as text. */
class Listener implements LocalReceiver {
  readonly heard: string[] = [];
  /** Set: publishers of QoS 1 and 2 wait for it. */
  hold: Hold | null = null;

  receive(publication: Parameters<LocalReceiver['receive']>[0], qos: Qos): void {
    const payload = Buffer.from(publication.payload()).toString();
    this.heard.push(`${publication.topic} ${payload} ${qos}${publication.retain ? ' retained' : ''}`);
    if (this.hold === null || qos === 0) return;
    this.hold = publication.hold();
    this.hold.add();
  }
}

/** `open` starts a broker in a room; its clients are let in whoever they are unless the options say otherwise. */
export function brokerContract(name: string, open: (options?: RoomOptions) => Promise<Room>): void {
  describe(name, () => {
    let room: Room;
    afterEach(() => room.stop());

    const publish = (
      client: ReturnType<Room['broker']['attach']>,
      topic: string,
      text: string,
      qos: Qos = 0,
      retain = false,
    ) => {
      const bytes = Buffer.from(`##${text}##`);
      return client.publish(topic, bytes, 2, bytes.length - 2, qos, retain);
    };

    test('a local client gets what matches, in order, once for each of its subscriptions', async () => {
      room = await open();
      const local = room.broker.attach(BRIDGE);
      const [first, second] = [new Listener(), new Listener()];
      local.subscribe({ topicFilter: 'a/#', qos: 1, receiver: first, retainHandling: 2 });
      local.subscribe({ topicFilter: '+/b', qos: 0, receiver: second, retainHandling: 2 });
      const client = await room.client('c', V4);
      await client.published('a/b', '1', 1);
      await client.published('a/c', '2', 1);
      await client.published('x/c', '3', 1);
      expect(first.heard).toEqual(['a/b 1 1', 'a/c 2 1']);
      expect(second.heard).toEqual(['a/b 1 0']);
    });

    test('what a local client publishes reaches clients, and its outcome is told', async () => {
      room = await open({ authorizer: { publish: (_, topic) => topic !== 'no' } });
      const local = room.broker.attach(BRIDGE);
      const client = await room.client('c', V4);
      await client.subscribe('t', 1);
      expect(publish(local, 't', 'x', 1)).toBe('accepted');
      expect(publish(local, 'nobody', 'x', 1)).toBe('no-subscribers');
      expect(publish(local, 'no', 'x', 1)).toBe('denied');
      expect(publish(local, 'a/+', 'x', 1)).toBe('invalid-topic');
      expect(publish(local, '', 'x', 1)).toBe('invalid-topic');
      expect(await client.message()).toMatchObject({ topic: 't', payload: 'x', qos: 1 });
    });

    test('after unsubscribe and close a local client gets nothing more', async () => {
      room = await open();
      const local = room.broker.attach(BRIDGE);
      const [first, second] = [new Listener(), new Listener()];
      const subscription = { topicFilter: 't', qos: 0, receiver: first, retainHandling: 2 } as const;
      local.subscribe(subscription);
      local.subscribe({ topicFilter: 't', qos: 0, receiver: second, retainHandling: 2 });
      const client = await room.client('c', V4);
      local.unsubscribe(subscription);
      await client.published('t', '1', 1);
      local.close();
      await client.published('t', '2', 1);
      expect(first.heard).toEqual([]);
      expect(second.heard).toEqual(['t 1 0']);
    });

    test('a subscription that asks for retained messages gets them at once, others do not', async () => {
      room = await open();
      const client = await room.client('c', V4);
      await client.published('t/1', 'x', 1, { retain: true });
      const local = room.broker.attach(BRIDGE);
      const [asks, does] = [new Listener(), new Listener()];
      local.subscribe({ topicFilter: 't/+', qos: 1, receiver: asks, retainHandling: 0 });
      local.subscribe({ topicFilter: 't/+', qos: 1, receiver: does, retainHandling: 2 });
      expect(asks.heard).toEqual(['t/1 x 1 retained']);
      expect(does.heard).toEqual([]);
    });

    test('a local receiver can hold the acknowledgement of a publisher, and end it with a failure', async () => {
      room = await open();
      const local = room.broker.attach(BRIDGE);
      const receiver = new Listener();
      local.subscribe({ topicFilter: 't', qos: 1, receiver, retainHandling: 2 });
      receiver.hold = new Hold();
      const client = await room.client('c', V4);
      client.publish('t', '1', 1);
      expect(await client.messages()).toEqual([]);
      const first = receiver.hold;
      first.done();
      expect(await client.packet(PUBACK)).toMatchObject({ packetId: 1 });
      client.publish('t', '2', 1);
      await settled();
      receiver.hold.done(0x97);
      expect(await client.untilClosed()).toEqual([]);
    });

    test('retained messages are listed by filter, and an empty one removes them', async () => {
      room = await open();
      const local = room.broker.attach({ ...BRIDGE, kind: 'api', bridge: null });
      publish(local, 'a/1', 'x', 0, true);
      publish(local, 'a/2', 'y', 0, true);
      publish(local, 'b', 'z', 0, true);
      publish(local, 'a/2', '', 0, true);
      expect([...room.broker.retained('a/#')].map((m) => `${m.topic} ${Buffer.from(m.payload)}`)).toEqual(['a/1 x']);
      expect([...room.broker.retained('#')].length).toBe(2);
    });

    test('clients and their subscriptions are shown, connected or not', async () => {
      room = await open();
      const client = await room.client('c', { ...KEEP, keepAlive: 30, username: 'u' });
      await client.subscribe('a/#', 1);
      await client.subscribe('b', 0);
      expect(room.broker.client('c')).toMatchObject({
        clientId: 'c',
        username: 'u',
        connected: true,
        listener: 'test',
        version: 4,
        cleanStart: false,
        keepAlive: 30,
        subscriptions: 2,
      });
      const filters = [...room.broker.subscriptions('c')].map((s) => `${s.topicFilter} ${s.qos}`);
      expect(filters.sort()).toEqual(['a/# 1', 'b 0']);
      await client.drop();
      expect(room.broker.client('c')).toMatchObject({ connected: false, subscriptions: 2 });
      expect([...room.broker.clients()].map((c) => c.clientId)).toEqual(['c']);
      expect(room.broker.client('nobody')).toBeUndefined();
      expect([...room.broker.subscriptions('nobody')]).toEqual([]);
    });

    test('what happens to clients is told in order, and only to who still listens', async () => {
      room = await open();
      const told: string[] = [];
      const tell = (event: BrokerEvent): void => {
        told.push(`${event.kind} ${'client' in event ? event.client.clientId : event.clientId}`);
      };
      const stop = room.broker.onEvent(tell);
      room.broker.onEvent(() => {
        throw new Error('a handler that fails harms nobody');
      });
      const client = await room.client('c', V4);
      await client.subscribe('t');
      client.disconnect();
      await client.untilClosed();
      stop();
      await room.client('d', V4);
      expect(told).toEqual(['connected c', 'subscribed c', 'disconnected c']);
    });

    test('a kicked client is closed; its session goes only when that is asked for', async () => {
      room = await open();
      const first = await room.client('c', KEEP);
      await first.subscribe('t', 1);
      expect(room.broker.kick('c', false)).toBe(true);
      expect(await first.untilClosed()).toEqual([]);
      const second = await room.client('c', KEEP);
      expect(second.present).toBe(true);
      expect(room.broker.kick('c', true)).toBe(true);
      await second.untilClosed();
      expect((await room.client('c', KEEP)).present).toBe(false);
      expect(room.broker.kick('nobody', true)).toBe(false);
    });

    test('rights that change hold for what is delivered next', async () => {
      let allowed = true;
      room = await open({ authorizer: { deliver: () => allowed } });
      const client = await room.client('c', V4);
      await client.subscribe('t');
      const publisher = await room.client('p', V4);
      await publisher.published('t', '1', 1);
      allowed = false;
      room.authorizer.version++;
      room.broker.accessChanged();
      await publisher.published('t', '2', 1);
      expect((await client.messages()).map((m) => m.payload)).toEqual(['1']);
    });

    test('stop closes all clients and takes no more; a second one changes nothing', async () => {
      room = await open();
      const client = await room.client('c', V4);
      await room.broker.stop(0);
      expect(await client.untilClosed()).toEqual([]);
      const late = room.open(4);
      expect(await late.untilClosed()).toEqual([]);
      await room.broker.stop(0);
    });
  });
}
