// The wiring: builds every stage left to right, starts them in that order, stops them in reverse. Used by cli/start.ts and index.ts.
// Decides nothing about MQTT, SP or HTTP; knows only who needs whom. Optional parts are loaded when the configuration asks for them.
import { AccessControl } from './auth/chain.ts';
import type { Clock } from './base/clock.ts';
import { errorText, GatewayError } from './base/errors.ts';
import type { Log } from './base/log.ts';
import { Metrics } from './base/metrics.ts';
import type { Service } from './base/service.ts';
import { Turn } from './base/turn.ts';
import { BlockPool } from './base/writer.ts';
import { Supervisor } from './bridge/supervisor.ts';
import type { ListenerContext } from './broker/broker.ts';
import { NativeBroker } from './broker/native.ts';
import { version } from './cli/version.ts';
import type { Config, ListenerConfig, Loaded, LogConfig } from './config/config.ts';
import { authOptions, bridgeOptions, sessionLimits } from './settings.ts';
import { nativeDriver } from './sp/native.ts';
import type { SpDriver } from './sp/sp.ts';
import { memoryJournal } from './store/memory.ts';
import type { Journal } from './store/store.ts';
import { MemoryNetwork } from './transport/memory.ts';
import type { Bound, Listener, ListenerOptions } from './transport/transport.ts';
import { mqttListener, spTransports } from './transports.ts';

export interface GatewayParts {
  readonly log: Log;
  readonly clock: Clock;
  /** Reads the configuration of this start again. Throws like loadConfig. */
  readonly load: () => Loaded;
  /** Applies log settings that may change while running. */
  readonly relog: (log: LogConfig) => void;
}

/** How often $SYS values are published. */
const SYS_INTERVAL_MS = 10_000;

export class Gateway implements Service {
  readonly metrics = new Metrics();
  readonly turn = new Turn();
  private readonly pool = new BlockPool();
  /** What is bound, once started. */
  readonly bound: Bound[] = [];
  private config: Config;
  private readonly parts: GatewayParts;
  /** Started, in order; stopped in reverse. */
  private readonly running: { name: string; stop: (deadlineMs: number) => Promise<void> }[] = [];
  private broker_: NativeBroker | null = null;
  private access: AccessControl | null = null;
  private bridges: Supervisor | null = null;
  private readonly network = new MemoryNetwork();
  private readonly native: SpDriver;

  constructor(loaded: Loaded, parts: GatewayParts) {
    this.config = loaded.config;
    this.parts = parts;
    const { clock } = parts;
    this.native = nativeDriver({ transports: spTransports(this.network), clock, turn: this.turn, pool: this.pool });
  }

  get broker(): NativeBroker {
    if (this.broker_ === null) throw new GatewayError('GW-STATE', 'the gateway has not started');
    return this.broker_;
  }

  async start(): Promise<void> {
    const { log } = this.parts;
    log('info', 'GW-START', { version, pid: process.pid });
    const startedMs = this.parts.clock.mono();
    const { clock } = this.parts;
    this.access = await AccessControl.build(authOptions(this.config), { log, metrics: this.metrics, clock });
    const access = this.access;
    this.running.push({ name: 'auth', stop: async () => access.close() });
    const broker = new NativeBroker({
      clock,
      turn: this.turn,
      pool: this.pool,
      log,
      metrics: this.metrics,
      journal: this.journal(),
      limits: sessionLimits(this.config),
      localAccess: () => access.access(''),
      sys: { version, intervalMs: SYS_INTERVAL_MS, more: () => [] },
    });
    await broker.start();
    this.broker_ = broker;
    this.running.push({ name: 'broker', stop: (deadlineMs) => broker.stop(deadlineMs) });
    await this.listen(broker, access);
    const bridges = new Supervisor(
      {
        broker,
        driver: (name) => (name === 'native' ? this.native : this.driver(name)),
        clock,
        turn: this.turn,
        log,
        metrics: this.metrics,
      },
      bridgeOptions(this.config),
    );
    this.bridges = bridges;
    this.running.push({ name: 'bridges', stop: (deadlineMs) => bridges.stop(deadlineMs) });
    await bridges.start();
    const addresses = this.bound.map((b) => `${b.kind}:${b.address}`);
    log('warn', 'GW-READY', { addresses, ms: Math.round(clock.mono() - startedMs), pid: process.pid });
  }

  async stop(deadlineMs: number): Promise<void> {
    const { log, clock } = this.parts;
    const endMs = clock.mono() + deadlineMs;
    log('info', 'GW-STOP');
    for (let part = this.running.pop(); part !== undefined; part = this.running.pop()) {
      try {
        await part.stop(Math.max(0, endMs - clock.mono()));
      } catch (error) {
        log('error', 'GW-INTERNAL', { part: part.name, error: errorText(error) });
      }
    }
    log('info', 'GW-STOPPED');
  }

  async reload(): Promise<void> {
    const { log, load, relog } = this.parts;
    let loaded: Loaded;
    try {
      loaded = load();
    } catch (error) {
      log('error', 'GW-RELOAD-FAILED', { error: errorText(error) });
      return;
    }
    this.config = loaded.config;
    relog(loaded.config.log);
    log('warn', 'GW-RELOAD');
  }

  private journal(): Journal {
    return memoryJournal();
  }

  private async listen(broker: NativeBroker, access: AccessControl): Promise<void> {
    for (const config of this.config.listeners) {
      const context: ListenerContext = {
        name: config.name,
        connectTimeoutMs: config.connectTimeoutMs,
        access: () => access.access(config.name),
      };
      const listener = this.listener(config, (connection) => broker.accept(connection, context));
      const bound = await listener.start();
      this.running.push({ name: config.name, stop: () => listener.stop() });
      this.bound.push(...bound);
      for (const b of bound) this.parts.log('info', 'LSN-UP', { listener: config.name, address: b.address });
    }
  }

  private listener(config: ListenerConfig, accept: ListenerOptions['accept']): Listener {
    const options: ListenerOptions = {
      accept,
      reject: (reason, remote) => this.parts.log('info', 'CON-REFUSED', { listener: config.name, reason, remote }),
      maxConnections: config.maxConnections,
      handshakeTimeoutMs: config.connectTimeoutMs,
      proxyProtocol: config.proxyProtocol,
    };
    return mqttListener(config, options, this.config.mqtt.maxPacketSize);
  }

  private async driver(name: 'native' | 'nanomsg'): Promise<SpDriver> {
    if (name === 'native') return this.native;
    throw new GatewayError('SP-DRIVER', 'nanomsg');
  }
}

export function createGateway(loaded: Loaded, parts: GatewayParts): Gateway {
  return new Gateway(loaded, parts);
}
