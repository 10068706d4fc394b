// Verdicts remembered for a client: bounded in number, and in bytes where topics are long.
import { expect, it } from 'vitest';
import { Ledger } from '../../src/base/ledger.ts';
import { TopicVerdicts, UNKNOWN, Verdicts } from '../../src/session/verdicts.ts';

it('verdicts are remembered by topic, of long topics only the last one', () => {
  const verdicts = new Verdicts(new Ledger());
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
  const verdicts = new Verdicts(new Ledger());
  for (let n = 0; n < 5000; n++) verdicts.set(`t/${n}`, true);
  const known = Array.from({ length: 5000 }, (_, n) => verdicts.get(`t/${n}`)).filter((v) => v !== undefined).length;
  expect(known).toBeLessThanOrEqual(1000);
  expect(verdicts.get('t/4999')).toBe(true);
});

it('verdicts by serial are remembered for topics in a row, and forgotten rather than kept without bound or mixed up', () => {
  const verdicts = new TopicVerdicts(new Ledger());
  for (let serial = 1; serial <= 3000; serial++) verdicts.set(serial, serial % 3 === 0);
  for (let serial = 1; serial <= 3000; serial++) expect(verdicts.get(serial)).toBe(serial % 3 === 0 ? 1 : 0);
  const large = 2 ** 40 + 5;
  verdicts.set(large, true);
  expect([verdicts.get(large), verdicts.get(large + 4096), verdicts.get(large - 2 ** 32)]).toEqual([
    1,
    UNKNOWN,
    UNKNOWN,
  ]);
  verdicts.set(5 + 4096 * 7, false);
  expect(verdicts.get(5 + 4096 * 7)).toBe(0);
  expect([0, 1]).not.toContain(verdicts.get(large));
  verdicts.clear();
  expect(verdicts.get(3)).toBe(UNKNOWN);
});
