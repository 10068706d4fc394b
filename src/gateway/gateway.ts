// The wiring: builds every stage left to right, starts them in that order, stops them in reverse. Used by cli/start.ts
// and index.ts. Decides nothing about MQTT, SP or HTTP; knows only who needs whom. Optional parts are loaded when the
// configuration asks for them.
//
// Map (made by `make docs`):
//   accounts.ts          Users, groups and roles at run time, as the rest of the gateway has them: commands over MQTT
//   archive.ts           The wiring of what is kept of the past: recorded messages, figures, what happened
//   bridgerights.ts      Whether bridges may publish what they bring in, told before the first message is denied
//   bridges.ts           Bridges as REST, console and `ctl` see and change them: documents in, checked views out
//   bridging.ts          The wiring of bridges
//   certificates.ts      The certificates that a configuration names: whose they are and until when they hold
//   console.ts           The wiring of what speaks HTTP: console and REST API (http_server), Prometheus (metrics)
//   engine.ts            The broker of a gateway: which engine the configuration asks for, on which journal
//   explain.ts           Why a client may do something or not, for `ctl explain` and the console
//   extensions.ts        Code of others in the gateway
//   fetchkeys.ts         How auth/ fetches the keys of tokens: one bounded GET over the transport layer
//   hooks.ts             The functions of a program that embeds the gateway
//   kept.ts              Keeps changes made at run time
//   keys.ts              The configuration's schema as a flat list of keys, for the console
//   keyschema.ts         The configuration's schema as JSON Schema: what a bridge's or a rule's document may hold
//   listeners.ts         The MQTT listeners of a gateway: opens what is configured
//   nngprobe.ts          "Test connection" of an NNG bridge: for each URL the connection
//   ondemand.ts          Parts of a gateway that are loaded when the configuration first asks for them
//   options.ts           From the configuration to what each stage is built from: the only place that knows both
//   ownerror.ts          Whose an error is that nothing has caught: by the file on top of its stack
//   plugins.ts           Plugins of the command (`plugins = ["./mine.mjs"]`): modules that give hooks
//   policies.ts          From the configuration to what holds for topics, payloads and quotas of clients (policy/)
//   probe.ts             "Test connection" of a bridge: name lookup, connection
//   probewords.ts        What a test of a connection found, in words: why a certificate is not trusted, what CONNACK
//   programtransport.ts  SP transports of a program that embeds the gateway
//   rules.ts             Rules as the gateway has them: the engine, loaded when the first rule is configured
//   running.ts           The configuration of a running gateway: what holds now, and how another one comes into force
//   storeview.ts         What the store on disk is doing, for REST and the console: its size, room on the disk
//   tidy.ts              Gives memory back after a crowd has gone
//   tracing.ts           Traces and metrics for an OpenTelemetry collector, as the gateway has them
//   transports.ts        The transports as the listeners, sp/, bridge/ and proxy/ ask for them: one case for each kind
//   watchedfiles.ts      Files that the proxy reads its servers from: when they have changed
//   webhash.ts           Passwords of http_server that are kept as hashes: comparing them for console/
import { Happenings } from '../archive/happenings.ts';
import { AccessControl } from '../auth/chain.ts';
import { type Clock, ResumedClock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { Ledger } from '../base/ledger.ts';
import { budgetLog, type Log } from '../base/log.ts';
import { LogTail } from '../base/logtail.ts';
import { STRANGERS } from '../base/messages.ts';
import { Metrics } from '../base/metrics.ts';
import type { Service } from '../base/service.ts';
import { Turn } from '../base/turn.ts';
import { BlockPool } from '../base/writer.ts';
import { Taps } from '../bridge/nng/taps.ts';
import type { Supervisor } from '../bridge/supervisor.ts';
import type { Engine } from '../broker/broker.ts';
import type { Config, Loaded, LogConfig } from '../config/config.ts';
import { missingFeatures } from '../config/features.ts';
import { formatProblem } from '../config/problem.ts';
import type { ChangeResult } from '../console/console.ts';
import type { Policies } from '../policy/policy.ts';
import { nativeDriver } from '../sp/native.ts';
import type { SpDriver } from '../sp/sp.ts';
import { MemoryNetwork } from '../transport/memory.ts';
import type { Bound, Connection } from '../transport/transport.ts';
import { version } from '../version.ts';
import { AccountsService } from './accounts.ts';
import { BridgesControl } from './bridges.ts';
import { bridgeValues, makeBridges, namesByType } from './bridging.ts';
import { CertificateWatch } from './certificates.ts';
import type { Web, WebAddresses } from './console.ts';
import { startEngine } from './engine.ts';
import { Extensions } from './extensions.ts';
import { fetchKeys } from './fetchkeys.ts';
import type { GatewayHooks, ProgramHooks } from './hooks.ts';
import { Listeners } from './listeners.ts';
import { OnDemand } from './ondemand.ts';
import { authOptions, secretPath, sessionLimits } from './options.ts';
import { buildPolicies } from './policies.ts';
import type { ProgramTransports } from './programtransport.ts';
import { checkRules, RulesControl } from './rules.ts';
import { type Part, type Running, RunningConfig } from './running.ts';
import { startTracing } from './tracing.ts';
import { checkDescriptors, spTransports } from './transports.ts';

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
  private readonly extensions: Extensions;
  private readonly taps = new Taps();
  /** There once bridges start. */
  private supervisor: Supervisor | null = null;
  private web: Web | null = null;
  private readonly happenings: Happenings;
  private readonly onDemand: OnDemand;

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
      onDemand: () => this.onDemand,
      renewHttp: async () => {
        this.certificates.look();
        await this.web?.reload();
      },
    });
    const shared = { clock, log: this.log, metrics: this.metrics };
    this.extensions = new Extensions(parts.hooks ?? null, shared);
    const { ledger, happenings } = this;
    this.onDemand = new OnDemand({ ...shared, ledger, happenings, running: () => this.runs() });
    const tree = (): Loaded['tree'] => this.current.loaded.tree;
    this.certificates = new CertificateWatch({ ...shared, tree, cwd: process.cwd() });
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
    const { log, onDemand } = this;
    const { clock } = this.parts;
    const startedMs = clock.mono();
    log('info', 'GW-START', { version, pid: process.pid, file: loaded.file });
    this.runnable(loaded);
    await checkRules(config);
    const policies = await buildPolicies(config, this.metrics);
    const deps = { log, metrics: this.metrics, clock };
    const hooks = await this.extensions.load(loaded);
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
    this.started.push({ name: 'record', stop: async (deadlineMs) => onDemand.past?.stop(deadlineMs) });
    if (config.httpServer !== null || config.record.topics.length > 0) await onDemand.startPast(config, broker);
    const rules = await this.startRules(config, broker);
    const bridges = await this.startBridges(config, broker);
    const control = new BridgesControl(bridges, this.current);
    control.take(loaded.tree, loaded.masked, config.bridges.nng.compat);
    const listeners = new Listeners({ log, metrics: this.metrics, broker, access });
    this.running = { access, accounts, broker, bridges, control, listeners, rules };
    this.certificates.start();
    this.started.push({ name: 'certificates', stop: async () => this.certificates.stop() });
    // Its place in the order of the stop is the same for one that a reload brings.
    this.started.push({ name: 'webhook', stop: async (ms) => onDemand.webhook?.stop(ms) });
    await onDemand.applyWebhook(config);
    const web = await this.startWeb(config, this.running);
    // Stopped in the order of the data: nobody new, then clients, then bridges, then the store.
    this.started.push({ name: 'clients', stop: (deadlineMs) => broker.stopClients(deadlineMs * CLIENTS_SHARE) });
    this.started.push({ name: 'listeners', stop: () => listeners.stop() });
    await listeners.start(config.listeners, config.mqtt.maxPacketSize);
    this.started.push({ name: 'proxies', stop: async (ms) => onDemand.proxies?.stop(ms) });
    await onDemand.startProxies(config);
    checkDescriptors(listeners.openCount + (onDemand.proxies?.bound.length ?? 0));
    this.state = 'ready';
    const mqtt = listeners.bound.map(({ kind, address }) => `${kind}://${address}`);
    const nng = bridges.list().flatMap((b) => b.endpoints.flatMap((e) => e.bound ?? []));
    const proxy = onDemand.proxies?.bound.map(({ kind, address }) => `${kind}://${address}`);
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
      rules: config,
      access: () => access.access(listener),
    });
  }

  /** An error that nothing has caught: whether it is a plugin's, which says nothing of the state of the gateway. */
  survives(error: unknown): boolean {
    return this.extensions.survives(error);
  }

  private async startBroker(
    config: Config,
    access: AccessControl,
    policies: Policies | null,
    hooks: ProgramHooks | null,
  ): Promise<Engine> {
    const { clock, turn, pool, ledger, log, metrics } = this;
    const sysValues = (): Iterable<[string, string]> =>
      this.running === null ? [] : bridgeValues(this.running.bridges);
    const tracing = await startTracing(config.tracing, { clock, log, metrics, version });
    // Stopped behind the broker: its last spans are exported too.
    if (tracing !== null) this.started.push({ name: 'tracing', stop: (ms) => tracing.service.stop(ms) });
    const traced = tracing?.options;
    const parts = { clock, turn, pool, ledger, log, metrics, access, policies, hooks, traced, sysValues };
    const broker = await startEngine(config, parts);
    this.started.push({ name: 'broker', stop: (deadlineMs) => broker.stop(deadlineMs) });
    return broker;
  }

  /** Before anybody comes, until everybody has gone. */
  private tellHooks(hooks: ProgramHooks | null, broker: Engine): void {
    if (hooks === null) return;
    hooks.start(broker);
    this.started.push({ name: 'hooks', stop: async () => hooks.stop() });
  }

  /** Rules take messages before any bridge or listener brings them. */
  private async startRules(config: Config, broker: Engine): Promise<RulesControl> {
    const { log, metrics, turn, taps } = this;
    const rules = new RulesControl({
      broker,
      bridges: () => this.supervisor,
      taps,
      webhook: () => this.onDemand.webhook,
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
    const { clock, turn, pool, log, metrics, taps, native } = this;
    const maxPacketSize = (): number => this.current.config.mqtt.maxPacketSize;
    const maxQueueBytes = (): number => this.budgetBytes() / 4;
    const limits = { maxPacketSize, maxQueueBytes };
    const bridges = makeBridges(config, { broker, clock, turn, pool, log, metrics, taps, native, ...limits });
    this.supervisor = bridges;
    this.started.push({ name: 'bridges', stop: (deadlineMs) => bridges.stop(deadlineMs) });
    await bridges.start();
    return bridges;
  }

  /** Asked for each frame that comes in pieces; finding it out would ask the system each time. */
  private budgetBytes(): number {
    const { config } = this.current;
    if (this.budget?.config !== config) this.budget = { config, bytes: sessionLimits(config).memoryBudget };
    return this.budget.bytes;
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
      proxies: () => this.onDemand.proxies,
      ready: () => this.state === 'ready',
      controlFolder: this.parts.controlFolder ?? null,
      certificates: () => this.certificates.list(),
      past: () => this.onDemand.past,
    });
    return this.web.start(config);
  }
}

export function createGateway(loaded: Loaded, parts: GatewayParts): Gateway {
  return new Gateway(loaded, parts);
}
