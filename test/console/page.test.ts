// Pages of long lists, targets and queries: the pure parts.
import { describe, expect, test } from 'vitest';
import { collect, walk } from '../../src/console/page.ts';
import { readQuery, readTarget } from '../../src/console/target.ts';
import { asText, fromBase64, payloadFields } from '../../src/console/text.ts';

describe('walk', () => {
  test('lets other work in between', async () => {
    let turns = 0;
    const count = setImmediate(function again() {
      turns++;
      handle = setImmediate(again);
    });
    let handle = count;
    await walk(Array(10_000).keys(), () => true);
    clearImmediate(handle);
    expect(turns).toBeGreaterThan(2);
  });

  test('ends when told to', async () => {
    let seen = 0;
    await walk(Array(100).keys(), () => ++seen < 5);
    expect(seen).toBe(5);
  });

  test('goes on while the map it walks changes', async () => {
    const map = new Map(Array.from({ length: 5000 }, (_, i) => [i, i]));
    const page = await collect(
      map.keys(),
      (i) => map.delete(i + 1) || true,
      (i) => i,
      { page: 1, limit: 10 },
    );
    expect(page.rows).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
  });
});

describe('readTarget', () => {
  test.each([
    '',
    'x',
    '*',
    '/\\',
    '//',
    '/a//b',
    '/./a',
    '/a/..',
    '/%2e',
    '/a/%2E%2e/b',
    '/%zz',
    '/a%',
    '/%00',
    '/?%zz',
  ])('%j is refused', (url) => {
    expect(readTarget(url)).toBeNull();
  });

  test('a plain one is split and decoded once', () => {
    expect(readTarget('/a/%25?x=%20')).toEqual({ path: '/a/%25', decoded: '/a/%', query: 'x=%20' });
  });
});

describe('readQuery', () => {
  test('reads what is known', () => {
    expect(readQuery('a=1&b=x+y%2F', new Set(['a', 'b']))).toEqual(
      new Map([
        ['a', '1'],
        ['b', 'x y/'],
      ]),
    );
  });

  test.each(['a=1&a=2', 'c=1', '__proto__=1'])('%s is refused', (query) => {
    expect(readQuery(query, new Set(['a', 'b']))).toBeTypeOf('string');
  });
});

describe('bytes', () => {
  test.each(['a', 'ab', 'a===', 'a\n==', 'ab==ab==', '-_==', 'ab=c'])('%j is no base64', (text) => {
    expect(fromBase64(text)).toBeNull();
  });

  test('bytes that are no UTF-8 are shown in base64 only', () => {
    expect(asText(Buffer.from([0xff]))).toBeNull();
    expect(payloadFields(Buffer.from([0xff]), 'p')).toEqual({ p_base64: '/w==' });
    expect(payloadFields(Buffer.from('é'), 'p')).toEqual({ p: 'é', p_base64: 'w6k=' });
  });
});
