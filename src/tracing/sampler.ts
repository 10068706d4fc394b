// Which messages are traced, and the spans of each: receive, then one for each rule, bridge or client that got it. Made
// by tracing.ts; asked by the router for each message and by the senders of clients. A message without a traceparent
// that is chosen gets one, so that bridges and MQTT 5.0 clients go on with its trace; one that has a traceparent keeps
// it. Source: W3C Trace Context, sections 3 and 4; OpenTelemetry's conventions for messaging.
import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Cell } from '../base/metrics.ts';
import type { Receiver } from '../delivery/delivery.ts';
import type { Origin, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { type TraceParent, traceOf, traceparentOf, withTraceparent } from '../mqtt/traceparent.ts';
import type { RouteTracer, TracedMessage } from '../router/router.ts';
import { TRACING_METRICS } from './metrics.ts';
import { CONSUMER, INTERNAL, PRODUCER, type Span, type SpanTaker } from './span.ts';
import type { TracingParts, TracingSettings } from './tracing.ts';

const DOLLAR = 0x24;
/** Where the two clocks are this far apart, the wall clock was set. */
const JUMP_MS = 20;
const RULE = 'rule-in:';
/** Reason codes from here on are refusals. */
const REFUSAL = 0x80;

/** Milliseconds since the epoch with a fraction. */
export class FineTime {
  private readonly clock: Clock;
  private wallMs = 0;
  private monoMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  now(): number {
    const wallMs = this.clock.now();
    const monoMs = this.clock.mono();
    const fine = this.wallMs + monoMs - this.monoMs;
    if (Math.abs(fine - wallMs) <= JUMP_MS) return fine;
    this.wallMs = wallMs;
    this.monoMs = monoMs;
    return wallMs;
  }
}

/** Where a message entered, for the spans of those it is delivered to later. */
interface Entered {
  readonly traceId: string;
  readonly spanId: string;
  readonly startMs: number;
}

export class Sampler implements RouteTracer {
  readonly time: FineTime;
  private readonly settings: Pick<TracingSettings, 'ratio' | 'parents' | 'maxRate'>;
  private readonly spans: SpanTaker;
  private readonly messages: Cell;
  private readonly skipped: Cell;
  /** Messages without a traceparent that pass before the next one is chosen. */
  private passing: number;
  /** Messages that may still be traced, as of `filledMs`. */
  private tokens: number;
  private filledMs: number;
  /** By the properties that a traced message has, wherever it waits. */
  private readonly entered = new WeakMap<Properties, Entered>();

  constructor(
    settings: Pick<TracingSettings, 'ratio' | 'parents' | 'maxRate'>,
    parts: Pick<TracingParts, 'clock' | 'metrics'>,
    spans: SpanTaker,
  ) {
    this.settings = settings;
    this.spans = spans;
    this.time = new FineTime(parts.clock);
    this.messages = parts.metrics.cell(TRACING_METRICS.messages);
    this.skipped = parts.metrics.cell(TRACING_METRICS.skipped);
    this.passing = this.gap();
    this.tokens = settings.maxRate;
    this.filledMs = this.time.now();
  }

  begin(publication: Publication): TracedMessage | null {
    const { properties } = publication;
    const parent = properties === null ? null : traceOf(properties);
    if (parent !== null) {
      if (!this.settings.parents || !parent.sampled) return null;
      return this.make(publication, parent);
    }
    if (this.passing > 0) {
      this.passing--;
      return null;
    }
    this.passing = this.gap();
    return this.make(publication, null);
  }

  before(count: number): number {
    const { passing } = this;
    if (passing >= count) {
      this.passing = passing - count;
      return count;
    }
    this.passing = this.gap();
    return passing;
  }

  chosen(publication: Publication): TracedMessage | null {
    return this.make(publication, null);
  }

  /** A message was written to a client. What is sent as retained may have entered long ago: that is no delivery. */
  sent(clientId: string, publication: Publication, qos: Qos, retain: boolean): void {
    const { properties } = publication;
    if (properties === null || retain) return;
    const entered = this.entered.get(properties);
    // After a restart nobody knows any more whether the gateway had traced it.
    if (entered === undefined) return;
    this.spans.take({
      name: 'deliver',
      kind: PRODUCER,
      traceId: entered.traceId,
      spanId: newSpanId(),
      parentId: entered.spanId,
      startMs: entered.startMs,
      endMs: this.time.now(),
      topic: publication.topic,
      bytes: publication.payloadEnd - publication.payloadStart,
      qos,
      clientId,
      part: null,
      reasonCode: 0,
    });
  }

  // ---- inside

  private make(publication: Publication, parent: TraceParent | null): TracedMessage | null {
    // The gateway's own values and commands are no messages of anybody.
    if (publication.topic.charCodeAt(0) === DOLLAR) return null;
    if (!this.allowed()) {
      this.skipped.value++;
      return null;
    }
    this.messages.value++;
    const spanId = newSpanId();
    const traceId = parent?.traceId ?? randomBytes(16).toString('hex');
    if (parent === null)
      publication.replaceProperties(withTraceparent(publication.properties, traceparentOf(traceId, spanId) ?? ''));
    const startMs = this.time.now();
    if (publication.properties !== null) this.entered.set(publication.properties, { traceId, spanId, startMs });
    return new Trace(this.spans, this.time, publication, { traceId, spanId, startMs }, parent?.spanId ?? null);
  }

  /** Whether one more message may be traced now: maxRate a second, a second's worth at once. */
  private allowed(): boolean {
    const { maxRate } = this.settings;
    const now = this.time.now();
    const passedMs = now - this.filledMs;
    this.filledMs = now;
    if (passedMs > 0) this.tokens = Math.min(maxRate, this.tokens + (passedMs * maxRate) / 1000);
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }

  /** How many pass before the next one: as if each were chosen by itself with the probability `ratio`. */
  private gap(): number {
    const { ratio } = this.settings;
    if (ratio >= 1) return 0;
    if (ratio <= 0) return Number.POSITIVE_INFINITY;
    return Math.floor(Math.log(1 - Math.random()) / Math.log(1 - ratio));
  }
}

function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** One message on its way through the router. */
class Trace implements TracedMessage {
  private readonly spans: SpanTaker;
  private readonly time: FineTime;
  private readonly own: Entered;
  private readonly parentId: string | null;
  private readonly origin: Origin;
  private readonly topic: string;
  private readonly bytes: number;
  private readonly qos: Qos;
  private handingMs = 0;

  constructor(spans: SpanTaker, time: FineTime, publication: Publication, own: Entered, parentId: string | null) {
    this.spans = spans;
    this.time = time;
    this.own = own;
    this.parentId = parentId;
    this.origin = publication.origin;
    this.topic = publication.topic;
    this.bytes = publication.payloadEnd - publication.payloadStart;
    this.qos = publication.qos;
  }

  handing(): void {
    this.handingMs = this.time.now();
  }

  handed({ local }: Receiver): void {
    // Sessions tell of what was written to their clients, which may be later.
    if (local === undefined) return;
    const isRule = local.startsWith(RULE);
    const part = isRule ? local.slice(RULE.length) : local;
    const isBridge = local.startsWith('nng:') || local.startsWith('mqtt:');
    const name = isRule ? 'rule' : isBridge ? 'bridge' : 'deliver';
    const kind = isRule ? INTERNAL : PRODUCER;
    this.add({ name, kind, part, spanId: newSpanId(), parentId: this.own.spanId, startMs: this.handingMs }, 0, null);
  }

  routed(publication: Publication): void {
    // What is stored is acknowledged when it is on the disk: the hold for that is made behind this call.
    const hold = publication.stored ? publication.hold() : publication.held;
    if (hold === null) this.received(0);
    else queueMicrotask(() => hold.whenDone((reasonCode) => this.received(reasonCode)));
  }

  private received(reasonCode: number): void {
    const { spanId, startMs } = this.own;
    const { clientId, bridge } = this.origin;
    const { parentId } = this;
    const span = { name: 'receive', kind: CONSUMER, part: bridge, spanId, parentId, startMs } as const;
    this.add(span, reasonCode >= REFUSAL ? reasonCode : 0, clientId);
  }

  private add(
    span: Pick<Span, 'name' | 'kind' | 'part' | 'spanId' | 'parentId' | 'startMs'>,
    reasonCode: number,
    clientId: string | null,
  ): void {
    const { topic, bytes, qos } = this;
    const { traceId } = this.own;
    this.spans.take({ ...span, traceId, endMs: this.time.now(), topic, bytes, qos, clientId, reasonCode });
  }
}
