// The TCP listener. Built by gateway/transports.ts for MQTT, SP and proxy addresses without TLS, and below tls.ts and
// ws.ts. Must not read: the Connection's user does. Source: RFC 9293 (keep-alive: section 3.8.4).
import type { Socket } from 'node:net';
import { Acceptor } from './acceptor.ts';
import { formatHostPort, plainAddress } from './address.ts';
import type { Peer } from './stream.ts';
import { StreamConnection } from './stream.ts';
import type { Bound, Listener, ListenerOptions } from './transport.ts';

export interface TcpListenerOptions extends ListenerOptions {
  /** A name (bound on each address it resolves to), an IPv4 or IPv6 address without or with brackets, "*" for all. */
  readonly host: string;
  /** 0 picks a free one, the same for every address of a name. */
  readonly port: number;
  /** An IPv6 address takes no IPv4 connections. */
  readonly ipv6Only?: boolean;
  /** Silence before the kernel asks whether the peer is still there; default 60,000. */
  readonly keepAliveDelayMs?: number;
  /** Connections that the kernel holds until they are accepted; default 1024. */
  readonly backlog?: number;
}

class TcpListener implements Listener {
  private readonly options: TcpListenerOptions;
  private readonly acceptor: Acceptor;

  constructor(options: TcpListenerOptions) {
    this.options = options;
    this.acceptor = new Acceptor({ ...options, onSocket: (socket, peer) => this.take(socket, peer) });
  }

  async start(): Promise<Bound[]> {
    return boundAs('tcp', await this.acceptor.bindHost(bareHost(this.options.host), this.options.port));
  }

  stop(): Promise<void> {
    return this.acceptor.close();
  }

  private take(socket: Socket, peer: Peer): void {
    this.options.accept(new StreamConnection('tcp', socket, peer, peer.tls ?? null));
  }
}

/** A listener for plain TCP. */
export function listenTcp(options: TcpListenerOptions): Listener {
  return new TcpListener(options);
}

/** A host as configured, without the brackets of an IPv6 address. */
export function bareHost(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

/** The bound addresses as a listener reports them; `path` is added to each. */
export function boundAs(kind: Bound['kind'], bound: readonly { address: string; port: number }[], path = ''): Bound[] {
  return bound.map(({ address, port }) => ({
    kind,
    address: formatHostPort(plainAddress(address), port) + path,
    port,
  }));
}
