// A node:http or node:https server that is bound: limits of every HTTP server of the gateway, binding, and an end that
// does not wait for peers who say nothing. Used by http.ts and metricsserver.ts.
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { GatewayError } from '../base/errors.ts';
import { listenErrorText } from '../base/systemerror.ts';

/**
 * In Node's terms: bytes of request line and headers (more is 431), time for the head, for the whole request, between
 * two of them.
 */
export const SERVER_OPTIONS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 5000,
  insecureHTTPParser: false,
} as const;

/** "127.0.0.1:8081", "[::1]:8081". */
export function addressText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The name of a connection's other end: the same for a TLS socket and the one below it. */
function peerKey({ remoteAddress, remotePort }: Socket): string {
  return addressText(remoteAddress ?? '', remotePort ?? 0);
}

export class Listening {
  readonly server: Server | TlsServer;
  readonly port: number;
  /** Requests whose answer is not out yet. */
  private active = 0;
  private closing = false;
  private readonly most: number;
  /** Open connections, the oldest first, and the requests each is waiting for. */
  private readonly open = new Map<string, { readonly socket: Socket; requests: number }>();

  private constructor(server: Server | TlsServer, port: number, most: number) {
    this.server = server;
    this.port = port;
    this.most = most;
    server.on('connection', (socket: Socket) => this.admit(socket));
    server.on('request', (incoming, outgoing) => {
      this.active++;
      const place = this.open.get(peerKey(incoming.socket));
      if (place !== undefined) place.requests++;
      outgoing.once('close', () => {
        this.active--;
        if (place !== undefined) place.requests--;
        this.cutIfDone();
      });
    });
  }

  /**
   * Where there are too many connections, one that waits for no answer makes room: who only holds a place keeps nobody
   * out.
   */
  private admit(socket: Socket): void {
    const key = peerKey(socket);
    if (this.open.size >= this.most) {
      let idle = socket;
      for (const place of this.open.values()) {
        if (place.requests > 0 || place.socket.destroyed) continue;
        idle = place.socket;
        break;
      }
      idle.destroy();
      if (idle === socket) return;
    }
    this.open.set(key, { socket, requests: 0 });
    socket.once('close', () => {
      if (this.open.get(key)?.socket === socket) this.open.delete(key);
    });
  }

  /**
   * Binds. Throws GatewayError TRANSPORT-BIND.
   * @param what names the block in the error
   * @param most connections at once
   */
  static open(server: Server | TlsServer, host: string, port: number, what: string, most: number): Promise<Listening> {
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        const text = `${what} ${addressText(host, port)}: ${listenErrorText(error)}`;
        reject(new GatewayError('TRANSPORT-BIND', text, error));
      };
      server.once('error', onError);
      server.listen({ host, port, exclusive: true }, () => {
        server.off('error', onError);
        // An error while accepting (no descriptors left) is not the end of the gateway: accepting goes on.
        server.on('error', () => {});
        const { port: bound } = server.address() as AddressInfo;
        resolve(new Listening(server, bound, most));
      });
    });
  }

  /** Stops accepting; connections end with their running request, all of them after `deadlineMs`. */
  close(deadlineMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(() => this.server.closeAllConnections(), Math.max(0, deadlineMs));
      this.server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      this.closing = true;
      this.cutIfDone();
    });
  }

  /** Connections without a running request have nothing to lose, those that never sent one included. */
  private cutIfDone(): void {
    if (this.closing && this.active === 0) this.server.closeAllConnections();
  }
}
