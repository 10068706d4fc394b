// Topic names and filters, shares, levels, matching (MQTT 5.0 section 4.7).
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  captures,
  exceedsLevels,
  hasWildcard,
  isShared,
  isTopicFilter,
  isTopicName,
  levels,
  matches,
  parseShare,
} from '../../src/mqtt/topic.ts';

describe('isTopicName', () => {
  it.each([
    'a',
    '/',
    '//',
    'a/b',
    'a//b',
    '/a',
    'a/',
    '$SYS/x',
    'Ü/→/😀',
    ' ',
    '\ufeff',
    'x'.repeat(65_535),
    '€'.repeat(21_845),
  ])('accepts %j [MQTT-4.7.3-1]', (name) => expect(isTopicName(name)).toBe(true));
  it.each(['a\tb', '\u0001', '\u007f', '\u0085'])(
    'accepts the control character in %j: the policy [MQTT-1.5.4-2]',
    (name) => expect(isTopicName(name)).toBe(true),
  );
  it.each(['#', '+', 'a/#', 'a/+', '+/a', 'a+', 'a#b'])(
    'refuses the wildcard in %j [MQTT-3.3.2-2] [MQTT-4.7.1-1]',
    (name) => expect(isTopicName(name)).toBe(false),
  );
  it('refuses a name without a character [MQTT-4.7.3-1]', () => expect(isTopicName('')).toBe(false));
  it('refuses U+0000 [MQTT-4.7.3-2]', () => expect(isTopicName('a\0b')).toBe(false));
  it.each(['\ud800', 'a\udfff', '\ude00\ud83d', 'a\ud83d'])(
    'refuses the unpaired surrogate in %j [MQTT-1.5.4-1]',
    (name) => expect(isTopicName(name)).toBe(false),
  );
  it.each(['x'.repeat(65_536), '€'.repeat(21_846), '😀'.repeat(16_384)])(
    'refuses more than 65,535 bytes [MQTT-4.7.3-3]',
    (name) => expect(isTopicName(name)).toBe(false),
  );
});

describe('isTopicFilter', () => {
  it.each([
    'a',
    '/',
    '#',
    '+',
    '+/+',
    '/+',
    '+/',
    'a/#',
    'a/+/#',
    '/#',
    '+/#',
    'a/+/b',
    '$SYS/#',
    '$share/g/t',
    'a//+',
    'x\ty/+',
  ])('accepts %j [MQTT-4.7.1-2] [MQTT-4.7.1-3]', (filter) => expect(isTopicFilter(filter)).toBe(true));
  it.each(['#abc', 'a/#/b', 'a+', 'a/+b', 'a/b#', '++', '##', '#/', '+#', '#+', 'a/++/b', '+a/b', '/#/'])(
    'refuses the wildcard in %j [MQTT-4.7.1-2] [MQTT-4.7.1-3]',
    (filter) => expect(isTopicFilter(filter)).toBe(false),
  );
  it('refuses a filter without a character [MQTT-4.7.3-1]', () => expect(isTopicFilter('')).toBe(false));
  it('refuses U+0000 [MQTT-4.7.3-2]', () => expect(isTopicFilter('a/\0')).toBe(false));
  it('refuses an unpaired surrogate [MQTT-1.5.4-1]', () => expect(isTopicFilter('+/\ud800/#')).toBe(false));
  it('refuses more than 65,535 bytes [MQTT-4.7.3-3]', () =>
    expect(isTopicFilter(`${'x'.repeat(65_534)}/#`)).toBe(false));
});

describe('parseShare', () => {
  it.each([
    ['$share/g/t', 'g', 't'],
    ['$share/g/#', 'g', '#'],
    ['$share/a b/+/x', 'a b', '+/x'],
    ['$share/g//t', 'g', '/t'],
    ['$share/g//', 'g', '/'],
    ['$share/$g/$SYS/#', '$g', '$SYS/#'],
  ])('takes %s apart [MQTT-4.8.2-1]', (filter, shareName, topicFilter) =>
    expect(parseShare(filter)).toEqual({ shareName, topicFilter }),
  );
  it.each([
    '$share/',
    '$share//',
    '$share//t',
    '$share/g',
    '$share/g/',
    '$share/g+/t',
    '$share/+/t',
    '$share/#/t',
    '$share/g#/t',
  ])('refuses %s [MQTT-4.8.2-1] [MQTT-4.8.2-2]', (filter) => expect(parseShare(filter)).toBeNull());
  it.each(['$share/g/a+', '$share/g/#/a', '$share/g/\0'])(
    'refuses the ill-formed filter in %j [MQTT-4.8.2-2]',
    (filter) => expect(parseShare(filter)).toBeNull(),
  );
  it('takes $share alone for an ordinary filter', () => expect(isShared('$share')).toBe(false));
  it('compares $share by case', () => expect(isShared('$SHARE/g/t')).toBe(false));
});

describe('levels', () => {
  it('keeps empty levels', () => expect(levels('/a//')).toEqual(['', 'a', '', '']));
  it.each([
    ['a', 1, false],
    ['a/b', 1, true],
    ['a/b', 2, false],
    ['//', 2, true],
    ['//', 3, false],
    ['', 1, false],
  ])('of %j exceed %i: %j', (text, max, wanted) => expect(exceedsLevels(text, max)).toBe(wanted));
  it('exceed any limit below their number', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('', 'a', 'bb'), { minLength: 1 }),
        fc.integer({ min: 1, max: 20 }),
        (parts, max) => {
          expect(exceedsLevels(parts.join('/'), max)).toBe(parts.length > max);
        },
      ),
    );
  });
});

describe('hasWildcard', () => {
  it.each([
    ['a/b', false],
    ['+', true],
    ['a/#', true],
    ['$SYS/x', false],
  ])('of %s is %j', (filter, wanted) => expect(hasWildcard(filter)).toBe(wanted));
});

describe('matches', () => {
  it.each([
    ['sport/tennis/player1/#', 'sport/tennis/player1'],
    ['sport/tennis/player1/#', 'sport/tennis/player1/ranking'],
    ['sport/tennis/player1/#', 'sport/tennis/player1/score/wimbledon'],
    ['sport/#', 'sport'],
    ['#', 'a'],
    ['#', '/'],
    ['sport/tennis/+', 'sport/tennis/player1'],
    ['sport/+', 'sport/'],
    ['+/+', '/finance'],
    ['/+', '/finance'],
    ['a/+/c', 'a//c'],
    ['/+', '/'],
    ['+/+', '/'],
    ['$SYS/#', '$SYS/broker'],
    ['$SYS/+', '$SYS/broker'],
    ['a/#', 'a/'],
    ['a/$x', 'a/$x'],
    ['a/+', 'a/$x'],
    ['\ufeffa', '\ufeffa'],
  ])('%s takes %s [MQTT-4.7.1-2] [MQTT-4.7.1-3]', (filter, topic) => expect(matches(filter, topic)).toBe(true));
  it.each([
    ['sport/tennis/+', 'sport/tennis/player1/ranking'],
    ['sport/+', 'sport'],
    ['+', '/finance'],
    ['a/+', 'a'],
    ['ACCOUNTS', 'Accounts'],
    ['/finance', 'finance'],
    ['a', 'a/'],
    ['a/b/#', 'a'],
    ['a/#', 'ab'],
    ['', 'a'],
    ['\ufeffa', 'a'],
    ['é', 'e\u0301'],
  ])('%s does not take %s [MQTT-4.7.3-4]', (filter, topic) => expect(matches(filter, topic)).toBe(false));
  it.each(['#', '+/#', '+', '+/+', '+/monitor/Clients'])(
    '%s does not take topics that begin with $ [MQTT-4.7.2-1]',
    (filter) => {
      for (const topic of ['$SYS', '$SYS/monitor/Clients', '$SYS/x', '$other/x'])
        expect(matches(filter, topic)).toBe(false);
    },
  );

  it('agrees with a regular expression made of the filter', () => {
    const level = fc.constantFrom('', 'a', 'b', '$x', 'ü', 'a b');
    const topic = fc.array(level, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));
    const filter = fc
      .tuple(fc.array(fc.oneof(level, fc.constant('+')), { minLength: 1, maxLength: 5 }), fc.boolean())
      .map(([parts, open]) => (open ? [...parts, '#'] : parts).join('/'));
    fc.assert(
      fc.property(filter, topic, (f, t) => {
        expect(matches(f, t)).toBe(model(f).test(t));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('captures', () => {
  it.each([
    ['a/b', 'a/b', []],
    ['+/b/+', 'a/b/c', ['a', 'c']],
    ['+/+', '/', ['', '']],
    ['a/#', 'a/b/c', ['b/c']],
    ['a/+/#', 'a/b/', ['b', '']],
    ['a/#', 'a', [null]],
    ['#', 'a/b', ['a/b']],
  ])('of %s in %s are what each wildcard stands for', (filter, topic, expected) => {
    expect(captures(filter, topic)).toEqual(expected);
  });
});

/** The filter as a regular expression, written from section 4.7 without looking at levels. */
function model(filter: string): RegExp {
  const first = filter.startsWith('+') || filter.startsWith('#') ? '(?!\\$)' : '';
  const body = filter
    .replace(/[$.*?()[\]{}|\\^]/g, '\\$&')
    .replaceAll('+', '[^/]*')
    .replace(/(^|\/)#$/, (_, slash) => (slash === '/' ? '(/.*)?' : '.*'));
  return new RegExp(`^${first}${body}$`, 's');
}
