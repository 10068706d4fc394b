// Server-sent events (HTML Living Standard, section 9.2): what happens in the gateway, live, for the console and `ctl
// top`. Called by routes.ts (GET /api/v4/events) and fed by the broker's events and the log tail. Every reader is
// bounded in bytes: one that does not keep up is cut off and counted, it never holds memory or anybody else.
import type { ServerResponse } from 'node:http';
import { brief } from '../base/brief.ts';
import type { Timer } from '../base/clock.ts';
import { limitLog } from '../base/log.ts';
import type { Cell } from '../base/metrics.ts';
import type { BrokerEvent, ClientView } from '../broker/broker.ts';
import { type Answer, fail } from './answer.ts';
import type { ConsoleOptions, JsonObject } from './console.ts';
import { Latency } from './latency.ts';
import { total } from './metrics.ts';
import { type ProcessMetrics, residentBytes } from './process.ts';
import { type Call, get, type Route } from './route.ts';

const MAX_READERS = 32;
/** Unsent bytes of a reader past which it is cut off: about 1,000 events. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** Past events that a reader who comes back with Last-Event-ID gets. */
const REPLAYED = 256;
/** Their bytes: half of what a reader may leave unsent, so that all of them fit behind the first answer. */
const REPLAYED_BYTES = MAX_UNSENT_BYTES / 2;
/** Characters of one text in an event: a name may be 64 KB and six times that in JSON. */
const TEXT_CHARACTERS = 512;
/** A comment goes out this often, so that proxies and dead peers are noticed. */
const HEARTBEAT_MS = 15_000;
/** How often counters are told to whoever wants them. */
const STATS_MS = 2000;

const KINDS = [
  'connected',
  'disconnected',
  'refused',
  'subscribed',
  'unsubscribed',
  'dropped',
  'bridge',
  'bridges',
  'stats',
  'log',
] as const;
type Kind = (typeof KINDS)[number];
/** What a reader gets that names no kinds. */
const DEFAULT_KINDS: ReadonlySet<Kind> = new Set(['connected', 'disconnected', 'refused', 'dropped', 'bridge']);

interface Reader {
  readonly response: ServerResponse;
  readonly kinds: ReadonlySet<Kind>;
}
interface Past {
  readonly id: number;
  readonly kind: Kind;
  readonly text: string;
  readonly bytes: number;
}

function clientFields(client: ClientView): JsonObject {
  return {
    client_id: client.clientId,
    username: client.username,
    remote: client.remote,
    listener: client.listener,
    proto_ver: client.version,
  };
}

function eventFields(event: BrokerEvent): JsonObject {
  switch (event.kind) {
    case 'connected':
      return clientFields(event.client);
    case 'disconnected':
      return { ...clientFields(event.client), reason: event.reason, reason_code: event.reasonCode };
    case 'refused':
      return {
        client_id: event.clientId,
        username: event.username,
        remote: event.remote,
        reason: event.reason,
        reason_code: event.reasonCode,
      };
    case 'subscribed':
    case 'unsubscribed':
      return { client_id: event.clientId, topic: event.topicFilter };
    case 'dropped':
      return { client_id: event.clientId, reason: event.reason, count: event.count };
  }
}

/** For JSON.stringify: texts of clients are cut. */
function bounded(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? brief(value, TEXT_CHARACTERS) : value;
}

export class EventFeed {
  private readonly options: ConsoleOptions;
  private readonly process: ProcessMetrics;
  private readonly latency: Latency;
  private readonly readers = new Set<Reader>();
  private readonly past: Past[] = [];
  private readonly endings: (() => void)[] = [];
  private readonly timers: Timer[] = [];
  private readonly dropped: Cell;
  private readonly slowLog: ConsoleOptions['log'];
  /** States of bridges at the last look, null before the first. */
  private states: Map<string, string> | null = null;
  private lastId = 0;
  private pastBytes = 0;

  constructor(options: ConsoleOptions, process: ProcessMetrics) {
    this.options = options;
    this.process = process;
    const { metrics, clock, log } = options;
    this.latency = new Latency(metrics, clock);
    this.slowLog = limitLog(log, () => clock.mono(), 10_000);
    this.dropped = metrics.cell({
      name: 'tidegate_http_event_readers_dropped_total',
      text: 'Readers of the event stream that were cut off because they did not keep up.',
      type: 'counter',
      unit: 'connections',
    });
    metrics.read(
      {
        name: 'tidegate_http_event_readers',
        text: 'Open readers of the event stream.',
        type: 'gauge',
        unit: 'connections',
      },
      () => this.readers.size,
    );
  }

  start(): void {
    const { broker, clock, logTail } = this.options;
    this.endings.push(broker.onEvent((event) => this.tell(event.kind, eventFields(event))));
    if (logTail !== null) {
      this.endings.push(
        logTail.follow((line) => {
          // The line about a slow reader must not become an event for slow readers.
          if (line.msgid !== 'WEB-SLOW') this.tell('log', { ...line });
        }),
      );
    }
    this.options.ledger?.watch('http', () => this.bytes);
    this.timers.push(clock.every(HEARTBEAT_MS, () => this.beat()));
    this.timers.push(clock.every(STATS_MS, () => this.tellStats()));
  }

  /** Memory of past events, and of what readers have not taken yet. */
  private get bytes(): number {
    let bytes = this.pastBytes;
    for (const { response } of this.readers) bytes += response.writableLength;
    return bytes;
  }

  /** Ends every stream. */
  stop(): void {
    for (const end of this.endings.splice(0)) end();
    for (const timer of this.timers.splice(0)) timer.cancel();
    for (const { response } of this.readers) response.end();
    this.readers.clear();
  }

  /** The answer to a request for the stream: what it wants, or why it cannot have it. */
  open(call: Call): Answer {
    const asked = call.query.get('kinds');
    let kinds = DEFAULT_KINDS;
    if (asked !== undefined) {
      const names = asked.split(',', KINDS.length + 1);
      const known = KINDS.filter((kind) => names.includes(kind));
      if (known.length !== new Set(names).size) return fail('query', `kinds are ${KINDS.join(', ')}`);
      if (known.includes('log') && call.caller.role !== 'admin') return fail('role', 'admin is needed for log');
      kinds = new Set(known);
    }
    if (this.readers.size >= MAX_READERS) return fail('readers');
    return {
      status: 200,
      contentType: 'text/event-stream',
      body: '',
      stream: (response, lastEventId) => this.add(response, kinds, lastEventId),
    };
  }

  private add(response: ServerResponse, kinds: ReadonlySet<Kind>, lastEventId: string | null): void {
    const reader = { response, kinds };
    this.readers.add(reader);
    response.on('close', () => this.readers.delete(reader));
    response.on('error', () => this.readers.delete(reader));
    // An id of another run of the gateway is ahead of ours or unknown: then nothing is replayed.
    const after = lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : this.lastId;
    response.write('retry: 3000\n\n');
    for (const past of this.past) {
      if (past.id > after && kinds.has(past.kind)) this.send(reader, past.text, past.bytes);
    }
  }

  private tell(kind: Kind, fields: JsonObject): void {
    const id = ++this.lastId;
    const time = this.options.clock.now();
    // JSON holds no raw line end, so one data line is enough.
    const text = `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify({ event: kind, time, ...fields }, bounded)}\n\n`;
    const bytes = Buffer.byteLength(text);
    if (kind !== 'stats' && kind !== 'log' && kind !== 'bridges') {
      this.past.push({ id, kind, text, bytes });
      this.pastBytes += bytes;
      while (this.past.length > REPLAYED || this.pastBytes > REPLAYED_BYTES)
        this.pastBytes -= this.past.shift()?.bytes ?? 0;
    }
    for (const reader of this.readers) if (reader.kinds.has(kind)) this.send(reader, text, bytes);
  }

  private send(reader: Reader, text: string, bytes: number): void {
    const { response } = reader;
    if (response.destroyed) return;
    if (response.writableLength + bytes > MAX_UNSENT_BYTES) {
      this.readers.delete(reader);
      this.dropped.value++;
      this.slowLog('warn', 'WEB-SLOW', { remote: response.socket?.remoteAddress, bytes: response.writableLength });
      response.destroy();
      return;
    }
    response.write(text);
  }

  private beat(): void {
    for (const reader of this.readers) this.send(reader, ':\n\n', 3);
  }

  private tellStats(): void {
    if (this.readers.size === 0) return;
    if (this.wanted('stats')) this.tell('stats', this.stats());
    this.tellBridges();
  }

  private wanted(kind: Kind): boolean {
    for (const { kinds } of this.readers) if (kinds.has(kind)) return true;
    return false;
  }

  /** Bridges whose state is another one than at the last look, and all of them for whoever wants that. */
  private tellBridges(): void {
    const views = [...this.options.bridges.list()];
    const states = new Map<string, string>();
    for (const view of views) {
      const { kind, direction, name, state } = view;
      const key = `${kind}/${direction ?? ''}/${name}`;
      states.set(key, state);
      const before = this.states?.get(key);
      if (this.states !== null && before !== state) {
        this.tell('bridge', { kind, type: direction, name, state, before: before ?? null, last_error: view.lastError });
      }
    }
    for (const key of this.states?.keys() ?? []) {
      const [kind, direction, name] = key.split('/', 3);
      if (!states.has(key)) this.tell('bridge', { kind, type: direction || null, name, state: 'removed' });
    }
    this.states = states;
    if (!this.wanted('bridges')) return;
    this.tell('bridges', {
      bridges: views.map((view) => ({
        kind: view.kind,
        ...view.status,
        type: view.direction,
        name: view.name,
        enable: view.enabled,
        state: view.state,
        last_error: view.lastError,
      })),
    });
  }

  /** The numbers of stats(). */
  figures(): Record<string, number> {
    const numbers: Record<string, number> = {};
    for (const [name, value] of Object.entries(this.stats())) if (typeof value === 'number') numbers[name] = value;
    return numbers;
  }

  /** The counters that a live view shows. */
  stats(): JsonObject {
    const { metrics } = this.options;
    return {
      uptime_ms: Math.round(this.process.uptimeMs()),
      clients: total(metrics, 'clients_connected'),
      sessions: total(metrics, 'sessions'),
      subscriptions: total(metrics, 'subscriptions'),
      retained: total(metrics, 'retained_messages'),
      received: total(metrics, 'publish_received_total'),
      sent: total(metrics, 'publish_sent_total'),
      dropped: total(metrics, 'publish_dropped_total'),
      received_bytes: total(metrics, 'publish_received_bytes_total'),
      sent_bytes: total(metrics, 'publish_sent_bytes_total'),
      queued: total(metrics, 'queued_messages'),
      queued_bytes: total(metrics, 'queued_bytes'),
      connects: total(metrics, 'connections_total'),
      refused: total(metrics, 'connections_refused_total'),
      denied: total(metrics, 'denied_total'),
      memory: residentBytes(),
      cpu: this.process.cpuPercent() / 100,
      lag_p50: this.process.lagSeconds(50),
      lag_p99: this.process.lagSeconds(99),
      latency_p50: this.latency.seconds(50),
      latency_p99: this.latency.seconds(99),
      latency: this.latency.distribution(),
      store: this.options.store?.() ?? null,
    };
  }
}

export function eventRoutes(feed: EventFeed): Route[] {
  return [
    get('/api/v4/events', 'server-sent events: what happens, live', (call) => feed.open(call), 'viewer', [
      { name: 'kinds', text: `any of ${KINDS.join(', ')}, with commas`, type: 'string' },
    ]),
  ];
}
