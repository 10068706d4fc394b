// Metrics of the process itself: memory, processor time, event-loop lag, file descriptors, uptime. Declared once by
// gateway/console.ts. Values are read when somebody scrapes; the only thing that runs between is Node's own event-loop
// histogram. Names follow Prometheus' client conventions. Nothing is ever negative: monotonic clocks, values clamped at
// 0.
import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Clock, Timer } from '../base/clock.ts';
import type { MetricSpec, Metrics } from '../base/metrics.ts';
import type { Service } from '../base/service.ts';

/** Sampling of the event loop: 20 ms costs under 0.1 % of a core. */
const LAG_RESOLUTION_MS = 20;
/** Old delays are forgotten this often. */
const LAG_WINDOW_MS = 60_000;
/** Counting descriptors reads a directory; scrapes closer together share one count. */
const FD_CACHE_MS = 1000;
/** The shortest time a processor share is computed over. */
const CPU_WINDOW_MS = 500;

function gauge(name: string, text: string, unit: MetricSpec['unit']): MetricSpec {
  return { name, text, type: 'gauge', unit };
}

export class ProcessMetrics implements Service {
  private readonly metrics: Metrics;
  private readonly clock: Clock;
  private readonly version: string;
  private readonly startedMono: number;
  private readonly lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  private window: Timer | null = null;
  private fds = 0;
  private fdsAt = Number.NEGATIVE_INFINITY;
  private cpuAt: number;
  private cpuBefore = process.cpuUsage();
  private share = 0;
  private highestShare = 0;

  constructor(metrics: Metrics, clock: Clock, version: string) {
    this.version = version;
    this.metrics = metrics;
    this.clock = clock;
    this.startedMono = clock.mono();
    this.cpuAt = this.startedMono;
  }

  async start(): Promise<void> {
    this.lag.enable();
    const { metrics } = this;
    const startedSeconds = (this.clock.now() - this.uptimeMs()) / 1000;
    metrics.read(
      { name: 'process_cpu_seconds_total', text: 'Processor time of all threads.', type: 'counter', unit: 'seconds' },
      () => {
        const used = process.cpuUsage();
        return (used.user + used.system) / 1e6;
      },
    );
    metrics.read(gauge('process_resident_memory_bytes', 'Memory the process has in RAM.', 'bytes'), residentBytes);
    metrics.read(
      gauge('process_start_time_seconds', 'When the process started, seconds since the epoch.', 'seconds'),
      () => startedSeconds,
    );
    const build = { version: this.version, node: process.version };
    metrics.read(gauge('tidegate_build_info', 'Always 1; the labels say what runs.', 'none'), () => 1, build);
    metrics.read(gauge('process_max_fds', 'File descriptors the process may have open.', 'items'), maxDescriptors);
    metrics.read(gauge('process_open_fds', 'Open file descriptors.', 'items'), () => this.openFds());
    metrics.read(gauge('tidegate_uptime_seconds', 'How long the gateway has been running.', 'seconds'), () =>
      Math.max(0, this.uptimeMs() / 1000),
    );
    metrics.read(
      gauge('nodejs_heap_used_bytes', 'JavaScript heap in use.', 'bytes'),
      () => getHeapStatistics().used_heap_size,
    );
    metrics.read(
      gauge('nodejs_external_memory_bytes', 'Memory of buffers outside the JavaScript heap.', 'bytes'),
      () => getHeapStatistics().external_memory,
    );
    for (const [name, percent] of [
      ['p50', 50],
      ['p99', 99],
      ['max', 100],
    ] as const) {
      const text = `Delay of the event loop within the last minute or two, ${name}.`;
      metrics.read(gauge(`nodejs_eventloop_lag_${name}_seconds`, text, 'seconds'), () => this.lagSeconds(percent));
    }
    this.window = this.clock.every(LAG_WINDOW_MS, () => this.lag.reset());
  }

  async stop(): Promise<void> {
    this.window?.cancel();
    this.lag.disable();
  }

  uptimeMs(): number {
    return Math.max(0, this.clock.mono() - this.startedMono);
  }

  /** Share of one processor used since the last look, in percent; two looks close together give the same. */
  cpuPercent(): number {
    const nowMs = this.clock.mono();
    const passedMs = nowMs - this.cpuAt;
    if (passedMs >= CPU_WINDOW_MS) {
      const used = process.cpuUsage(this.cpuBefore);
      this.share = Math.max(0, ((used.user + used.system) / 1000 / passedMs) * 100);
      this.highestShare = Math.max(this.highestShare, this.share);
      this.cpuBefore = process.cpuUsage();
      this.cpuAt = nowMs;
    }
    return this.share;
  }

  /** The highest share seen by cpuPercent(). */
  get cpuPercentMax(): number {
    return this.highestShare;
  }

  /** p-th percentile of the event loop's delay in seconds, the sampling interval itself taken off. */
  lagSeconds(percent: number): number {
    const ns = this.lag.count === 0 ? 0 : this.lag.percentile(percent);
    return Math.max(0, ns / 1e9 - LAG_RESOLUTION_MS / 1000);
  }

  private openFds(): number {
    const nowMs = this.clock.mono();
    if (nowMs - this.fdsAt >= FD_CACHE_MS) {
      this.fdsAt = nowMs;
      try {
        // The directory being read is one of them.
        this.fds = Math.max(0, readdirSync('/proc/self/fd').length - 1);
      } catch {
        this.fds = 0;
      }
    }
    return this.fds;
  }
}

/** The soft limit, which may be raised while the process runs; 0 where it cannot be told. */
function maxDescriptors(): number {
  try {
    const found = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    if (found === null) return 0;
    return found[1] === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found[1]);
  } catch {
    return 0;
  }
}

/**
 * Resident memory in bytes; 0 where it cannot be told. Reading it takes a file descriptor: a gateway that has run out
 * of them must go on, and this is asked for by a timer.
 */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}
