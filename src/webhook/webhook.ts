// Tells an HTTP service what happens: one POST for each event that is configured or for a batch of them, at most
// pool_size at once, on connections that stay open. Built by gateway/ondemand.ts, loaded only when webhook is
// configured. Never makes the broker wait: events queue up to a bound, and what does not fit is dropped and counted. An
// answer of 2xx takes an event; a service that is away or busy is asked again, later and later; any other answer drops
// the event. Source: NanoMQ's webhook block and bodies; docs/rest-api.md.
//
// Map (made by `make docs`):
//   body.ts   The bodies of webhook requests, in NanoMQ's shapes
//   queue.ts  What waits for a webhook: a bounded queue of events, taken out singly or as batches
import type { Clock, Timer } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Cell, MetricSpec, Metrics } from '../base/metrics.ts';
import { type PostAnswer, Poster } from '../base/post.ts';
import type { Service } from '../base/service.ts';
import type { Broker, BrokerEvent, LocalClient, LocalReceiver } from '../broker/broker.ts';
import { isTopicFilter } from '../mqtt/topic.ts';
import type { TlsClientOptions } from '../transport/transport.ts';
import { connackBody, disconnectedBody, type Encoding, publishBody, refusedBody } from './body.ts';
import { batchBody, type Item, WebhookQueue } from './queue.ts';

/** `webhook`; the configuration's WebhookConfig fits. */
export interface WebhookSettings {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** `encoding`: of payloads. */
  readonly body: { readonly encoding: Encoding };
  readonly poolSize: number;
  readonly cancelTimeoutMs: number;
  readonly batch: {
    /** Events in one request: 1 = each alone, NanoMQ's way; more = a JSON array of them. */
    readonly size: number;
    /** Longest time an event waits for others of its batch. */
    readonly intervalMs: number;
  };
  /** For https. */
  readonly tls: TlsClientOptions | null;
  readonly events: readonly { readonly event: string; readonly topic: string | null }[];
}

export interface WebhookParts {
  readonly broker: Pick<Broker, 'attach' | 'onEvent'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export const WEBHOOK_METRICS = {
  sent: {
    name: 'tidegate_webhook_sent_total',
    text: 'Webhook events that the service has taken',
    type: 'counter',
    unit: 'items',
  },
  dropped: {
    name: 'tidegate_webhook_dropped_total',
    text: 'Webhook events that were not delivered, by reason',
    type: 'counter',
    unit: 'items',
  },
  failures: {
    name: 'tidegate_webhook_failures_total',
    text: 'Webhook requests without success, repeated or not',
    type: 'counter',
    unit: 'items',
  },
  queued: {
    name: 'tidegate_webhook_queued',
    text: 'Webhook events that wait',
    type: 'gauge',
    unit: 'items',
  },
} as const satisfies Record<string, MetricSpec>;

const DROP_REASONS = ['queue-full', 'refused', 'failed', 'stopped'] as const;
type DropReason = (typeof DROP_REASONS)[number];

/** Pauses while the service is away: doubling from the first to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;
/** From the second failure on a batch is taken apart. */
const WHOLE_ATTEMPTS = 2;
/**
 * Times an event is sent that the service answers with an error: one that it cannot digest must not stop the others.
 */
const ATTEMPTS = 5;
const WARN_EVERY_MS = 10_000;
const DRAIN_MS = 20;

/** Events that are sent; NanoMQ knows more names and sends no others either. */
const SENT: ReadonlySet<string> = new Set([
  'on_client_connack',
  'on_client_connected',
  'on_client_disconnected',
  'on_message_publish',
]);

/** taken, dropped for good, worth another try, or nobody there. */
type Outcome = 'taken' | 'refused' | 'busy' | 'away';

export class Webhook implements Service, LocalReceiver {
  private readonly settings: WebhookSettings;
  private readonly parts: WebhookParts;
  private readonly warn: Log;
  private readonly sent: Cell;
  private readonly failures: Cell;
  private readonly poster: Poster;
  private readonly queue: WebhookQueue;
  /** Requests, and the events in them. */
  private underway = 0;
  private sending = 0;
  private pauseMs = 0;
  /** Runs while the service is left alone. */
  private timer: Timer | null = null;
  /** Runs while events wait for others of their batch. */
  private filling: Timer | null = null;
  private client: LocalClient | null = null;
  private forget: (() => void) | null = null;
  /** What waits is sent, nothing new comes. */
  private draining = false;
  private stopped = false;

  constructor(settings: WebhookSettings, parts: WebhookParts) {
    this.settings = settings;
    this.parts = parts;
    this.queue = new WebhookQueue(settings.batch.size);
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.sent = parts.metrics.cell(WEBHOOK_METRICS.sent);
    this.failures = parts.metrics.cell(WEBHOOK_METRICS.failures);
    // There from the start: a rate needs a value before the first drop.
    for (const reason of DROP_REASONS) parts.metrics.cell(WEBHOOK_METRICS.dropped, { reason });
    const { url, headers, poolSize: connections, cancelTimeoutMs: timeoutMs, tls } = settings;
    this.poster = new Poster({ url, headers, connections, timeoutMs, tls, name: 'webhook.tls' }, parts.clock);
  }

  /** What may fail, before start(): throws TRANSPORT-TLS for a certificate that cannot be read. */
  async prepare(): Promise<void> {
    await this.poster.prepare();
  }

  async start(): Promise<void> {
    this.parts.metrics.read(WEBHOOK_METRICS.queued, () => this.queue.length + this.sending);
    const wanted = new Set(this.settings.events.map((event) => event.event));
    const silent = [...wanted].filter((event) => !SENT.has(event));
    if (silent.length > 0) this.parts.log('warn', 'HOOK-SILENT', { events: silent });
    const connack = wanted.has('on_client_connack') || wanted.has('on_client_connected');
    const disconnected = wanted.has('on_client_disconnected');
    if (connack || disconnected)
      this.forget = this.parts.broker.onEvent((event) => this.happened(event, connack, disconnected));
    this.subscribe();
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    this.forget?.();
    this.client?.close();
    this.client = null;
    const { clock } = this.parts;
    const endMs = clock.mono() + deadlineMs;
    this.draining = true;
    this.pump(true);
    while (this.queue.length + this.sending > 0 && this.pauseMs === 0 && clock.mono() < endMs)
      await new Promise<void>((resolve) => clock.after(DRAIN_MS, resolve));
    this.stopped = true;
    this.timer?.cancel();
    this.filling?.cancel();
    this.poster.close();
    const left = this.queue.length;
    for (let items = this.queue.take(); items.length > 0; items = this.queue.take()) this.drop('stopped', items.length);
    if (left > 0) this.parts.log('warn', 'HOOK-DROPPED', { reason: 'stopped', events: left });
  }

  /** A message that the broker has accepted. */
  receive(publication: Parameters<LocalReceiver['receive']>[0]): void {
    // Looked at before the body is made: a queue that is full costs nothing more.
    if (this.full(publication.payloadEnd - publication.payloadStart)) return;
    this.add(publishBody(publication, this.settings.body.encoding, this.parts.clock.now()));
  }

  private subscribe(): void {
    const filters = this.settings.events
      .filter((event) => event.event === 'on_message_publish')
      .map((event) => event.topic || '#');
    if (filters.length === 0) return;
    this.client = this.parts.broker.attach({
      clientId: 'webhook',
      username: null,
      kind: 'api',
      bridge: null,
      trusted: true,
    });
    for (const topicFilter of new Set(filters)) {
      if (isTopicFilter(topicFilter)) this.client.subscribe({ topicFilter, qos: 2, receiver: this, retainHandling: 2 });
    }
  }

  private happened(event: BrokerEvent, connack: boolean, disconnected: boolean): void {
    if (event.kind === 'connected' && connack) this.add(connackBody(event.client));
    else if (event.kind === 'refused' && connack) this.add(refusedBody(event));
    else if (event.kind === 'disconnected' && disconnected) this.add(disconnectedBody(event));
  }

  private full(bytes: number): boolean {
    const { queue } = this;
    if (queue.hasRoom(bytes)) return false;
    this.drop('queue-full', 1);
    this.warn('warn', 'HOOK-DROPPED', { reason: 'queue-full', queued: queue.length, bytes: queue.bytes });
    return true;
  }

  private add(body: Buffer): void {
    if (this.full(body.length)) return;
    this.queue.add(body);
    this.pump(false);
  }

  /**
   * Sends what may be sent. While the service is away one request at a time asks whether it is back. `all`: batches
   * need not be full.
   */
  private pump(all: boolean): void {
    if (this.stopped || this.timer !== null) return;
    const most = this.pauseMs > 0 ? 1 : this.settings.poolSize;
    while (this.underway < most && (all || this.queue.isDue)) {
      const items = this.queue.take();
      if (items.length === 0) break;
      this.underway++;
      this.sending += items.length;
      const body = this.settings.batch.size === 1 ? items[0].body : batchBody(items);
      this.poster.post(body, (answer) => this.answered(items, outcomeOf(answer), answer.why));
    }
    if (this.queue.length > 0 && this.filling === null && this.underway < most) this.fill();
  }

  /** What waits now is sent after batch.interval, whether its batch is full then or not. */
  private fill(): void {
    this.filling = this.parts.clock.after(this.settings.batch.intervalMs, () => {
      this.filling = null;
      this.pump(true);
    });
  }

  private answered(items: readonly Item[], outcome: Outcome, why: string): void {
    this.underway--;
    this.sending -= items.length;
    if (this.stopped) {
      if (outcome === 'taken') this.sent.value += items.length;
      else this.drop('stopped', items.length);
      return;
    }
    if (outcome === 'taken') {
      this.sent.value += items.length;
      if (this.pauseMs > 0) this.parts.log('info', 'HOOK-UP', { host: this.poster.host, queued: this.queue.length });
      this.pauseMs = 0;
    } else this.failed(items, outcome, why);
    this.pump(this.draining);
  }

  private failed(items: readonly Item[], outcome: Exclude<Outcome, 'taken'>, why: string): void {
    this.failures.value++;
    const alone = items.length === 1;
    if (outcome === 'refused') {
      for (const item of items) item.attempts++;
      // The service answers: one of them is what it does not want.
      if (alone) this.lose('refused', why);
      else this.queue.putBackApart(items);
      return;
    }
    if (outcome === 'busy') for (const item of items) item.attempts++;
    const { attempts } = items[0];
    if (outcome === 'busy' && alone && attempts >= ATTEMPTS) this.lose('failed', why);
    else if (outcome === 'busy' && !alone && attempts >= WHOLE_ATTEMPTS) this.queue.putBackApart(items);
    else this.queue.putBack(items);
    if (this.timer !== null) return;
    if (this.pauseMs === 0) this.parts.log('warn', 'HOOK-DOWN', { host: this.poster.host, error: why });
    this.pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.pauseMs * 2));
    this.timer = this.parts.clock.after(this.pauseMs, () => {
      this.timer = null;
      this.pump(true);
    });
  }

  private lose(reason: DropReason, error: string): void {
    this.drop(reason, 1);
    this.warn('warn', 'HOOK-DROPPED', { reason, host: this.poster.host, error });
  }

  private drop(reason: DropReason, events: number): void {
    this.parts.metrics.cell(WEBHOOK_METRICS.dropped, { reason }).value += events;
  }
}

function outcomeOf({ status, unsendable }: PostAnswer): Outcome {
  if (status === null) return unsendable ? 'refused' : 'away';
  if (status >= 200 && status < 300) return 'taken';
  // Asked to come again, or something is wrong over there.
  return status === 408 || status === 425 || status === 429 || status >= 500 ? 'busy' : 'refused';
}
