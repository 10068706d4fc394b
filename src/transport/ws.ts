// The WebSocket listener, with and without TLS. Built by gateway/transports.ts for MQTT and SP (ws:// and wss:// URLs).
// Sockets come from acceptor.ts; an HTTP server without a port reads the request, `ws` speaks the frames. Both are
// loaded by the first start(), because they cost 40 ms and 10 MB. Whatever is no good request is answered, counted and
// closed. Source: RFC 6455 sections 4.2 and 5, MQTT 5.0 section 6.
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocketServer } from 'ws';
import { systemClock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { Acceptor } from './acceptor.ts';
import type { Handshake } from './handshake.ts';
import { GRACE_MS, LINGER_MS } from './stream.ts';
import { bareHost, boundAs, type TcpListenerOptions } from './tcp.ts';
import type { TlsDoor, TlsListener } from './tls.ts';
import type { Bound, TlsInfo, TlsServerOptions } from './transport.ts';
import { WebSocketConnection } from './websocket.ts';

export interface WsListenerOptions extends TcpListenerOptions {
  /** The path of the request, compared whole and without its query; "/mqtt". */
  readonly path: string;
  /** In its place: several paths, or null for any. */
  readonly paths?: readonly string[] | null;
  /** Names that are spoken here; the first one a client asks for is taken. */
  readonly subprotocols: readonly string[];
  /**
   * Values of the Origin header that browsers may come with; "*": any; null: pages of the same host. Clients without
   * one are no browsers.
   */
  readonly origins?: readonly string[] | null;
  /** Bytes of the largest message, 0 = no limit. */
  readonly maxMessageBytes: number;
  /** Each message is delivered by itself, empty ones too. */
  readonly framed?: boolean;
  /** Makes it wss. The application protocol is HTTP/1.1 whatever `alpn` says. */
  readonly tls?: TlsServerOptions;
  /** Other certificates by server name, as in tls.ts. */
  readonly names?: ReadonlyMap<string, TlsServerOptions>;
}

/** The names MQTT goes by [MQTT-6.0.0-3], and its 3.1 name. */
export const MQTT_SUBPROTOCOLS: readonly string[] = ['mqtt', 'mqttv3.1'];

/** Bytes of a request's head; cookies of a browser have to fit. */
const HEAD_BYTES = 16_384;

const STATUS_TEXTS = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  426: 'Upgrade Required',
} as const;
type Refusal = keyof typeof STATUS_TEXTS;

interface Pending {
  readonly handshake: Handshake;
  readonly info: TlsInfo | null;
}

class WsListener implements TlsListener {
  private readonly options: WsListenerOptions;
  private readonly acceptor: Acceptor;
  private readonly pending = new WeakMap<object, Pending>();
  private http: HttpServer | null = null;
  private wss: WebSocketServer | null = null;
  private door: TlsDoor | null = null;

  constructor(options: WsListenerOptions) {
    this.options = options;
    this.acceptor = new Acceptor({
      ...options,
      onSocket: (socket) => socket.destroy(),
      onHandshake: (handshake) => {
        if (this.door !== null) this.door.begin(handshake);
        else this.request(handshake, handshake.socket, handshake.peer.tls ?? null);
      },
    });
  }

  async start(): Promise<Bound[]> {
    const { tls, names = new Map(), handshakeTimeoutMs, host, port, path, maxMessageBytes } = this.options;
    // The bundles know the default export alone (scripts/builtins.ts).
    const [{ default: http }, ws] = await Promise.all([import('node:http'), import('ws')]);
    if (tls !== undefined) {
      const { TlsDoor } = await import('./tls.ts');
      this.door = new TlsDoor(asHttps(tls), names, handshakeTimeoutMs, (handshake, socket, info) =>
        this.request(handshake, socket, info),
      );
    }
    const wsOptions = {
      noServer: true,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      clientTracking: false,
      skipUTF8Validation: true,
      closeTimeout: GRACE_MS,
      handleProtocols: (offered: Set<string>) => this.choose(offered) ?? false,
    };
    this.wss = new ws.WebSocketServer(wsOptions);
    this.wss.on('wsClientError', (_error, socket) => this.answer(socket as Socket, 400, 'ws-upgrade'));
    this.http = http.createServer({ maxHeaderSize: HEAD_BYTES });
    this.http.on('request', (request) => this.plainRequest(request));
    this.http.on('upgrade', (request, socket, head) => this.upgrade(request, socket as Socket, head));
    this.http.on('clientError', (_error, socket) => this.answer(socket as Socket, 400, 'ws-http'));
    const bound = await this.acceptor.bindHost(bareHost(host), port);
    return boundAs(tls === undefined ? 'ws' : 'wss', bound, path);
  }

  stop(): Promise<void> {
    return this.acceptor.close();
  }

  reload(tls?: TlsServerOptions): void {
    if (this.options.tls === undefined) return;
    if (this.door === null) throw new GatewayError('GW-STATE', 'the listener has not been started');
    this.door.reload(tls === undefined ? undefined : asHttps(tls));
  }

  /** The socket is ready for an HTTP request. */
  private request(handshake: Handshake, socket: Socket, info: TlsInfo | null): void {
    handshake.stage = 'ws';
    this.pending.set(socket, { handshake, info });
    this.http?.emit('connection', socket);
    // Bytes that came together with a PROXY header wait in a paused socket.
    if (socket.isPaused()) socket.resume();
  }

  private plainRequest(request: IncomingMessage): void {
    if (this.isPath(request)) this.answer(request.socket, 426, 'ws-upgrade');
    else this.answer(request.socket, 404, 'ws-path');
  }

  private upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const pending = this.pending.get(socket);
    if (pending === undefined || pending.handshake.over || this.wss === null) socket.destroy();
    else if (!this.isPath(request)) this.answer(socket, 404, 'ws-path');
    else if (!this.isOrigin(request)) this.answer(socket, 403, 'ws-origin');
    else if (this.choose(offeredBy(request)) === null) this.answer(socket, 400, 'ws-subprotocol');
    else
      this.wss.handleUpgrade(request, socket, head, (webSocket) => {
        const { handshake, info } = pending;
        const framed = this.options.framed === true;
        const { socket: carrier, peer } = handshake;
        const connection = new WebSocketConnection(webSocket, socket, carrier, peer, info, framed);
        if (handshake.finish()) this.options.accept(connection);
        else connection.destroy();
      });
  }

  private isPath(request: IncomingMessage): boolean {
    const url = request.url ?? '';
    const query = url.indexOf('?');
    const asked = query < 0 ? url : url.slice(0, query);
    const { path, paths = [path] } = this.options;
    return paths === null || paths.includes(asked);
  }

  private isOrigin(request: IncomingMessage): boolean {
    const { origins = null } = this.options;
    const { origin, host = '' } = request.headers;
    if (origin === undefined) return true;
    if (origins === null) return isSameHost(origin, host);
    return origins.includes('*') || origins.includes(origin) || isFromHost(origin, origins);
  }

  private choose(offered: Iterable<string>): string | null {
    for (const name of offered) if (this.options.subprotocols.includes(name)) return name;
    return null;
  }

  /** Says no in HTTP, counts it, and closes: also when the peer does not. */
  private answer(socket: Socket, status: Refusal, reason: string): void {
    this.pending.get(socket)?.handshake.refuse(reason);
    socket.on('error', ignore);
    const timer = systemClock.after(LINGER_MS, () => socket.destroy());
    socket.once('close', () => timer.cancel());
    socket.resume();
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const upgrade = status === 426 ? 'Upgrade: websocket\r\n' : '';
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\n${upgrade}Connection: close\r\nContent-Length: 0\r\n\r\n`,
    );
  }
}

function ignore(): void {}

/**
 * Whether the page comes from one of the bare hosts among `origins`, whatever its scheme and, unless it is given, its
 * port.
 */
/** A page that came from the host it connects to, whatever the port: a console beside the broker. */
function isSameHost(origin: string, host: string): boolean {
  const here = `http://${host}`;
  if (host === '' || !URL.canParse(origin) || !URL.canParse(here)) return false;
  return new URL(origin).hostname === new URL(here).hostname;
}

function isFromHost(origin: string, origins: readonly string[]): boolean {
  if (!URL.canParse(origin)) return false;
  const { hostname, host } = new URL(origin);
  return origins.some((known) => !known.includes('://') && (known === hostname || known === host));
}

function asHttps(tls: TlsServerOptions): TlsServerOptions {
  return { ...tls, alpn: ['http/1.1'] };
}

function offeredBy(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/** A listener for WebSockets, over TLS where `tls` is given. */
export function listenWs(options: WsListenerOptions): TlsListener {
  return new WsListener(options);
}
