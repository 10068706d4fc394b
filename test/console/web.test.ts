// The parts of the console pages that only compute: figures, payloads, frames, rates, trees, documents, words.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildFrame } from '../../src/bridge/nng/outgoing.ts';
import { CODES } from '../../src/console/answer.ts';
import { inChinese } from '../../src/console/web/lib/answers.ts';
import { barsOf } from '../../src/console/web/lib/bars.ts';
import {
  type BridgeForm,
  bridgeDocument,
  bridgeForm,
  byField,
  emptyBridge,
  fieldOf,
  ruleDocument,
  ruleForm,
} from '../../src/console/web/lib/bridgedoc.ts';
import { asText, fromBase64, fromHex, hexDump, prettyJson, toBase64 } from '../../src/console/web/lib/bytes.ts';
import { CHINESE } from '../../src/console/web/lib/chinese.ts';
import { ANSWERS } from '../../src/console/web/lib/chineseanswers.ts';
import { KEY_TEXTS } from '../../src/console/web/lib/chinesekeys.ts';
import { bytes, count, duration, percent, short } from '../../src/console/web/lib/format.ts';
import { cut, cutPayload, indexOf, partAt } from '../../src/console/web/lib/frame.ts';
import { Series } from '../../src/console/web/lib/rates.ts';
import { KeyBook, type KeyInfo, settings } from '../../src/console/web/lib/settings.ts';
import { isTopicFilter } from '../../src/console/web/lib/topicfilter.ts';
import {
  addRetained,
  addSubscriber,
  addTraffic,
  emptyTree,
  nodeOf,
  sorted,
} from '../../src/console/web/lib/topictree.ts';
import { directionOf, tracksOf } from '../../src/console/web/lib/tracks.ts';
import type { Bridge, BridgeState, Traffic } from '../../src/console/web/lib/types.ts';
import { configKeys } from '../../src/gateway/keys.ts';
import { isTopicFilter as isFilter } from '../../src/mqtt/topic.ts';

const text = (value: string): Uint8Array => Buffer.from(value);

describe('figures', () => {
  test('counts keep the digits that matter', () => {
    expect([0, 7, 1.25, 999, 9999, 12_345, 1_234_567, 2.5e9].map(count)).toEqual([
      '0',
      '7',
      '1.3',
      '999',
      '9,999',
      '12.3 k',
      '1.23 M',
      '2.50 G',
    ]);
    expect(count(Number.NaN)).toBe('-');
  });

  test('sizes are in units of 1024', () => {
    expect([0, 512, 1024, 1536, 10 * 1024 * 1024, 3.4 * 1024 ** 3].map(bytes)).toEqual([
      '0 B',
      '512 B',
      '1 KB',
      '1.50 KB',
      '10 MB',
      '3.40 GB',
    ]);
  });

  test('durations name the two largest units', () => {
    expect([0, 0.4, 250, 1000, 61_000, 3_600_000, 90_061_000].map(duration)).toEqual([
      '0 ms',
      '400 µs',
      '250 ms',
      '1s',
      '1m 1s',
      '1h',
      '1d 1h',
    ]);
  });

  test('shares are percent, with a digit more when small', () => {
    expect([percent(0.042), percent(0.5), percent(Number.NaN)]).toEqual(['4.2 %', '50 %', '-']);
  });

  test('long values are cut for a table', () => {
    expect(short({ a: 1 })).toBe('{"a":1}');
    expect(short('x'.repeat(50), 10)).toBe(`${'x'.repeat(9)}…`);
  });
});

describe('a distribution', () => {
  test('has a bar for each bucket between the first and the last that hold something', () => {
    expect(barsOf([0.00001, 0.0001, 0.001, 0.01], [0, 3, 0, 1, 0])).toEqual([
      { bound: 0.0001, over: false, count: 3, share: 0.75 },
      { bound: 0.001, over: false, count: 0, share: 0 },
      { bound: 0.01, over: false, count: 1, share: 0.25 },
    ]);
    expect(barsOf([0.001], [0, 2])).toEqual([{ bound: 0.001, over: true, count: 2, share: 1 }]);
    expect(barsOf([0.001], [0, 0])).toEqual([]);
  });
});

describe('payloads', () => {
  test('base64 and back gives the same bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 9000 }), (raw) => {
        expect(Buffer.from(fromBase64(toBase64(raw)))).toEqual(Buffer.from(raw));
      }),
    );
  });

  test('hex takes white space and refuses everything else', () => {
    expect(fromHex('00 ff\n53')).toEqual(new Uint8Array([0, 255, 0x53]));
    expect(fromHex('')).toEqual(new Uint8Array(0));
    expect([fromHex('0'), fromHex('zz'), fromHex('0x11')]).toEqual([null, null, null]);
  });

  test('a hex dump shows offset, bytes and characters, and says what it leaves out', () => {
    const [first, second] = hexDump(text('0123456789abcdef\n')).split('\n');
    expect(first).toBe('000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  0123456789abcdef');
    expect(second).toMatch(/^000010 {2}0a .*·$/);
    expect(hexDump(new Uint8Array(40), 16).split('\n')).toEqual([expect.stringMatching(/^000000/), '… 24']);
  });

  test('bytes that are no text or no JSON are told apart', () => {
    expect(asText(new Uint8Array([0xff, 0xfe]))).toBeNull();
    expect(prettyJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
    expect(prettyJson('{')).toBeNull();
  });
});

describe('frames', () => {
  test('a trace header stands by itself, with and without a topic', () => {
    const header = new Uint8Array(26);
    header.set([0x0a, 0xce]);
    const whole = (...parts: Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));
    const parts = (segments: readonly { part: string; end: number }[]): string[] =>
      segments.map(({ part, end }) => `${part} ${end}`);
    expect(parts(cut(whole(text('r:'), header, text('{}')), text('{}'), text(':')))).toEqual([
      'topic 1',
      'delimiter 2',
      'trace 28',
      'payload 30',
    ]);
    expect(parts(cutPayload(whole(header, text('{}'))))).toEqual(['trace 26', 'payload 28']);
    expect(parts(cutPayload(text('a/b:c')))).toEqual(['payload 5']);
  });
  test('a frame is cut before and behind its delimiter', () => {
    expect(cut(text('sensors:21.5'), text('21.5'), text(':'))).toEqual([
      { part: 'topic', start: 0, end: 7 },
      { part: 'delimiter', start: 7, end: 8 },
      { part: 'payload', start: 8, end: 12 },
    ]);
  });

  test('a payload that holds the delimiter is not cut', () => {
    const [topic] = cut(text('a::b:c'), text(':b:c'), text(':'));
    expect(topic).toEqual({ part: 'topic', start: 0, end: 1 });
  });

  test('a payload that was packed on its way ends at the first delimiter', () => {
    expect(cut(text('a:MQ=='), text('1'), text(':')).map(({ part }) => part)).toEqual([
      'topic',
      'delimiter',
      'payload',
    ]);
    expect(cut(text('abc'), text('1'), text(':'))).toEqual([{ part: 'frame', start: 0, end: 3 }]);
  });

  test('parts stand one behind the other and fill the frame, whatever the rule makes', () => {
    const words = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme-ascii' });
    fc.assert(
      fc.property(words, words, fc.uint8Array({ maxLength: 20 }), (topic, nngDelimiter, payload) => {
        const rule = {
          enable: true,
          localTopic: '#',
          remoteTopic: '',
          nngDelimiter,
          qos: 0,
          retain: 'any',
          from: 'any',
        } as const;
        const frame = buildFrame(rule, 'documented', { topic, payload, qos: 0, retain: false });
        const segments = cut(frame, payload, text(nngDelimiter));
        let at = 0;
        for (const { start, end } of segments) {
          expect(start).toBe(at);
          at = end;
        }
        expect(at).toBe(frame.length);
        if (frame.length > 0) expect(partAt(segments, 0)).not.toBe('frame');
      }),
    );
  });

  test('a part that is not there is not found', () => {
    expect([indexOf(text('abc'), text('bc')), indexOf(text('abc'), text('x')), indexOf(text('abc'), text(''))]).toEqual(
      [1, -1, -1],
    );
  });
});

describe('rates', () => {
  const at = (time: number, n: number) => ({ time, values: { n, g: n } });

  test('a counter becomes a rate, the first sample has none', () => {
    const series = new Series(10);
    for (const sample of [at(0, 100), at(2000, 120), at(4000, 120)]) series.add(sample, ['n']);
    expect(series.rates('n')).toEqual([null, 10, 0]);
    expect([series.rate('n'), series.latest('n'), series.times()]).toEqual([0, 120, [0, 2, 4]]);
    expect(series.gauge('g', 2)).toEqual([200, 240, 240]);
  });

  test('a gap has no rate', () => {
    const series = new Series(10);
    for (const sample of [at(0, 0), at(60_000, 60)]) series.add(sample, ['n']);
    expect(series.rate('n')).toBeNull();
  });

  test('a counter that falls begins anew, a sample from the past is left out', () => {
    const series = new Series(10);
    for (const sample of [at(0, 100), at(2000, 5), at(1000, 50)]) series.add(sample, ['n']);
    expect(series.length).toBe(1);
    expect(series.latest('n')).toBe(5);
  });

  test('a series keeps a bounded number', () => {
    const series = new Series(3);
    for (let i = 0; i < 10; i++) series.add(at(i * 1000, i), ['n']);
    expect(series.times()).toEqual([7, 8, 9]);
  });
});

describe('the tree of topics', () => {
  test('levels count what is at and below them', () => {
    const root = emptyTree();
    for (const topic of ['a/b', 'a/c', 'a/b', '/x']) addRetained(root, topic);
    for (const filter of ['a/#', 'a/b']) addSubscriber(root, filter);
    const a = root.children.get('a');
    expect([root.retainedBelow, root.subscribersBelow, a?.retainedBelow, a?.subscribersBelow]).toEqual([3, 2, 2, 2]);
    expect(a?.children.get('b')).toMatchObject({ topic: 'a/b', retained: true, subscribers: 1 });
    expect(root.children.get('')?.children.get('x')?.topic).toBe('/x');
  });

  test('wildcards come first, numbers in their order', () => {
    const root = emptyTree();
    for (const filter of ['b10', 'b2', '+', '#', 'a']) addSubscriber(root, filter);
    expect(sorted(root.children).map(({ name }) => name)).toEqual(['#', '+', 'a', 'b2', 'b10']);
  });

  test('branches have the rates of all below them, and can stand by them', () => {
    const root = emptyTree();
    const traffic = (rate: number): Traffic => ({ messages: 9, bytes: 90, messages_rate: rate, bytes_rate: rate * 10 });
    addSubscriber(root, 'c/#');
    addTraffic(root, 'a/x', traffic(1));
    addTraffic(root, 'b', traffic(5));
    addTraffic(root, 'b/y', traffic(0.5));
    expect(root).toMatchObject({ topicsBelow: 3, messageRate: 6.5, byteRate: 65, traffic: null });
    expect(nodeOf(root, 'b')).toMatchObject({ topicsBelow: 2, messageRate: 5.5, traffic: { messages_rate: 5 } });
    expect(nodeOf(root, 'a')).toMatchObject({ topicsBelow: 1, messageRate: 1, traffic: null });
    expect(nodeOf(root, 'a/nothing')).toBeUndefined();
    expect(sorted(root.children, true).map(({ name }) => name)).toEqual(['b', 'a', 'c']);
  });

  test('topic filters are those that the gateway takes', () => {
    const text = fc
      .array(fc.constantFrom('a', '+', '#', '', 'a+', '#a', '\0', ' '), { maxLength: 4 })
      .map((levels) => levels.join('/'));
    fc.assert(
      fc.property(text, (filter) => {
        expect(isTopicFilter(filter)).toBe(isFilter(filter));
      }),
    );
  });
});

describe('the configuration beside its defaults', () => {
  const key = (name: string, value: unknown): KeyInfo => ({
    ...{ key: name, type: 'text', text: '', unit: null, restart: false, secret: false },
    ...(value === undefined ? {} : { default: value }),
  });
  const book = new KeyBook([
    key('mqtt.max_qos', 2),
    key('listeners.tcp.*.bind', '127.0.0.1:1883'),
    key('bridges.nng.pub.*.forwards.[].qos', 0),
    key('bridges.nng.pub.*.pub_url', undefined),
  ]);

  test('named and unnamed blocks find their key', () => {
    expect(book.find(['listeners', 'tcp', 'bind'])?.key).toBe('listeners.tcp.*.bind');
    expect(book.find(['listeners', 'tcp', 'second', 'bind'])?.key).toBe('listeners.tcp.*.bind');
    expect(book.find(['listeners', 'nothing', 'bind'])).toBeNull();
  });

  test('what is as by default does not differ; what has no default does', () => {
    const tree = {
      mqtt: { max_qos: 2 },
      listeners: { tcp: { bind: '0.0.0.0:1883' } },
      bridges: { nng: { pub: { out: { pub_url: ['x'] } } } },
      webhook: null,
    };
    const found = settings(tree, book);
    expect(found.map(({ path: where, differs }) => [where, differs])).toEqual([
      ['mqtt.max_qos', false],
      ['listeners.tcp.bind', true],
      ['bridges.nng.pub.out.pub_url', true],
    ]);
  });
});

describe('bridge documents', () => {
  const shown: Bridge = {
    ...{ kind: 'nng', type: 'sub', name: 'can', enable: true, state: 'listening', last_error: null, mode: 'dial' },
    sub_url: ['tcp://127.0.0.1:1', 'ipc:///tmp/x'],
    subscription: [
      { remote_topic: 'can', nng_delimiter: ':', local_topic: 'car', qos: 1, match: 'exact', rate_limit: 5 },
    ],
    recv_max_size: 4096,
    clientid: null,
    endpoints: [],
    peers: [],
    clientId: 'nng-can-1',
  };

  test('a shown bridge becomes a form and the same document again', () => {
    const made = bridgeDocument(bridgeForm(shown));
    expect(made).toEqual({
      document: {
        type: 'sub',
        name: 'can',
        enable: true,
        mode: 'dial',
        sub_url: ['tcp://127.0.0.1:1', 'ipc:///tmp/x'],
        recv_max_size: 4096,
        subscription: [
          {
            ...{ enable: true, local_topic: 'car', remote_topic: 'can', nng_delimiter: ':', qos: 1, match: 'exact' },
            rate_limit: 5,
          },
        ],
      },
    });
  });

  test('a pair has rules both ways and an address of its own', () => {
    const made = bridgeDocument({ ...emptyBridge('pair'), name: 'p', urls: 'tcp://127.0.0.1:1' });
    expect(made).toMatchObject({ document: { pair_url: ['tcp://127.0.0.1:1'], forwards: [{}], subscription: [{}] } });
    expect(bridgeDocument(emptyBridge('push'))).not.toHaveProperty('document.subscription');
    expect(bridgeDocument(emptyBridge('pull'))).not.toHaveProperty('document.forwards');
  });

  test('a rule keeps what the form has no field for, and words that are no numbers', () => {
    const rule = ruleForm({ local_topic: 'a', qos: 1, payload: 'base64', retain: true });
    expect(ruleDocument('pub', { ...rule, qos: 'x' })).toMatchObject({ payload: 'base64', qos: 'x', retain: true });
  });

  test('other keys have to be a JSON object', () => {
    const form = (more: string): BridgeForm => ({ ...emptyBridge('pub'), more });
    for (const more of ['{', '[]', '1', 'null']) {
      expect(bridgeDocument(form(more))).toMatchObject({ problem: { pointer: '/more' } });
    }
  });

  test('problems are found at their fields', () => {
    expect(
      ['/name', '/pub_url/1', '/forwards/2/nng_delimiter', '/subscription/0', '/forwards', '/tls/ca', ''].map(fieldOf),
    ).toEqual(['name', 'urls', 'forwards/2/nng_delimiter', 'subscription/0', 'forwards', 'more', '']);
    const problems = byField([
      { pointer: '/forwards/0/qos', message: 'first' },
      { pointer: '/forwards/0/qos', message: 'second' },
    ]);
    expect([...problems]).toEqual([['forwards/0/qos', 'first']]);
  });
});

describe('tracks', () => {
  const counters = (index: number) => ({ index, matched: 0, forwarded: 0, bytes: 0, dropped: {} });
  const state = { name: 'x', enable: true, state: 'listening', last_error: null };

  test('rules of every kind of bridge are found with the way they carry', () => {
    const found = (bridge: BridgeState): string[] => tracksOf(bridge).map(({ key }) => key);
    expect(found({ ...state, kind: 'nng', type: 'pull', rules: [counters(0)] })).toEqual(['nng/pull/x/in/0']);
    expect(found({ ...state, kind: 'nng', type: 'pair', rules: [counters(0)], taking: [counters(0)] })).toEqual([
      'nng/pair/x/out/0',
      'nng/pair/x/in/0',
    ]);
    const remote = { fetching: [counters(1)] };
    expect(found({ ...state, kind: 'mqtt', type: null, rules: [], remote })).toEqual(['mqtt//x/in/1']);
  });

  test('the direction is told in arrows', () => {
    const told = (kind: 'nng' | 'mqtt', type: BridgeState['type']): string => directionOf({ kind, type });
    expect([told('nng', 'pub'), told('nng', 'pull'), told('nng', 'pair'), told('mqtt', null)]).toEqual([
      'MQTT → NNG',
      'NNG → MQTT (pull)',
      'MQTT ↔ NNG (pair)',
      'MQTT ↔ MQTT',
    ]);
  });
});

describe('words', () => {
  const root = path.join(import.meta.dirname, '../../src/console/web');
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !/chinese\w*\.ts$/.test(name))
    .map((name) => readFileSync(path.join(root, name), 'utf8'));
  const used = new Set(
    sources.flatMap((source) => [...source.matchAll(/\bt\(\s*'([^']+)'/g)].map((found) => found[1])),
  );

  test('every text of the pages has its Chinese', () => {
    expect([...used].filter((word) => !Object.hasOwn(CHINESE, word))).toEqual([]);
    expect(used.size).toBeGreaterThan(200);
  });

  test('translations have the same gaps as the texts', () => {
    const gaps = (word: string): string[] => (word.match(/\{\w+\}/g) ?? []).sort();
    for (const [english, chinese] of Object.entries(CHINESE)) {
      expect(chinese, english).not.toBe('');
      expect(gaps(chinese), english).toEqual(gaps(english));
    }
  });

  test('the pages name no address outside the gateway', () => {
    for (const source of sources) expect(source).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
  });
});

describe('answers of the gateway', () => {
  test('are put into Chinese with their names and figures', () => {
    expect(inChinese('granted with QoS 1')).toBe('已授权，QoS 1');
    expect(inChinese('connection refused (ECONNREFUSED)')).toBe('连接被拒绝（ECONNREFUSED）');
    expect(inChinese('a value is wrong: mqtt.max_qos: 0 to 2 expected')).toBe(
      '值不正确：mqtt.max_qos：应在 0 到 2 之间',
    );
    expect(inChinese('something nobody has translated')).toBe('something nobody has translated');
    expect(inChinese(`${'x'.repeat(700)}: a value is wrong`)).toContain('a value is wrong');
  });

  test('have the same gaps in both languages', () => {
    const gaps = (word: string): string[] => [...new Set(word.match(/\{\w+\}/g) ?? [])].sort();
    for (const [english, chinese] of Object.entries(ANSWERS)) expect(gaps(chinese), english).toEqual(gaps(english));
  });

  test('name every failure that a call may end in', () => {
    const missing = Object.values(CODES).filter(({ text: words }) => !Object.hasOwn(ANSWERS, words));
    expect(missing).toEqual([]);
  });
});

describe('descriptions of configuration keys', () => {
  test('are there in Chinese, and none for a key that is gone', () => {
    const texts = new Set(configKeys().map(({ text: words }) => words));
    expect([...texts].filter((words) => !Object.hasOwn(KEY_TEXTS, words))).toEqual([]);
    expect(Object.keys(KEY_TEXTS).filter((words) => !texts.has(words))).toEqual([]);
  });
});
