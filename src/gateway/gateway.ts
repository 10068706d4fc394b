// The wiring: builds every stage left to right, starts them in that order, stops them in reverse. Used by cli/start.ts
// and index.ts. Decides nothing about MQTT, SP or HTTP; knows only who needs whom. Optional parts are loaded when the
// configuration asks for them.
//
// Map (made by `make docs`):
//   accounts.ts          Users, groups and roles at run time, as the rest of the gateway has them: commands over MQTT
//   archive.ts           The wiring of what is kept of the past: recorded messages, figures, what happened
//   bridgerights.ts      Whether bridges may publish what they bring in, told before the first message is denied
//   bridges.ts           Bridges as REST, console and `ctl` see and change them: documents in, checked views out
//   certificates.ts      The certificates that a configuration names: whose they are and until when they hold
//   console.ts           The wiring of what speaks HTTP: console and REST API (http_server), Prometheus (metrics)
//   explain.ts           Why a client may do something or not, for `ctl explain` and the console
//   fetchkeys.ts         How auth/ fetches the keys of tokens: one bounded GET over the transport layer
//   hooks.ts             The functions of a program that embeds the gateway
//   kept.ts              Keeps changes made at run time
//   keys.ts              The configuration's schema as a flat list of keys, for the console
//   keyschema.ts         The configuration's schema as JSON Schema: what a bridge's or a rule's document may hold
//   listeners.ts         The MQTT listeners of a gateway: opens what is configured
//   nngprobe.ts          "Test connection" of an NNG bridge: for each URL the connection
//   options.ts           From the configuration to what each stage is built from: the only place that knows both
//   ownerror.ts          Whose an error is that nothing has caught: by the file on top of its stack
//   plugins.ts           Plugins of the command (`plugins = ["./mine.mjs"]`): modules that give hooks, loaded at start
//   policies.ts          From the configuration to what holds for topics, payloads and quotas of clients (policy/)
//   probe.ts             "Test connection" of a bridge: name lookup, connection
//   probewords.ts        What a test of a connection found, in words: why a certificate is not trusted, what CONNACK
//   programtransport.ts  SP transports of a program that embeds the gateway
//   rules.ts             Rules as the gateway has them: the engine, loaded when the first rule is configured
//   running.ts           The configuration of a running gateway: what holds now, and how another one comes into force
//   storeview.ts         What the store on disk is doing, for REST and the console: its size, room on the disk
//   tidy.ts              Gives memory back after a crowd has gone
//   transports.ts        The transports as the listeners, sp/, bridge/ and proxy/ ask for them: one case for each kind
//   watchedfiles.ts      Files that the proxy reads its servers from: when they have changed
//   webhash.ts           Passwords of http_server that are kept as hashes: comparing them for console/
import path from 'node:path';
import { Happenings } from '../archive/happenings.ts';
import { AccessControl } from '../auth/chain.ts';
import type { HookDeps } from '../auth/hooks.ts';
import { type Clock, processCpuMs, ResumedClock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { Ledger } from '../base/ledger.ts';
import { budgetLog, type Log } from '../base/log.ts';
import { LogTail } from '../base/logtail.ts';
import { STRANGERS } from '../base/messages.ts';
import { Metrics } from '../base/metrics.ts';
import type { Service } from '../base/service.ts';
import { Turn } from '../base/turn.ts';
import { BlockPool } from '../base/writer.ts';
import { MqttBridges } from '../bridge/mqtt/bridges.ts';
import { Spools } from '../bridge/nng/spool.ts';
import { Taps } from '../bridge/nng/taps.ts';
import { Supervisor } from '../bridge/supervisor.ts';
import type { Engine } from '../broker/broker.ts';
import { NativeBroker } from '../broker/native/engine.ts';
import type { Config, Loaded, LogConfig, WebhookConfig } from '../config/config.ts';
import { missingFeatures } from '../config/features.ts';
import { nngBridges } from '../config/nngbridges.ts';
import { formatProblem } from '../config/problem.ts';
import type { ChangeResult } from '../console/console.ts';
import type { Policies } from '../policy/policy.ts';
import type { Proxies } from '../proxy/proxies.ts';
import { nativeDriver } from '../sp/native.ts';
import type { SpDriver } from '../sp/sp.ts';
import { memoryJournal } from '../store/memory.ts';
import type { Journal } from '../store/store.ts';
import { MemoryNetwork } from '../transport/memory.ts';
import type { Bound, Connection } from '../transport/transport.ts';
import { version } from '../version.ts';
import type { Webhook } from '../webhook/webhook.ts';
import { AccountsService } from './accounts.ts';
import type { Past } from './archive.ts';
import { BridgesControl } from './bridges.ts';
import { CertificateWatch } from './certificates.ts';
import type { Web, WebAddresses } from './console.ts';
import { fetchKeys } from './fetchkeys.ts';
import { type GatewayHooks, ProgramHooks } from './hooks.ts';
import { Listeners, rulesOf } from './listeners.ts';
import { authOptions, bridgeOptions, presets, proxiesOptions, secretPath, sessionLimits } from './options.ts';
import { isOfFile } from './ownerror.ts';
import type { Plugin } from './plugins.ts';
import { buildPolicies, buildQuotas } from './policies.ts';
import type { ProgramTransports } from './programtransport.ts';
import { checkRules, RulesControl } from './rules.ts';
import { type Part, type Running, RunningConfig } from './running.ts';
import { checkDescriptors, proxyTransports, remoteDialing, spTransports } from './transports.ts';

/** Time for events that wait when the webhook is configured anew. */
const HOOK_DRAIN_MS = 1000;
/** For connections of a program: as listeners have it unless told. */
const CONNECT_TIMEOUT_MS = 10_000;
/** The part of the time for a stop that clients may wait for their last acknowledgements. */
const CLIENTS_SHARE = 0.4;

export interface GatewayParts {
  readonly log: Log;
  readonly clock: Clock;
  /**
   * Reads the configuration of this start again, `set` on top, `kept` as LoadOptions has it. Throws like loadConfig.
   */
  readonly load: (set?: readonly string[], kept?: string) => Loaded;
  /** Applies log settings that may change while running. */
  readonly relog: (log: LogConfig) => void;
  /** Functions of an embedding program; absent or null: none. */
  readonly hooks?: GatewayHooks | null;
  /** SP transports of an embedding program, by the name behind program://. */
  readonly transports?: ProgramTransports;
  /** Where `tidegate ctl` finds this gateway; absent or null: it does not. */
  readonly controlFolder?: string | null;
}

export class Gateway implements Service {
  readonly metrics = new Metrics();
  readonly turn = new Turn();
  /** Where inproc names live: shared with the SP sockets of an embedding program. */
  readonly network = new MemoryNetwork();
  readonly native: SpDriver;
  private state: 'new' | 'starting' | 'ready' | 'stopping' = 'new';
  private readonly current: RunningConfig;
  private readonly certificates: CertificateWatch;
  private readonly parts: GatewayParts;
  private readonly log: Log;
  private readonly tail: LogTail | null;
  private readonly clock: ResumedClock;
  private readonly pool = new BlockPool();
  private budget: { readonly config: Config; readonly bytes: number } | null = null;
  /** What everything costs that clients and peers make this process keep. */
  private readonly ledger = new Ledger();
  /** Started, in order; stopped in reverse. */
  private readonly started: Part[] = [];
  private running: Running | null = null;
  private plugins: readonly Plugin[] = [];
  private webhook: Webhook | null = null;
  private readonly taps = new Taps();
  /** There once bridges start. */
  private supervisor: Supervisor | null = null;
  private web: Web | null = null;
  private readonly happenings: Happenings;
  /** There where something is recorded, or a console shows it. */
  private past: Past | null = null;
  /** Loaded when the first proxy is configured. */
  private proxies: Proxies | null = null;

  constructor(loaded: Loaded, parts: GatewayParts) {
    const clock = new ResumedClock(parts.clock);
    this.clock = clock;
    this.parts = { ...parts, clock };
    this.tail = loaded.config.httpServer === null ? null : new LogTail(loaded.config.log.level, () => clock.now());
    const log = budgetLog(parts.log, () => parts.clock.mono(), STRANGERS);
    this.happenings = new Happenings(clock);
    this.log = this.tail === null ? log : this.happenings.wrap(this.tail.wrap(log));
    this.current = new RunningConfig(loaded, {
      log: this.log,
      metrics: this.metrics,
      load: (set, kept) => this.runnable(parts.load(set, kept)),
      relog: (settings) => {
        parts.relog(settings);
        if (this.tail !== null) this.tail.level = settings.level;
      },
      running: () => (this.state === 'ready' ? this.running : null),
      applyWebhook: (config) => this.startWebhook(config),
      applyProxies: (config) => this.applyProxies(config),
      applyRecord: (config) => this.applyRecord(config),
      renewHttp: async () => {
        this.certificates.look();
        await this.web?.reload();
      },
    });
    this.certificates = new CertificateWatch({
      clock,
      log: this.log,
      metrics: this.metrics,
      tree: () => this.current.loaded.tree,
      cwd: process.cwd(),
    });
    this.native = nativeDriver({
      transports: spTransports(this.network, parts.transports),
      clock,
      turn: this.turn,
      pool: this.pool,
      ledger: this.ledger,
      frameBytes: () => this.budgetBytes() / 4,
    });
  }

  get broker(): Engine {
    return this.runs().broker;
  }

  get bridges(): Supervisor {
    return this.runs().bridges;
  }

  get accounts(): AccountsService {
    return this.runs().accounts;
  }

  get rules(): RulesControl {
    return this.runs().rules;
  }

  /** MQTT addresses that are bound. */
  get bound(): readonly Bound[] {
    return this.runs().listeners.bound;
  }

  /** Throws when a part that cannot be done without fails: an address in use, a file that cannot be read. */
  async start(): Promise<void> {
    if (this.state !== 'new') throw new GatewayError('GW-STATE', 'the gateway has been started before');
    this.state = 'starting';
    const { loaded, config } = this.current;
    const { log } = this;
    const { clock } = this.parts;
    const startedMs = clock.mono();
    log('info', 'GW-START', { version, pid: process.pid, file: loaded.file });
    this.runnable(loaded);
    await checkRules(config);
    const policies = await buildPolicies(config, this.metrics);
    const deps = { log, metrics: this.metrics, clock };
    const hooks = await this.hooks(loaded, deps);
    const access = await AccessControl.build(authOptions(config, this.current.folder), {
      ...deps,
      ledger: this.ledger,
      secretPath: secretPath(config),
      fetchKeys,
      hooks: hooks?.auth,
    });
    this.started.push({ name: 'auth', stop: async () => access.close() });
    const broker = await this.startBroker(config, access, policies, hooks);
    this.tellHooks(hooks, broker);
    const accounts = new AccountsService(access, broker, log, () => clock.mono());
    accounts.renew();
    this.started.push({ name: 'accounts', stop: async () => accounts.stop() });
    // Stopped last but for the broker: what bridges bring in while they stop is recorded too.
    this.started.push({ name: 'record', stop: async (deadlineMs) => this.past?.stop(deadlineMs) });
    if (config.httpServer !== null || config.record.topics.length > 0) await this.startPast(config, broker);
    const rules = await this.startRules(config, broker);
    const bridges = await this.startBridges(config, broker);
    const control = new BridgesControl(bridges, this.current);
    control.take(loaded.tree, loaded.masked, config.bridges.nng.compat);
    const listeners = new Listeners({ log, metrics: this.metrics, broker, access });
    this.running = { access, accounts, broker, bridges, control, listeners, rules };
    this.certificates.start();
    this.started.push({ name: 'certificates', stop: async () => this.certificates.stop() });
    // Its place in the order of the stop is the same for one that a reload brings.
    this.started.push({ name: 'webhook', stop: async (ms) => this.webhook?.stop(ms) });
    await this.startWebhook(config);
    const web = await this.startWeb(config, this.running);
    // Stopped in the order of the data: nobody new, then clients, then bridges, then the store.
    this.started.push({ name: 'clients', stop: (deadlineMs) => broker.stopClients(deadlineMs * CLIENTS_SHARE) });
    this.started.push({ name: 'listeners', stop: () => listeners.stop() });
    await listeners.start(config.listeners, config.mqtt.maxPacketSize);
    await this.applyProxies(config);
    checkDescriptors(listeners.openCount + (this.proxies?.bound.length ?? 0));
    this.state = 'ready';
    const mqtt = listeners.bound.map(({ kind, address }) => `${kind}://${address}`);
    const nng = bridges.list().flatMap((b) => b.endpoints.flatMap((e) => e.bound ?? []));
    const proxy = this.proxies?.bound.map(({ kind, address }) => `${kind}://${address}`);
    const ms = Math.round(clock.mono() - startedMs);
    // The logger writes it at every level: scripts and people wait for it.
    log('info', 'GW-READY', { mqtt, nng, bridges: namesByType(bridges), proxy, ...web, ms, pid: process.pid });
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.state === 'stopping') return;
    this.state = 'stopping';
    const { log } = this;
    const { clock } = this.parts;
    const endMs = clock.mono() + deadlineMs;
    log('info', 'GW-STOP');
    for (let part = this.started.pop(); part !== undefined; part = this.started.pop()) {
      try {
        await part.stop(Math.max(0, endMs - clock.mono()));
      } catch (error) {
        log('error', 'GW-INTERNAL', { part: part.name, error: errorText(error) });
      }
    }
    this.running = null;
    log('info', 'GW-STOPPED');
  }

  /**
   * Reads the configuration again and applies what differs. A file that is wrong changes nothing; the outcome is
   * logged.
   */
  reload(): Promise<ChangeResult> {
    return this.current.reload();
  }

  // ---- start

  private runs(): Running {
    if (this.running === null) throw new GatewayError('GW-STATE', 'the gateway is not running');
    return this.running;
  }

  /** Throws CFG-NOT-BUILT for what cannot run here. */
  private runnable(loaded: Loaded): Loaded {
    const missing = missingFeatures(loaded.config);
    for (const feature of missing.filter((f) => f.warnOnly))
      this.log('warn', 'CFG-WARNING', { at: formatProblem(feature) });
    const fatal = missing.filter((f) => !f.warnOnly);
    if (fatal.length > 0) throw new GatewayError('CFG-NOT-BUILT', fatal.map(formatProblem).join('\n'));
    return loaded;
  }

  /** Those of plugins first, then those of the embedding program. */
  private async hooks({ config, file }: Loaded, deps: HookDeps): Promise<ProgramHooks | null> {
    const own = this.parts.hooks ?? null;
    if (config.plugins.length === 0) return own === null ? null : new ProgramHooks(own, deps);
    const { loadPlugins, together } = await import('./plugins.ts');
    const { log, metrics } = this;
    const folder = file === null ? process.cwd() : path.dirname(path.resolve(file));
    const parts = { log, metrics, mono: () => this.parts.clock.mono() };
    this.plugins = await loadPlugins(config.plugins, folder, parts);
    const all = together([...this.plugins.map(({ hooks }) => hooks), ...(own === null ? [] : [own])]);
    return all === null ? null : new ProgramHooks(all, deps);
  }

  /**
   * Serves a connection that an embedding program has made. `listener` is the name its clients have for rights, quotas
   * and topics: that of a configured one, or another.
   */
  accept(connection: Connection, listener: string): void {
    const { access, broker } = this.runs();
    const config = this.current.config.listeners.find((one) => one.name === listener);
    broker.accept(connection, {
      name: listener,
      connectTimeoutMs: config?.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      rules: config === undefined ? undefined : rulesOf(config),
      access: () => access.access(listener),
    });
  }

  /** An error that nothing has caught: whether it is a plugin's, which says nothing of the state of the gateway. */
  survives(error: unknown): boolean {
    const plugin = this.plugins.find(({ file }) => isOfFile(error, file));
    if (plugin === undefined) return false;
    this.log('error', 'PLUGIN-FAILED', { plugin: plugin.name, error: errorText(error) });
    return true;
  }

  private async startBroker(
    config: Config,
    access: AccessControl,
    policies: Policies | null,
    hooks: ProgramHooks | null,
  ): Promise<Engine> {
    const common = {
      clock: this.parts.clock,
      turn: this.turn,
      pool: this.pool,
      ledger: this.ledger,
      cpuMs: processCpuMs,
      log: this.log,
      metrics: this.metrics,
      limits: sessionLimits(config),
      localAccess: () => access.access(''),
      absentees: access.absentees,
      sys: { version, intervalMs: config.mqtt.sysIntervalMs, more: () => this.bridgeValues() },
    };
    let broker: Engine;
    if (config.broker.engine === 'aedes') {
      if (hooks?.alterFor) throw new GatewayError('CFG-INVALID', 'hooks: deliver needs broker.engine = native');
      const { AedesBroker } = await import('../broker/aedes/engine.ts');
      broker = new AedesBroker({ ...common, journal: memoryJournal(), redis: config.broker.redis });
    } else {
      const resumeTime = (steadyMs: number): void => this.clock.resume(steadyMs);
      const journal = await this.journal(config);
      const quotas = await buildQuotas(config, this.metrics);
      const alterFor = hooks?.alterFor ?? null;
      broker = new NativeBroker({ ...common, journal, resumeTime, policies, quotas, alterFor });
    }
    await broker.start();
    broker.preset(presets(config));
    this.started.push({ name: 'broker', stop: (deadlineMs) => broker.stop(deadlineMs) });
    return broker;
  }

  /** Before anybody comes, until everybody has gone. */
  private tellHooks(hooks: ProgramHooks | null, broker: Engine): void {
    if (hooks === null) return;
    hooks.start(broker);
    this.started.push({ name: 'hooks', stop: async () => hooks.stop() });
  }

  private async journal(config: Config): Promise<Journal> {
    const { enable, path, sync, intervalMs, maxSize, onCorrupt } = config.persistence;
    if (!enable) return memoryJournal();
    const { sqliteJournal } = await import('../store/sqlite.ts');
    const { log, metrics } = this;
    return sqliteJournal({
      path,
      sync,
      intervalMs,
      maxSize,
      onCorrupt,
      small: config.broker.profile === 'small',
      clock: this.parts.clock,
      log,
      metrics,
    });
  }

  /** Rules take messages before any bridge or listener brings them. */
  private async startRules(config: Config, broker: Engine): Promise<RulesControl> {
    const { log, metrics, turn, taps } = this;
    const rules = new RulesControl({
      broker,
      bridges: () => this.supervisor,
      taps,
      webhook: () => this.webhook,
      clock: this.parts.clock,
      turn,
      log,
      metrics,
      keeper: this.current,
    });
    await rules.apply(config.rules, this.current.loaded.tree);
    this.started.push({ name: 'rules', stop: async () => rules.stop() });
    return rules;
  }

  private async startBridges(config: Config, broker: Engine): Promise<Supervisor> {
    const { log, metrics, turn } = this;
    const driver = (name: SpDriver['name']): SpDriver | Promise<SpDriver> =>
      name === 'native' ? this.native : this.foreignDriver();
    const mqtt = this.mqttBridges(config, broker);
    const { clock } = this.parts;
    const spools = new Spools(broker.journal, clock, log, broker.spools, nngBridges(config.bridges.nng));
    const { taps } = this;
    const retained: Engine['retained'] = (filter) => broker.retained(filter);
    const parts = { broker, retained, driver, clock, turn, log, metrics, spools, mqtt, taps };
    const bridges = new Supervisor(parts, bridgeOptions(config));
    this.supervisor = bridges;
    this.started.push({ name: 'bridges', stop: (deadlineMs) => bridges.stop(deadlineMs) });
    await bridges.start();
    return bridges;
  }

  /**
   * Takes the place of the one before, which goes on where this one is wrong; nothing is loaded where none is
   * configured.
   */
  private async startWebhook(config: Config): Promise<void> {
    const before = this.webhook;
    const next = config.webhook === null ? null : await this.makeWebhook(config.webhook);
    this.webhook = next;
    // The one before hears no more from here on, and gets a moment for what waits.
    const stopped = before?.stop(HOOK_DRAIN_MS);
    await next?.start();
    await stopped;
  }

  private async makeWebhook(config: WebhookConfig): Promise<Webhook> {
    const { Webhook } = await import('../webhook/webhook.ts');
    const { broker } = this.runs();
    const { log, metrics } = this;
    const webhook = new Webhook(config, { broker, clock: this.parts.clock, log, metrics });
    await webhook.prepare();
    return webhook;
  }

  private async startPast(config: Config, broker: Engine): Promise<void> {
    const { Past } = await import('./archive.ts');
    const { ledger, log, metrics, happenings } = this;
    const small = config.broker.profile === 'small';
    this.past = new Past(config, { broker, clock: this.parts.clock, ledger, log, metrics, happenings, small });
    this.past.start();
  }

  private async applyRecord(config: Config): Promise<void> {
    if (this.past !== null) this.past.apply(config.record);
    else if (config.record.topics.length > 0) await this.startPast(config, this.runs().broker);
  }

  /** Asked for each frame that comes in pieces; finding it out anew would ask the system each time. */
  private budgetBytes(): number {
    const { config } = this.current;
    if (this.budget?.config !== config) this.budget = { config, bytes: sessionLimits(config).memoryBudget };
    return this.budget.bytes;
  }

  private mqttBridges(config: Config, broker: Engine): MqttBridges {
    const { log, metrics, turn, pool } = this;
    const { clock } = this.parts;
    const { journal, spools, bridgeSessions: sessions } = broker;
    const maxPacketSize = (): number => this.current.config.mqtt.maxPacketSize;
    const maxQueueBytes = (): number => this.budgetBytes() / 4;
    const names = config.bridges.mqtt.map((bridge) => bridge.name);
    return new MqttBridges(
      {
        ...remoteDialing(clock),
        broker,
        journal,
        spools,
        sessions,
        maxPacketSize,
        maxQueueBytes,
        clock,
        turn,
        pool,
        log,
        metrics,
      },
      names,
    );
  }

  /**
   * Starts the proxies when there are some for the first time, else applies what differs. Gives the names of those that
   * failed.
   */
  private async applyProxies(config: Config): Promise<string[]> {
    const options = proxiesOptions(config);
    if (this.proxies !== null) return this.proxies.apply(options);
    if (!options.proxies.some((proxy) => proxy.enable)) return [];
    const { Proxies } = await import('../proxy/proxies.ts');
    const { log, metrics } = this;
    const { broker, access } = this.runs();
    // A proxy that cannot listen is an error of the start; at a reload it is logged, the rest goes on.
    const atStart = this.state === 'starting';
    const proxies = new Proxies(
      {
        clock: this.parts.clock,
        log,
        metrics,
        transports: proxyTransports(),
        local: (connection, proxy, connectTimeoutMs) => {
          const name = `proxy.${proxy}`;
          broker.accept(connection, { name, connectTimeoutMs, access: () => access.access(name) });
        },
        env: process.env,
      },
      atStart ? options : { proxies: [], upstreams: [] },
    );
    this.started.push({ name: 'proxies', stop: (deadlineMs) => proxies.stop(deadlineMs) });
    await proxies.start();
    this.proxies = proxies;
    return atStart ? [] : proxies.apply(options);
  }

  /** The C library's driver, loaded when a bridge first asks for it; a failure is that bridge's state. */
  private async foreignDriver(): Promise<SpDriver> {
    const { nanomsgDriver } = await import('../sp/nanomsg.ts');
    return nanomsgDriver({ clock: this.parts.clock, turn: this.turn });
  }

  /** http_server and metrics, when they are configured. */
  private async startWeb(config: Config, running: Running): Promise<WebAddresses> {
    if (config.httpServer === null && config.metrics === null) return {};
    const { Web } = await import('./console.ts');
    const { log, metrics, turn, tail, current, started } = this;
    this.web = new Web({
      clock: this.parts.clock,
      log,
      metrics,
      ledger: this.ledger,
      turn,
      tail,
      current,
      running,
      started,
      proxies: () => this.proxies,
      ready: () => this.state === 'ready',
      controlFolder: this.parts.controlFolder ?? null,
      certificates: () => this.certificates.list(),
      past: () => this.past,
    });
    return this.web.start(config);
  }

  private *bridgeValues(): Iterable<[string, string]> {
    for (const bridge of this.running?.bridges.list() ?? []) {
      const base = `bridges/${bridge.type}/${bridge.name.replace(/[+#/\0]/g, '_')}`;
      yield [`${base}/state`, bridge.state];
      yield [`${base}/peers`, String(bridge.peers.length)];
      for (const rule of bridge.rules) {
        yield [`${base}/rules/${rule.index}/matched`, String(rule.matched)];
        yield [`${base}/rules/${rule.index}/forwarded`, String(rule.forwarded)];
      }
      yield [`${base}/unmatched`, String(bridge.unmatched)];
      yield [`${base}/dropped`, String(bridge.dropped)];
    }
  }
}

export function createGateway(loaded: Loaded, parts: GatewayParts): Gateway {
  return new Gateway(loaded, parts);
}

/** The bridges that are on, by type; undefined where there are none. */
function namesByType(bridges: Supervisor): Record<string, string[]> | undefined {
  const names: Record<string, string[]> = {};
  for (const { type, name, enabled } of bridges.list()) {
    if (!enabled) continue;
    names[type] ??= [];
    names[type].push(name);
  }
  return Object.keys(names).length === 0 ? undefined : names;
}
