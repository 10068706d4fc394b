// What the configuration makes of clients' topics, by packets: rewriting, mount points, subscriptions by configuration,
// exclusive subscriptions. Each with who might want to get around rights with it.
import { afterEach, describe, expect, test } from 'vitest';
import { type TopicOptions, TopicPolicies } from '../../src/policy/topics.ts';
import { openRoom, type Room, type RoomOptions, settled } from '../broker/room.ts';

const NONE: TopicOptions = { rewrite: [], autoSubscribe: [], exclusive: false, delayed: null, mounts: new Map() };
const ANY = { action: 'all', listener: '', username: '' } as const;
const AUTO = { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0, listener: '' } as const;

let room: Room;
afterEach(() => room.stop());

async function place(options: Partial<TopicOptions>, more: RoomOptions = {}): Promise<void> {
  room = await openRoom({ ...more, policies: new TopicPolicies({ ...NONE, ...options }, null) });
}

describe('a rewrite rule', () => {
  const rules = [
    { ...ANY, from: 'old/+/#', to: 'new/{1}/{2}' },
    { ...ANY, from: 'new/#', to: 'elsewhere' },
  ];

  test('gives publishes, retained messages and filters another topic, once', async () => {
    await place({ rewrite: rules });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('old/x/#', 1);
    a.publish('old/x/y/z', 'one');
    expect(await b.message()).toMatchObject({ topic: 'new/x/y/z', payload: 'one' });
    expect(await a.published('old/x/q', 'two', 1, { retain: true })).toBe(0);
    expect(await b.message()).toMatchObject({ topic: 'new/x/q', payload: 'two' });
    expect([...room.broker.retained('#')].map(({ topic }) => topic)).toEqual(['new/x/q']);
    expect(room.metric('topics_rewritten_total', { action: 'publish' })).toBe(2);
    expect([...room.broker.subscriptions('b')].map((s) => s.topicFilter)).toEqual(['new/x/#']);
  });

  test('holds for topics by alias, and leaves others in one chunk as they are', async () => {
    await place({ rewrite: rules });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    a.publish('old/x/y', '1', 0, { properties: { topicAlias: 3 } });
    a.publish('', '2', 0, { properties: { topicAlias: 3 } });
    a.raw(
      Buffer.concat([
        a.publishBytes('plain', '3', 0),
        a.publishBytes('plain', '4', 0),
        a.publishBytes('old/x/y', '5', 0),
        a.publishBytes('plain', '6', 0),
        a.publishBytes('elsewhere', '7', 0),
      ]),
    );
    const came = [];
    for (let i = 0; i < 7; i++) came.push(await b.message());
    expect(came.map(({ topic, payload }) => `${topic} ${payload}`)).toEqual([
      'new/x/y 1',
      'new/x/y 2',
      'plain 3',
      'plain 4',
      'new/x/y 5',
      'plain 6',
      'elsewhere 7',
    ]);
  });

  test('leads nobody around rights: those of the new topic count, for publishes, filters and wills', async () => {
    await place(
      { rewrite: [{ ...ANY, from: 'open/#', to: 'secret/{1}' }] },
      {
        authorizer: {
          publish: (_, topic) => !topic.startsWith('secret'),
          subscribe: (_, filter) => !filter.startsWith('secret'),
        },
      },
    );
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    expect(await a.published('open/x', 'x', 1)).toBe(0x87);
    expect(await a.published('open/x', 'x', 2)).toBe(0x87);
    expect(await a.subscribe('open/#')).toBe(0x87);
    a.publish('open/x', 'alias', 0, { properties: { topicAlias: 1 } });
    a.publish('', 'alias', 0, { properties: { topicAlias: 1 } });
    const will = { topicName: 'open/w', payload: Buffer.from('w'), qos: 0, retain: true, properties: null } as const;
    const c = await room.client('c', { will: { ...will, delayInterval: 0 } });
    await c.drop();
    await settled();
    expect([...room.broker.retained('#')]).toEqual([]);
    expect(room.metric('denied_total', { action: 'will' })).toBe(1);
    expect(room.metric('denied_total', { action: 'publish' })).toBe(4);
    a.publish('fine', 'end');
    expect(await b.message()).toMatchObject({ topic: 'fine' });
  });

  test('is forgotten and found again with the configuration and with rights', async () => {
    await place({ rewrite: rules });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    a.publish('old/x/y', '1');
    expect(await b.message()).toMatchObject({ topic: 'new/x/y' });
    room.broker.setPolicies(null);
    a.publish('old/x/y', '2');
    expect(await b.message()).toMatchObject({ topic: 'old/x/y' });
    room.broker.setPolicies(new TopicPolicies({ ...NONE, rewrite: [{ ...ANY, from: '#', to: 'all' }] }, null));
    a.publish('old/x/y', '3');
    expect(await b.message()).toMatchObject({ topic: 'all' });
    room.authorizer.publish = () => false;
    room.authorizer.version = 2;
    expect(await a.published('old/x/y', '4', 1)).toBe(0x87);
  });

  test('waits for a source of rights that answers later, in order', async () => {
    await place({ rewrite: rules }, { authorizer: { publish: (_, topic) => Promise.resolve(topic !== 'new/no/y') } });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    const bytes = ['old/x/y', 'plain', 'old/no/y', 'old/x/z'].map((topic) => a.publishBytes(topic, topic, 0));
    a.raw(Buffer.concat(bytes));
    const came = [await b.message(), await b.message(), await b.message()];
    expect(came.map(({ topic }) => topic)).toEqual(['new/x/y', 'plain', 'new/x/z']);
  });

  test('with the name of a client goes nowhere where the name is no topic level', async () => {
    await place({ rewrite: [{ ...ANY, from: 'me/#', to: 'clients/%c/{1}' }] });
    const b = await room.client('b');
    await b.subscribe('#');
    for (const clientId of ['x/y', '+', '#']) {
      const a = await room.client(clientId);
      expect(await a.published('me/t', 'x', 1)).toBe(0x87);
      expect(await a.subscribe('me/#')).toBe(0x87);
    }
    const good = await room.client('{1}');
    good.publish('me/t', 'x');
    expect(await b.message()).toMatchObject({ topic: 'clients/{1}/t' });
  });

  test('is for its listener and its user', async () => {
    await place({
      rewrite: [
        { ...ANY, from: 'a', to: 'l', listener: 'second' },
        { ...ANY, from: 'a', to: 'u', username: 'joe' },
      ],
    });
    const b = await room.client('b');
    await b.subscribe('#');
    (await room.client('1', { listener: 'second' })).publish('a', '');
    expect(await b.message()).toMatchObject({ topic: 'l' });
    (await room.client('2', { username: 'joe' })).publish('a', '');
    expect(await b.message()).toMatchObject({ topic: 'u' });
    (await room.client('3')).publish('a', '');
    expect(await b.message()).toMatchObject({ topic: 'a' });
  });

  test('takes a shared filter apart, ends what it has begun, and refuses a filter that is none', async () => {
    await place({
      rewrite: [
        { ...ANY, from: 'x/+/+', to: '{1}/{2}' },
        { ...ANY, from: 'y/#', to: '{1}/end' },
      ],
    });
    const a = await room.client('a');
    expect(await a.subscribe('$share/g/x/1/2')).toBe(0);
    expect([...room.broker.subscriptions('a')].map((s) => s.topicFilter)).toEqual(['$share/g/1/2']);
    expect(await a.subscribe('y/#')).toBe(0x8f);
    a.send({ type: 10, packetId: 7, topicFilters: ['$share/g/x/1/2'], properties: null });
    expect(await a.packet(11)).toMatchObject({ reasonCodes: [0] });
    expect([...room.broker.subscriptions('a')]).toEqual([]);
  });
});

describe('a mount point', () => {
  const mounts = new Map([
    ['one', 'm/'],
    ['two', 'n/'],
    ['each', 'u/%u/'],
  ]);

  test('keeps the topics of its clients apart and is never seen by them', async () => {
    await place({ mounts });
    const a = await room.client('a', { listener: 'one' });
    const b = await room.client('b', { listener: 'one' });
    const c = await room.client('c', { listener: 'two' });
    const root = await room.client('root');
    for (const one of [b, c]) await one.subscribe('#', 1);
    await root.subscribe('#', 1);
    a.publish('t', '1');
    expect(await a.published('t', '2', 1, { retain: true })).toBe(0);
    root.publish('m/t', '3', 1);
    root.publish('m/', '4');
    root.publish('t', '5');
    const seen = async (client: typeof b) => `${(await client.message()).topic}`;
    expect([await seen(b), await seen(b), await seen(b)]).toEqual(['t', 't', 't']);
    expect([await seen(root), await seen(root), await seen(root)]).toEqual(['m/t', 'm/t', 'm/t']);
    const late = await room.client('late', { listener: 'one' });
    await late.subscribe('t');
    expect(await late.message()).toMatchObject({ topic: 't', payload: '2', retain: true });
    root.publish('n/end', '');
    expect(await c.message()).toMatchObject({ topic: 'end' });
    root.publish('m/end', '');
    expect(await b.message()).toMatchObject({ topic: 'end' });
  });

  test('is outermost: no rule, shared filter or name of a topic leads out of it', async () => {
    await place({ mounts, exclusive: true, rewrite: [{ ...ANY, from: 'out/#', to: 'n/{1}' }] });
    const a = await room.client('a', { listener: 'one' });
    const root = await room.client('root');
    await root.subscribe('#');
    await root.subscribe('$SYS/#');
    a.publish('out/x', '');
    expect(await root.message()).toMatchObject({ topic: 'm/n/x' });
    a.publish('$SYS/x', '');
    expect(await root.message()).toMatchObject({ topic: 'm/$SYS/x' });
    for (const filter of ['$share/g/#', '$exclusive/#', '$SYS/#', 'out/#']) await a.subscribe(filter);
    const filters = [...room.broker.subscriptions('a')].map((s) => s.topicFilter);
    expect(filters).toEqual(['$share/g/m/#', '$exclusive/m/#', 'm/$SYS/#', 'm/n/#']);
  });

  test('made of a name refuses names that would be more than a level, before anything is opened', async () => {
    await place({ mounts });
    for (const username of ['+', '#', 'a/b', '', null]) {
      const client = room.open(5, 'each');
      client.connect('c', { username });
      expect(await client.packet(2)).toMatchObject({ reasonCode: 0x85 });
    }
    const joe = await room.client('joe', { listener: 'each', username: 'joe' });
    const root = await room.client('root');
    await root.subscribe('#');
    joe.publish('t', '');
    expect(await root.message()).toMatchObject({ topic: 'u/joe/t' });
  });

  test('does not give a session that comes back elsewhere what it subscribed before', async () => {
    await place({ mounts });
    const root = await room.client('root');
    const one = await room.client('a', { listener: 'one', cleanStart: false, expiry: 100 });
    await one.subscribe('#', 1);
    root.publish('m/x', '1');
    expect(await one.message()).toMatchObject({ topic: 'x' });
    await one.drop();
    expect(await root.published('m/x', 'queued', 1)).toBe(0);
    const two = await room.client('a', { listener: 'two', cleanStart: false, expiry: 100 });
    expect(await root.published('m/x', 'now', 1)).toBe(0x10);
    await two.subscribe('y');
    root.publish('n/y', 'mine');
    expect(await two.message()).toMatchObject({ topic: 'y', payload: 'mine' });
  });

  test('holds for wills, and a client whose mount point changes is closed', async () => {
    await place({ mounts });
    const root = await room.client('root');
    await root.subscribe('#');
    const will = { topicName: 'w', payload: Buffer.from('w'), qos: 0, retain: false, properties: null } as const;
    const a = await room.client('a', { listener: 'one', will: { ...will, delayInterval: 0 } });
    room.broker.setPolicies(new TopicPolicies({ ...NONE, mounts: new Map([['one', 'other/']]) }, null));
    expect(await a.packet(14)).toMatchObject({ reasonCode: 0x98 });
    expect(await root.message()).toMatchObject({ topic: 'other/w' });
  });
});

describe('a subscription by configuration', () => {
  test('is there behind the CONNACK, with retained messages, and once', async () => {
    await place({
      autoSubscribe: [
        { ...AUTO, topic: 'c/%c/#' },
        { ...AUTO, topic: 'u/%u' },
      ],
    });
    const a = await room.client('a');
    await a.published('c/dev/1', 'kept', 1, { retain: true });
    const dev = await room.client('dev', { cleanStart: false, expiry: 100 });
    expect(await dev.message()).toMatchObject({ topic: 'c/dev/1', retain: true });
    a.publish('c/dev/2', 'now', 1);
    expect(await dev.message()).toMatchObject({ topic: 'c/dev/2' });
    expect([...room.broker.subscriptions('dev')].map((s) => s.topicFilter)).toEqual(['c/dev/#']);
    await dev.drop();
    await room.client('dev', { cleanStart: false, expiry: 100 });
    expect([...room.broker.subscriptions('dev')]).toHaveLength(1);
  });

  test('is not given to a name that would be a wildcard, nor against rights', async () => {
    await place(
      { autoSubscribe: [{ ...AUTO, topic: 'c/%c' }] },
      { denyAction: 'disconnect', authorizer: { subscribe: (_, filter) => filter !== 'c/no' } },
    );
    for (const clientId of ['+', '#', 'a/b', 'no']) {
      const client = await room.client(clientId);
      expect([...room.broker.subscriptions(clientId)]).toEqual([]);
      client.send({ type: 12 });
      await client.packet(13);
    }
    expect(room.log.filter(({ id }) => id === 'CLI-AUTO-SUBSCRIBE')).toHaveLength(1);
  });
});

describe('an exclusive subscription', () => {
  test('is one client’s until it unsubscribes or its session ends; ordinary ones go on', async () => {
    await place({ exclusive: true });
    const [a, b, c] = [await room.client('a'), await room.client('b'), await room.client('c')];
    expect(await a.subscribe('$exclusive/t/+', 1)).toBe(1);
    expect(await a.subscribe('$exclusive/t/+', 0)).toBe(0);
    expect(await b.subscribe('$exclusive/t/+', 1)).toBe(0x97);
    expect(await b.subscribe('t/+', 1)).toBe(1);
    c.publish('t/1', 'x');
    expect(await a.message()).toMatchObject({ topic: 't/1' });
    expect(await b.message()).toMatchObject({ topic: 't/1' });
    a.send({ type: 10, packetId: 7, topicFilters: ['$exclusive/t/+'], properties: null });
    expect(await a.packet(11)).toMatchObject({ reasonCodes: [0] });
    expect(await c.subscribe('$exclusive/t/+')).toBe(0);
    c.disconnect();
    await settled();
    expect(await a.subscribe('$exclusive/t/+')).toBe(0);
    expect(room.metric('exclusive_subscriptions')).toBe(1);
  });

  test('is judged by the filter behind the prefix, and cannot be shared', async () => {
    const asked: string[] = [];
    const subscribe = (_: unknown, filter: string): boolean => {
      asked.push(filter);
      return filter !== 'secret';
    };
    await place({ exclusive: true }, { authorizer: { subscribe } });
    const a = await room.client('a');
    expect(await a.subscribe('$exclusive/secret')).toBe(0x87);
    expect(asked).toEqual(['secret']);
    expect(await a.subscribe('$exclusive/$share/g/x')).toBe(0x8f);
    expect(await a.subscribe('$exclusive/')).toBe(0x8f);
  });

  test('beside an ordinary one of the same client leaves the other one when it ends', async () => {
    await place({ exclusive: true });
    const [a, b] = [await room.client('a'), await room.client('b')];
    for (const [kept, ended] of [
      ['t', '$exclusive/t'],
      ['$exclusive/t', 't'],
    ]) {
      await a.subscribe('$exclusive/t');
      await a.subscribe('t');
      a.send({ type: 10, packetId: 7, topicFilters: [ended], properties: null });
      await a.packet(11);
      b.publish('t', kept);
      expect(await a.message()).toMatchObject({ payload: kept });
      a.send({ type: 10, packetId: 7, topicFilters: [kept], properties: null });
      await a.packet(11);
    }
    expect(await b.published('t', '', 1)).toBe(0x10);
  });

  test('is held by a session whose client is away', async () => {
    await place({ exclusive: true });
    const a = await room.client('a', { cleanStart: false, expiry: 100 });
    await a.subscribe('$exclusive/t');
    await a.drop();
    const b = await room.client('b');
    expect(await b.subscribe('$exclusive/t')).toBe(0x97);
    await room.advance(101_000);
    expect(await b.subscribe('$exclusive/t')).toBe(0);
  });

  test('without the setting is a filter like others', async () => {
    room = await openRoom();
    const [a, b] = [await room.client('a'), await room.client('b')];
    expect(await a.subscribe('$exclusive/t')).toBe(0);
    expect(await b.subscribe('$exclusive/t')).toBe(0);
  });
});
