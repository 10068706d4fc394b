// The MQTT listeners of a gateway: opens what is configured, opens and closes single ones on reload, counts what is
// refused at the door. Built by gateway.ts. Connections belong to the broker; closing a listener does not touch them.
import type { AccessControl } from '../auth/chain.ts';
import { systemClock } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Broker, ListenerContext } from '../broker/broker.ts';
import type { ListenerConfig } from '../config/listeners.ts';
import type { Bound, Listener } from '../transport/transport.ts';
import { mqttListener } from './transports.ts';

const REJECTED = {
  name: 'tidegate_listener_rejected_total',
  text: 'Connections that failed before they could speak MQTT: TLS, WebSocket and PROXY handshakes, full listeners',
  type: 'counter',
  unit: 'connections',
} as const;

/** The usual ones: their series are there from the start. */
const REJECT_REASONS = ['descriptors', 'full', 'gone', 'proxy-certificate', 'proxy-untrusted'];

/** A lack of descriptors that comes back after this long is another one. */
const QUIET_MS = 60_000;

interface Open {
  readonly config: ListenerConfig;
  readonly listener: Listener;
  readonly bound: readonly Bound[];
}

export interface ListenersParts {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly broker: Broker;
  readonly access: AccessControl;
}

export class Listeners {
  private readonly parts: ListenersParts;
  private readonly open = new Map<string, Open>();
  /** Monotonic ms when a lack of descriptors was last met. */
  private shortMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ListenersParts) {
    this.parts = parts;
  }

  get bound(): Bound[] {
    return [...this.open.values()].flatMap((open) => open.bound);
  }

  get openCount(): number {
    return this.open.size;
  }

  /** Opens all; throws TRANSPORT-BIND for the first that cannot be. */
  async start(configs: readonly ListenerConfig[], maxPacketBytes: number): Promise<void> {
    for (const config of configs) await this.add(config, maxPacketBytes);
  }

  /** Opens one. */
  async add(config: ListenerConfig, maxPacketBytes: number): Promise<void> {
    const { log, metrics, broker, access } = this.parts;
    const { name } = config;
    const context: ListenerContext = {
      name,
      connectTimeoutMs: config.connectTimeoutMs,
      rules: config,
      access: () => access.access(name),
    };
    for (const reason of REJECT_REASONS) metrics.cell(REJECTED, { listener: name, reason });
    const reject = (reason: string, remote: string): void => {
      metrics.cell(REJECTED, { listener: name, reason }).value++;
      if (reason === 'descriptors' && this.descriptorsRanOut()) log('error', 'LSN-DESCRIPTORS', { listener: name });
      log('info', reason === 'full' ? 'LSN-FULL' : 'CON-REFUSED', { listener: name, reason, remote });
    };
    const listener = mqttListener(
      config,
      {
        accept: (connection) => broker.accept(connection, context),
        reject,
      },
      maxPacketBytes,
    );
    const bound = await listener.start();
    this.open.set(name, { config, listener, bound });
    for (const { kind, address } of bound) log('info', 'LSN-UP', { listener: name, kind, address });
    if (config.allowAnonymous && !isLocal(config)) log('warn', 'LSN-ANONYMOUS', { listener: name, bind: config.bind });
  }

  /** Stops accepting on one. */
  async remove(name: string): Promise<void> {
    const open = this.open.get(name);
    this.open.delete(name);
    await open?.listener.stop();
  }

  /** Makes the open listeners those of the list: first closes, then opens. Failures are logged and told by name. */
  async apply(
    configs: readonly ListenerConfig[],
    changed: ReadonlySet<string>,
    maxPacketBytes: number,
  ): Promise<string[]> {
    const failed: string[] = [];
    const wanted = new Map(configs.map((config) => [config.name, config]));
    for (const name of [...this.open.keys()]) if (!wanted.has(name) || changed.has(name)) await this.remove(name);
    for (const config of configs) {
      if (this.open.has(config.name)) continue;
      try {
        await this.add(config, maxPacketBytes);
      } catch (error) {
        failed.push(config.name);
        this.parts.log('error', 'LSN-FAILED', { listener: config.name, bind: config.bind, error: errorText(error) });
      }
    }
    return failed;
  }

  /**
   * Certificates are read again; connections keep those they began with. Gives the names of listeners whose files are
   * bad.
   */
  async reloadCertificates(): Promise<string[]> {
    const failed: string[] = [];
    for (const [name, { listener }] of this.open) {
      if (!('reloadCertificates' in listener) || typeof listener.reloadCertificates !== 'function') continue;
      try {
        await listener.reloadCertificates();
      } catch (error) {
        failed.push(name);
        this.parts.log('error', 'LSN-FAILED', { listener: name, error: errorText(error) });
      }
    }
    return failed;
  }

  /** Whether that is news: the first time in a minute. */
  private descriptorsRanOut(): boolean {
    const nowMs = systemClock.mono();
    const news = nowMs - this.shortMs >= QUIET_MS;
    this.shortMs = nowMs;
    return news;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.open.keys()].map((name) => this.remove(name)));
  }
}

function isLocal(config: ListenerConfig): boolean {
  const { kind, host } = config;
  return kind === 'unix' || host === 'localhost' || host === '::1' || host.startsWith('127.');
}
