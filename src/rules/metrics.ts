// Metrics of rules: one table. Used by rule.ts.
import type { MetricSpec } from '../base/metrics.ts';

export const RULE_METRICS = {
  matched: {
    name: 'tidegate_rule_matched_total',
    text: 'Messages that a rule has looked at',
    type: 'counter',
    unit: 'messages',
  },
  passed: {
    name: 'tidegate_rule_passed_total',
    text: 'Messages that a rule has sent on',
    type: 'counter',
    unit: 'messages',
  },
  dropped: {
    name: 'tidegate_rule_dropped_total',
    text: 'Messages that a rule has not sent on, by reason',
    type: 'counter',
    unit: 'messages',
  },
} as const satisfies Record<string, MetricSpec>;
