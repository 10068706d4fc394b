// A proxy for datagrams (`protocol = udp`): each address and port of a client is a session with one server, until it
// has been silent. Made by proxies.ts beside the entrances for streams; the same pools, balancing, limits and access
// log. Nothing is read of what is sent. A server that is not there is found out by the answer of its host: the session
// ends, the client's next datagram goes to another one.
import type { Timer } from '../base/clock.ts';
import type { Cell } from '../base/metrics.ts';
import type { Bound, DatagramSocket } from '../transport/transport.ts';
import type { Entry, Status } from './accesslog.ts';
import type { EntranceContext } from './entrance.ts';
import { addressFacts } from './facts.ts';
import { ConnectionCount } from './limits.ts';
import { compileLine, type LineOf } from './logformat.ts';
import { PROXY_METRICS as M } from './metrics.ts';
import type { Peer } from './peer.ts';
import type { Pool } from './pool.ts';
import type { ProxyOptions } from './proxy.ts';

const SWEEP_MS = 500;
/** Datagrams of one client that wait while its server's address is made ready. */
const MOST_WAITING = 64;
/** Sessions at once where max_connections gives no limit: an address can be forged, a session costs a socket. */
const MOST_SESSIONS = 10_000;

interface Session {
  readonly address: string;
  readonly port: number;
  readonly pool: Pool;
  readonly startMs: number;
  peer: Peer | null;
  server: DatagramSocket | null;
  /** What came before the server's socket was there. */
  waiting: Buffer[];
  seenMs: number;
  answered: boolean;
  bytesIn: number;
  bytesOut: number;
  readonly tried: string[];
}

export class DatagramEntrance {
  private options: ProxyOptions;
  private logLine: LineOf;
  private readonly context: EntranceContext;
  private readonly sessions = new Map<string, Session>();
  private readonly byAddress = new ConnectionCount();
  private socket: DatagramSocket | null = null;
  private sweeper: Timer | null = null;
  /** Set once it is retired. */
  private onEmpty: (() => void) | null = null;
  private readonly cells: { accepted: Cell; active: Cell; bytesIn: Cell; bytesOut: Cell };

  constructor(options: ProxyOptions, context: EntranceContext) {
    this.options = options;
    this.logLine = compileLine(options.accessLog?.format ?? 'text');
    this.context = context;
    const { metrics } = context.parts;
    const labels = { proxy: options.name };
    this.cells = {
      accepted: metrics.cell(M.accepted, labels),
      active: metrics.cell(M.active, labels),
      bytesIn: metrics.cell(M.bytes, { ...labels, direction: 'in' }),
      bytesOut: metrics.cell(M.bytes, { ...labels, direction: 'out' }),
    };
  }

  get addresses(): readonly Bound[] {
    const { socket } = this;
    return socket === null ? [] : [{ kind: 'udp', address: socket.local, port: socket.port }];
  }

  /** Throws TRANSPORT-BIND. */
  async start(): Promise<void> {
    const { clock } = this.context.parts;
    this.sweeper = clock.every(SWEEP_MS, () => this.sweep());
    await this.open();
  }

  /** Sessions that exist go on with their servers. */
  async update(options: ProxyOptions): Promise<void> {
    const before = this.options;
    this.options = options;
    this.logLine = compileLine(options.accessLog?.format ?? 'text');
    if (this.socket !== null && before.host === options.host && before.port === options.port) return;
    this.socket?.close();
    await this.open();
  }

  /** Takes no new clients; sessions go on until they are silent. Calls `over` when the last one has ended. */
  async retire(over: () => void): Promise<void> {
    this.onEmpty = over;
    this.checkEmpty();
  }

  private checkEmpty(): void {
    if (this.onEmpty === null || this.sessions.size > 0) return;
    this.sweeper?.cancel();
    this.socket?.close();
    this.socket = null;
    const over = this.onEmpty;
    this.onEmpty = null;
    over();
  }

  async stop(_deadlineMs: number): Promise<void> {
    this.sweeper?.cancel();
    this.socket?.close();
    this.socket = null;
    for (const [key, session] of this.sessions) this.end(key, session, 200, 'proxy stops');
  }

  private async open(): Promise<void> {
    const { host, port, name } = this.options;
    const { transports, log } = this.context.parts;
    const socket = await transports.bindDatagrams(host, port);
    this.socket = socket;
    socket.onError(() => {});
    socket.onMessage((bytes, address, from) => this.fromClient(bytes, address, from));
    log('info', 'PXY-UP', { proxy: name, kind: 'udp', address: socket.local });
  }

  private fromClient(bytes: Buffer, address: string, port: number): void {
    const key = `${address} ${port}`;
    const known = this.sessions.get(key);
    const session = known ?? (this.onEmpty === null ? this.begin(key, address, port) : null);
    if (session === null) return;
    session.bytesIn += bytes.length;
    this.cells.bytesIn.value += bytes.length;
    session.seenMs = this.context.parts.clock.mono();
    if (session.server !== null) session.server.send(bytes);
    else if (session.waiting.length < MOST_WAITING) session.waiting.push(bytes);
  }

  private begin(key: string, address: string, port: number): Session | null {
    const { maxConnections, limitConn, default: target } = this.options;
    const { parts } = this.context;
    const pool = target === null ? undefined : this.context.pool(target);
    const most = maxConnections > 0 ? maxConnections : MOST_SESSIONS;
    if (pool === undefined || this.sessions.size >= most || !this.byAddress.enter(address, limitConn.perIp)) {
      parts.metrics.cell(M.refused, { proxy: this.options.name, status: pool === undefined ? '500' : '503' }).value++;
      return null;
    }
    const nowMs = parts.clock.mono();
    const session: Session = {
      address,
      port,
      pool,
      startMs: nowMs,
      peer: null,
      server: null,
      waiting: [],
      seenMs: nowMs,
      answered: false,
      bytesIn: 0,
      bytesOut: 0,
      tried: [],
    };
    this.sessions.set(key, session);
    this.cells.accepted.value++;
    this.cells.active.value++;
    void this.connect(key, session);
    return session;
  }

  /** Never rejects. */
  private async connect(key: string, session: Session): Promise<void> {
    const { transports, clock } = this.context.parts;
    const { pool } = session;
    const selection = pool.select(addressFacts(this.options.name, session.address, session.port));
    for (let tries = 0; tries < selection.tries; tries++) {
      const peer = selection.next(clock.mono());
      if (peer === null) break;
      session.tried.push(peer.address);
      try {
        const server = await transports.connectDatagrams(peer.host, peer.server.port);
        if (this.sessions.get(key) !== session) {
          server.close();
          pool.release(peer);
          return;
        }
        session.peer = peer;
        session.server = server;
        server.onError((error) => this.lost(key, session, error));
        server.onMessage((bytes) => this.fromServer(session, bytes));
        for (const bytes of session.waiting) server.send(bytes);
        session.waiting = [];
        return;
      } catch (error) {
        pool.failed(peer, error);
      }
    }
    this.end(key, session, 502, 'no server can be reached');
  }

  private fromServer(session: Session, bytes: Buffer): void {
    if (!session.answered && session.peer !== null) session.pool.connected(session.peer);
    session.answered = true;
    session.bytesOut += bytes.length;
    this.cells.bytesOut.value += bytes.length;
    session.seenMs = this.context.parts.clock.mono();
    this.socket?.send(bytes, session.port, session.address);
  }

  private lost(key: string, session: Session, error: Error): void {
    if (this.sessions.get(key) !== session || session.peer === null) return;
    if (!session.answered) {
      session.pool.failed(session.peer, error);
      session.peer = null;
    }
    this.end(
      key,
      session,
      session.answered ? 200 : 502,
      session.answered ? 'closed by server' : 'no server can be reached',
    );
  }

  private sweep(): void {
    const nowMs = this.context.parts.clock.mono();
    for (const [key, session] of this.sessions)
      if (nowMs - session.seenMs >= this.options.udpTimeoutMs) this.end(key, session, 200, 'idle');
  }

  private end(key: string, session: Session, status: Status, reason: string): void {
    if (this.sessions.get(key) !== session) return;
    this.ended(key, session, status, reason);
    this.checkEmpty();
  }

  private ended(key: string, session: Session, status: Status, reason: string): void {
    this.sessions.delete(key);
    this.cells.active.value--;
    this.byAddress.leave(session.address);
    session.server?.close();
    if (session.peer !== null) session.pool.release(session.peer);
    const { clock, metrics } = this.context.parts;
    const proxy = this.options.name;
    if (status === 200) metrics.cell(M.closed, { proxy, reason: reason.replaceAll(' ', '-') }).value++;
    else metrics.cell(M.refused, { proxy, status: String(status) }).value++;
    const { accessLog } = this.options;
    if (accessLog === null) return;
    const entry: Entry = {
      timeMs: clock.now(),
      remoteAddress: session.address,
      remotePort: String(session.port),
      listener: this.options.name,
      version: 0,
      clientId: null,
      username: null,
      rewrittenClientId: null,
      upstreams: session.tried,
      bytesReceived: session.bytesIn,
      bytesSent: session.bytesOut,
      sessionMs: clock.mono() - session.startMs,
      status,
      reason,
      facts: addressFacts(this.options.name, session.address, session.port),
    };
    this.context.accessLog(accessLog.file)?.write(this.logLine(entry));
  }
}
