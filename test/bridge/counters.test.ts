// Counters of bridge rules: which series are there before anything has happened.
import { expect, test } from 'vitest';
import { Metrics } from '../../src/base/metrics.ts';
import { DROPS, RuleCounters } from '../../src/bridge/counters.ts';

const NAME = 'tidegate_bridge_dropped_total';

test.each(Object.entries(DROPS))('what a rule of kind %s may drop is 0 from the start', (_, reasons) => {
  const metrics = new Metrics();
  const counters = new RuleCounters(metrics, 'b', 'pair', '0', reasons);
  const values = reasons.map((reason) => metrics.value(NAME, { bridge: 'b', type: 'pair', rule: '0', reason }));
  expect(values).toEqual(reasons.map(() => 0));
  expect(counters.view(0).dropped).toEqual({});
});

test('a view names what was dropped', () => {
  const counters = new RuleCounters(new Metrics(), 'b', 'sub', '0', DROPS.in);
  counters.drop('rate');
  counters.drop('rate');
  expect(counters.view(0).dropped).toEqual({ rate: 2 });
});
