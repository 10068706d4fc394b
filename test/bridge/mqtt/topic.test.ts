// Topics over a bridge to a remote broker: mapping both ways, prefixes, wildcards.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mapTopic, TopicMapper } from '../../../src/bridge/mqtt/topic.ts';
import { hasWildcard, isTopicName, matches } from '../../../src/mqtt/topic.ts';

const CASES: readonly (readonly [filter: string, target: string, topic: string, mapped: string | null])[] = [
  ['up/#', '', 'up/a/b', 'up/a/b'],
  ['up/#', 'cloud/all', 'up/a/b', 'cloud/all'],
  ['up/#', 'cloud/#', 'up/a/b', 'cloud/a/b'],
  ['up/#', 'cloud/#', 'up', 'cloud'],
  ['#', 'site7/#', 'a/b', 'site7/a/b'],
  ['+/+/#', 'group1/system1/#', 'g/s/t/u', 'group1/system1/t/u'],
  ['a/+/b/+', '+/x/+', 'a/1/b/2', '1/x/2'],
  ['a/+/b', 'x/#', 'a/1/b', 'x/1'],
  ['a/+/+', 'x/+/#', 'a/1/2', 'x/1/2'],
  ['a/+', 'x/+/+/y', 'a/1', 'x/1/y'],
  ['a/b', 'x/#', 'a/b', 'x'],
  ['a/b', '+', 'a/b', null],
  ['a/+', 'x/+', 'a/', 'x/'],
];

for (const [filter, target, topic, mapped] of CASES) {
  test(`topic ${topic} by ${filter} -> ${target || '(keep)'} becomes ${mapped}`, () => {
    expect(mapTopic({ filter, target, prefix: '', suffix: '' }, topic)).toBe(mapped);
  });
}

test('prefix and suffix stand around the new topic', () => {
  expect(mapTopic({ filter: 'a/#', target: '', prefix: 'site7/', suffix: '/raw' }, 'a/b')).toBe('site7/a/b/raw');
  expect(mapTopic({ filter: 'a/#', target: 'x/#', prefix: 'p/', suffix: '/s' }, 'a/b')).toBe('p/x/b/s');
});

test('a wildcard never comes out, whatever the rule says', () => {
  const level = fc.constantFrom('a', 'b', '', '+', 'x');
  const tail = fc.boolean();
  const filter = fc
    .tuple(fc.array(level, { minLength: 1, maxLength: 4 }), tail)
    .map(([levels, rest]) => [...levels, ...(rest ? ['#'] : [])].join('/'));
  const topic = fc.array(fc.constantFrom('a', 'b', '', 'x'), { minLength: 1, maxLength: 5 }).map((l) => l.join('/'));
  fc.assert(
    fc.property(filter, filter, topic, (from, to, name) => {
      fc.pre(isTopicName(name) && matches(from, name));
      const mapped = mapTopic({ filter: from, target: to, prefix: '', suffix: '' }, name);
      expect(mapped === null || (isTopicName(mapped) && !hasWildcard(mapped))).toBe(true);
    }),
  );
});

test('a mapper says which topics the filter does not match', () => {
  const mapper = new TopicMapper({ filter: 'a/#', target: 'x/#', prefix: '', suffix: '' });
  expect(mapper.matches('b/c')).toBe(false);
  expect(mapper.matches('a/c')).toBe(true);
  expect(mapper.map('a/c')).toBe('x/c');
  expect(mapper.map('a/c')).toBe('x/c');
});

test.each([
  ['x/{json:site}/+', { site: 'north' }, 'x/north/k1'],
  ['x/{json:a.b}/#', { a: { b: 7 } }, 'x/7/k1'],
  ['{json:site}', { site: '$SYS' }, '_SYS'],
  ['x/{json:site}', { site: 'a/b+#' }, 'x/a_b__'],
  ['x/{json:site}', { other: 1 }, undefined],
  ['x/{json:site}', { site: {} }, undefined],
  ['x/{json:site}', undefined, undefined],
])('target %s with the fields of %j makes %s', (target, value, wanted) => {
  const mapper = new TopicMapper({ filter: 'sensor/+', target, prefix: '', suffix: '' });
  expect(mapper.json).toBe(true);
  expect(mapper.mapFrom('sensor/k1', value)).toBe(wanted);
});

test('the topic of a message brings no field names', () => {
  const mapper = new TopicMapper({ filter: 'sensor/+', target: '{json:site}/+', prefix: '', suffix: '' });
  expect(mapper.mapFrom('sensor/{json:secret}', { site: 'n', secret: 's' })).toBe('n/{json:secret}');
});
