// The small texts of a configuration: sizes, durations, addresses, URLs, topic filters, words, patterns.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LinearPattern } from '../../src/base/linearpattern.ts';
import { compilePattern } from '../../src/config/pattern.ts';
import {
  checkNngUrl,
  checkTopicFilter,
  filtersMeet,
  formatDuration,
  formatSize,
  isLoopback,
  maskUrl,
  nearest,
  parseAddress,
  parseDuration,
  parseSize,
} from '../../src/config/values.ts';

describe('sizes and durations', () => {
  test('a size counts by 1024 in every spelling', () => {
    for (const text of ['1MB', '1024KB', '1mb', '1048576', '1048576B', '1M', '1 MB', '1MiB', '0.5MB']) {
      expect(parseSize(text)).toBe(text === '0.5MB' ? 524288 : 1048576);
    }
    expect(parseSize('2GB')).toBe(2147483648);
  });

  test('what is no size is refused', () => {
    for (const text of ['', 'MB', '1TB', '-1', '1e3', '1.3B', '1 M B', '999999999999999GB'])
      expect(parseSize(text)).toBeNull();
  });

  test('a duration has a unit or takes the one of its key', () => {
    const want: [string, number][] = [
      ['500ms', 500],
      ['5s', 5000],
      ['10m', 600000],
      ['1h', 3600000],
      ['2d', 172800000],
      ['1.5h', 5400000],
      ['7', 7000],
      ['5 s', 5000],
    ];
    for (const [text, ms] of want) expect(parseDuration(text, 's')).toBe(ms);
    expect(parseDuration('7', 'ms')).toBe(7);
  });

  test('what is no duration is refused', () => {
    for (const text of ['', 's', '5 parsecs', '-1s', '1h30m', '1S', '0.0001s'])
      expect(parseDuration(text, 's')).toBeNull();
  });

  test('values are written as people write them', () => {
    expect([0, 1000, 1024, 8388608, 1610612736].map(formatSize)).toEqual(['0', '1000', '1KB', '8MB', '1536MB']);
    expect([0, 250, 60000, 604800000, 90000].map(formatDuration)).toEqual(['0s', '250ms', '1m', '7d', '90s']);
  });
});

describe('addresses', () => {
  test('host, port and path are told apart', () => {
    expect(parseAddress('127.0.0.1:1883')).toEqual({ host: '127.0.0.1', port: 1883, path: '' });
    expect(parseAddress('[::1]:8083/mqtt')).toEqual({ host: '::1', port: 8083, path: '/mqtt' });
    expect(parseAddress('*:0')).toEqual({ host: '0.0.0.0', port: 0, path: '' });
    expect(parseAddress(':1883')).toEqual({ host: '0.0.0.0', port: 1883, path: '' });
    expect(parseAddress('a.example.org:1')).toMatchObject({ host: 'a.example.org' });
  });

  test('what is no address is refused', () => {
    for (const text of ['', '1883', 'a b:1', '::1:1883', 'user@h:1', 'http://h:1', 'h:-1', 'h:x'])
      expect(parseAddress(text)).toContain('host:port expected');
    for (const text of ['h:70000', 'h:65536']) expect(parseAddress(text)).toBe('the port must be 0 to 65535');
  });

  test('loopback is what only this machine reaches', () => {
    for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) expect(isLoopback(host)).toBe(true);
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'localhost.example.org', '127.0.0.1.example.org', ''])
      expect(isLoopback(host)).toBe(false);
  });

  test('a password in a URL is masked, the rest is not', () => {
    expect(maskUrl('redis://user:p%40w@h:6379/0')).toBe('redis://user:***@h:6379/0');
    expect(maskUrl('redis://:pw@h')).toBe('redis://:***@h');
    expect(maskUrl('redis://token@h')).toBe('redis://***@h');
    expect(maskUrl('http://h/a@b')).toBe('http://h/a@b');
  });
});

describe('URLs of SP sockets', () => {
  const good = [
    'tcp://127.0.0.1:9900',
    'tcp://*:9900',
    'tcp://[::1]:0',
    'tcp://localhost:1',
    'ipc:///run/x.ipc',
    'abstract://x',
    'inproc://x y',
    'tls+tcp://h:1',
    'ws://h:1/p',
    'wss://h:1',
  ];
  for (const url of good) test(`${url} is taken`, () => expect(checkNngUrl(url)).toBeNull());

  const bad: [string, RegExp][] = [
    ['udp://127.0.0.1:1', /unknown scheme udp/],
    ['unix:///x', /write ipc:\/\/\/path/],
    ['ipc://gw.ipc', /absolute path is required, as in ipc:\/\/\//],
    [`ipc:///${'x'.repeat(120)}`, /longer than 107 bytes/],
    ['tcp://127.0.0.1', /host:port expected/],
    ['tcp://127.0.0.1:70000', /0 to 65535/],
    ['tcp://h:1/path', /nothing may follow/],
    ['inproc://', /inproc:\/\/name expected/],
    ['127.0.0.1:9900', /a URL expected/],
  ];
  for (const [url, want] of bad)
    test(`${url.slice(0, 40)} is refused with a hint`, () => expect(checkNngUrl(url)).toMatch(want));
});

describe('topic filters', () => {
  test('wildcards stand alone in their level and # comes last [MQTT-4.7.1-1] [MQTT-4.7.1-2]', () => {
    for (const filter of ['#', '+', 'a/+/b', 'a/#', '/', '+/#', '$SYS/#', 'a//b'])
      expect(checkTopicFilter(filter)).toBeNull();
    for (const filter of ['', 'a#', 'a/#/b', 'a+', '+a/b', 'a/\0', 'x'.repeat(65536)])
      expect(checkTopicFilter(filter)).not.toBeNull();
  });

  test('two filters meet when one topic matches both', () => {
    const meet: [string, string, boolean][] = [
      ['a/b', 'a/b', true],
      ['a/b', 'a/c', false],
      ['a/+', 'a/c', true],
      ['a/#', 'a', true],
      ['#', '$SYS/x', false],
      ['+/b', 'a/+', true],
      ['a/b/c', 'a/b', false],
      ['a/#', 'b/#', false],
      ['$x/#', '$x/y', true],
    ];
    for (const [a, b, want] of meet) {
      expect(filtersMeet(a, b)).toBe(want);
      expect(filtersMeet(b, a)).toBe(want);
    }
  });
});

describe('words', () => {
  test('the nearest known word is found, a far one is not', () => {
    const words = ['sync', 'max_size', 'local_topic', 'weight'];
    expect(nearest('snyc', words)).toBe('sync');
    expect(nearest('wieght', words)).toBe('weight');
    expect(nearest('Max_Size', words)).toBe('max_size');
    expect(nearest('local_topics', words)).toBe('local_topic');
    expect(nearest('completely', words)).toBeNull();
    expect(nearest('x'.repeat(10_000), words)).toBeNull();
  });
});

describe('patterns', () => {
  const of = (source: string, ignoreCase = false): RegExp => {
    const pattern = compilePattern(source, ignoreCase);
    if (typeof pattern === 'string') throw new Error(pattern);
    return pattern;
  };

  test('a pattern runs on the linear engine', () => {
    expect(of('^(a+)+$')).toBeInstanceOf(LinearPattern);
    expect(of('^(a+)+$').test(`${'a'.repeat(5000)}!`)).toBe(false);
    expect(of('^sensor-').test('sensor-1')).toBe(true);
  });

  test('case is ignored where it is asked for, in texts, classes, ranges and groups', () => {
    const yes: [string, string][] = [
      ['^team-[ab]$', 'TEAM-B'],
      ['[a-f]+', 'CAFE'],
      ['(?:abc|é)$', 'É'],
      ['(?<name>x)\\d', 'X1'],
      ['a\\.b', 'A.B'],
      ['\\x41', 'A'],
    ];
    for (const [source, text] of yes) expect(of(source, true).test(text)).toBe(true);
    const no: [string, string][] = [
      ['^\\D$', '1'],
      ['^\\w$', '-'],
      ['^[^a]$', 'A'],
      ['a\\.b', 'AxB'],
    ];
    for (const [source, text] of no) expect(of(source, true).test(text)).toBe(false);
  });

  test('ordinary counts are taken and mean what they mean elsewhere', () => {
    const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
    for (const [source, text] of [
      ['^[0-9a-f]{32}$', 'a'.repeat(32)],
      ['^.{1,40}$', 'x'.repeat(40)],
      ['^\\w{20}$', 'x'.repeat(20)],
      [`^${uuid}$`, '01234567-89ab-cdef-0123-456789abcdef'],
      ['^[\\x21-\\x7e]{17,}$', 'y'.repeat(60)],
      ['^(?:[A-Z]{2}){20}$', 'AB'.repeat(20)],
      ['^dev-\\d{1,300}$', `dev-${'7'.repeat(300)}`],
    ] as const) {
      expect(of(source).test(text)).toBe(true);
      expect(of(source).test(`${text} `)).toBe(false);
      expect(of(source, true).test(text)).toBe(true);
    }
  });

  test('a pattern with counts written out matches and captures as the usual engine does', () => {
    const count = fc.oneof(
      fc.constantFrom('', '?', '*', '+', '{17}', '{0}', '{0,18}', '{2,20}', '{1,}', '{18,}?', '{1,17}?'),
    );
    const char = fc.constantFrom('a', 'b', '[ab]', '\\w', '(a)', '(?<n>b)', '(?:ab)', '(a|b)', '((a)b)');
    const piece = fc.tuple(char, count).map((parts) => parts.join(''));
    const source = fc.array(piece, { minLength: 1, maxLength: 4 }).map((parts) => `^${parts.join('')}$`);
    const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 60 });
    fc.assert(
      fc.property(source, text, (source, text) => {
        const usual = ((): RegExp | null => {
          try {
            return new RegExp(source);
          } catch {
            return null;
          }
        })();
        if (usual === null) return;
        expect([source, of(source).exec(text)?.[0]]).toEqual([source, usual.exec(text)?.[0]]);
      }),
      { numRuns: 500 },
    );
    expect(
      of('^(?<who>[a-z]{1,20})-([0-9]{2}){20}$')
        .exec(`ann-${'01'.repeat(19)}42`)
        ?.slice(1),
    ).toEqual(['ann', '42']);
  });

  test('what cannot run in linear time, or is no pattern, is refused', () => {
    for (const source of [
      '(a)\\1',
      '(?=a)b',
      '(?<!a)b',
      '\\\\(?<=a)b',
      '[(](?<!a)b',
      'a{1,1000}',
      '(?:(?:a{10}){10}){10}',
    ])
      expect(compilePattern(source, false)).toContain('unbounded time');
    for (const source of ['(?<name>a)b', '[(?<!a]b', '\\(\\?<!a'])
      expect(compilePattern(source, false)).toBeInstanceOf(RegExp);
    for (const source of ['(', '[a', '*', '\\'])
      expect(compilePattern(source, false)).toContain('not a regular expression');
    expect(compilePattern('x'.repeat(1001), false)).toContain('longer than 1000');
  });
});
