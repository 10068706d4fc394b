// Verdicts remembered for a client: bounded in number, and in bytes where topics are long.
import { expect, it } from 'vitest';
import { Verdicts } from '../../src/session/verdicts.ts';

it('verdicts are remembered by topic, of long topics only the last one', () => {
  const verdicts = new Verdicts();
  const long = (n: number): string => `${n}/${'x'.repeat(60_000)}`;
  verdicts.set('a', true);
  verdicts.set('b', false);
  verdicts.set(long(1), true);
  verdicts.set(long(2), false);
  expect([verdicts.get('a'), verdicts.get('b'), verdicts.get('c')]).toEqual([true, false, undefined]);
  expect([verdicts.get(long(1)), verdicts.get(long(2))]).toEqual([undefined, false]);
  verdicts.clear();
  expect([verdicts.get('a'), verdicts.get(long(2))]).toEqual([undefined, undefined]);
});

it('verdicts of many topics are forgotten rather than kept without bound', () => {
  const verdicts = new Verdicts();
  for (let n = 0; n < 5000; n++) verdicts.set(`t/${n}`, true);
  const known = Array.from({ length: 5000 }, (_, n) => verdicts.get(`t/${n}`)).filter((v) => v !== undefined).length;
  expect(known).toBeLessThanOrEqual(1000);
  expect(verdicts.get('t/4999')).toBe(true);
});
