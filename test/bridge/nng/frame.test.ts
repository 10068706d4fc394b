// Frames without topics, trace headers and topics from JSON fields: src/bridge/nng/outgoing.ts and incoming.ts, byte for byte, as the bridge
// and its tester have them.
import { afterEach, describe, expect, test } from 'vitest';
import type { ForwardOptions, SubscriptionOptions } from '../../../src/bridge/bridge.ts';
import { publishOf } from '../../../src/bridge/nng/incoming.ts';
import { buildFrame, type FrameSample } from '../../../src/bridge/nng/outgoing.ts';
import { BridgeBench, forward, pairBridge, subBridge, taking } from '../../harness/bridges.ts';
import { sendText } from '../../harness/spsockets.ts';

const TRACE = '0ace0102030405060708090a0b0c0d0e0f101112131415161718';
const PARENT = '00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01';
const traced: FrameSample['properties'] = { userProperties: [['traceparent', PARENT]] };
const hex = (text: string): string => Buffer.from(text).toString('hex');

describe('MQTT to NNG', () => {
  test.each([
    ['the payload alone', { frame: 'payload' }, hex('{"t":1}'), null, hex('{"t":1}')],
    ['an empty payload alone', { frame: 'payload' }, '', null, ''],
    ['bytes alone', { frame: 'payload' }, '0001ff00', null, '0001ff00'],
    ['a header that stays', { frame: 'payload' }, `${TRACE}7b7d`, null, `${TRACE}7b7d`],
    ['a header taken off', { frame: 'payload', trace: 'strip' }, `${TRACE}7b7d`, null, '7b7d'],
    ['nothing to take off', { frame: 'payload', trace: 'strip' }, '7b7d', null, '7b7d'],
    ['25 bytes are no header', { trace: 'strip', frame: 'payload' }, TRACE.slice(0, 50), null, TRACE.slice(0, 50)],
    ['a header alone taken off', { frame: 'payload', trace: 'strip' }, TRACE, null, ''],
    ['a header of the message', { frame: 'payload', trace: 'add' }, '7b7d', traced, `${TRACE}7b7d`],
    ['no second header', { frame: 'payload', trace: 'add' }, `${TRACE}7b7d`, null, `${TRACE}7b7d`],
    ['topic, header, payload', { trace: 'add' }, '7b7d', traced, `${hex('r:')}${TRACE}7b7d`],
    ['topic without header', { trace: 'strip' }, `${TRACE}7b7d`, null, `${hex('r:')}7b7d`],
    [
      'base64 behind a header',
      { trace: 'add', frame: 'payload', payload: 'base64' },
      '616263',
      traced,
      `${TRACE}${hex('YWJj')}`,
    ],
    [
      'base64 without header',
      { trace: 'strip', frame: 'payload', payload: 'base64' },
      `${TRACE}616263`,
      null,
      hex('YWJj'),
    ],
    [
      'an object with topic and QoS',
      { frame: 'payload', payload: 'json' },
      hex('hi'),
      null,
      hex('{"topic":"a/b","qos":1,"retain":true,"payload":"hi"}'),
    ],
  ] as [string, Partial<ForwardOptions>, string, FrameSample['properties'], string][])(
    '%s',
    (_name, more, payload, properties, frame) => {
      const rule = forward('a/#', 'r', ':', more);
      const sample = { topic: 'a/b', payload: Buffer.from(payload, 'hex'), qos: 1, retain: true, properties } as const;
      expect(buildFrame(rule, 'documented', sample).toString('hex')).toBe(frame);
    },
  );
  test.each(['nonsense', '00-00000000000000000000000000000000-1112131415161718-01', ''])(
    'a traceparent that is none (%j) gives a header with new ids',
    (text) => {
      const properties: FrameSample['properties'] = { userProperties: [['traceparent', text]] };
      const rule = forward('a/#', '', ':', { frame: 'payload', trace: 'add' });
      const sample = { topic: 'a', payload: Buffer.from('{}'), qos: 0, retain: false, properties } as const;
      const [one, two] = [buildFrame(rule, 'documented', sample), buildFrame(rule, 'documented', sample)];
      expect([one.length, one.readUInt16BE(0), one.subarray(26).toString()]).toEqual([28, 0x0ace, '{}']);
      expect(one.equals(two)).toBe(false);
    },
  );
});

describe('NNG to MQTT', () => {
  const alone = (more: Partial<SubscriptionOptions>): SubscriptionOptions =>
    taking('', 'l', '/', { frame: 'payload', ...more });
  const shown = (
    rule: SubscriptionOptions,
    frame: string,
    compat: 'documented' | '0.25.5' | '0.25.6' = 'documented',
  ) => {
    const made = publishOf(rule, compat, Buffer.from(frame, 'hex'));
    if (typeof made === 'string') return made;
    const payload = Buffer.from(made.bytes.subarray(made.start, made.end)).toString('hex');
    return [made.topic, payload, made.properties?.userProperties?.[0]?.[1] ?? ''];
  };
  test.each([
    ['the whole body', alone({}), hex('{"t":1}'), ['l', hex('{"t":1}'), '']],
    ['bytes', alone({}), '0001ff', ['l', '0001ff', '']],
    ['an empty body is nothing', alone({}), '', 'unmatched'],
    [
      'the delimiter of the rule means nothing',
      alone({ nngDelimiter: ':', remoteTopic: 'x' }),
      hex('a:b'),
      ['l', hex('a:b'), ''],
    ],
    ['a header stays', alone({}), `${TRACE}7b7d`, ['l', `${TRACE}7b7d`, '']],
    ['a header becomes a property', alone({ trace: 'strip' }), `${TRACE}7b7d`, ['l', '7b7d', PARENT]],
    ['a header of zeros is taken off', alone({ trace: 'strip' }), `0ace${'00'.repeat(24)}7b7d`, ['l', '7b7d', '']],
    ['no second header', alone({ trace: 'add' }), `${TRACE}7b7d`, ['l', `${TRACE}7b7d`, '']],
    [
      'a header behind the topic',
      taking('r', 'l', ':', { trace: 'strip' }),
      `${hex('r:')}${TRACE}7b7d`,
      ['l', '7b7d', PARENT],
    ],
    [
      'base64 behind a header',
      alone({ trace: 'strip', payload: 'base64' }),
      `${TRACE}${hex('YWJj')}`,
      ['l', '616263', PARENT],
    ],
    [
      'a topic of fields',
      alone({ localTopic: 'n/{json:a}/{json:b.c}' }),
      hex('{"a":"k","b":{"c":7}}'),
      ['n/k/7', hex('{"a":"k","b":{"c":7}}'), ''],
    ],
    [
      'a topic of fields behind a header',
      alone({ localTopic: 'n/{json:a}' }),
      `${TRACE}${hex('{"a":1}')}`,
      ['n/1', `${TRACE}${hex('{"a":1}')}`, ''],
    ],
    [
      'a field never is more than a level',
      alone({ localTopic: 'n/{json:a}' }),
      hex('{"a":"x/+/#"}'),
      ['n/x____', hex('{"a":"x/+/#"}'), ''],
    ],
    ['a missing field', alone({ localTopic: 'n/{json:a}' }), hex('{"b":1}'), 'missing-field'],
    ['what is no JSON has no fields', alone({ localTopic: 'n/{json:a}' }), hex('a=1'), 'missing-field'],
    [
      'a missing field with a fallback',
      alone({ localTopic: 'n/{json:a}', fallbackTopic: 'n/else' }),
      hex('{}'),
      ['n/else', hex('{}'), ''],
    ],
    ['__proto__ is no field', alone({ localTopic: 'n/{json:__proto__.x}' }), hex('{}'), 'missing-field'],
    [
      'topic of the frame and a field',
      taking('r', '{topic}/{json:a}', ':', {}),
      hex('r/x:{"a":1}'),
      ['r/x/1', hex('{"a":1}'), ''],
    ],
  ] as [string, SubscriptionOptions, string, unknown][])('%s', (_name, rule, frame, expected) => {
    expect(shown(rule, frame)).toEqual(expected);
  });
  test.each(['0.25.5', '0.25.6'] as const)('frame = payload means the same with compat %s', (compat) => {
    expect(shown(alone({}), hex('a:b'), compat)).toEqual(['l', hex('a:b'), '']);
  });
});

describe('in a bridge', () => {
  let bench: BridgeBench;
  afterEach(() => bench.stop());

  test('a pair bridge speaks payloads both ways, runs of them in order', async () => {
    const rules = [forward('out/#', '', ':', { frame: 'payload' })];
    bench = new BridgeBench(pairBridge('p', rules, [taking('', 'in', '/', { frame: 'payload' })]));
    await bench.supervisor.start();
    const peer = await bench.peer('pair0', 'inproc://p-pair');
    const texts = Array.from({ length: 500 }, (_, i) => `{"n":${1000 + i}}`);
    for (const text of texts) sendText(peer.socket, text);
    await bench.broker.until(() => bench.broker.published.length === 500);
    expect(bench.broker.seen()).toEqual(texts.map((text) => `in ${text}`));
    bench.broker.publish('out/x', '{"n":1}');
    await peer.watch.until(() => peer.watch.bodies.length === 1);
    expect(peer.watch.bodies).toEqual(['{"n":1}']);
  });
  test('a rule with a longer remote_topic goes before the payload alone', async () => {
    const rules = [taking('', 'all', '/', { frame: 'payload' }), taking('can', 'l/can')];
    bench = new BridgeBench(subBridge('s', rules));
    await bench.supervisor.start();
    const peer = await bench.peer('pub0', 'inproc://s-sub');
    for (const text of ['x', 'can:1', 'can', 'y']) sendText(peer.socket, text);
    await bench.broker.until(() => bench.broker.published.length === 4);
    expect(bench.broker.seen()).toEqual(['all x', 'l/can 1', 'all can', 'all y']);
  });
  test('what a frame lacks for its topic is counted', async () => {
    bench = new BridgeBench(subBridge('s', [taking('', 'n/{json:a}', '/', { frame: 'payload' })]));
    await bench.supervisor.start();
    const peer = await bench.peer('pub0', 'inproc://s-sub');
    for (const text of ['{}', '{"a":"\\ud800"}', '{"a":1}']) sendText(peer.socket, text);
    await bench.broker.until(() => bench.broker.published.length === 1);
    expect(bench.broker.seen()).toEqual(['n/1 {"a":1}']);
    expect(bench.supervisor.get('sub', 's')?.rules[0]).toMatchObject({
      matched: 3,
      forwarded: 1,
      dropped: { 'missing-field': 1, 'invalid-topic': 1 },
    });
  });
});
