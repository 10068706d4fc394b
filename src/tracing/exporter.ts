// Sends spans and metrics to the collector: spans in batches from a bounded queue, one request at a time, metrics as
// they are at the moment. Made by tracing.ts. A collector that is away or busy is asked again, later and later (or when
// it says); what it refuses is dropped and counted, and so is what finds the queue full. Metrics that could not be sent
// are in the next ones. Source: the OTLP specification, "OTLP/HTTP Response" and "Failures".
import { hostname } from 'node:os';
import type { Timer } from '../base/clock.ts';
import { parseJson } from '../base/json.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Cell } from '../base/metrics.ts';
import { type PostAnswer, Poster } from '../base/post.ts';
import { Fifo } from '../base/queue.ts';
import { TRACING_METRICS } from './metrics.ts';
import { metricsBody, type Resource, tracesBody } from './otlp.ts';
import type { Span, SpanTaker } from './span.ts';
import type { TracingParts, TracingSettings } from './tracing.ts';

const TRACES_PATH = '/v1/traces';
const METRICS_PATH = '/v1/metrics';
/** Pauses while the collector is away: doubling from the first to the longest. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** A collector may ask for a longer pause, up to this. */
const LONGEST_ASKED_MS = 300_000;
const WARN_EVERY_MS = 60_000;
const DRAIN_MS = 20;
/** What the collector says is logged this far. */
const LONGEST_WORD = 200;
/** Answers after which a request is sent again. */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];
const REASONS = ['queue-full', 'refused', 'stopped'] as const;

export class Exporter implements SpanTaker {
  private readonly settings: TracingSettings;
  private readonly parts: TracingParts;
  private readonly poster: Poster;
  private readonly resource: Resource;
  private readonly warn: Log;
  private readonly exported: Cell;
  private readonly queueFull: Cell;
  private readonly startMs: number;
  private readonly queue = new Fifo<Span>();
  /** Spans of the request that is under way or will be repeated. */
  private sending: readonly Span[] = [];
  private underway = false;
  private measuring = false;
  private pauseMs = 0;
  /** Runs while the collector is left alone. */
  private pause: Timer | null = null;
  private timers: Timer[] = [];
  private stopped = false;

  constructor(settings: TracingSettings, parts: TracingParts) {
    this.settings = settings;
    this.parts = parts;
    const { url, headers, tls, timeoutMs, serviceName } = settings;
    this.poster = new Poster({ url, headers, connections: 2, timeoutMs, tls, name: 'tracing.tls' }, parts.clock);
    this.resource = { serviceName, version: parts.version, host: hostname(), pid: process.pid };
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.exported = parts.metrics.cell(TRACING_METRICS.exported);
    // There from the start: a rate needs a value before the first drop.
    const [queueFull] = REASONS.map((reason) => parts.metrics.cell(TRACING_METRICS.dropped, { reason }));
    this.queueFull = queueFull;
    for (const signal of ['traces', 'metrics']) parts.metrics.cell(TRACING_METRICS.failures, { signal });
    this.startMs = parts.clock.now();
  }

  /** Throws TRANSPORT-TLS for a certificate that cannot be read. */
  prepare(): Promise<void> {
    return this.poster.prepare();
  }

  start(): void {
    const { clock, metrics } = this.parts;
    const { intervalMs, metricsIntervalMs } = this.settings;
    metrics.read(TRACING_METRICS.queued, () => this.queued);
    this.timers.push(clock.every(intervalMs, () => this.flush()));
    if (metricsIntervalMs > 0) this.timers.push(clock.every(metricsIntervalMs, () => this.measure()));
  }

  get queued(): number {
    return this.queue.length + this.sending.length;
  }

  take(span: Span): void {
    if (this.stopped || this.queued >= this.settings.queueLength) {
      this.queueFull.value++;
      return;
    }
    this.queue.push(span);
    if (this.queue.length >= this.settings.batchSize) this.flush();
  }

  /** What waits is sent as far as it goes within the time, then the last metrics. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    const { clock } = this.parts;
    const endMs = clock.mono() + deadlineMs;
    for (const timer of this.timers.splice(0)) timer.cancel();
    if (this.settings.metricsIntervalMs > 0) this.measure();
    this.flush();
    while ((this.queued > 0 || this.measuring) && this.pause === null && clock.mono() < endMs) {
      await new Promise<void>((resolve) => clock.after(DRAIN_MS, resolve));
      this.flush();
    }
    this.stopped = true;
    this.pause?.cancel();
    this.poster.close();
    if (this.queued > 0) this.drop('stopped', this.queued);
    this.queue.clear();
    this.sending = [];
  }

  // ---- inside

  private flush(): void {
    if (this.stopped || this.underway || this.pause !== null) return;
    if (this.sending.length === 0) {
      const spans: Span[] = [];
      for (let span = this.queue.shift(); span !== undefined; span = this.queue.shift()) {
        spans.push(span);
        if (spans.length === this.settings.batchSize) break;
      }
      if (spans.length === 0) return;
      this.sending = spans;
    }
    this.underway = true;
    this.poster.post(tracesBody(this.resource, this.sending), (answer) => this.answered(answer), TRACES_PATH);
  }

  private answered(answer: PostAnswer): void {
    this.underway = false;
    if (this.stopped) return;
    const { status } = answer;
    if (status !== null && status >= 200 && status < 300) this.taken(answer);
    else {
      this.failed('traces', answer);
      if (isTemporary(answer)) {
        this.wait(answer);
        return;
      }
      this.drop('refused', this.sending.length);
    }
    this.sending = [];
    if (this.queue.length >= this.settings.batchSize) this.flush();
  }

  private taken({ body }: PostAnswer): void {
    if (this.pauseMs > 0) this.parts.log('info', 'OTLP-UP', { host: this.poster.host, queued: this.queued });
    this.pauseMs = 0;
    const refused = Math.min(this.sending.length, rejectedOf(body, 'rejectedSpans'));
    this.exported.value += this.sending.length - refused;
    if (refused > 0) {
      this.drop('refused', refused);
      this.warn('warn', 'OTLP-REFUSED', { host: this.poster.host, spans: refused });
    }
  }

  private failed(signal: 'traces' | 'metrics', answer: PostAnswer): void {
    this.parts.metrics.cell(TRACING_METRICS.failures, { signal }).value++;
    if (isTemporary(answer)) {
      if (this.pauseMs === 0) this.warn('warn', 'OTLP-DOWN', { host: this.poster.host, signal, error: answer.why });
    } else {
      const error = `${answer.why} ${answer.body.slice(0, LONGEST_WORD)}`.trim();
      this.warn('warn', 'OTLP-REFUSED', { host: this.poster.host, signal, error });
    }
  }

  private wait({ retryAfter }: PostAnswer): void {
    this.pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.pauseMs * 2));
    const asked = retryAfter !== null && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : 0;
    const pauseMs = Math.max(this.pauseMs, Math.min(asked, LONGEST_ASKED_MS));
    this.pause = this.parts.clock.after(pauseMs, () => {
      this.pause = null;
      this.flush();
    });
  }

  private measure(): void {
    if (this.stopped || this.measuring) return;
    this.measuring = true;
    const { metrics, clock } = this.parts;
    const body = metricsBody(this.resource, metrics.all(), this.startMs, clock.now());
    const done = (answer: PostAnswer): void => {
      this.measuring = false;
      if (this.stopped) return;
      const { status } = answer;
      if (status === null || status < 200 || status >= 300) this.failed('metrics', answer);
      else if (rejectedOf(answer.body, 'rejectedDataPoints') > 0)
        this.warn('warn', 'OTLP-REFUSED', { host: this.poster.host, signal: 'metrics' });
    };
    this.poster.post(body, done, METRICS_PATH);
  }

  private drop(reason: (typeof REASONS)[number], spans: number): void {
    this.parts.metrics.cell(TRACING_METRICS.dropped, { reason }).value += spans;
  }
}

/** Whether the same request may go through later. */
function isTemporary({ status, unsendable }: PostAnswer): boolean {
  return status === null ? !unsendable : RETRYABLE.includes(status);
}

/** What the collector did not take of a request that it answered with success. */
function rejectedOf(body: string, key: 'rejectedSpans' | 'rejectedDataPoints'): number {
  const answer = parseJson(body) as { partialSuccess?: Record<string, unknown> | null } | null | undefined;
  const rejected = Number(answer?.partialSuccess?.[key] ?? 0);
  return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
}
