// Payload checks: what passes, what happens to the rest, at every QoS and from every kind of publisher.
import { afterEach, describe, expect, test } from 'vitest';
import { Metrics } from '../../src/base/metrics.ts';
import { compileSchema } from '../../src/policy/jsonschema.ts';
import { type PayloadRuleOptions, PayloadRules } from '../../src/policy/payload.ts';
import { TopicPolicies } from '../../src/policy/topics.ts';
import { openRoom, type Room, settled } from '../broker/room.ts';

const NONE = { rewrite: [], autoSubscribe: [], exclusive: false, delayed: null, mounts: new Map() } as const;
const RULE = { name: 'r', topics: ['t/#'], content: 'json', schema: null, maxSize: 100, action: 'refuse', tag: 'bad' };

function rules(options: readonly Partial<PayloadRuleOptions>[], metrics = new Metrics()): PayloadRules {
  return new PayloadRules(
    options.map((one) => ({ ...RULE, ...one }) as PayloadRuleOptions),
    metrics,
  );
}

const judge = (options: Partial<PayloadRuleOptions>, payload: string | Buffer): string | undefined =>
  rules([options]).of('t/x')?.judge(Buffer.from(payload)).kind;

describe('a payload check', () => {
  test('knows size, UTF-8 and JSON, and leaves other topics alone', () => {
    expect(judge({ content: 'any' }, Buffer.alloc(100))).toBe('pass');
    expect(judge({ content: 'any' }, Buffer.alloc(101))).toBe('refuse');
    expect(judge({ content: 'utf8' }, 'grüß')).toBe('pass');
    expect(judge({ content: 'utf8' }, Buffer.from([0xc3, 0x28]))).toBe('refuse');
    for (const good of ['{}', '1', '"x"', ' [1,{"a":null}] ']) expect(judge({}, good), good).toBe('pass');
    for (const bad of ['', '{', '{a:1}', 'NaN', "'x'", '{"a":1}x', Buffer.from([0x22, 0xff, 0x22])])
      expect(judge({}, bad), String(bad)).toBe('refuse');
    expect(rules([{}]).of('other')).toBeNull();
  });

  test('is bounded before it looks: nesting that no stack follows is refused, not thrown', () => {
    const schema = compileSchema('{"type":"object","properties":{"c":{"$ref":"#"}}}');
    if (typeof schema === 'string') throw new Error(schema);
    const deep = `${'{"c":'.repeat(100_000)}{}${'}'.repeat(100_000)}`;
    expect(judge({ schema, maxSize: 10_000_000 }, deep)).toBe('refuse');
    expect(judge({ schema, maxSize: 10_000_000 }, '{"c":{"c":{}}}')).toBe('pass');
    expect(judge({ schema }, '{"c":1}')).toBe('refuse');
  });

  test('of several, all have to pass; tags add up and are counted', () => {
    const metrics = new Metrics();
    const checks = rules(
      [
        { name: 'a', action: 'tag' },
        { name: 'b', action: 'tag', content: 'utf8' },
        { name: 'c', action: 'drop', content: 'any', maxSize: 3 },
      ],
      metrics,
    ).of('t/x');
    expect(checks?.judge(Buffer.from([0xff]))).toEqual({
      kind: 'tag',
      tags: [
        ['bad', 'a'],
        ['bad', 'b'],
      ],
    });
    expect(checks?.judge(Buffer.from('xxxx'))).toEqual({ kind: 'drop' });
    expect(checks?.judge(Buffer.from('1'))).toEqual({ kind: 'pass' });
    const count = (check: string, outcome: string) =>
      metrics.value('tidegate_payload_checks_total', { check, outcome });
    expect([count('a', 'tagged'), count('a', 'passed'), count('c', 'dropped')]).toEqual([2, 1, 1]);
  });
});

describe('a JSON Schema', () => {
  const check = (schema: unknown, value: unknown): unknown => {
    const compiled = compileSchema(JSON.stringify(schema));
    return typeof compiled === 'string' ? compiled : compiled(value);
  };

  test('is obeyed, with patterns and uniqueItems in bounded time', () => {
    expect(check({ required: ['t'], properties: { t: { type: 'number' } } }, { t: 1 })).toBe(true);
    expect(check({ required: ['t'], properties: { t: { type: 'number' } } }, { t: '1' })).toBe(false);
    expect(check({ required: ['toString'] }, {})).toBe(false);
    expect(check({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(5000)}b`)).toBe(false);
    const many = Array.from({ length: 50_000 }, (_, i) => ({ i }));
    expect(check({ uniqueItems: true }, many)).toBe(true);
    expect(check({ uniqueItems: true }, [...many, { i: 7 }])).toBe(false);
    expect(
      check({ uniqueItems: true }, [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ]),
    ).toBe(false);
    expect(check({ uniqueItems: true }, [1, '1', true, null, [1]])).toBe(true);
    expect(check({ format: 'date-time' }, '2024-02-30T00:00:00Z')).toBe(false);
    expect(check({ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'number' }] }, [1])).toBe(true);
  });

  test.each([
    ['a keyword that is none', { typo: 1 }, 'unknown keyword'],
    ['a type that is none', { type: 'objekt' }, 'schema is invalid'],
    ['a format that is not known', { format: 'phone' }, 'unknown format'],
    ['a reference to elsewhere', { $ref: 'https://example.org/s.json' }, "can't resolve reference"],
    ['a pattern without a bound', { pattern: '(a)\\1' }, 'unbounded time'],
    ['an asynchronous one', { $async: true }, 'asynchronous'],
    ['a list', [], 'a schema is a JSON object'],
  ])('with %s is refused', (_, schema, text) => {
    expect(check(schema, {})).toContain(text);
  });
});

describe('through the broker', () => {
  let room: Room;
  afterEach(() => room.stop());

  async function place(options: Partial<PayloadRuleOptions>, delayed = false): Promise<void> {
    room = await openRoom();
    const limits = delayed ? { maxSeconds: 10, messages: 10, bytes: 1000 } : null;
    room.broker.setPolicies(new TopicPolicies({ ...NONE, delayed: limits }, rules([options], room.metrics)));
  }

  test('what fails has no effect and is told to 5.0: at each QoS, retained, in a chunk with others', async () => {
    await place({});
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#', 2);
    for (const qos of [1, 2] as const) {
      expect(await a.published('t/x', 'no', qos, { retain: true })).toBe(0x99);
      expect(await a.published('t/x', '1', qos)).toBe(0);
      expect(await b.message()).toMatchObject({ payload: '1', qos });
    }
    const texts = ['1', 'no', '2', 'no', '3'];
    a.raw(Buffer.concat(texts.map((text) => a.publishBytes('t/x', text, 0))));
    expect([(await b.message()).payload, (await b.message()).payload, (await b.message()).payload]).toEqual([
      '1',
      '2',
      '3',
    ]);
    expect([...room.broker.retained('#')]).toEqual([]);
    const old = await room.client('old', { version: 4 });
    for (const qos of [1, 2] as const) await old.published('t/x', 'no', qos);
    old.publish('free', 'no');
    expect(await b.message()).toMatchObject({ topic: 'free' });
    expect(room.metric('payload_checks_total', { check: 'r', outcome: 'refused' })).toBe(6);
  });

  test('no way leads around: alias, will, delay, clients inside the process', async () => {
    await place({}, true);
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#');
    a.publish('t/x', '1', 0, { properties: { topicAlias: 1 } });
    expect(await b.message()).toMatchObject({ payload: '1' });
    a.publish('', 'no', 0, { properties: { topicAlias: 1 } });
    expect(await a.published('$delayed/1/t/x', 'no', 1)).toBe(0x99);
    const will = { topicName: 't/w', payload: Buffer.from('no'), qos: 0, retain: true, properties: null } as const;
    const c = await room.client('c', { will: { ...will, delayInterval: 0 } });
    await c.drop();
    const local = room.broker.attach({ clientId: 'in', username: null, kind: 'api', bridge: null, trusted: true });
    expect(local.publish('t/x', Buffer.from('no'), 0, 2, 1, false)).toBe('refused');
    expect(local.publishSoon('t/x', Buffer.from('nono'), 0, 2, 2, 2)).toBe('refused');
    await settled();
    expect(local.publish('t/x', Buffer.from('2'), 0, 1, 0, false)).toBe('accepted');
    expect(await b.message()).toMatchObject({ payload: '2' });
    expect(room.metric('payload_checks_total', { check: 'r', outcome: 'refused' })).toBe(6);
  });

  test('an empty retained message clears what is kept, checked or not', async () => {
    await place({});
    const a = await room.client('a');
    await a.published('t/x', '1', 1, { retain: true });
    await a.published('t/x', '', 1, { retain: true });
    expect([...room.broker.retained('#')]).toEqual([]);
    expect(await a.published('t/x', '', 1)).toBe(0x99);
  });

  test('tagged, it goes on with a User Property; dropped, it is acknowledged and goes nowhere', async () => {
    await place({ action: 'tag' });
    const [a, b] = [await room.client('a'), await room.client('b')];
    await b.subscribe('#', 1);
    await a.published('t/x', 'no', 1, { properties: { userProperties: [['own', '1']] } });
    expect(await b.message()).toMatchObject({
      payload: 'no',
      properties: {
        userProperties: [
          ['own', '1'],
          ['bad', 'r'],
        ],
      },
    });
    room.broker.setPolicies(new TopicPolicies(NONE, rules([{ action: 'drop' }])));
    expect(await a.published('t/x', 'no', 1)).toBe(0);
    expect(await a.published('t/x', 'no', 2)).toBe(0);
    a.publish('t/x', '1');
    expect(await b.message()).toMatchObject({ payload: '1' });
  });

  test('rights come first: who may not publish is told nothing of checks', async () => {
    await place({});
    room.authorizer.publish = () => false;
    room.authorizer.version = 2;
    const a = await room.client('a');
    expect(await a.published('t/x', 'no', 1)).toBe(0x87);
    expect(room.metric('payload_checks_total', { check: 'r', outcome: 'refused' })).toBe(0);
  });
});
