// Counts and rates.
import { describe, expect, it } from 'vitest';
import { ConnectionCount, Rate } from '../../src/proxy/limits.ts';

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
