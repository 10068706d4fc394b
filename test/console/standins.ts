// Stand-ins for everything console/ is handed: a broker of plain lists, bridges in a map, a configuration. Used by test/console only.
import { systemClock } from '../../src/base/clock.ts';
import type { Level, Log } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import type {
  Broker,
  BrokerEvent,
  ClientView,
  LocalClient,
  LocalOptions,
  PublishOutcome,
  SubscriptionView,
  TopicTraffic,
  TopicView,
} from '../../src/broker/broker.ts';
import type { Tree } from '../../src/config/config.ts';
import { documentOf } from '../../src/config/documents.ts';
import type {
  BridgeControl,
  BridgeRef,
  BridgeView,
  ChangeResult,
  ConfigControl,
  ConsoleOptions,
  HttpSettings,
  Json,
  JsonObject,
  LogLine,
  LogTail,
  ProbeRequest,
  ProbeResult,
  RuleControl,
  ShownConfig,
  Trial,
  TrialResult,
  WebUser,
} from '../../src/console/console.ts';
import { HttpServer } from '../../src/console/http.ts';
import { ProcessMetrics } from '../../src/console/process.ts';
import { type Hold, Message } from '../../src/mqtt/message.ts';
import type { Properties } from '../../src/mqtt/property.ts';

export const ADMIN: WebUser = { username: 'admin', password: 's3cr3t-Pw!', role: 'admin' };
export const OPERATOR: WebUser = { username: 'op', password: 'op-Pw', role: 'operator' };
export const VIEWER: WebUser = { username: 'viewer', password: 'view-Pw', role: 'viewer' };

export function clientView(clientId: string, more: Partial<ClientView> = {}): ClientView {
  return {
    clientId,
    username: null,
    connected: true,
    remote: '127.0.0.1:50000',
    listener: 'tcp',
    version: 5,
    cleanStart: true,
    keepAlive: 60,
    since: 1,
    sessionExpiryInterval: 0,
    subscriptions: 0,
    inflight: 0,
    queued: 0,
    queuedBytes: 0,
    unsentBytes: 0,
    messagesIn: 0,
    messagesOut: 0,
    dropped: 0,
    willTopic: null,
    lastError: null,
    ...more,
  };
}

export function subscriptionView(clientId: string, topicFilter: string, qos: 0 | 1 | 2 = 0): SubscriptionView {
  return {
    clientId,
    topicFilter,
    qos,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0,
    subscriptionIdentifier: 0,
  };
}

export interface Published {
  readonly options: LocalOptions;
  readonly topic: string;
  readonly payload: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly properties: Properties | null;
}

export class BrokerStandIn implements Broker {
  readonly clientList = new Map<string, ClientView>();
  readonly subscriptionList: SubscriptionView[] = [];
  readonly retainedList = new Map<string, Message>();
  readonly topicList: TopicView[] = [];
  readonly published: Published[] = [];
  readonly kicked: [string, boolean][] = [];
  readonly handlers = new Set<(event: BrokerEvent) => void>();
  attached = 0;
  outcome: PublishOutcome = 'accepted';
  hold: Hold | null = null;
  onPublish: () => void = () => {};

  addClient(clientId: string, more: Partial<ClientView> = {}): void {
    this.clientList.set(clientId, clientView(clientId, more));
  }

  retain(topic: string, payload: string, qos: 0 | 1 | 2 = 0): void {
    const origin = { kind: 'client', clientId: 'c', username: null, bridge: null } as const;
    this.retainedList.set(topic, new Message(topic, Buffer.from(payload), qos, true, null, 0, origin));
  }

  emit(event: BrokerEvent): void {
    for (const handler of this.handlers) handler(event);
  }

  async start(): Promise<void> {}
  async stop(): Promise<void> {}
  accept(): void {}
  accessChanged(): void {}

  attach(options: LocalOptions): LocalClient {
    this.attached++;
    return {
      subscribe: () => {},
      unsubscribe: () => {},
      publish: (topic, bytes, start, end, qos, retain, properties = null) => {
        const payload = Buffer.from(bytes.subarray(start, end)).toString();
        this.published.push({ options, topic, payload, qos, retain, properties });
        this.onPublish();
        if (retain && end === start) this.retainedList.delete(topic);
        return this.outcome;
      },
      publishSoon: () => this.outcome,
      relieve: () => {},
      relieved: () => {},
      deniedTopic: () => null,
      lastHold: () => this.hold,
      close: () => {
        this.attached--;
      },
    };
  }

  onEvent(handler: (event: BrokerEvent) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  clients(): Iterable<ClientView> {
    return this.clientList.values();
  }

  client(clientId: string): ClientView | undefined {
    return this.clientList.get(clientId);
  }

  *subscriptions(clientId?: string): Iterable<SubscriptionView> {
    for (const s of this.subscriptionList) if (clientId === undefined || s.clientId === clientId) yield s;
  }

  *retained(topicFilter: string): Iterable<Message> {
    for (const message of this.retainedList.values()) {
      if (topicFilter === '#' || message.topic === topicFilter) yield message;
    }
  }

  traffic(): TopicTraffic {
    const others = { topic: '', messages: 7, bytes: 70, messageRate: 0.5, byteRate: 5 };
    return { limit: 20_000, windowMs: 6000.4, topics: this.topicList, others };
  }

  kick(clientId: string, dropSession: boolean): boolean {
    this.kicked.push([clientId, dropSession]);
    return this.clientList.delete(clientId);
  }
}

function keyOf({ kind, direction, name }: BridgeRef): string {
  return `${kind}/${direction}/${name}`;
}

/** Knows a few keys and refuses all others, as the schema does. */
export class BridgesStandIn implements BridgeControl {
  readonly views = new Map<string, BridgeView>();
  readonly trials: Trial[] = [];
  readonly probes: ProbeRequest[] = [];
  probeResult: ProbeResult = { ok: true, steps: [] };
  /** Names of bridges whose changes were to be kept. */
  readonly kept: string[] = [];
  trialResult: TrialResult = { ok: true, matched: false, reason: 'no rule matches' };
  private readonly known = new Set([
    ...['enable', 'pub_url', 'sub_url', 'server', 'forwards', 'subscription'],
    ...['clientid', 'keepalive', 'reconnect_max', 'username', 'password'],
  ]);

  put(ref: BridgeRef, config: JsonObject, more: Partial<BridgeView> = {}): void {
    const { kind, direction, name } = ref;
    const enabled = config.enable !== false;
    const state = enabled ? 'listening' : 'disabled';
    const document = documentOf(direction ?? 'mqtt', config as Tree) as JsonObject;
    const about = { kind, direction, name, enabled, state, lastError: null } as const;
    const view = { ...about, config, document, status: {}, ...more } as const;
    this.views.set(keyOf(ref), view);
  }

  list(): Iterable<BridgeView> {
    return this.views.values();
  }

  get(ref: BridgeRef): BridgeView | undefined {
    return this.views.get(keyOf(ref));
  }

  async add(ref: BridgeRef, document: JsonObject, keep = false): Promise<ChangeResult> {
    if (keep) this.kept.push(ref.name);
    if (this.views.has(keyOf(ref))) return { ok: false, why: 'exists' };
    return this.check(ref, document);
  }

  async change(ref: BridgeRef, document: JsonObject, keep = false): Promise<ChangeResult> {
    if (keep) this.kept.push(ref.name);
    if (!this.views.has(keyOf(ref))) return { ok: false, why: 'missing' };
    return this.check(ref, document);
  }

  async remove(ref: BridgeRef, keep = false): Promise<ChangeResult> {
    if (!this.views.delete(keyOf(ref))) return { ok: false, why: 'missing' };
    if (!keep) return { ok: true };
    this.kept.push(ref.name);
    return { ok: true, report: { kept: '/d/50-console.conf', note: 'kept disabled' } };
  }

  async switch(ref: BridgeRef, on: boolean, keep = false): Promise<ChangeResult> {
    if (keep) this.kept.push(ref.name);
    const view = this.views.get(keyOf(ref));
    if (view === undefined) return { ok: false, why: 'missing' };
    this.put(ref, { ...view.config, enable: on });
    return { ok: true };
  }

  test(trial: Trial): TrialResult {
    this.trials.push(trial);
    return this.trialResult;
  }

  async probe(wanted: ProbeRequest): Promise<ProbeResult> {
    this.probes.push(wanted);
    return this.probeResult;
  }

  private check(ref: BridgeRef, document: JsonObject): ChangeResult {
    for (const key of Object.keys(document)) {
      if (!this.known.has(key)) {
        return { ok: false, why: 'invalid', problems: [{ pointer: `/${key}`, message: `unknown key ${key}` }] };
      }
    }
    this.put(ref, document);
    return { ok: true };
  }
}

export class ConfigStandIn implements ConfigControl {
  shown: ShownConfig = {
    listeners: [{ name: 'tcp', kind: 'tcp', bind: '127.0.0.1:1883', tls: null }],
    mqtt: { maxPacketSize: 10 * 1024 * 1024, keepaliveMultiplier: 1.5, maxMqueueLen: 1024 },
    auth: {
      allowAnonymous: true,
      users: [{ username: 'carol', password: 'Carol-Secret-1' }],
      httpAuth: {
        enable: true,
        timeoutMs: 5000,
        connectTimeoutMs: 5000,
        poolSize: 32,
        cacheTtlMs: 0,
        authReq: {
          url: 'http://bob:Url-Secret-3@127.0.0.1:8000/auth?key=Url-Secret-4',
          method: 'post',
          headers: [['authorization', 'Header-Secret-5']],
          params: [],
        },
        superReq: null,
        aclReq: null,
      },
    },
    httpServer: { ipAddr: '127.0.0.1', port: 8081, username: 'admin', password: 's3cr3t-Pw!', authType: 'basic' },
    persistence: { enable: false, path: '', sync: 'ack' },
  };
  readonly sets: Map<string, Json>[] = [];
  reloads = 0;
  result: ChangeResult = { ok: true };

  current(): ShownConfig {
    return this.shown;
  }

  view(): JsonObject {
    return { mqtt: { max_packet_size: this.shown.mqtt.maxPacketSize }, http_server: { password: '***' } };
  }

  async reload(): Promise<ChangeResult> {
    this.reloads++;
    return this.result;
  }

  async set(values: ReadonlyMap<string, string | number | boolean>): Promise<ChangeResult> {
    this.sets.push(new Map(values));
    return this.result;
  }
}

export class LogTailStandIn implements LogTail {
  readonly lines: LogLine[] = [];
  readonly handlers = new Set<(line: LogLine) => void>();

  recent(limit: number): readonly LogLine[] {
    return this.lines.slice(-limit);
  }

  follow(handler: (line: LogLine) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }
}

export interface Logged {
  readonly level: Level;
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Rules that are none: for the list of routes. */
export const NO_RULES: RuleControl = {
  list: () => [],
  put: async () => ({ ok: true }),
  remove: async () => ({ ok: false, why: 'missing' }),
  test: async () => ({ ok: false, problems: [] }),
  watch: async () => ({ ok: true, results: [] }),
};

/** A console server on a free port with all its stand-ins at hand. */
export class ConsoleStage {
  readonly broker = new BrokerStandIn();
  readonly bridges = new BridgesStandIn();
  readonly config = new ConfigStandIn();
  readonly logTail = new LogTailStandIn();
  readonly metrics = new Metrics();
  readonly logged: Logged[] = [];
  settings: HttpSettings = {
    host: '127.0.0.1',
    port: 0,
    tls: null,
    maxBodyBytes: 8192,
    maxRequests: 32,
    authType: 'basic',
    users: [ADMIN, OPERATOR, VIEWER],
    jwt: null,
  };
  ready = true;
  readonly options: ConsoleOptions;
  readonly process: ProcessMetrics;
  readonly server: HttpServer;

  constructor(more: Partial<ConsoleOptions> = {}) {
    const log: Log = (level, id, fields = {}) => {
      this.logged.push({ level, id, fields });
    };
    this.options = {
      version: '1.2.3',
      nodeName: 'test',
      clock: systemClock,
      log,
      metrics: this.metrics,
      broker: this.broker,
      bridges: this.bridges,
      config: this.config,
      explain: ({ topic }) => ({ allowed: topic !== 'no', rule: 'acl:3' }),
      proxy: null,
      logTail: this.logTail,
      store: null,
      pages: null,
      ready: () => this.ready,
      settings: () => this.settings,
      makeHash: async (password) => `hash of ${password}`,
      ...more,
    };
    this.process = new ProcessMetrics(this.metrics, this.options.clock, '0.0.0-test');
    this.server = new HttpServer(this.options, this.process);
  }

  async start(): Promise<this> {
    await this.process.start();
    await this.server.start();
    return this;
  }

  async stop(): Promise<void> {
    await this.server.stop(1000);
    await this.process.stop();
  }
}
