// Percentiles of the last minute or two over the latency histogram, and that turns are measured into it.
import { expect, test } from 'vitest';
import { Metrics } from '../../src/base/metrics.ts';
import { Turn } from '../../src/base/turn.ts';
import { Latency, latencyHistogram } from '../../src/console/latency.ts';
import { FakeClock } from '../harness/clock.ts';

test('percentiles lie within the bucket of the value', () => {
  const metrics = new Metrics();
  const latency = new Latency(metrics, new FakeClock());
  expect([latency.seconds(50), latency.seconds(99)]).toEqual([0, 0]);
  const histogram = latencyHistogram(metrics);
  for (let i = 0; i < 98; i++) histogram.observe(0.000_08);
  histogram.observe(0.004);
  histogram.observe(0.004);
  expect(latency.seconds(50)).toBeGreaterThan(0.000_05);
  expect(latency.seconds(50)).toBeLessThanOrEqual(0.000_1);
  expect(latency.seconds(99)).toBeGreaterThan(0.002_5);
  expect(latency.seconds(99)).toBeLessThanOrEqual(0.005);
});

test('what is longer than the last bound counts as the last bound', () => {
  const metrics = new Metrics();
  latencyHistogram(metrics);
  const latency = new Latency(metrics, new FakeClock());
  latencyHistogram(metrics).observe(30);
  expect(latency.seconds(99)).toBe(1);
});

test('the distribution has a count for each bound and one for what is above', () => {
  const metrics = new Metrics();
  const clock = new FakeClock();
  const latency = new Latency(metrics, clock);
  for (const seconds of [0.000_005, 0.000_01, 0.3, 30]) latencyHistogram(metrics).observe(seconds);
  const { bounds, counts } = latency.distribution();
  expect([bounds[0], bounds.at(-1), counts.length]).toEqual([0.000_01, 1, bounds.length + 1]);
  expect([counts[0], counts.at(-2), counts.at(-1)]).toEqual([2, 1, 1]);
  clock.advance(60_000);
  latency.distribution();
  clock.advance(60_000);
  expect(Math.max(...latency.distribution().counts)).toBe(0);
});

test('what was more than two minutes ago is forgotten', () => {
  const metrics = new Metrics();
  const clock = new FakeClock();
  const latency = new Latency(metrics, clock);
  latencyHistogram(metrics).observe(0.1);
  for (let minute = 0; minute < 2; minute++) {
    clock.advance(60_000);
    latency.seconds(50);
  }
  expect(latency.seconds(50)).toBe(0);
});

test('every 64th turn is measured as a whole, turns within it and within its flush are not', () => {
  const clock = new FakeClock();
  const histogram = latencyHistogram(new Metrics());
  const turn = new Turn();
  turn.measure(clock, histogram);
  const flushes = {
    dirty: false,
    flush(): void {
      clock.advance(3);
      turn.enter();
      turn.leave();
    },
  };
  for (let i = 0; i < 63; i++) {
    turn.enter();
    turn.leave();
  }
  expect(histogram.count).toBe(0);
  turn.enter();
  turn.enter();
  turn.touch(flushes);
  clock.advance(2);
  turn.leave();
  turn.leave();
  expect([histogram.count, histogram.sum]).toEqual([1, 0.005]);
});

test('turns are not measured unless somebody asked for it', () => {
  const turn = new Turn();
  for (let i = 0; i < 200; i++) {
    turn.enter();
    turn.leave();
  }
  const histogram = latencyHistogram(new Metrics());
  turn.measure(new FakeClock(), histogram);
  expect(histogram.count).toBe(0);
});
