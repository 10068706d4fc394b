// Prometheus text from the registry: form, escapes, floats; promtool agrees.
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Metrics } from '../../src/base/metrics.ts';
import { renderMetrics, shownName, total } from '../../src/console/metrics.ts';
import { ask } from './request.ts';
import { ConsoleStage } from './standins.ts';

const COUNTER = { name: 'things_total', text: 'Things.', type: 'counter', unit: 'items' } as const;

function promtoolMissing(): string | null {
  return spawnSync('promtool', ['--version']).error === undefined ? null : 'promtool is not installed';
}

/** Throws with what promtool says when it refuses the page. */
function checkWithPromtool(text: string): void {
  const result = spawnSync('promtool', ['check', 'metrics'], { input: text });
  expect(`${result.stdout}${result.stderr}`.trim()).toBe('');
  expect(result.status).toBe(0);
}

test('a family has HELP and TYPE once, then its series together', () => {
  const metrics = new Metrics();
  metrics.cell(COUNTER, { kind: 'a' }).value = 1;
  metrics.cell({ ...COUNTER, name: 'other_total' }).value = 5;
  metrics.cell(COUNTER, { kind: 'b' }).value = 2.5;
  expect(renderMetrics(metrics)).toBe(
    '# HELP tidegate_other_total Things.\n# TYPE tidegate_other_total counter\ntidegate_other_total 5\n' +
      '# HELP tidegate_things_total Things.\n# TYPE tidegate_things_total counter\n' +
      'tidegate_things_total{kind="a"} 1\ntidegate_things_total{kind="b"} 2.5\n',
  );
});

test('label values and help are escaped', () => {
  const metrics = new Metrics();
  metrics.cell({ ...COUNTER, text: 'a\\b\nc' }, { l: 'q"\\\n\r' });
  const [help, , sample] = renderMetrics(metrics).split('\n');
  expect([help, sample]).toEqual([
    '# HELP tidegate_things_total a\\\\b\\nc',
    'tidegate_things_total{l="q\\"\\\\\\n"} 0',
  ]);
});

test('what is no finite number is written as Prometheus reads it', () => {
  const metrics = new Metrics();
  const gauge = { ...COUNTER, name: 'g', type: 'gauge' } as const;
  for (const value of [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 1e21]) {
    metrics.read(gauge, () => value, { v: String(value) });
  }
  expect(renderMetrics(metrics).match(/\S+$/gm)?.slice(-4)).toEqual(['+Inf', '-Inf', 'NaN', '1e+21']);
});

test('a histogram has cumulative buckets, sum and count', () => {
  const metrics = new Metrics();
  const histogram = metrics.histogram({ ...COUNTER, name: 'wait_seconds', type: 'histogram' }, [0.1, 1], { l: 'x' });
  for (const value of [0.05, 0.5, 0.6, 7]) histogram.observe(value);
  expect(renderMetrics(metrics).split('\n').slice(2)).toEqual([
    'tidegate_wait_seconds_bucket{l="x",le="0.1"} 1',
    'tidegate_wait_seconds_bucket{l="x",le="1"} 3',
    'tidegate_wait_seconds_bucket{l="x",le="+Inf"} 4',
    'tidegate_wait_seconds_sum{l="x"} 8.15',
    'tidegate_wait_seconds_count{l="x"} 4',
    '',
  ]);
});

test('an empty registry is an empty page, a family without series is not shown', () => {
  const metrics = new Metrics();
  expect(renderMetrics(metrics)).toBe('');
  metrics.cell(COUNTER, { bridge: 'b' });
  metrics.drop({ bridge: 'b' });
  expect(renderMetrics(metrics)).toBe('');
});

test('names get the prefix once', () => {
  expect(['x', 'tidegate_x', 'process_x', 'nodejs_x'].map(shownName)).toEqual([
    'tidegate_x',
    'tidegate_x',
    'process_x',
    'nodejs_x',
  ]);
});

test('a total is the sum over labels, whichever way the name is written', () => {
  const metrics = new Metrics();
  metrics.cell({ ...COUNTER, name: 'tidegate_things_total' }, { kind: 'a' }).value = 1;
  metrics.cell({ ...COUNTER, name: 'tidegate_things_total' }, { kind: 'b' }).value = 2;
  expect([total(metrics, 'things_total'), total(metrics, 'nothing')]).toEqual([3, 0]);
});

describe('of a running server', () => {
  let stage: ConsoleStage;
  beforeEach(async () => {
    stage = await new ConsoleStage().start();
  });
  afterEach(() => stage.stop());

  test('/metrics is Prometheus text with the process in it, and nothing negative', async () => {
    const reply = await ask(stage.server.port, 'GET', '/metrics');
    expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
      'process_open_fds',
      'tidegate_uptime_seconds',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(reply.text)?.[1];
      expect(Number(value), name).toBeGreaterThanOrEqual(0);
    }
  });

  test("/api/v4/prometheus has NanoMQ's names", async () => {
    const { text } = await ask(stage.server.port, 'GET', '/api/v4/prometheus');
    for (const name of ['connections', 'sessions', 'topics', 'subscribers']) {
      expect(text).toMatch(new RegExp(`^nanomq_${name}_count \\d+$`, 'm'));
      expect(text).toMatch(new RegExp(`^nanomq_${name}_max \\d+$`, 'm'));
    }
    expect(text).toMatch(/^nanomq_cpu_usage [\d.e+-]+$/m);
  });

  test("/api/v4/metrics has NanoMQ's members", async () => {
    stage.metrics.cell({ ...COUNTER, name: 'tidegate_clients_connected', type: 'gauge' }).value = 3;
    const { json } = await ask(stage.server.port, 'GET', '/api/v4/metrics');
    expect(json).toMatchObject({ metrics: [], connections: 3 });
    expect(json.cpuinfo).toMatch(/^\d+\.\d\d%$/);
    expect(Number(json.memory)).toBeGreaterThan(1e6);
  });

  const missing = promtoolMissing();
  test.skipIf(missing !== null)(
    `promtool accepts /metrics${missing === null ? '' : ` (skipped: ${missing})`}`,
    async () => {
      stage.metrics
        .histogram({ ...COUNTER, name: 'wait_seconds', type: 'histogram' }, [0.1, 1], { l: 'a"b' })
        .observe(0.5);
      checkWithPromtool((await ask(stage.server.port, 'GET', '/metrics')).text);
    },
  );
});
