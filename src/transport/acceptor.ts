// The doors of a listener: binds its addresses, counts and limits what comes in, hands sockets on. Used by tcp.ts,
// tls.ts, ws.ts and unix.ts, each of which makes Connections of the sockets. Must not read from a socket itself except
// for a PROXY protocol header, and never lets an error of one peer reach another.
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { AddressInfo, ListenOptions, Server, Socket } from 'node:net';
import { createServer, isIP } from 'node:net';
import { GatewayError } from '../base/errors.ts';
import { type AddressTest, networkTest } from '../base/networks.ts';
import { listenErrorText } from '../base/systemerror.ts';
import { formatHostPort } from './address.ts';
import { ACCEPT_RESERVE, Descriptors } from './descriptors.ts';
import { Handshake } from './handshake.ts';
import type { Peer } from './stream.ts';
import { errorName, peerOf } from './stream.ts';
import type { ListenerOptions } from './transport.ts';

export interface AcceptorOptions extends Omit<ListenerOptions, 'accept'> {
  readonly ipv6Only?: boolean;
  readonly keepAliveDelayMs?: number;
  readonly backlog?: number;
  /** Names a new socket's ends; TCP addresses when left out. */
  readonly nameOf?: (socket: Socket) => Peer;
  /** Takes a socket on which nothing is left to wait for. */
  readonly onSocket: (socket: Socket, peer: Peer) => void;
  /** The listener has a handshake of its own: it gets the sockets this way, and never through onSocket. */
  readonly onHandshake?: (handshake: Handshake) => void;
}

/** Probes start after this silence: a dead peer without MQTT keep alive is found in minutes instead of never. */
const KEEP_ALIVE_DELAY_MS = 60_000;
/** The kernel cuts it to net.core.somaxconn. */
const BACKLOG = 1024;
/** A port picked for the first address of a name may be taken on the next one. */
const PORT_TRIES = 8;

export class Acceptor {
  private readonly options: AcceptorOptions;
  private servers: Server[] = [];
  private readonly handshakes = new Set<Handshake>();
  /** Whether a peer may say who the client is; null = every peer may. */
  private readonly trusts: AddressTest | null;
  private readonly descriptors = new Descriptors();
  private open = 0;
  private readonly left = (): void => {
    this.open--;
  };

  constructor(options: AcceptorOptions) {
    this.options = options;
    this.trusts = trustOf(options);
  }

  /** Connections that came through these doors and are not closed. */
  get openCount(): number {
    return this.open;
  }

  /**
   * Binds `host` (a name, an address, "*") on every address it means, all with the same port.
   * Throws TRANSPORT-BIND and leaves nothing bound.
   */
  async bindHost(host: string, port: number): Promise<{ address: string; port: number }[]> {
    const where = `${formatHostPort(host, port)}`;
    const addresses = await resolve(host, where);
    for (let tries = 1; ; tries++) {
      try {
        return await this.bindAll(addresses, port);
      } catch (error) {
        await this.close();
        const again = port === 0 && addresses.length > 1 && tries < PORT_TRIES && isCode(error, 'EADDRINUSE');
        if (!again) throw bindError(where, error);
      }
    }
  }

  /**
   * Binds one place that is not a host: a Unix socket, or a descriptor that listens already. Rejects with the system's
   * error.
   */
  async bind(where: ListenOptions | { readonly fd: number }): Promise<Server> {
    const { keepAliveDelayMs, backlog } = this.options;
    const server = createServer({
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelayMs ?? KEEP_ALIVE_DELAY_MS,
    });
    await new Promise<void>((bound, failed) => {
      server.once('error', failed);
      server.listen({ backlog: backlog ?? BACKLOG, ...where }, () => {
        server.removeListener('error', failed);
        bound();
      });
    });
    server.on('error', (error) => this.options.reject(`accept-${errorName(error)}`, ''));
    server.on('connection', (socket: Socket) => this.take(socket));
    this.servers.push(server);
    return server;
  }

  /** Accepts nothing more; sockets that were handed on are not touched. */
  async close(): Promise<void> {
    const servers = this.servers;
    this.servers = [];
    // Not waited for: the callback of close() comes when the last connection has ended, the port is free at once.
    for (const server of servers) server.close();
    for (const handshake of [...this.handshakes]) handshake.abandon();
    await new Promise<void>((closed) => setImmediate(closed));
  }

  private async bindAll(addresses: readonly string[], port: number): Promise<{ address: string; port: number }[]> {
    const bound: { address: string; port: number }[] = [];
    let skipped: unknown = null;
    for (const address of addresses) {
      try {
        const server = await this.bindOne(address, bound.length > 0 ? bound[0].port : port, addresses.length > 1);
        const info = server.address() as AddressInfo;
        bound.push({ address: info.address, port: info.port });
      } catch (error) {
        // A name such as localhost may mean an address family that this machine has switched off.
        if (!isCode(error, 'EADDRNOTAVAIL') && !isCode(error, 'EAFNOSUPPORT')) throw error;
        skipped = error;
      }
    }
    if (bound.length === 0) throw skipped;
    return bound;
  }

  private async bindOne(address: string, port: number, single: boolean): Promise<Server> {
    // Without a host Node binds "::" for both families, or 0.0.0.0 where there is no IPv6.
    if (address === '*') return this.bind({ port });
    return this.bind({
      host: address,
      port,
      ipv6Only: (single || this.options.ipv6Only === true) && isIP(address) === 6,
    });
  }

  private take(socket: Socket): void {
    const { nameOf, maxConnections, reject, onSocket } = this.options;
    const peer = nameOf === undefined ? peerOf(socket) : nameOf(socket);
    if (nameOf === undefined && peer.remoteAddress === '') {
      // Gone before it was looked at. A peer without an address must not pass rules about addresses.
      socket.on('error', ignore);
      socket.destroy();
      reject('gone', '');
      return;
    }
    // Before it is counted: who has no business here takes nobody's place.
    if (this.trusts !== null && !this.trusts(peer.remoteAddress)) {
      socket.on('error', ignore);
      socket.destroy();
      reject('proxy-untrusted', peer.remote);
      return;
    }
    if (maxConnections > 0 && this.open >= maxConnections) {
      socket.on('error', ignore);
      socket.destroy();
      reject('full', peer.remote);
      return;
    }
    if (this.descriptors.short(ACCEPT_RESERVE)) {
      socket.on('error', ignore);
      socket.destroy();
      reject('descriptors', peer.remote);
      return;
    }
    this.open++;
    socket.once('close', this.left);
    if (this.options.onHandshake === undefined && !this.options.proxyProtocol) onSocket(socket, peer);
    else this.shakeHands(socket, peer);
  }

  private shakeHands(socket: Socket, peer: Peer): void {
    const { handshakeTimeoutMs, reject, proxyProtocol } = this.options;
    const handshake = new Handshake(socket, peer, handshakeTimeoutMs, reject, this.handshakes);
    if (proxyProtocol) handshake.readProxyHeader(this.options.proxyTls ?? 'ignored', () => this.handOn(handshake));
    else this.handOn(handshake);
  }

  private handOn(handshake: Handshake): void {
    const { onHandshake, onSocket, admit } = this.options;
    const refusal = admit?.(handshake.peer.remoteAddress) ?? null;
    if (refusal !== null) handshake.fail(refusal);
    else if (onHandshake !== undefined) onHandshake(handshake);
    else if (handshake.finish()) onSocket(handshake.socket, handshake.peer);
  }
}

function ignore(): void {}

/** Throws TRANSPORT-BIND for what is no network: believing everybody instead would let anybody be anyone. */
function trustOf({ proxyProtocol, proxyProtocolFrom = [] }: AcceptorOptions): AddressTest | null {
  if (!proxyProtocol || proxyProtocolFrom.length === 0) return null;
  const test = networkTest(proxyProtocolFrom);
  if (test === null) {
    throw new GatewayError(
      'TRANSPORT-BIND',
      `${proxyProtocolFrom.join(', ')}: not all of these are addresses or networks`,
    );
  }
  return test;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

async function resolve(host: string, where: string): Promise<string[]> {
  if (host === '*' || isIP(host) !== 0) return [host];
  let found: LookupAddress[];
  try {
    found = await lookup(host, { all: true, verbatim: true });
  } catch (error) {
    throw bindError(where, error);
  }
  return [...new Set(found.map((entry) => entry.address))];
}

/** The failure of a listener, with the place and what the system said about it. */
export function bindError(where: string, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  return new GatewayError('TRANSPORT-BIND', `${where}: ${listenErrorText(cause)}`, cause);
}
