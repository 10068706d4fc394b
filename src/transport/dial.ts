// Outgoing connections of every kind. Given by gateway/transports.ts to sp/ (dialers), proxy/ (upstreams) and bridges
// to remote brokers. One attempt per call: whoever wants more waits with backoff.ts. The socket is open and all
// handshakes are done when the promise resolves. Source: RFC 8305 (several addresses of a name are tried side by side;
// Node does it).
import type { Socket } from 'node:net';
import { connect, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { systemClock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { systemErrorText } from '../base/systemerror.ts';
import { formatHostPort } from './address.ts';
import type { MemoryNetwork } from './memory.ts';
import { type Peer, peerOf, StreamConnection } from './stream.ts';
import type { Connection, DialTarget, TlsClientOptions, TlsInfo } from './transport.ts';
import { printablePath } from './unix.ts';

export interface DialOptions {
  /** For everything together: name lookup, connecting, TLS and WebSocket handshakes. Default 10,000. */
  readonly timeoutMs?: number;
  /** Where memory targets are looked up. */
  readonly network?: MemoryNetwork;
  /** Bytes sent in clear before everything else, TLS included: a PROXY protocol header. Not for unix and memory. */
  readonly preface?: Uint8Array;
  /** ws and wss: bytes of the largest message taken, 0 = no limit (the default). */
  readonly maxMessageBytes?: number;
  /** ws and wss: each message is delivered by itself, empty ones too. */
  readonly framed?: boolean;
  /** Gives up the attempt. */
  readonly signal?: AbortSignal;
  /** Silence before the kernel asks whether the peer is still there; default 60,000. */
  readonly keepAliveDelayMs?: number;
}

const TIMEOUT_MS = 10_000;
const KEEP_ALIVE_DELAY_MS = 60_000;

/** A target for people and error texts. */
export function printableTarget(target: DialTarget): string {
  switch (target.kind) {
    case 'tcp':
    case 'tls':
      return formatHostPort(target.host, target.port);
    case 'ws':
    case 'wss':
      return target.url;
    case 'unix':
      return printablePath(target.path);
    case 'memory':
      return `memory:${target.name}`;
  }
}

/** What a failed attempt becomes; `cause` has the errno name. */
export function dialError(where: string, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  return new GatewayError('TRANSPORT-DIAL', `${where}: ${systemErrorText(cause)}`, cause);
}

async function dialAbstract(name: string, where: string): Promise<Socket> {
  try {
    const { connectAbstract } = await import('./abstract.ts');
    return await connectAbstract(name);
  } catch (error) {
    throw dialError(where, error);
  }
}

/**
 * Connects once. Rejects with TRANSPORT-DIAL (unreachable, refused, timeout, given up) or TRANSPORT-TLS (files, the
 * peer was not trusted).
 */
export async function dial(target: DialTarget, options: DialOptions = {}): Promise<Connection> {
  const where = printableTarget(target);
  switch (target.kind) {
    case 'memory':
      if (options.network === undefined) throw new GatewayError('TRANSPORT-DIAL', `${where}: no memory network here`);
      return options.network.dial(target.name);
    case 'unix': {
      const socket = target.path.startsWith('\0')
        ? await dialAbstract(target.path, where)
        : await dialSocket({ path: target.path }, new Attempt(where, options));
      const local = printablePath(target.path);
      return new StreamConnection('unix', socket, { remote: `unix:${local}`, remoteAddress: '', local });
    }
    case 'tcp': {
      const socket = await dialSocket(tcpPlace(target), new Attempt(where, options));
      if (options.preface !== undefined) socket.write(options.preface);
      return new StreamConnection('tcp', socket, peerOf(socket));
    }
    case 'tls': {
      const { socket, secured, peer, info } = await dialTls(target, new Attempt(where, options), options);
      return new StreamConnection('tls', secured, peer, info, socket);
    }
    case 'ws':
    case 'wss':
      return dialWs(target, new Attempt(where, options), options);
  }
}

type TlsTarget = Extract<DialTarget, { kind: 'tls' }>;
type WsTarget = Extract<DialTarget, { kind: 'ws' | 'wss' }>;

interface Secured {
  readonly socket: Socket;
  readonly secured: Socket;
  readonly peer: Peer;
  readonly info: TlsInfo;
}

async function dialTls(target: Omit<TlsTarget, 'kind'>, attempt: Attempt, options: DialOptions): Promise<Secured> {
  const { host, tls, alpn } = target;
  const { secure } = await import('./tls.ts');
  const socket = await dialSocket(tcpPlace(target), attempt);
  const peer = peerOf(socket);
  // Under TLS nobody else listens to it; what goes wrong shows on the TLS socket.
  socket.on('error', ignore);
  if (options.preface !== undefined) socket.write(options.preface);
  const [secured, info] = await attempt.within(socket, secure(socket, tls, { host, alpn }));
  return { socket, secured, peer, info };
}

async function dialWs(target: WsTarget, attempt: Attempt, options: DialOptions): Promise<Connection> {
  const url = parseUrl(target);
  const { openWebSocket } = await import('./wsdial.ts');
  const { maxMessageBytes = 0, framed = false } = options;
  const client = { url: url.href, subprotocol: target.subprotocol, maxMessageBytes, framed };
  const named = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const host = target.address ?? named;
  if (target.kind === 'ws') {
    const socket = await dialSocket({ host, port: url.port === '' ? 80 : Number(url.port) }, attempt);
    if (options.preface !== undefined) socket.write(options.preface);
    return attempt.within(socket, openWebSocket(socket, socket, peerOf(socket), null, client));
  }
  const tls = target.tls ?? SYSTEM_TLS;
  const asked = { ...tls, serverName: tls.serverName ?? named };
  const place = { host, port: url.port === '' ? 443 : Number(url.port), tls: asked, alpn: ['http/1.1'] };
  const { socket, secured, peer, info } = await dialTls(place, attempt, options);
  return attempt.within(socket, openWebSocket(secured, socket, peer, info, client));
}

/** What holds where a target says nothing: the system's authorities, and verification. */
const SYSTEM_TLS: TlsClientOptions = {
  ca: null,
  cert: null,
  key: null,
  keyPassword: null,
  verify: true,
  serverName: null,
};

function parseUrl(target: WsTarget): URL {
  const url = URL.canParse(target.url) ? new URL(target.url) : null;
  if (url === null || url.protocol !== `${target.kind}:` || url.hostname === '')
    throw new GatewayError('TRANSPORT-DIAL', `${target.url}: no ${target.kind} URL`);
  url.hash = '';
  return url;
}

function ignore(): void {}

/** One deadline, and one way to be given up, for all the steps of an attempt. */
class Attempt {
  readonly where: string;
  readonly keepAliveDelayMs: number;
  private readonly timeoutMs: number;
  private readonly signal: AbortSignal | undefined;
  private readonly startMs = systemClock.mono();

  constructor(where: string, options: DialOptions) {
    this.where = where;
    this.timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.signal = options.signal;
    this.keepAliveDelayMs = options.keepAliveDelayMs ?? KEEP_ALIVE_DELAY_MS;
  }

  get leftMs(): number {
    return Math.max(0, this.startMs + this.timeoutMs - systemClock.mono());
  }

  /** What `step` gives; on expiry, abort or failure the socket is destroyed and the result is an error with a place. */
  async within<T>(socket: Socket, step: Promise<T>): Promise<T> {
    let stopped: string | null = null;
    const stop = (why: string): void => {
      stopped = why;
      socket.destroy();
    };
    const onAbort = (): void => stop('given up');
    const timer = systemClock.after(this.leftMs, () => stop(`no answer within ${this.timeoutMs} ms`));
    this.signal?.addEventListener('abort', onAbort, { once: true });
    if (this.signal?.aborted === true) onAbort();
    try {
      return await step;
    } catch (error) {
      socket.destroy();
      throw stopped === null ? dialError(this.where, error) : dialError(this.where, new Error(stopped));
    } finally {
      timer.cancel();
      this.signal?.removeEventListener('abort', onAbort);
    }
  }
}

type Place = { path: string } | { host: string; port: number; localAddress?: string };

function tcpPlace(target: { host: string; port: number; interface?: string }): Place {
  const { host, port } = target;
  if (target.interface === undefined) return { host, port };
  return { host, port, localAddress: interfaceAddress(target.interface, isIP(host)) };
}

/** The address of a network interface, of the wanted family if it is 4 or 6; an address is taken as it is. */
function interfaceAddress(name: string, family: number): string {
  if (isIP(name) !== 0) return name;
  const addresses = new Map(Object.entries(networkInterfaces())).get(name) ?? [];
  const found = addresses.find((entry) => family === 0 || entry.family === `IPv${family}`);
  if (found === undefined) throw new GatewayError('TRANSPORT-DIAL', `no address on interface "${name}"`);
  return found.address;
}

/** Opens one socket and gives it back without any listener on it. */
function dialSocket(place: Place, attempt: Attempt): Promise<Socket> {
  const socket = connect({
    ...place,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: attempt.keepAliveDelayMs,
  });
  const opened = new Promise<Socket>((resolve, reject) => {
    const onClose = (): void => reject(new Error('closed'));
    socket.on('error', reject);
    socket.once('close', onClose);
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      socket.removeListener('close', onClose);
      resolve(socket);
    });
  });
  return attempt.within(socket, opened);
}
