// NNG bridges for tests: options with defaults, a supervisor over a stub broker, SP peers on the in-process transport.
import { systemClock } from '../../src/base/clock.ts';
import type { Log } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Turn } from '../../src/base/turn.ts';
import type {
  BridgeOptions,
  ForwardOptions,
  PairBridgeOptions,
  PubBridgeOptions,
  SubBridgeOptions,
  SubscriptionOptions,
} from '../../src/bridge/bridge.ts';
import { Spools } from '../../src/bridge/nng/spool.ts';
import { Supervisor } from '../../src/bridge/supervisor.ts';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { SP_DEFAULTS, testDriver, Watch } from './spsockets.ts';
import { StubBroker } from './stubbroker.ts';

export function forward(
  localTopic: string,
  remoteTopic: string,
  nngDelimiter = ':',
  more: Partial<ForwardOptions> = {},
): ForwardOptions {
  return { enable: true, localTopic, remoteTopic, nngDelimiter, qos: 0, retain: 'any', from: 'any', ...more };
}

export function taking(
  remoteTopic: string,
  localTopic: string,
  nngDelimiter = ':',
  more: Partial<SubscriptionOptions> = {},
): SubscriptionOptions {
  return { enable: true, remoteTopic, nngDelimiter, localTopic, qos: 0, retain: false, match: 'prefix', ...more };
}

const COMMON = {
  enable: true,
  mode: 'listen',
  clientId: null,
  driver: 'native',
  compat: 'documented',
  recvMaxSize: 16 << 20,
  reconnectMaxMs: 200,
  ipcMode: null,
  ipcGroup: null,
  tlsServer: null,
  tlsClient: null,
} as const;

export function pubBridge(
  name: string,
  forwards: ForwardOptions[],
  more: Partial<PubBridgeOptions> = {},
): PubBridgeOptions {
  const urls = [`inproc://${name}-pub`];
  return {
    ...COMMON,
    type: 'pub',
    name,
    urls,
    sendBuffer: 4 << 20,
    overflow: 'drop_oldest',
    spool: 0,
    forwards,
    ...more,
  };
}

export function subBridge(
  name: string,
  subscription: SubscriptionOptions[],
  more: Partial<SubBridgeOptions> = {},
): SubBridgeOptions {
  return { ...COMMON, type: 'sub', name, urls: [`inproc://${name}-sub`], subscription, ...more };
}

export function pairBridge(
  name: string,
  forwards: ForwardOptions[],
  subscription: SubscriptionOptions[],
  more: Partial<PairBridgeOptions> = {},
): PairBridgeOptions {
  const urls = [`inproc://${name}-pair`];
  const sending = { sendBuffer: 4 << 20, overflow: 'block', spool: 0, forwards } as const;
  return { ...COMMON, type: 'pair', name, urls, protocol: 'pair0', ...sending, subscription, ...more };
}

export interface Peer {
  readonly socket: SpSocket;
  readonly watch: Watch;
}

/** A supervisor with everything around it. */
export class BridgeBench {
  readonly broker = new StubBroker();
  readonly metrics = new Metrics();
  readonly spools = new Spools(null, systemClock, () => {}, new Map(), []);
  readonly lines: { level: string; id: string; fields: Record<string, unknown> }[] = [];
  readonly supervisor: Supervisor;
  private readonly driver = testDriver();
  private readonly sockets: SpSocket[] = [];
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  constructor(...bridges: BridgeOptions[]) {
    const log: Log = (level, id, fields) => {
      this.lines.push({ level, id, fields: { ...fields } });
      this.look();
    };
    const parts = {
      broker: this.broker,
      driver: () => this.driver,
      clock: systemClock,
      turn: new Turn(),
      log,
      metrics: this.metrics,
      spools: this.spools,
    };
    this.supervisor = new Supervisor(parts, bridges);
  }

  /** An SP peer that is attached to the bridge when this resolves. */
  async peer(kind: Protocol, url: string, options: Partial<SpOptions> = {}): Promise<Peer> {
    const socket = this.driver.open(kind, { ...SP_DEFAULTS, ...options });
    this.sockets.push(socket);
    const watch = new Watch(socket);
    if (kind === 'sub0') socket.subscribe(new Uint8Array(0));
    const before = this.comings();
    socket.dial(url);
    await this.until(() => this.comings() > before);
    await watch.until(() => watch.count('pipe-up') > 0);
    return { socket, watch };
  }

  /** Waits until something holds; looked at after each log line. */
  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  state(type: 'pub' | 'sub', name: string): string | undefined {
    return this.supervisor.get(type, name)?.state;
  }

  async stop(): Promise<void> {
    await this.supervisor.stop(500);
    await Promise.all(this.sockets.map((socket) => socket.stop(200)));
  }

  private comings(): number {
    return this.lines.filter((line) => line.id === 'NNG-PEER' && line.fields.up === true).length;
  }

  private look(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}
