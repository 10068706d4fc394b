// Listeners and dialers of a native socket: they keep trying for as long as the socket lives, and tell how it goes.
// Made by native.ts, one for each URL. A busy address, an absent peer, a wrong greeting: all are states here, never
// exceptions. Retries: 100 ms doubling to reconnectMax, jittered so that many gateways do not come back in step.
import type { Clock, Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Connection, DialTarget, Listener } from '../transport/transport.ts';
import type { ProtocolRow } from './pattern.ts';
import type { EndpointState, EndpointView, SpOptions } from './sp.ts';
import type { ListenTarget, ProgramTarget, Transports } from './transports.ts';
import { type SpUrl, withPort } from './url.ts';

const FIRST_RETRY_MS = 100;
/** For TCP, TLS and WebSocket handshakes, in either role. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Peers of one address: each costs about 10 KB, and the file descriptors of the process are for all. */
const MAX_PEERS = 4096;
/**
 * A connection that lasted less counts as a failed try: a peer that takes everybody and hangs up is not dialed ten
 * times a second.
 */
const STABLE_MS = 1000;

export interface EndpointContext {
  readonly row: ProtocolRow;
  readonly options: SpOptions;
  readonly clock: Clock;
  readonly transports: Transports;
  /** A connection is there. */
  readonly connected: (endpoint: Endpoint, connection: Connection) => void;
  /** A peer failed before it became a connection (TLS, WebSocket handshake). */
  readonly rejected: (endpoint: Endpoint, reason: string, remote: string) => void;
  /** State or error changed. */
  readonly changed: (endpoint: Endpoint) => void;
}

export abstract class Endpoint implements EndpointView {
  abstract readonly mode: 'listen' | 'dial';
  readonly url: string;
  readonly parsed: SpUrl;
  state: EndpointState = 'starting';
  bound: string | null = null;
  lastError: string | null = null;
  protected readonly context: EndpointContext;
  private timer: Timer | null = null;
  private retryMs = FIRST_RETRY_MS;

  constructor(url: string, parsed: SpUrl, context: EndpointContext) {
    this.url = url;
    this.parsed = parsed;
    this.context = context;
  }

  abstract start(): void;
  /** Stops trying and accepting; pipes are the socket's matter. */
  abstract stop(): Promise<void>;

  protected enter(state: EndpointState, error: string | null): void {
    if (this.state === 'stopped') return;
    this.state = state;
    this.lastError = error;
    this.context.changed(this);
  }

  protected retryLater(error: string): void {
    if (this.state === 'stopped') return;
    const delayMs = Math.min(this.retryMs, this.context.options.reconnectMaxMs);
    this.retryMs = Math.min(this.retryMs * 2, this.context.options.reconnectMaxMs);
    this.timer?.cancel();
    this.timer = this.context.clock.after(delayMs * (0.75 + Math.random() / 4), () => this.start());
    this.enter('retrying', error);
  }

  protected retrySoonAgain(): void {
    this.retryMs = FIRST_RETRY_MS;
  }

  protected halt(): void {
    this.timer?.cancel();
    this.timer = null;
    this.enter('stopped', null);
  }
}

/** A bound address; binds again until it succeeds. */
export class ListenEndpoint extends Endpoint {
  readonly mode = 'listen';
  private listener: Listener | null = null;
  private starting: Promise<void> = Promise.resolve();

  start(): void {
    if (this.state === 'stopped') return;
    this.starting = this.bind();
  }

  async stop(): Promise<void> {
    this.halt();
    await this.starting;
    const listener = this.listener;
    this.listener = null;
    await listener?.stop();
  }

  private async bind(): Promise<void> {
    const { context } = this;
    try {
      const listener = context.transports.listen(listenTarget(this.parsed, context), {
        accept: (connection) => {
          if (this.state === 'stopped') connection.destroy();
          else context.connected(this, connection);
        },
        reject: (reason, remote) => context.rejected(this, reason, remote),
        maxConnections: MAX_PEERS,
        handshakeTimeoutMs: CONNECT_TIMEOUT_MS,
        proxyProtocol: false,
      });
      const bound = await listener.start();
      this.listener = listener;
      this.bound = 'port' in this.parsed && bound.length > 0 ? withPort(this.url, bound[0].port) : this.url;
      this.retrySoonAgain();
      this.enter('listening', null);
    } catch (error) {
      this.retryLater(errorText(error));
    }
  }
}

/** A peer that is called until it answers, and again whenever it is gone. */
export class DialEndpoint extends Endpoint {
  readonly mode = 'dial';
  private upSince = 0;

  start(): void {
    if (this.state === 'stopped') return;
    const { context } = this;
    context.transports
      .dial(dialTarget(this.parsed, context), CONNECT_TIMEOUT_MS, context.options.recvMaxSize)
      .then((connection) => {
        if (this.state === 'stopped') connection.destroy();
        else context.connected(this, connection);
      })
      .catch((error: unknown) => this.retryLater(errorText(error)));
  }

  stop(): Promise<void> {
    this.halt();
    return Promise.resolve();
  }

  /** The pipe of this endpoint has its greeting. */
  pipeUp(): void {
    this.upSince = this.context.clock.mono();
    this.bound = this.url;
    this.enter('connected', null);
  }

  /** The pipe of this endpoint is gone. */
  pipeDown(reason: string): void {
    if (this.state === 'connected' && this.context.clock.mono() - this.upSince >= STABLE_MS) this.retrySoonAgain();
    this.retryLater(reason);
  }
}

function listenTarget(url: SpUrl, context: EndpointContext): ListenTarget {
  const { options, row } = context;
  switch (url.scheme) {
    case 'tcp':
      return { kind: 'tcp', host: url.host, port: url.port };
    case 'tls+tcp':
      return { kind: 'tls', host: url.host, port: url.port, tls: required(options.tlsServer, 'certfile and keyfile') };
    case 'ws':
    case 'wss':
      return {
        kind: url.scheme,
        host: url.host,
        port: url.port,
        path: url.path,
        subprotocol: subprotocol(row.word),
        maxMessage: options.recvMaxSize > 0 ? options.recvMaxSize + row.headerBytes : 0,
        ...(url.scheme === 'wss' ? { tls: required(options.tlsServer, 'certfile and keyfile') } : {}),
      };
    case 'ipc':
      return { kind: 'unix', path: url.path, mode: options.ipcMode, group: options.ipcGroup };
    case 'abstract':
      return { kind: 'unix', path: `\0${url.name}`, mode: null, group: null };
    case 'inproc':
      return { kind: 'memory', name: url.name };
    case 'program':
      return { kind: 'program', name: url.name };
  }
}

/** The WebSocket subprotocol of a connection: that of its listening side (sp-websocket-mapping). */
function subprotocol(word: string): string {
  return `${word}.sp.nanomsg.org`;
}

function required<T>(value: T | null, what: string): T {
  if (value === null) throw new Error(`a tls block with ${what} is needed`);
  return value;
}

/** Verifies the peer by the system's certificates: what a TLS URL without a tls block means. */
const TLS_DEFAULTS = { ca: null, cert: null, key: null, keyPassword: null, verify: true, serverName: null };

function dialTarget(url: SpUrl, context: EndpointContext): DialTarget | ProgramTarget {
  const { options, row } = context;
  const bindTo = options.interface === null ? {} : { interface: options.interface };
  const tls = options.tlsClient ?? TLS_DEFAULTS;
  switch (url.scheme) {
    case 'tcp':
      return { kind: 'tcp', host: url.host, port: url.port, ...bindTo };
    case 'tls+tcp':
      return { kind: 'tls', host: url.host, port: url.port, tls, ...bindTo };
    case 'ws':
    case 'wss': {
      const host = url.host.includes(':') ? `[${url.host}]` : url.host;
      const text = `${url.scheme}://${host}:${url.port}${url.path}`;
      return { kind: url.scheme, url: text, subprotocol: subprotocol(row.peerWord), tls };
    }
    case 'ipc':
      return { kind: 'unix', path: url.path };
    case 'abstract':
      return { kind: 'unix', path: `\0${url.name}` };
    case 'inproc':
      return { kind: 'memory', name: url.name };
    case 'program':
      return { kind: 'program', name: url.name };
  }
}
