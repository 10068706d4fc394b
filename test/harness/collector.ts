// An OpenTelemetry collector as OTLP/HTTP clients see it: takes JSON on /v1/traces and /v1/metrics and refuses whatever is not of the shape
// that the specification and its .proto files give: unknown fields, ids that are not hexadecimal, 64-bit numbers that are no texts.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, string>>;
}

/** Answer to one request; null = the connection is cut. */
export type Answer = {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Record<string, string>;
} | null;

export class Collector {
  readonly spans: SeenSpan[] = [];
  readonly metrics = new Map<string, Json>();
  readonly problems: string[] = [];
  /** Answers to the next requests for traces; then 200. */
  readonly answers: Answer[] = [];
  readonly requests: {
    readonly url: string;
    readonly spans: number;
    readonly headers: Readonly<Record<string, unknown>>;
  }[] = [];
  private readonly server: Server;
  private wake: (() => void)[] = [];

  constructor() {
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.take(request.url ?? '', request.headers, Buffer.concat(chunks).toString(), response);
        for (const one of this.wake.splice(0)) one();
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async until(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => this.wake.push(resolve));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private take(url: string, headers: Readonly<Record<string, unknown>>, text: string, response: ServerResponse): void {
    const traces = url.endsWith('/v1/traces');
    const answer = traces && this.answers.length > 0 ? this.answers.shift() : { status: 200, body: '{}' };
    if (headers['content-type'] !== 'application/json')
      this.problems.push(`content-type ${String(headers['content-type'])}`);
    if (!traces && !url.endsWith('/v1/metrics')) this.problems.push(`path ${url}`);
    const before = this.spans.length;
    const check = new Shape(this.problems);
    if (answer?.status === 200) {
      if (traces) this.spans.push(...check.traces(JSON.parse(text)));
      else for (const metric of check.metrics(JSON.parse(text))) this.metrics.set(String(metric.name), metric);
    }
    this.requests.push({ url, spans: this.spans.length - before, headers });
    if (answer === null || answer === undefined) response.destroy();
    else response.writeHead(answer.status, answer.headers).end(answer.body ?? '');
  }
}

/** The shapes of OTLP 1.x, field by field. */
class Shape {
  private readonly problems: string[];

  constructor(problems: string[]) {
    this.problems = problems;
  }

  traces(body: unknown): SeenSpan[] {
    const request = this.object(body, 'request', ['resourceSpans']);
    return this.list(request.resourceSpans, 'resourceSpans').flatMap((one) => {
      const { resource, scopeSpans } = this.object(one, 'resourceSpans', ['resource', 'scopeSpans', 'schemaUrl']);
      this.resource(resource);
      return this.list(scopeSpans, 'scopeSpans').flatMap((inner) => {
        const { scope, spans } = this.object(inner, 'scopeSpans', ['scope', 'spans', 'schemaUrl']);
        this.object(scope, 'scope', ['name', 'version', 'attributes', 'droppedAttributesCount']);
        return this.list(spans, 'spans').map((span) => this.span(span));
      });
    });
  }

  metrics(body: unknown): Json[] {
    const request = this.object(body, 'request', ['resourceMetrics']);
    return this.list(request.resourceMetrics, 'resourceMetrics').flatMap((one) => {
      const { resource, scopeMetrics } = this.object(one, 'resourceMetrics', ['resource', 'scopeMetrics', 'schemaUrl']);
      this.resource(resource);
      return this.list(scopeMetrics, 'scopeMetrics').flatMap((inner) => {
        const { metrics } = this.object(inner, 'scopeMetrics', ['scope', 'metrics', 'schemaUrl']);
        return this.list(metrics, 'metrics').map((metric) => this.metric(metric));
      });
    });
  }

  private span(value: unknown): SeenSpan {
    const keys = [
      'traceId',
      'spanId',
      'traceState',
      'parentSpanId',
      'flags',
      'name',
      'kind',
      'startTimeUnixNano',
      'endTimeUnixNano',
    ];
    const span = this.object(value, 'span', [...keys, 'attributes', 'status', 'events', 'links']);
    this.matches(span.traceId, /^(?!0{32})[0-9a-f]{32}$/, 'traceId');
    this.matches(span.spanId, /^(?!0{16})[0-9a-f]{16}$/, 'spanId');
    if (span.parentSpanId !== undefined) this.matches(span.parentSpanId, /^(?!0{16})[0-9a-f]{16}$/, 'parentSpanId');
    if (typeof span.name !== 'string' || span.name === '') this.wrong('name');
    if (!Number.isInteger(span.kind) || Number(span.kind) < 1 || Number(span.kind) > 5) this.wrong('kind');
    this.matches(span.startTimeUnixNano, /^\d{19}$/, 'startTimeUnixNano');
    this.matches(span.endTimeUnixNano, /^\d{19}$/, 'endTimeUnixNano');
    if (BigInt(String(span.endTimeUnixNano)) < BigInt(String(span.startTimeUnixNano))) this.wrong('endTimeUnixNano');
    const status = this.object(span.status ?? {}, 'status', ['code', 'message']);
    if (status.code !== undefined && ![0, 1, 2].includes(Number(status.code))) this.wrong('status.code');
    return { ...(span as unknown as SeenSpan), attributes: this.attributes(span.attributes) };
  }

  private metric(value: unknown): Json {
    const metric = this.object(value, 'metric', ['name', 'description', 'unit', 'sum', 'gauge', 'histogram']);
    const kinds = ['sum', 'gauge', 'histogram'].filter((kind) => metric[kind] !== undefined);
    if (kinds.length !== 1) this.wrong(`metric ${String(metric.name)}: ${kinds.join()}`);
    const [kind] = kinds;
    const allowed = {
      sum: ['dataPoints', 'aggregationTemporality', 'isMonotonic'],
      gauge: ['dataPoints'],
      histogram: ['dataPoints', 'aggregationTemporality'],
    };
    const data = this.object(metric[kind], kind, allowed[kind as keyof typeof allowed]);
    if (kind !== 'gauge' && data.aggregationTemporality !== 2) this.wrong('aggregationTemporality');
    for (const point of this.list(data.dataPoints, 'dataPoints')) {
      const own = kind === 'histogram' ? ['count', 'sum', 'bucketCounts', 'explicitBounds'] : ['asDouble', 'asInt'];
      const given = this.object(point, 'dataPoint', ['attributes', 'startTimeUnixNano', 'timeUnixNano', ...own]);
      this.attributes(given.attributes);
      this.matches(given.timeUnixNano, /^\d{19}$/, 'timeUnixNano');
      if (kind !== 'histogram' && typeof given.asDouble !== 'number') this.wrong('asDouble');
      if (kind === 'histogram') {
        this.matches(given.count, /^\d+$/, 'count');
        const counts = this.list(given.bucketCounts, 'bucketCounts');
        if (counts.length !== this.list(given.explicitBounds, 'explicitBounds').length + 1) this.wrong('bucketCounts');
      }
    }
    return metric;
  }

  private resource(value: unknown): void {
    const { attributes } = this.object(value, 'resource', ['attributes', 'droppedAttributesCount']);
    if (this.attributes(attributes)['service.name'] === undefined) this.wrong('service.name');
  }

  private attributes(value: unknown): Record<string, string> {
    const found: Record<string, string> = {};
    for (const one of this.list(value, 'attributes')) {
      const { key, value: any } = this.object(one, 'attribute', ['key', 'value']);
      const inside = this.object(any, 'value', ['stringValue', 'intValue', 'boolValue', 'doubleValue']);
      if (Object.keys(inside).length !== 1) this.wrong(`value of ${String(key)}`);
      if (inside.intValue !== undefined) this.matches(inside.intValue, /^-?\d+$/, `intValue of ${String(key)}`);
      found[String(key)] = String(inside.stringValue ?? inside.intValue);
    }
    return found;
  }

  private object(value: unknown, what: string, keys: readonly string[]): Json {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.wrong(what);
      return {};
    }
    for (const key of Object.keys(value)) if (!keys.includes(key)) this.wrong(`${what}.${key}`);
    return value as Json;
  }

  private list(value: unknown, what: string): unknown[] {
    if (Array.isArray(value)) return value;
    this.wrong(what);
    return [];
  }

  private matches(value: unknown, pattern: RegExp, what: string): void {
    if (typeof value !== 'string' || !pattern.test(value)) this.wrong(`${what} = ${String(value)}`);
  }

  private wrong(what: string): void {
    this.problems.push(what);
  }
}
