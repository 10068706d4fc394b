// Outgoing connections of every kind. Called by sp/ (dialers), proxy/ (upstreams) and bridges that speak their own protocol.
// One attempt per call: whoever wants more waits with backoff.ts. The socket is open and all handshakes are done when the promise resolves.
// Source: RFC 8305 (several addresses of a name are tried side by side; Node does it).
import type { Socket } from 'node:net';
import { connect, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Timer } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { formatHostPort } from './address.ts';
import type { MemoryNetwork } from './memory.ts';
import { errorName, peerOf, StreamConnection } from './stream.ts';
import type { Connection, DialTarget } from './transport.ts';
import { printablePath } from './unix.ts';

export interface DialOptions {
  /** For everything together: name lookup, connecting, TLS and WebSocket handshakes. Default 10,000. */
  readonly timeoutMs?: number;
  /** Where memory targets are looked up. */
  readonly network?: MemoryNetwork;
  /** Bytes sent in clear before a TLS handshake: a PROXY protocol header. tcp and tls only. */
  readonly preface?: Uint8Array;
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
  const code = cause instanceof Error ? errorName(cause) : '';
  const text = errorText(cause) || code;
  return new GatewayError('TRANSPORT-DIAL', `${where}: ${text.includes(code) ? text : `${text} (${code})`}`, cause);
}

/** Connects once. Rejects with TRANSPORT-DIAL (unreachable, refused, timeout, aborted) or TRANSPORT-TLS (the peer was not trusted). */
export async function dial(target: DialTarget, options: DialOptions = {}): Promise<Connection> {
  switch (target.kind) {
    case 'memory': {
      if (options.network === undefined)
        throw new GatewayError('TRANSPORT-DIAL', `${printableTarget(target)}: no memory network here`);
      return options.network.dial(target.name);
    }
    case 'unix': {
      const socket = await dialSocket(target, { path: target.path }, options);
      const local = printablePath(target.path);
      return new StreamConnection('unix', socket, { remote: `unix:${local}`, remoteAddress: '', local });
    }
    case 'tcp': {
      const socket = await dialSocket(target, tcpPlace(target), options);
      if (options.preface !== undefined) socket.write(options.preface);
      return new StreamConnection('tcp', socket, peerOf(socket));
    }
    default:
      throw new GatewayError('TRANSPORT-DIAL', `${printableTarget(target)}: ${target.kind} cannot be dialled`);
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
function dialSocket(target: DialTarget, place: Place, options: DialOptions): Promise<Socket> {
  const where = printableTarget(target);
  const { signal, timeoutMs = TIMEOUT_MS, keepAliveDelayMs = KEEP_ALIVE_DELAY_MS } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(new GatewayError('TRANSPORT-DIAL', `${where}: given up`));
      return;
    }
    const socket = connect({
      ...place,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelayMs,
    });
    let timer: Timer | null = null;
    const finish = (error: Error | null): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', onAbort);
      socket.removeAllListeners('connect');
      if (error === null) {
        socket.removeListener('error', finish);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(dialError(where, error));
    };
    const onAbort = (): void => finish(new Error('given up'));
    timer = systemClock.after(timeoutMs, () => finish(new Error(`no answer within ${timeoutMs} ms`)));
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.once('connect', () => finish(null));
    socket.on('error', finish);
  });
}
