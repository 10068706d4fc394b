// SEAM of tracing/: traces of single messages and the gateway's metrics for an OpenTelemetry collector. Built by
// gateway/tracing.ts, loaded only when `tracing` is configured. Never makes the broker wait: spans queue up to a bound,
// what does not fit is dropped and counted. Payloads never leave the gateway by it; topics and client ids do. Sources:
// OTLP 1.x over HTTP with JSON; OpenTelemetry's conventions for messaging; docs/tracing.md.
//
// Map (made by `make docs`):
//   exporter.ts  Sends spans and metrics to the collector: spans in batches from a bounded queue, one request at a time
//   metrics.ts   The metrics of tracing/, each once
//   otlp.ts      Spans and metrics as OTLP's JSON (ExportTraceServiceRequest, ExportMetricsServiceRequest)
//   sampler.ts   Which messages are traced, and the spans of each: receive, then one for each rule
//   span.ts      One step of one traced message, as it waits to be exported
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { PostTls } from '../base/post.ts';
import type { Service } from '../base/service.ts';
import type { Sent } from '../delivery/delivery.ts';
import type { RouteTracer } from '../router/router.ts';
import { Exporter } from './exporter.ts';
import { Sampler } from './sampler.ts';

/** `tracing`; the configuration's TracingConfig fits. */
export interface TracingSettings {
  /** Of the collector; /v1/traces and /v1/metrics are put behind it. */
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly tls: PostTls | null;
  readonly timeoutMs: number;
  readonly serviceName: string;
  /** Share of the messages without a traceparent that are traced, 0 to 1. */
  readonly ratio: number;
  /** Whether messages are traced whose traceparent says "sampled". */
  readonly parents: boolean;
  /** Messages traced a second at most. */
  readonly maxRate: number;
  /** Spans that may wait. */
  readonly queueLength: number;
  /** Spans of one request. */
  readonly batchSize: number;
  readonly intervalMs: number;
  /** 0 = metrics are not exported. */
  readonly metricsIntervalMs: number;
}

export interface TracingParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly version: string;
}

export class Tracing implements Service {
  private readonly exporter: Exporter;
  private readonly sampler: Sampler;

  constructor(settings: TracingSettings, parts: TracingParts) {
    this.exporter = new Exporter(settings, parts);
    this.sampler = new Sampler(settings, parts, this.exporter);
  }

  /** What may fail, before start(): throws TRANSPORT-TLS for a certificate that cannot be read. */
  prepare(): Promise<void> {
    return this.exporter.prepare();
  }

  /** Chooses the messages, for the router. */
  get tracer(): RouteTracer {
    return this.sampler;
  }

  /** Takes the deliveries to one client. */
  sentFor(clientId: string): Sent {
    return (publication, qos, retain) => this.sampler.sent(clientId, publication, qos, retain);
  }

  async start(): Promise<void> {
    this.exporter.start();
  }

  stop(deadlineMs: number): Promise<void> {
    return this.exporter.stop(deadlineMs);
  }
}
