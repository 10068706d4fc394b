// The SP side of a bridge: its socket, the endpoints it should have, and what they say, turned into one state, log
// lines and metrics. Made by bridge.ts, one for each bridge. Knows nothing of rules and of the broker.
import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Turn } from '../../base/turn.ts';
import type { Broker } from '../../broker/broker.ts';
import type { Protocol, SpDriver, SpEvent, SpOptions, SpSocket } from '../../sp/sp.ts';
import type {
  NngBridgeOptions as BridgeOptions,
  BridgeState,
  BridgeWorker,
  EndpointStatus,
  MqttBridgeOptions,
  NngType,
} from '../bridge.ts';
import { BRIDGE_METRICS } from '../counters.ts';
import type { Spools } from './spool.ts';
import type { Taps } from './taps.ts';

/** What workers are made of; the same for all bridges of a gateway. */
export interface BridgeParts {
  readonly broker: Pick<Broker, 'attach'>;
  /** Stored retained messages, for bridges that answer requests. */
  readonly retained?: Broker['retained'];
  /** Throws or rejects with SP-DRIVER when the driver cannot be had. */
  readonly driver: (name: BridgeOptions['driver']) => SpDriver | Promise<SpDriver>;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly log: Log;
  readonly metrics: Metrics;
  /** What earlier processes and workers have left for NNG bridges; absent where nothing is kept. */
  readonly spools?: Spools;
  /** Bridges to remote brokers; absent where there can be none. */
  readonly mqtt?: MqttWorkers;
  /** Who else gets what NNG bridges bring in; absent where there are no rules. */
  readonly taps?: Taps;
}

/** Makes workers for bridges to remote brokers; what waits for a remote belongs to it and outlives the worker. */
export interface MqttWorkers {
  make(options: MqttBridgeOptions): Promise<BridgeWorker>;
  /** The bridge has been removed: what waits for it is dropped. */
  forget(name: string): void;
}

const WARN_EVERY_MS = 1000;

export class Link {
  /** null until the driver is there and after stop(). */
  socket: SpSocket | null = null;
  /** Peers that are up: what a publisher asks before it bothers. */
  peers = 0;
  private readonly parts: BridgeParts;
  private readonly labels: { readonly bridge: string; readonly type: NngType };
  private readonly warn: Log;
  private lastState = '';
  /** Whether the last state in the log was a failure. */
  private warned = false;
  private failure: string | null = null;
  private stopped = false;
  private triedAll: (() => void) | null = null;
  /** Called for each peer that is up. */
  private readonly onPeer: () => void;

  constructor(options: BridgeOptions, parts: BridgeParts, outboxBytes: () => number, onPeer: () => void) {
    this.onPeer = onPeer;
    this.parts = parts;
    this.labels = { bridge: options.name, type: options.type };
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    parts.metrics.read(BRIDGE_METRICS.queueDropped, () => this.socket?.stats.dropped ?? 0, this.labels);
    parts.metrics.read(BRIDGE_METRICS.peers, () => this.peers, this.labels);
    parts.metrics.read(BRIDGE_METRICS.queued, () => outboxBytes() + this.queuedBytes(), this.labels);
  }

  /**
   * Opens the socket and its endpoints; resolves when every listener has had a try, or at once when it dials. Never
   * rejects.
   */
  async open(options: BridgeOptions, prepare: (socket: SpSocket) => void): Promise<void> {
    try {
      const driver = this.parts.driver(options.driver);
      this.opened(driver instanceof Promise ? await driver : driver, options, prepare);
    } catch (error) {
      this.failure = errorText(error);
      this.stateChanged();
      return;
    }
    if (options.mode === 'listen') await this.allTried();
  }

  /** Gives the socket the endpoints of other options; what stays keeps its peers. */
  change(before: BridgeOptions, after: BridgeOptions): void {
    const { socket } = this;
    if (socket === null) return;
    const sameMode = before.mode === after.mode;
    for (const url of before.urls) {
      if (sameMode && after.urls.includes(url)) continue;
      socket.close(url).catch((error: unknown) => this.failed(error));
    }
    this.connect(after);
    this.stateChanged();
  }

  /** Whether a message would find nobody. Where the driver does not tell of peers they are taken to be there. */
  get away(): boolean {
    return this.socket === null || (this.peers === 0 && this.socket.knowsPeers);
  }

  async stop(deadlineMs: number): Promise<void> {
    this.stopped = true;
    this.triedAll?.();
    await this.socket?.stop(deadlineMs);
    this.socket = null;
    this.peers = 0;
  }

  state(): BridgeState {
    if (this.failure !== null) return 'error';
    const endpoints = this.socket?.endpoints() ?? [];
    if (endpoints.some((endpoint) => endpoint.mode === 'listen' && endpoint.state === 'retrying')) return 'error';
    if (this.peers > 0) return 'connected';
    if (endpoints.some((endpoint) => endpoint.state === 'listening')) return 'listening';
    if (endpoints.some((endpoint) => endpoint.state === 'retrying')) return 'retrying';
    return 'starting';
  }

  lastError(): string | null {
    if (this.failure !== null) return this.failure;
    return this.socket?.endpoints().find((endpoint) => endpoint.lastError !== null)?.lastError ?? null;
  }

  endpoints(): EndpointStatus[] {
    const views = this.socket?.endpoints() ?? [];
    return views.map(({ url, state, bound, lastError }) => ({ url, state, bound, lastError }));
  }

  private opened(driver: SpDriver, options: BridgeOptions, prepare: (socket: SpSocket) => void): void {
    if (this.stopped) return;
    const socket = driver.open(protocolOf(options), spOptions(options));
    socket.onEvent((event) => this.happened(event));
    prepare(socket);
    this.socket = socket;
    this.connect(options);
  }

  private connect(options: BridgeOptions): void {
    for (const url of options.urls) {
      if (options.mode === 'listen') this.socket?.listen(url);
      else this.socket?.dial(url);
    }
  }

  private allTried(): Promise<void> {
    return new Promise((resolve) => {
      const tried = (): boolean =>
        this.stopped || (this.socket?.endpoints().every((e) => e.state !== 'starting') ?? true);
      if (tried()) resolve();
      else
        this.triedAll = () => {
          if (!tried()) return;
          this.triedAll = null;
          resolve();
        };
    });
  }

  private happened(event: SpEvent): void {
    switch (event.kind) {
      case 'pipe-up':
        this.peers++;
        this.parts.log('info', 'NNG-PEER', { ...this.labels, peer: event.pipe.remote, url: event.pipe.url, up: true });
        this.onPeer();
        break;
      case 'pipe-down': {
        this.peers--;
        const { remote, url, dropped } = event.pipe;
        this.parts.log('info', 'NNG-PEER', {
          ...this.labels,
          peer: remote,
          url,
          up: false,
          reason: event.reason,
          dropped,
        });
        break;
      }
      case 'refused': {
        const { url, remote, reason, size, limit } = event;
        this.parts.metrics.cell(BRIDGE_METRICS.refused, { ...this.labels, reason }).value++;
        // A length beyond 2^53 is shown as text: JSON has no infinity.
        const bytes =
          size === undefined ? {} : { size: Number.isFinite(size) ? size : '2^53 or more', recv_max_size: limit };
        this.warn('warn', 'NNG-REFUSED', { ...this.labels, peer: remote, url, reason, ...bytes });
        break;
      }
      case 'endpoint':
        break;
    }
    this.stateChanged();
    this.triedAll?.();
  }

  private stateChanged(): void {
    const state = this.state();
    const error = this.lastError();
    const bound = this.endpoints().flatMap((endpoint) => endpoint.bound ?? []);
    const text = `${state} ${error} ${bound.join(' ')}`;
    if (text === this.lastState || this.stopped) return;
    this.lastState = text;
    // A recovery at the level of the loss: who reads warnings only learns of both.
    this.parts.log(state === 'error' || this.warned ? 'warn' : 'info', 'NNG-STATE', {
      ...this.labels,
      state,
      bound,
      ...(error === null ? {} : { error }),
    });
    this.warned = state === 'error';
  }

  private failed(error: unknown): void {
    this.parts.log('warn', 'NNG-STATE', { ...this.labels, state: this.state(), error: errorText(error) });
    this.warned = true;
  }

  private queuedBytes(): number {
    let bytes = 0;
    for (const pipe of this.socket?.pipes() ?? []) bytes += pipe.queuedBytes;
    return bytes;
  }
}

function spOptions(options: BridgeOptions): SpOptions {
  const { recvMaxSize, reconnectMaxMs, ipcMode, ipcGroup, tlsServer, tlsClient } = options;
  const sendBuffer = 'sendBuffer' in options ? options.sendBuffer : options.type === 'rep' ? ANSWERS_BYTES : 0;
  const overflow = 'forwards' in options ? options.overflow : ('drop_newest' as const);
  return {
    sendBuffer,
    overflow,
    recvMaxSize,
    reconnectMaxMs,
    ipcMode,
    ipcGroup,
    interface: null,
    tlsServer,
    tlsClient,
  };
}

/** Answers that may wait for one peer that asks and does not read. */
const ANSWERS_BYTES = 4 << 20;

/** The SP protocol of a bridge's socket. */
export function protocolOf(options: BridgeOptions): Protocol {
  return options.type === 'pair' ? options.protocol : PROTOCOL[options.type];
}

const PROTOCOL = { pub: 'pub0', sub: 'sub0', push: 'push0', pull: 'pull0', req: 'req0', rep: 'rep0' } as const;

/** Whether a running socket can take the new options as it is; else the bridge needs a new one. */
export function sameSocket(a: BridgeOptions, b: BridgeOptions): boolean {
  if (a.driver !== b.driver || a.clientId !== b.clientId || protocolOf(a) !== protocolOf(b)) return false;
  return JSON.stringify(spOptions(a)) === JSON.stringify(spOptions(b));
}
