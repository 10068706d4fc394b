// Counts and rates.
import { describe, expect, it } from 'vitest';
import { ConnectionCount, KeyedRate, Rate } from '../../src/proxy/limits.ts';

describe('a connection count', () => {
  it('lets in as many as allowed, and others when some have left', () => {
    const count = new ConnectionCount();
    expect([1, 2, 3].map(() => count.enter('a', 2))).toEqual([true, true, false]);
    expect(count.enter('b', 2)).toBe(true);
    count.leave('a');
    expect(count.enter('a', 2)).toBe(true);
  });

  it('counts without a limit too, and forgets keys that have none left', () => {
    const count = new ConnectionCount();
    for (let i = 0; i < 10; i++) count.enter('a', 0);
    expect(count.full('a', 10)).toBe(true);
    for (let i = 0; i < 10; i++) count.leave('a');
    expect(count.size).toBe(0);
  });
});

describe('a rate of keys', () => {
  it('lets each key have its burst, then as many as time allows, and bans one that is above', () => {
    const rate = new KeyedRate();
    const options = { perSecond: 1, burst: 3, banMs: 10_000 };
    const take = (key: string, nowMs: number): boolean => rate.take(key, options, nowMs);
    expect([1, 2, 3].map(() => take('a', 0))).toEqual([true, true, true]);
    expect([take('b', 0), take('a', 1000), take('a', 1500), rate.banned('a', 1500)]).toEqual([true, true, false, true]);
    expect([take('a', 11_499), take('b', 11_499), rate.banned('b', 11_499)]).toEqual([false, true, false]);
    expect([rate.banned('a', 11_500), take('a', 11_500)]).toEqual([false, true]);
  });

  it('forgets the key that came longest ago beyond its bound', () => {
    const rate = new KeyedRate();
    const options = { perSecond: 0.001, burst: 1, banMs: 0 };
    expect([rate.take('a', options, 0), rate.take('a', options, 0)]).toEqual([true, false]);
    for (let i = 0; i < 100_000; i++) rate.take(`k${i}`, options, 0);
    expect([rate.take('a', options, 0), rate.take('k99999', options, 0)]).toEqual([true, false]);
  });
});

describe('a rate', () => {
  it('lets a second of its amount through at once, then as many as time allows', () => {
    const rate = new Rate();
    expect([1, 2, 3, 4].map(() => rate.take(3, 1000))).toEqual([true, true, true, false]);
    expect(rate.take(3, 1300)).toBe(false);
    expect(rate.take(3, 1400)).toBe(true);
    expect([1, 2, 3, 4].map(() => rate.take(3, 60_000))).toEqual([true, true, true, false]);
  });

  it('below one a second lets one through', () => {
    const rate = new Rate();
    expect([0, 1000, 9000, 10_000].map((at) => rate.take(0.1, at))).toEqual([true, false, false, true]);
  });

  it('of 0 is none', () => {
    const rate = new Rate();
    for (let i = 0; i < 1000; i++) expect(rate.take(0, 0)).toBe(true);
  });

  it('tells how long a debt has to wait', () => {
    const rate = new Rate();
    expect(rate.owe(10, 10, 0)).toBe(0);
    expect(rate.owe(5, 10, 0)).toBe(500);
    expect(rate.owe(0, 10, 0)).toBe(0);
    expect(rate.owe(1, 10, 600)).toBe(0);
  });
});
