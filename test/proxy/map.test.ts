// Tables and shares: NGINX's precedence, and its hash for splitting clients.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseShare, compileMap, murmur2 } from '../../src/proxy/map.ts';

const table = (values: Record<string, string>, fields: { ignoreCase?: boolean; hostnames?: boolean } = {}) =>
  compileMap({
    ignoreCase: false,
    hostnames: true,
    default: 'default',
    values: Object.entries(values).map(([key, upstream]) =>
      key.startsWith('~') ? { key, pattern: new RegExp(key.slice(1)), upstream } : { key, pattern: null, upstream },
    ),
    ...fields,
  });

describe('a map', () => {
  it('prefers texts, then the longest *. mask, the longest .* mask, the first pattern, the default', () => {
    const { find } = table({
      '~a': 'pattern1',
      '~a.b': 'pattern2',
      'x.*': 'prefix',
      'x.a.*': 'prefix2',
      '*.b': 'suffix',
      '*.a.b': 'suffix2',
      'x.a.b': 'text',
    });
    expect(['x.a.b', 'y.a.b', 'y.b', 'x.a.c', 'x.c', 'q-a-b', 'q'].map(find)).toEqual([
      'text',
      'suffix2',
      'suffix',
      'prefix2',
      'prefix',
      'pattern1',
      'default',
    ]);
  });

  it('takes .name for the name and all below it', () => {
    const { find } = table({ '.example.org': 'own' });
    expect(['example.org', 'a.example.org', 'xexample.org'].map(find)).toEqual(['own', 'own', 'default']);
  });

  it('heeds case unless told otherwise, and masks only when told', () => {
    expect(table({ Dev: 'x' }).find('dev')).toBe('default');
    expect(table({ Dev: 'x' }, { ignoreCase: true }).find('dEV')).toBe('x');
    expect(table({ '*.b': 'x' }, { hostnames: false }).find('a.b')).toBe('default');
    expect(table({ '*.b': 'x' }, { hostnames: false }).find('*.b')).toBe('x');
  });
});

/** MurmurHash2 in whole numbers without limits, as its author describes it. */
function reference(data: Uint8Array): number {
  const mask = 0xffffffffn;
  const m = 0x5bd1e995n;
  const times = (a: bigint, b: bigint): bigint => (a * b) & mask;
  let h = BigInt(data.length);
  let at = 0;
  for (; at + 4 <= data.length; at += 4) {
    let k = 0n;
    for (let i = 3; i >= 0; i--) k = (k << 8n) | BigInt(data[at + i]);
    k = times(k, m);
    k = times(k ^ (k >> 24n), m);
    h = times(h, m) ^ k;
  }
  if (at < data.length) {
    for (let i = data.length - 1; i >= at; i--) h ^= BigInt(data[i]) << BigInt(8 * (i - at));
    h = times(h, m);
  }
  h = times(h ^ (h >> 13n), m);
  return Number(h ^ (h >> 15n));
}

describe('shares', () => {
  it('hash like MurmurHash2', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (data) => {
        expect(murmur2(Buffer.from(data))).toBe(reference(data));
      }),
    );
  });

  it('hold what they promise, and every client keeps its own', () => {
    const shares = [
      { percent: 1000, upstream: 'new' },
      { percent: -1, upstream: 'old' },
    ];
    const counts = { new: 0, old: 0 };
    for (let i = 0; i < 10_000; i++) {
      const share = chooseShare(shares, `client-${i}`) as 'new' | 'old';
      counts[share]++;
      expect(chooseShare(shares, `client-${i}`)).toBe(share);
    }
    expect(counts.new).toBeGreaterThan(850);
    expect(counts.new).toBeLessThan(1150);
  });

  it('of 100 percent leave nobody out, of less some', () => {
    const half = [{ percent: 5000, upstream: 'a' }];
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    expect(keys.every((key) => chooseShare([...half, { percent: 5000, upstream: 'b' }], key) !== null)).toBe(true);
    expect(new Set(keys.map((key) => chooseShare(half, key)))).toEqual(new Set(['a', null]));
  });
});
