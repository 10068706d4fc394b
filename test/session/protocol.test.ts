// What a client may not send, and what it is owed: acknowledgements of the right kind, filters that are filters, AUTH with a method; its own
// will as it was sent first; a session that it ended stays ended; what one member of a group cannot take goes to another.
import { afterEach, describe, expect, it } from 'vitest';
import {
  type AckPacket,
  AUTH,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBREC,
  PUBREL,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../src/mqtt/packet.ts';
import { Diary } from '../broker/diary.ts';
import { openRoom, type Room, type RoomClient, type RoomOptions, settled } from '../broker/room.ts';

let room: Room;
afterEach(() => room.stop());

const KEEP = { cleanStart: false, expiry: 3600 } as const;

async function begin(options: RoomOptions = {}): Promise<void> {
  room = await openRoom(options);
}

/** The reason of the DISCONNECT that a 5.0 client gets; older ones are just closed. */
async function endOf(client: RoomClient): Promise<number | null> {
  const came = await client.untilClosed();
  const last = came.find(({ type }) => type === DISCONNECT);
  return last !== undefined && 'reasonCode' in last ? last.reasonCode : null;
}

describe('an acknowledgement of the wrong kind', () => {
  const wrong: [qos: 1 | 2, steps: AckPacket['type'][]][] = [
    [1, [PUBREC]],
    [1, [PUBCOMP]],
    [2, [PUBACK]],
    [2, [PUBCOMP]],
    [2, [PUBREC, PUBACK]],
  ];
  it.each(wrong)(
    'for a message of QoS %i (packets %j) closes the connection [MQTT-4.3.2-3] [MQTT-4.3.3-5]',
    async (qos, steps) => {
      await begin();
      for (const version of [4, 5] as const) {
        const client = await room.client(`c${version}`, { version, ...KEEP });
        await client.subscribe('t', 2);
        const publisher = await room.client('p');
        await publisher.published('t', 'x', qos);
        const { packetId } = await client.message(false);
        for (const type of steps) {
          client.ack(type, packetId);
          await settled();
        }
        expect(await endOf(client)).toBe(version === 5 ? 0x82 : null);
        // The message is not lost by it.
        const back = await room.client(`c${version}`, { version, ...KEEP });
        if (steps.length === 1) expect(await back.message()).toMatchObject({ payload: 'x', dup: true });
        await back.drop();
      }
    },
  );

  it('for a packet identifier that waits for nothing is no error: it may be a repetition', async () => {
    await begin();
    const client = await room.client('c');
    client.ack(PUBACK, 7);
    client.ack(PUBCOMP, 7);
    client.ack(PUBREC, 7);
    expect(await client.packet(PUBREL)).toMatchObject({ packetId: 7, reasonCode: 0x92 });
    expect(await client.messages()).toEqual([]);
  });
});

describe('a malformed topic filter', () => {
  it.each(['', '#a', 'a#b', 'a/#/b', 'a+', '$share/g', '$share//t', '$share/g+/t'])(
    '"%s" in SUBSCRIBE or UNSUBSCRIBE closes the connection and changes nothing [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] [MQTT-4.8.2-2]',
    async (topicFilter) => {
      await begin();
      const option = { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
      for (const version of [4, 5] as const) {
        const subscriptions = [
          { topicFilter: 'good', ...option },
          { topicFilter, ...option },
        ];
        const one = await room.client('c', { version, ...KEEP });
        one.send({ type: SUBSCRIBE, packetId: 1, subscriptions, properties: null });
        expect(await endOf(one)).toBe(version === 5 ? 0x81 : null);
        expect([...room.broker.subscriptions('c')]).toEqual([]);
        const two = await room.client('c', { version, ...KEEP });
        await two.subscribe('good');
        two.send({ type: UNSUBSCRIBE, packetId: 1, topicFilters: ['good', topicFilter], properties: null });
        expect(await endOf(two)).toBe(version === 5 ? 0x81 : null);
        expect([...room.broker.subscriptions('c')].length).toBe(1);
        room.broker.kick('c', true);
      }
    },
  );

  it('is told from one that is well-formed and not accepted', async () => {
    await begin({ limits: { maxTopicLevels: 2 } });
    const client = await room.client('c');
    expect(await client.subscribe('a/b/c')).toBe(0x8f);
  });
});

it('AUTH from a client that named no method, or in a packet without one, is a protocol error [MQTT-4.12.0-7]', async () => {
  await begin();
  for (const properties of [null, { authenticationMethod: 'X' }]) {
    const client = await room.client('c');
    client.send({ type: AUTH, reasonCode: 0x18, properties });
    expect(await endOf(client)).toBe(0x82);
  }
});

it("a client's own will reaches its own session as a first delivery, without DUP [MQTT-3.3.1-1]", async () => {
  await begin();
  const will = {
    topicName: 'w',
    payload: Buffer.from('x'),
    qos: 1,
    retain: false,
    properties: null,
    delayInterval: 0,
  } as const;
  for (const version of [4, 5] as const) {
    const client = await room.client(`c${version}`, { version, ...KEEP, will });
    await client.subscribe('w', 1);
    await client.drop();
    const back = await room.client(`c${version}`, { version, ...KEEP });
    expect(await back.message()).toMatchObject({ payload: 'x', qos: 1, dup: false });
    await back.drop();
  }
});

it('a session that its client ended is gone in the store before the connection closes [MQTT-3.14.4-2]', async () => {
  const diary = new Diary();
  await begin({ journal: diary });
  const client = await room.client('c', KEEP);
  diary.mode = 'held';
  client.disconnect(0, { sessionExpiryInterval: 0 });
  await settled();
  expect(diary.told.at(-1)).toBe('sessionDelete c');
  expect(client.closed).toBe(false);
  diary.commit();
  await settled();
  expect(client.closed).toBe(true);
  diary.mode = 'at once';
});

describe('a message of a shared subscription that is too large for one member', () => {
  const small = { properties: { maximumPacketSize: 60 } } as const;

  it.each([0, 1, 2] as const)('goes to another, at QoS %i', async (qos) => {
    await begin();
    const limited = await room.client('limited', { ...KEEP, ...small });
    await limited.subscribe('$share/g/t', 2);
    const roomy = await room.client('roomy', KEEP);
    await roomy.subscribe('$share/g/t', 2);
    const publisher = await room.client('p');
    for (let n = 0; n < 4; n++) {
      if (qos === 0) publisher.publish('t', 'x'.repeat(200));
      else expect(await publisher.published('t', 'x'.repeat(200), qos)).toBe(0);
    }
    await settled();
    const got = [];
    for (let n = 0; n < 4; n++) got.push(await roomy.message(false));
    expect(got.length).toBe(4);
    expect(await limited.messages()).toEqual([]);
    expect(room.broker.client('limited')).toMatchObject({ inflight: 0, queued: 0 });
  });

  it('is dropped when it is too large for all of them, and nothing goes round', async () => {
    await begin();
    for (const id of ['a', 'b', 'c']) await (await room.client(id, { ...KEEP, ...small })).subscribe('$share/g/t', 2);
    const publisher = await room.client('p');
    await publisher.published('t', 'x'.repeat(200), 2);
    await settled();
    expect(room.metric('publish_dropped_total', { reason: 'too_large' })).toBe(3);
    for (const id of ['a', 'b', 'c']) expect(room.broker.client(id)).toMatchObject({ inflight: 0, queued: 0 });
  });

  it('is stored for the member that takes it before the publisher is acknowledged', async () => {
    const diary = new Diary();
    await begin({ journal: diary });
    const limited = await room.client('limited', small);
    await limited.subscribe('$share/g/t', 1);
    const keeper = await room.client('keeper', KEEP);
    await keeper.subscribe('$share/g/t', 1);
    const publisher = await room.client('p');
    await publisher.published('t', 'short', 1);
    diary.mode = 'held';
    // It is the limited one's turn at one of the two.
    for (let n = 0; n < 2; n++) publisher.publish('t', 'x'.repeat(200), 1);
    await settled();
    expect(diary.waiting).toBeGreaterThan(1);
    diary.commit();
    diary.mode = 'at once';
    expect(await publisher.packet(PUBACK)).toMatchObject({ reasonCode: 0 });
  });
});
