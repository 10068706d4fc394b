// The exporter against a collector of the test: batches, failures, bounds, metrics.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { nullLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Exporter } from '../../src/tracing/exporter.ts';
import { nanoseconds } from '../../src/tracing/otlp.ts';
import type { Span } from '../../src/tracing/span.ts';
import type { TracingSettings } from '../../src/tracing/tracing.ts';
import { Collector } from '../harness/collector.ts';

let collector: Collector;
let exporter: Exporter | null = null;
let metrics: Metrics;
/** Pauses that were asked for; they pass at once. */
let pauses: number[];

beforeEach(async () => {
  collector = await new Collector().start();
  metrics = new Metrics();
  pauses = [];
});
afterEach(async () => {
  await exporter?.stop(0);
  exporter = null;
  await collector.stop();
  expect(collector.problems).toEqual([]);
});

/** The system's, but what waits for a second or more does not. */
const hasty: Clock = {
  ...systemClock,
  now: () => systemClock.now(),
  mono: () => systemClock.mono(),
  every: (ms, fn) => systemClock.every(ms, fn),
  after: (ms, fn) => {
    // The timeout of requests is left alone.
    if (ms < 1000 || ms === 5000) return systemClock.after(ms, fn);
    pauses.push(ms);
    return systemClock.after(0, fn);
  },
};

function start(more: Partial<TracingSettings> = {}): Exporter {
  const settings: TracingSettings = {
    url: `${collector.url}/otlp/`,
    headers: [['X-Key', 'k']],
    tls: null,
    timeoutMs: 5000,
    serviceName: 'edge-1',
    ratio: 1,
    parents: true,
    maxRate: 1000,
    queueLength: 100,
    batchSize: 10,
    intervalMs: 20,
    metricsIntervalMs: 0,
    ...more,
  };
  exporter = new Exporter(settings, { clock: hasty, log: nullLog, metrics, version: '1.2.3' });
  exporter.start();
  return exporter;
}

function span(topic = 't'): Span {
  const ids = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null };
  const times = { startMs: 1_700_000_000_000.25, endMs: 1_700_000_000_001.5 };
  return {
    name: 'receive',
    kind: 5,
    ...ids,
    ...times,
    topic,
    bytes: 1,
    qos: 0,
    clientId: 'c',
    part: null,
    reasonCode: 0,
  };
}

const value = (name: string, labels = {}): number | undefined => metrics.value(`tidegate_tracing_${name}`, labels);

test('spans go in batches to the path of traces below the URL', async () => {
  const one = start();
  for (let i = 0; i < 25; i++) one.take(span(`t${i}`));
  await collector.until(() => collector.spans.length === 25);
  expect(collector.spans.map((seen) => seen.attributes['messaging.destination.name'])).toEqual(
    Array.from({ length: 25 }, (_, i) => `t${i}`),
  );
  expect(collector.requests.map(({ url }) => url)).toContain('/otlp/v1/traces');
  expect(collector.requests.every(({ spans }) => spans <= 10)).toBe(true);
  expect(collector.requests[0].headers['x-key']).toBe('k');
});

test('a collector that is busy or away gets the same spans again, after growing pauses or the one it asks for', async () => {
  const one = start();
  collector.answers.push({ status: 503 }, null, { status: 429, headers: { 'retry-after': '30' } });
  one.take(span('kept'));
  await collector.until(() => collector.spans.length === 1);
  expect(pauses).toEqual([1000, 2000, 30_000]);
  expect(value('failures_total', { signal: 'traces' })).toBe(3);
});

test('what the collector refuses is dropped and counted, and the next batch goes on', async () => {
  const one = start({ batchSize: 2 });
  collector.answers.push(
    { status: 400, body: 'bad' },
    { status: 200, body: '{"partialSuccess":{"rejectedSpans":"1"}}' },
  );
  for (let i = 0; i < 6; i++) one.take(span());
  await collector.until(() => collector.spans.length === 4);
  await one.stop(1000);
  expect(value('dropped_total', { reason: 'refused' })).toBe(3);
  expect(value('exported_total')).toBe(3);
});

test('spans past the queue are dropped and counted, those that wait at the stop too', async () => {
  const one = start({ queueLength: 5, batchSize: 100, intervalMs: 100_000 });
  for (let i = 0; i < 8; i++) one.take(span());
  expect(value('dropped_total', { reason: 'queue-full' })).toBe(3);
  expect(value('queued')).toBe(5);
  await one.stop(0);
  expect((value('dropped_total', { reason: 'stopped' }) ?? 0) + (value('exported_total') ?? 0)).toBe(5);
});

test('a stop sends what waits', async () => {
  const one = start({ intervalMs: 100_000 });
  one.take(span('last'));
  await one.stop(10_000);
  expect(collector.spans).toHaveLength(1);
  expect(value('exported_total')).toBe(1);
});

test('counters, gauges and histograms are exported; numbers that JSON has not are left out', async () => {
  metrics.cell({ name: 'a_total', text: 'A', type: 'counter', unit: 'messages' }, { kind: 'x' }).value = 7;
  metrics.read({ name: 'b', text: 'B', type: 'gauge', unit: 'bytes' }, () => 1.5);
  metrics.read({ name: 'c', text: 'C', type: 'gauge', unit: 'none' }, () => Number.NaN);
  metrics.histogram({ name: 'd', text: 'D', type: 'histogram', unit: 'seconds' }, [0.1, 1]).observe(0.5);
  start({ metricsIntervalMs: 20 });
  await collector.until(() => collector.metrics.size > 0);
  expect(collector.metrics.get('a_total')).toMatchObject({
    sum: {
      isMonotonic: true,
      dataPoints: [{ asDouble: 7, attributes: [{ key: 'kind', value: { stringValue: 'x' } }] }],
    },
  });
  expect(collector.metrics.get('b')).toMatchObject({ unit: 'By', gauge: { dataPoints: [{ asDouble: 1.5 }] } });
  expect(collector.metrics.has('c')).toBe(false);
  expect(collector.metrics.get('d')).toMatchObject({
    histogram: { dataPoints: [{ count: '1', sum: 0.5, bucketCounts: ['0', '1', '0'], explicitBounds: [0.1, 1] }] },
  });
});

test('long texts that a client chose are cut', async () => {
  const one = start();
  one.take(span('x'.repeat(60_000)));
  await collector.until(() => collector.spans.length === 1);
  expect(collector.spans[0].attributes['messaging.destination.name']).toHaveLength(256);
});

test('milliseconds become nanoseconds without rounding', () => {
  expect(nanoseconds(1_700_000_000_000)).toBe('1700000000000000000');
  expect(nanoseconds(1_700_000_000_000.25)).toBe('1700000000000250000');
  expect(nanoseconds(1_700_000_000_000 - 2 ** -12)).toBe('1699999999999999756');
});
