// The metrics of tracing/, each once. Used by exporter.ts and sampler.ts.
import type { MetricSpec } from '../base/metrics.ts';

export const TRACING_METRICS = {
  messages: {
    name: 'tidegate_tracing_messages_total',
    text: 'Messages that were traced',
    type: 'counter',
    unit: 'messages',
  },
  skipped: {
    name: 'tidegate_tracing_skipped_total',
    text: 'Messages that were chosen and not traced, because of tracing.max_rate',
    type: 'counter',
    unit: 'messages',
  },
  exported: {
    name: 'tidegate_tracing_exported_total',
    text: 'Spans that the collector has taken',
    type: 'counter',
    unit: 'items',
  },
  dropped: {
    name: 'tidegate_tracing_dropped_total',
    text: 'Spans that were not exported, by reason: queue-full, refused, stopped',
    type: 'counter',
    unit: 'items',
  },
  failures: {
    name: 'tidegate_tracing_failures_total',
    text: 'Requests to the collector without success, repeated or not, by signal: traces, metrics',
    type: 'counter',
    unit: 'items',
  },
  queued: {
    name: 'tidegate_tracing_queued',
    text: 'Spans that wait',
    type: 'gauge',
    unit: 'items',
  },
} as const satisfies Record<string, MetricSpec>;
