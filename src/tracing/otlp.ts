// Spans and metrics as OTLP's JSON (ExportTraceServiceRequest, ExportMetricsServiceRequest). Called by exporter.ts.
// Pure. Ids are hexadecimal, 64-bit numbers are texts, enumerations are numbers, names are in lowerCamelCase:
// protobuf's JSON mapping with OTLP's exceptions. Source: the OTLP specification, "JSON Protobuf Encoding"; its .proto
// files.
import type { Family, Histogram, Labels } from '../base/metrics.ts';
import type { Span } from './span.ts';

/** Characters of a text that a client may choose. */
const LONGEST_TEXT = 256;
/** Status code ERROR. */
const ERROR = 2;
/** Aggregation temporality CUMULATIVE. */
const CUMULATIVE = 2;
/** Span flags: the trace is sampled. */
const SAMPLED = 1;

type Value = { readonly stringValue: string } | { readonly intValue: string };

interface Attribute {
  readonly key: string;
  readonly value: Value;
}

/** Who exports. */
export interface Resource {
  readonly serviceName: string;
  readonly version: string;
  readonly host: string;
  readonly pid: number;
}

export function tracesBody(resource: Resource, spans: readonly Span[]): Buffer {
  const scopeSpans = [{ scope: scope(resource), spans: spans.map(spanOf) }];
  return Buffer.from(JSON.stringify({ resourceSpans: [{ resource: resourceOf(resource), scopeSpans }] }));
}

/** @param startMs when the counters were 0 */
export function metricsBody(resource: Resource, families: readonly Family[], startMs: number, nowMs: number): Buffer {
  const times = { startTimeUnixNano: nanoseconds(startMs), timeUnixNano: nanoseconds(nowMs) };
  const metrics = families.flatMap((family) => metricsOf(family, times));
  const scopeMetrics = [{ scope: scope(resource), metrics }];
  return Buffer.from(JSON.stringify({ resourceMetrics: [{ resource: resourceOf(resource), scopeMetrics }] }));
}

/** Milliseconds with a fraction as whole nanoseconds, without the loss that a 64-bit number would have as a double. */
export function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  const rest = Math.min(999_999, Math.round((ms - whole) * 1e6));
  return `${whole}${String(rest).padStart(6, '0')}`;
}

function text(key: string, value: string): Attribute {
  return { key, value: { stringValue: value.length > LONGEST_TEXT ? value.slice(0, LONGEST_TEXT) : value } };
}

function int(key: string, value: number): Attribute {
  return { key, value: { intValue: String(value) } };
}

function resourceOf({ serviceName, version, host, pid }: Resource): { attributes: Attribute[] } {
  return {
    attributes: [
      text('service.name', serviceName),
      text('service.version', version),
      text('service.instance.id', `${host}:${pid}`),
      text('host.name', host),
      int('process.pid', pid),
    ],
  };
}

function scope({ version }: Resource): { name: string; version: string } {
  return { name: 'tidegate', version };
}

const OPERATIONS = { receive: 'receive', rule: 'process', bridge: 'send', deliver: 'send' } as const;

function spanOf(span: Span): object {
  const { name, kind, traceId, spanId, parentId, startMs, endMs, reasonCode } = span;
  const attributes = [
    text('messaging.system', 'mqtt'),
    text('messaging.operation.name', name),
    text('messaging.operation.type', OPERATIONS[name]),
    text('messaging.destination.name', span.topic),
    int('messaging.message.body.size', span.bytes),
    int('mqtt.qos', span.qos),
  ];
  if (span.clientId !== null && span.clientId !== '') attributes.push(text('messaging.client.id', span.clientId));
  if (span.part !== null) attributes.push(text(name === 'rule' ? 'tidegate.rule' : 'tidegate.part', span.part));
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    flags: SAMPLED,
    name,
    kind,
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(Math.max(startMs, endMs)),
    attributes,
    status: reasonCode === 0 ? {} : { code: ERROR, message: `reason code 0x${reasonCode.toString(16)}` },
  };
}

/** The units of base/metrics.ts as UCUM has them. */
const UNITS: Readonly<Record<string, string>> = { bytes: 'By', seconds: 's', ratio: '1', none: '1' };

interface Times {
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
}

function metricsOf({ spec, series, histograms }: Family, times: Times): object[] {
  const head = { name: spec.name, description: spec.text, unit: UNITS[spec.unit] ?? `{${spec.unit}}` };
  if (spec.type === 'histogram') {
    if (histograms.size === 0) return [];
    const dataPoints = [...histograms.values()].map(({ labels, histogram }) => bucketsOf(labels, histogram, times));
    return [{ ...head, histogram: { dataPoints, aggregationTemporality: CUMULATIVE } }];
  }
  const dataPoints: object[] = [];
  for (const one of series.values()) {
    const asDouble = one.read();
    // JSON has no other numbers.
    if (Number.isFinite(asDouble)) dataPoints.push({ attributes: labelsOf(one.labels), ...times, asDouble });
  }
  if (dataPoints.length === 0) return [];
  if (spec.type === 'gauge') return [{ ...head, gauge: { dataPoints } }];
  return [{ ...head, sum: { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true } }];
}

function bucketsOf(labels: Labels, { bounds, counts, sum, count }: Histogram, times: Times): object {
  return {
    attributes: labelsOf(labels),
    ...times,
    count: String(count),
    sum,
    bucketCounts: [...counts].map(String),
    explicitBounds: bounds,
  };
}

function labelsOf(labels: Labels): Attribute[] {
  return Object.entries(labels).map(([key, value]) => text(key, value));
}
