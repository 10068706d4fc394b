// Runs of QoS 0 packets: whatever lies in one chunk, every receiver gets what it would have got packet by packet, and
// counts agree.
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import type { Version } from '../../src/mqtt/packet.ts';
import { matches } from '../../src/mqtt/topic.ts';
import { openRoom, type Room, type RoomClient, settled } from '../broker/room.ts';

let room: Room;
afterEach(() => room.stop());

const TOPICS = [
  'a/1',
  'a/2',
  'a/20',
  'b/1',
  'b/ü',
  'no/1',
  'none',
  `long/${'x'.repeat(300)}`,
  `long/${'x'.repeat(299)}y`,
];

interface Sent {
  readonly topic: string;
  readonly bytes: number;
}

const sent: fc.Arbitrary<Sent> = fc.record({
  topic: fc.constantFrom(...TOPICS),
  bytes: fc.oneof(fc.nat(20), fc.integer({ min: 100, max: 140 }), fc.integer({ min: 16_000, max: 17_000 })),
});

/** What came until the message on `end`, as topic and payload. */
async function until(client: RoomClient, end: string): Promise<string[]> {
  const came: string[] = [];
  const aliases = new Map<number, string>();
  for (;;) {
    const { topic: given, payload, properties } = await client.message();
    const alias = properties?.topicAlias ?? 0;
    const topic = given === '' ? (aliases.get(alias) ?? '') : given;
    aliases.set(alias, topic);
    if (topic === end) return came;
    came.push(`${topic} ${payload.slice(0, 8)} ${payload.length}`);
  }
}

function payloadOf(n: number, bytes: number): string {
  return `${n}`.padEnd(bytes, '.').slice(0, Math.max(bytes, 0));
}

it('packets of several topics in one chunk reach each receiver whole, in order and once, and are counted by topic', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(sent, { minLength: 1, maxLength: 25 }),
      fc.constantFrom<Version>(4, 5),
      async (list, version) => {
        const mayPublish = (topic: string): boolean => !topic.startsWith('no/');
        room = await openRoom({
          authorizer: { publish: (_, topic) => mayPublish(topic) },
          limits: { outbox: { topicAliases: 5, writeBuffer: 8 << 20 } },
        });
        const readers: [string, RoomClient][] = [];
        for (const [id, of, filter, properties] of [
          ['all', 4, '#', null],
          ['five', 5, '#', null],
          ['alias', 5, '#', { topicAliasMaximum: 2 }],
          ['a', 4, 'a/+', null],
          ['one', 5, 'b/1', null],
        ] as const) {
          const reader = await room.client(id, { version: of, properties });
          await reader.subscribe(filter, 0);
          if (filter !== '#') await reader.subscribe('end', 0);
          readers.push([filter, reader]);
        }
        const local: string[] = [];
        const bridge = room.broker.attach({
          clientId: 'l',
          username: null,
          kind: 'bridge',
          bridge: 'x',
          trusted: true,
        });
        bridge.subscribe({
          topicFilter: '#',
          qos: 0,
          retainHandling: 2,
          receiver: { receive: (one) => local.push(`${one.topic} ${one.payload().length}`) },
        });
        const publisher = await room.client('p', { version });
        const bytes = list.map(({ topic, bytes }, n) =>
          publisher.publishBytes(topic, Buffer.from(payloadOf(n, bytes)), 0),
        );
        // Twice: the first time topics are new.
        for (let round = 0; round < 2; round++) publisher.raw(Buffer.concat(bytes));
        publisher.publish('end', '');
        const twice = [...list.keys(), ...list.keys()].filter((n) => mayPublish(list[n].topic));
        for (const [filter, reader] of readers)
          expect(await until(reader, 'end')).toEqual(
            twice
              .filter((n) => matches(filter, list[n].topic))
              .map((n) => `${list[n].topic} ${payloadOf(n, list[n].bytes).slice(0, 8)} ${list[n].bytes}`),
          );
        expect(local).toEqual([...twice.map((n) => `${list[n].topic} ${list[n].bytes}`), 'end 0']);
        const counted = new Map([...room.broker.traffic().topics].map((view) => [view.topic, view]));
        for (const topic of TOPICS.filter((one) => one.length < 256)) {
          const mine = twice.filter((n) => list[n].topic === topic);
          const sum = mine.reduce((all, n) => all + list[n].bytes, 0);
          const view = counted.get(topic);
          expect([view?.messages ?? 0, view?.bytes ?? 0]).toEqual([mine.length, sum]);
        }
        expect(room.metric('denied_total', { action: 'publish' })).toBe(2 * list.length - twice.length);
        await room.stop();
      },
    ),
    { numRuns: 60 },
  );
});

it('a run stops at a topic without bytes: it is refused, and what came before it is delivered [MQTT-4.7.3-1]', async () => {
  room = await openRoom();
  const reader = await room.client('r', { version: 4 });
  await reader.subscribe('#', 0);
  const publisher = await room.client('p', { version: 4 });
  publisher.raw(Buffer.concat([publisher.publishBytes('a', Buffer.from('1'), 0), Buffer.from([0x30, 3, 0, 0, 0x31])]));
  expect(await reader.message()).toMatchObject({ topic: 'a', payload: '1' });
  await publisher.untilClosed();
  expect(reader.closed).toBe(false);
});

it('rights that change between two chunks hold for topics that were known before, for each client', async () => {
  room = await openRoom();
  const reader = await room.client('r', { version: 4 });
  await reader.subscribe('#', 0);
  const [p, q] = [await room.client('p', { version: 4 }), await room.client('q', { version: 4 })];
  const chunk = (who: RoomClient): Buffer =>
    Buffer.concat(['a', 'b', 'a', 'b'].map((topic) => who.publishBytes(topic, Buffer.from(who === p ? 'p' : 'q'), 0)));
  for (let round = 0; round < 2; round++) for (const who of [p, q]) who.raw(chunk(who));
  await settled();
  room.authorizer.publish = ({ clientId }, topic) => clientId === 'q' || topic === 'a';
  room.authorizer.version++;
  p.raw(chunk(p));
  await settled();
  q.raw(chunk(q));
  q.publish('end', '');
  const came = await until(reader, 'end');
  expect(came.slice(-6)).toEqual(['a p 1', 'a p 1', 'a q 1', 'b q 1', 'a q 1', 'b q 1']);
  expect(came).toHaveLength(22);
});

it('an answer about rights that comes after they have changed holds for the packet that waited, not for the next', async () => {
  const asked: ((allowed: boolean) => void)[] = [];
  room = await openRoom({ authorizer: { publish: () => new Promise((resolve) => asked.push(resolve)) } });
  const reader = await room.client('r', { version: 4 });
  await reader.subscribe('#', 0);
  const publisher = await room.client('p', { version: 4 });
  publisher.raw(Buffer.concat(['1', '2'].map((text) => publisher.publishBytes('t', Buffer.from(text), 0))));
  await settled();
  room.authorizer.version++;
  asked[0](true);
  await settled();
  expect(asked).toHaveLength(2);
  asked[1](false);
  await settled();
  room.authorizer.publish = () => true;
  room.authorizer.version++;
  publisher.publish('end', '');
  expect(await until(reader, 'end')).toEqual(['t 1 1']);
});

it('payloads that are too large are left out of a run, those just below the limit are not', async () => {
  room = await openRoom({ limits: { maxPayloadSize: 100 } });
  const reader = await room.client('r', { version: 4 });
  await reader.subscribe('#', 0);
  const publisher = await room.client('p', { version: 4 });
  const sizes = [10, 100, 101, 95, 200, 10, 100];
  publisher.raw(Buffer.concat(sizes.map((bytes, n) => publisher.publishBytes(`t/${n % 3}`, payloadOf(n, bytes), 0))));
  publisher.publish('end', '');
  const kept = [...sizes.keys()].filter((n) => sizes[n] <= 100);
  expect(await until(reader, 'end')).toEqual(
    kept.map((n) => `t/${n % 3} ${payloadOf(n, sizes[n]).slice(0, 8)} ${sizes[n]}`),
  );
});
