// How long what is read takes to leave: the histogram that turns are measured into, and its percentiles of the last
// minute or two. Declared by gateway/console.ts when somebody can look at it; read by events.ts. Costs nothing between
// two looks.
import type { Clock } from '../base/clock.ts';
import type { Histogram, Metrics } from '../base/metrics.ts';

const SPEC = {
  name: 'tidegate_publish_latency_seconds',
  text: 'Time from reading a piece of a connection to having written what it led to, everything in between included. One in 64 is measured',
  type: 'histogram',
  unit: 'seconds',
} as const;
/** From a turn of one small message to one that everybody notices. */
const BOUNDS = [
  ...[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
];
/** Percentiles are of what came since one or two of these ago. */
const WINDOW_MS = 60_000;

export function latencyHistogram(metrics: Metrics): Histogram {
  return metrics.histogram(SPEC, BOUNDS);
}

export class Latency {
  private readonly histogram: Histogram;
  private readonly clock: Clock;
  private older: Float64Array;
  private newer: Float64Array;
  private newerAt: number;

  constructor(metrics: Metrics, clock: Clock) {
    this.histogram = latencyHistogram(metrics);
    this.clock = clock;
    this.newerAt = clock.mono();
    this.older = this.histogram.counts.slice();
    this.newer = this.older;
  }

  /**
   * p-th percentile in seconds, even within a bucket; 0 when nothing was measured. The last bucket has no end: its
   * begin is given.
   */
  seconds(percent: number): number {
    this.roll();
    const { counts, bounds } = this.histogram;
    let all = 0;
    for (let i = 0; i < counts.length; i++) all += counts[i] - this.older[i];
    const wanted = (all * percent) / 100;
    let below = 0;
    for (let i = 0; i < bounds.length; i++) {
      const here = counts[i] - this.older[i];
      if (here > 0 && below + here >= wanted) {
        const from = i === 0 ? 0 : bounds[i - 1];
        return from + ((bounds[i] - from) * (wanted - below)) / here;
      }
      below += here;
    }
    return all === 0 ? 0 : bounds[bounds.length - 1];
  }

  /**
   * What was measured in the last minute or two: how many up to each bound (in seconds), and behind them those above
   * the last.
   */
  distribution(): { readonly bounds: readonly number[]; readonly counts: readonly number[] } {
    this.roll();
    const { counts, bounds } = this.histogram;
    return { bounds: [...bounds], counts: Array.from(counts, (count, i) => count - this.older[i]) };
  }

  private roll(): void {
    const nowMs = this.clock.mono();
    if (nowMs - this.newerAt < WINDOW_MS) return;
    this.older = this.newer;
    this.newer = this.histogram.counts.slice();
    this.newerAt = nowMs;
  }
}
