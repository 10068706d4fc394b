// One configured proxy: its listener, its rules, its limits, and the clients that are in. Made by proxies.ts. A reload
// changes the rules for clients that come from then on; the listener is opened anew only when its address or its TLS
// files are others. Counts survive both.
import type { Timer } from '../base/clock.ts';
import type { Cell } from '../base/metrics.ts';
import { hintFor } from '../codec/hint.ts';
import type { Bound, Connection } from '../transport/transport.ts';
import { type AccessLog, type Entry, FAULTS } from './accesslog.ts';
import { addressFacts } from './facts.ts';
import type { InspectCells } from './inspect.ts';
import { ConnectionCount, KeyedRate, Rate } from './limits.ts';
import { PROXY_METRICS as M } from './metrics.ts';
import type { Pool } from './pool.ts';
import type { ProxyListener, ProxyOptions, ProxyParts } from './proxy.ts';
import { Relay } from './relay.ts';
import { makeRules, type Rules } from './rules.ts';
import type { TopicCells } from './topics/ends.ts';
import { Exchanges } from './topics/exchanges.ts';

/** How often sessions are looked at: idle times are exact to this. */
const SWEEP_MS = 500;
/** A lack of descriptors that comes back after this long is another one. */
const QUIET_MS = 60_000;
const TOO_MANY = 'too many connections of this address';
const TOO_OFTEN = 'too many connects of this address';

export interface EntranceContext {
  readonly parts: ProxyParts;
  pool(name: string): Pool | undefined;
  accessLog(file: string): AccessLog | undefined;
}

interface Cells {
  readonly accepted: Cell;
  readonly active: Cell;
  readonly rewritten: Cell;
  readonly bytesIn: Cell;
  readonly bytesOut: Cell;
  readonly filtered: InspectCells;
  readonly topics: TopicCells;
}

export class Entrance {
  readonly parts: ProxyParts;
  readonly connects = new Rate();
  readonly ratesOfIds = new KeyedRate();
  readonly byClientId = new ConnectionCount();
  readonly byUsername = new ConnectionCount();
  readonly exchanges = new Exchanges();
  readonly cells: Cells;
  private readonly byAddress = new ConnectionCount();
  private readonly ratesOfAddresses = new KeyedRate();
  private readonly name: string;
  private readonly context: EntranceContext;
  private rules: Rules;
  /** One for each address; empty = closed. */
  private listeners: readonly ProxyListener[] = [];
  private bound: Bound[] = [];
  private readonly relays = new Set<Relay>();
  private sweeper: Timer | null = null;
  /** Set once it is retired. */
  private onEmpty: (() => void) | null = null;
  /** Monotonic ms when a lack of descriptors was last met. */
  private shortMs = Number.NEGATIVE_INFINITY;

  constructor(options: ProxyOptions, context: EntranceContext) {
    this.name = options.name;
    this.context = context;
    this.parts = context.parts;
    this.rules = makeRules(options, context.parts.env);
    const labels = { proxy: options.name };
    const { metrics } = context.parts;
    for (const status of FAULTS) metrics.cell(M.refused, { ...labels, status: String(status) });
    this.cells = {
      accepted: metrics.cell(M.accepted, labels),
      active: metrics.cell(M.active, labels),
      rewritten: metrics.cell(M.rewritten, labels),
      bytesIn: metrics.cell(M.bytes, { ...labels, direction: 'in' }),
      bytesOut: metrics.cell(M.bytes, { ...labels, direction: 'out' }),
      filtered: {
        publishDenied: metrics.cell(M.filtered, { ...labels, kind: 'publish-denied' }),
        subscribeDenied: metrics.cell(M.filtered, { ...labels, kind: 'subscribe-denied' }),
        foreign: metrics.cell(M.filtered, { ...labels, kind: 'foreign' }),
      },
      topics: {
        sessions: metrics.cell(M.topicSessions, labels),
        lost: metrics.cell(M.topicLost, labels),
        refused: metrics.cell(M.topicRefused, labels),
        foreign: metrics.cell(M.topicForeign, labels),
      },
    };
  }

  get addresses(): readonly Bound[] {
    return this.bound;
  }

  /** Throws TRANSPORT-BIND or TRANSPORT-TLS. */
  async start(): Promise<void> {
    this.sweeper = this.parts.clock.every(SWEEP_MS, () => this.sweep());
    await this.open();
  }

  /**
   * New rules for clients that come from now on. Throws when a new address cannot be bound; the old one is closed then.
   */
  async update(options: ProxyOptions): Promise<void> {
    const before = this.rules.options;
    this.rules = makeRules(options, this.parts.env);
    if (this.listeners.length === 0 || doorDiffers(before, options)) {
      await this.close();
      await this.open();
    } else for (const listener of this.listeners) await listener.reloadCertificates?.();
  }

  /** Accepts nobody more; the sessions that exist go on under their rules. Calls `over` when the last one has ended. */
  async retire(over: () => void): Promise<void> {
    await this.close();
    this.onEmpty = over;
    this.checkEmpty();
  }

  private checkEmpty(): void {
    if (this.onEmpty === null || this.relays.size > 0) return;
    this.sweeper?.cancel();
    const over = this.onEmpty;
    this.onEmpty = null;
    over();
  }

  /** Accepts nobody more, ends the sessions and waits for that, `deadlineMs` at most. */
  async stop(deadlineMs: number): Promise<void> {
    this.sweeper?.cancel();
    await this.close();
    const relays = [...this.relays];
    const gone = Promise.all(relays.map((relay) => relay.stop()));
    if (deadlineMs > 0) await this.within(deadlineMs, gone);
    for (const relay of relays) relay.destroy();
  }

  pool(name: string): Pool | undefined {
    return this.context.pool(name);
  }

  connackSeen(reasonCode: number): void {
    this.parts.metrics.cell(M.connack, { proxy: this.name, code: String(reasonCode) }).value++;
  }

  /** Somebody begins with something else than CONNECT: a person should see what it seems to be. */
  strangerSeen(remote: string, bytes: Buffer): void {
    const hint = hintFor(bytes, 0, bytes.length);
    this.parts.log('warn', 'CON-NOT-MQTT', { remote, proxy: this.name, hint });
  }

  /** A client is refused for want of file descriptors: the first in a while is worth a line in the log. */
  outOfDescriptors(): void {
    const { clock, log, transports } = this.parts;
    const nowMs = clock.mono();
    if (nowMs - this.shortMs >= QUIET_MS)
      log('error', 'PXY-DESCRIPTORS', {
        proxy: this.name,
        active: this.relays.size,
        limit: transports.descriptorLimit,
      });
    this.shortMs = nowMs;
  }

  /** A relay has come to its end. */
  over(relay: Relay, rules: Rules, entry: Entry): void {
    this.relays.delete(relay);
    this.cells.active.value--;
    this.byAddress.leave(relay.remoteAddress);
    this.record(rules, entry);
    this.checkEmpty();
  }

  private async close(): Promise<void> {
    const { listeners } = this;
    this.listeners = [];
    this.bound = [];
    await Promise.all(listeners.map((listener) => listener.stop()));
  }

  /** All addresses or none: one that could not be opened is tried again at the next reload. */
  private async open(): Promise<void> {
    const { host, port, otherBinds } = this.rules.options;
    const opened: ProxyListener[] = [];
    const bound: Bound[] = [];
    try {
      for (const at of [{ host, port }, ...otherBinds]) {
        const listener = this.listen(at.host, at.port);
        bound.push(...(await listener.start()));
        opened.push(listener);
      }
    } catch (error) {
      await Promise.all(opened.map((listener) => listener.stop()));
      throw error;
    }
    this.listeners = opened;
    this.bound = bound;
    for (const { kind, address } of bound) this.parts.log('info', 'PXY-UP', { proxy: this.name, kind, address });
  }

  private listen(host: string, port: number): ProxyListener {
    const { options } = this.rules;
    return this.parts.transports.listen(
      { ...options, host, port },
      {
        accept: (connection) => this.accept(connection),
        reject: (reason, remote) => this.rejected(reason, remote),
        // TLS costs more than a look at the count; whoever passes here is counted when its handshake is done.
        admit: (remoteAddress) => this.refusal(remoteAddress),
        maxConnections: options.maxConnections,
        handshakeTimeoutMs: options.prereadTimeoutMs,
        proxyProtocol: options.proxyProtocol,
        proxyProtocolFrom: options.proxyProtocolFrom,
        proxyTls: 'told',
      },
    );
  }

  /** Why nobody from this address is let in now; null = no reason. */
  private refusal(remoteAddress: string): string | null {
    if (this.full()) return 'full';
    if (this.byAddress.full(remoteAddress, this.rules.options.limitConn.perIp)) return TOO_MANY;
    return this.ratesOfAddresses.banned(remoteAddress, this.parts.clock.mono()) ? TOO_OFTEN : null;
  }

  /** Each listener counts its own connections; of several the sum counts. */
  private full(): boolean {
    const { maxConnections, otherBinds } = this.rules.options;
    return otherBinds.length > 0 && maxConnections > 0 && this.relays.size >= maxConnections;
  }

  private accept(connection: Connection): void {
    const { rules } = this;
    this.cells.accepted.value++;
    const { limitConn, limitRate } = rules.options;
    const { burst, banMs, perIpPerSecond: perSecond } = limitRate;
    const { remoteAddress } = connection;
    const fits = this.ratesOfAddresses.take(remoteAddress, { perSecond, burst, banMs }, this.parts.clock.mono());
    const refusal = this.full() ? 'full' : fits ? null : TOO_OFTEN;
    if (refusal !== null || !this.byAddress.enter(remoteAddress, limitConn.perIp)) {
      connection.destroy();
      this.refusedAtDoor(connection.remote, 503, refusal ?? TOO_MANY);
      return;
    }
    const relay = new Relay(this, rules, connection);
    this.relays.add(relay);
    this.cells.active.value++;
    relay.start();
  }

  /** Failed in a handshake: TLS, PROXY protocol, or the listener is full. */
  private rejected(reason: string, remote: string): void {
    this.cells.accepted.value++;
    if (reason === 'descriptors' || reason === 'accept-EMFILE' || reason === 'accept-ENFILE') this.outOfDescriptors();
    this.refusedAtDoor(remote, statusAtDoor(reason), reason);
  }

  private refusedAtDoor(remote: string, status: Entry['status'], reason: string): void {
    const colon = remote.lastIndexOf(':');
    const remoteAddress = remote.slice(0, Math.max(0, colon)).replace(/^\[|\]$/g, '');
    const remotePort = remote.slice(colon + 1);
    this.record(this.rules, {
      timeMs: this.parts.clock.now(),
      remoteAddress,
      remotePort,
      listener: this.name,
      version: 0,
      clientId: null,
      username: null,
      rewrittenClientId: null,
      upstreams: [],
      bytesReceived: 0,
      bytesSent: 0,
      sessionMs: 0,
      status,
      reason,
      facts: addressFacts(this.name, remoteAddress, remotePort),
    });
  }

  private record(rules: Rules, entry: Entry): void {
    const { metrics, log } = this.parts;
    const { status, reason } = entry;
    if (status === 200) metrics.cell(M.closed, { proxy: this.name, reason: word(reason) }).value++;
    else {
      metrics.cell(M.refused, { proxy: this.name, status: String(status) }).value++;
      log('debug', 'PXY-REFUSED', { proxy: this.name, remote: entry.remoteAddress, status, reason });
    }
    const { accessLog } = rules.options;
    if (accessLog === null || rules.logLine === null) return;
    this.context.accessLog(accessLog.file)?.write(rules.logLine(entry));
  }

  private sweep(): void {
    const nowMs = this.parts.clock.mono();
    for (const relay of this.relays) relay.sweep(nowMs);
  }

  private within(deadlineMs: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.parts.clock.after(deadlineMs, resolve);
      void work.finally(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** The status of a connection that was rejected with this word before anything of MQTT was read. */
function statusAtDoor(reason: string): Entry['status'] {
  if (
    reason === 'full' ||
    reason === TOO_MANY ||
    reason === TOO_OFTEN ||
    reason === 'descriptors' ||
    reason.startsWith('accept-')
  )
    return 503;
  if (reason === 'proxy-untrusted') return 403;
  return reason === 'silent' || reason === 'gone' ? 200 : 400;
}

/** A reason as a label. */
function word(reason: string): string {
  return reason.replaceAll(' ', '-');
}

/** Whether the listener has to be opened anew. */
function doorDiffers(before: ProxyOptions, after: ProxyOptions): boolean {
  const door = (o: ProxyOptions): string =>
    JSON.stringify([
      o.host,
      o.port,
      o.otherBinds,
      o.tls,
      o.tlsNames,
      o.web,
      o.maxConnections,
      o.prereadTimeoutMs,
      o.proxyProtocol,
      o.proxyProtocolFrom,
    ]);
  return door(before) !== door(after);
}
