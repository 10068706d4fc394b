// A pool of servers (`upstreams.<name>`): its peers, who of them is chosen, how they are dialled, what failures do to
// them. Made and kept by proxies.ts; relay.ts takes selections from it. A reload changes it in place, so that counts
// and rests go on. Host names are looked up at the start and every dns_refresh; an answer that fails keeps the
// addresses there are.
import type { Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Cell } from '../base/metrics.ts';
import type { Connection, DialTarget } from '../transport/transport.ts';
import { type Balanced, makeGroup, Selection } from './balance.ts';
import { Discovery } from './discovery/discovery.ts';
import type { Found } from './discovery/found.ts';
import type { Facts } from './facts.ts';
import { HealthCheck } from './health.ts';
import { UPSTREAM_METRICS as M } from './metrics.ts';
import { ownFault } from './ownfault.ts';
import { Peer } from './peer.ts';
import type { PeerView, ProxyParts, ServerOptions, UpstreamOptions, UpstreamView } from './proxy.ts';
import { buildRing } from './ring.ts';
import { StickyTable } from './sticky.ts';
import { compileTemplate, type Template } from './template.ts';

/** A name without an answer is asked for again after this time, or after dns_refresh when that is shorter. */
const LOOKUP_RETRY_MS = 5000;
const FIRST_LOOKUP_MS = 2000;
/** IPv4 in dotted form, or anything with a colon: nothing to look up. */
const LITERAL = /^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$|:/;

/** A server and the peers its name stands for now. */
interface Place {
  server: ServerOptions;
  peers: Peer[];
  readonly from: PeerView['from'];
  metadata: PeerView['metadata'];
}

/** A server that is wanted: from the configuration, or found. */
interface Wanted {
  readonly server: ServerOptions;
  readonly from: PeerView['from'];
  readonly metadata: PeerView['metadata'];
}

export class Pool {
  options: UpstreamOptions;
  private readonly parts: ProxyParts;
  private places: Place[] = [];
  private balanced: Balanced;
  private hashKey: Template;
  /** null = balance alone decides. */
  private sticky: { readonly key: Template; readonly table: StickyTable } | null;
  private readonly health: HealthCheck;
  private lookupTimer: Timer | null = null;
  private stopped = false;
  private discovery: Discovery | null = null;
  private found: readonly Found[] = [];
  private readonly connects: Cell;
  private readonly failures: Cell;

  constructor(options: UpstreamOptions, parts: ProxyParts) {
    this.options = options;
    this.parts = parts;
    this.hashKey = compileTemplate(options.hashKey, parts.env);
    this.sticky = this.makeSticky();
    const labels = { upstream: options.name };
    this.connects = parts.metrics.cell(M.connects, labels);
    this.failures = parts.metrics.cell(M.failures, labels);
    parts.metrics.read(M.connections, () => this.sum((peer) => peer.conns), labels);
    parts.metrics.read(M.usable, () => this.usableCount(), labels);
    parts.metrics.read(M.sticky, () => this.sticky?.table.size ?? 0, labels);
    this.health = new HealthCheck(this, parts);
    this.places = this.wanted().map(newPlace);
    this.balanced = this.balance();
  }

  /**
   * Looks names up, begins checks and discovery; resolves when all have answered once, or take too long. Never rejects.
   */
  async start(): Promise<void> {
    this.health.watch(this.options.health, this.allPeers());
    await this.atMost(FIRST_LOOKUP_MS, Promise.all([this.lookup(), this.discover()]));
  }

  stop(): void {
    this.stopped = true;
    this.lookupTimer?.cancel();
    this.discovery?.stop();
    this.health.stop();
    this.parts.metrics.drop({ upstream: this.options.name });
  }

  /** Takes new options: servers that stay keep their connections, failures and health. */
  async update(options: UpstreamOptions): Promise<void> {
    const same = JSON.stringify(options.discover) === JSON.stringify(this.options.discover);
    this.options = options;
    this.hashKey = compileTemplate(options.hashKey, this.parts.env);
    this.sticky = this.makeSticky();
    if (options.discover === null) this.found = [];
    this.place();
    await this.atMost(FIRST_LOOKUP_MS, Promise.all([this.lookup(), ...(same ? [] : [this.discover()])]));
  }

  /** The tries of one client. */
  select(facts: Facts): Selection {
    const key = this.options.balance === 'ip_hash' ? facts.remoteAddress : this.hashKey.fill(facts);
    const stickyKey = this.sticky?.key.fill(facts) ?? '';
    const stuck = this.sticky?.table.find(stickyKey, this.parts.clock.mono()) ?? null;
    return new Selection(this.balanced, key, Math.random, stuck);
  }

  /** A client is connected to a peer that select() has given; the result is called when it has left it. */
  join(peer: Peer, facts: Facts): () => void {
    const { sticky } = this;
    const { clock } = this.parts;
    const key = sticky?.key.fill(facts) ?? '';
    // A client without a key is nobody that could come back.
    if (sticky === null || key === '') return () => this.release(peer);
    sticky.table.enter(key, peer.address, clock.mono());
    return () => {
      sticky.table.leave(key, clock.mono());
      this.release(peer);
    };
  }

  /**
   * Dials a peer that select() has given. Rejects as the transport does; the outcome has to be told by connected() or
   * failed().
   */
  dial(peer: Peer, timeoutMs: number, client: Connection | null, signal?: AbortSignal): Promise<Connection> {
    const { sendProxyProtocol } = this.options;
    const preface =
      sendProxyProtocol === 'off'
        ? undefined
        : this.parts.transports.proxyHeader(sendProxyProtocol === 'v1' ? 1 : 2, client);
    return this.parts.transports.dial(this.target(peer), { timeoutMs, preface, signal });
  }

  /** The connection is there. */
  connected(peer: Peer): void {
    this.connects.value++;
    peer.served++;
    peer.lastError = null;
    if (peer.accessedMs < peer.checkedMs) {
      if (peer.fails >= peer.server.maxFails && peer.fails > 0) this.recovered(peer);
      peer.fails = 0;
    }
  }

  /** It could not be made; the peer is no longer counted as connected. What is our own fault is not held against it. */
  failed(peer: Peer, error: unknown): void {
    const nowMs = this.parts.clock.mono();
    peer.conns--;
    if (ownFault(error) !== null) return;
    this.failures.value++;
    peer.lastError = errorText(error);
    if (this.balanced.single) return;
    const { maxFails, weight } = peer.server;
    const wasResting = peer.resting(nowMs);
    peer.fails++;
    peer.accessedMs = nowMs;
    peer.checkedMs = nowMs;
    if (maxFails > 0) peer.effectiveWeight = Math.max(0, peer.effectiveWeight - Math.floor(weight / maxFails));
    if (!wasResting && peer.resting(nowMs)) {
      const { name } = this.options;
      this.parts.log('warn', 'PXY-RESTS', { upstream: name, server: peer.address, error: peer.lastError });
    }
  }

  /** A connection that connected() was told of has ended. */
  release(peer: Peer): void {
    peer.conns--;
  }

  /** Called by health checks when a peer changes sides. */
  healthChanged(peer: Peer, healthy: boolean, error: string | null): void {
    peer.healthy = healthy;
    if (healthy) {
      peer.fails = 0;
      this.recovered(peer);
    } else peer.lastError = error;
    this.parts.log(healthy ? 'info' : 'warn', healthy ? 'PXY-HEALTHY' : 'PXY-UNHEALTHY', {
      upstream: this.options.name,
      server: peer.address,
      error,
    });
  }

  /**
   * Takes no new connections to a server, or takes them again; those that exist go on. False when there is no such
   * server.
   */
  drain(addr: string, on: boolean): boolean {
    const peers = this.allPeers().filter((peer) => peer.server.addr === addr || peer.address === addr);
    for (const peer of peers) peer.draining = on;
    if (peers.length > 0) this.parts.log('info', 'PXY-DRAIN', { upstream: this.options.name, server: addr, on });
    return peers.length > 0;
  }

  view(): UpstreamView {
    const nowMs = this.parts.clock.mono();
    const { name, balance, health } = this.options;
    const servers = this.allPeers().map((peer) => peer.view(nowMs, this.balanced.single));
    return { name, balance, health: health?.type ?? null, discovery: this.discovery?.view() ?? null, servers };
  }

  private recovered(peer: Peer): void {
    if (this.options.slowStartMs > 0) peer.slowSinceMs = this.parts.clock.mono();
  }

  private target(peer: Peer): DialTarget {
    const { path, host, port } = peer.server;
    if (path !== null) return { kind: 'unix', path };
    const { tls, protocol, path: request } = this.options;
    if (protocol === 'ws') return webTarget(peer, tls, request);
    if (tls === null) return { kind: 'tcp', host: peer.host, port };
    // The name that was configured is asked for and verified, whatever address it stands for now.
    return { kind: 'tls', host: peer.host, port, tls: { ...tls, serverName: tls.serverName ?? host } };
  }

  private allPeers(): Peer[] {
    return this.places.flatMap((place) => place.peers);
  }

  private sum(of: (peer: Peer) => number): number {
    return this.allPeers().reduce((total, peer) => total + of(peer), 0);
  }

  private usableCount(): number {
    const nowMs = this.parts.clock.mono();
    return this.sum((peer) => (peer.usable(nowMs, this.balanced.single) ? 1 : 0));
  }

  /** The table there is goes on with new bounds. */
  private makeSticky(): typeof this.sticky {
    const { sticky } = this.options;
    if (sticky === null) return null;
    const table = this.sticky?.table ?? new StickyTable(sticky.expireMs, sticky.size);
    table.expireMs = sticky.expireMs;
    table.most = sticky.size;
    return { key: compileTemplate(sticky.key, this.parts.env), table };
  }

  private balance(): Balanced {
    const { balance, slowStartMs } = this.options;
    const of = (backup: boolean): Peer[] =>
      this.places.filter((place) => place.server.backup === backup).flatMap((place) => place.peers);
    const primary = makeGroup(of(false));
    const backups = of(true);
    const backup = backups.length === 0 ? null : makeGroup(backups);
    const servers = this.places.map((place) => place.server).filter((server) => !server.backup);
    return {
      balance,
      slowStartMs: balance === 'round_robin' || balance === 'least_conn' ? slowStartMs : 0,
      primary,
      backup,
      single: primary.peers.length === 1 && backup === null,
      ring: balance === 'consistent_hash' ? buildRing(servers) : null,
    };
  }

  private rebuild(): void {
    this.balanced = this.balance();
    this.health.watch(this.options.health, this.allPeers());
  }

  /** A source that does not answer must not hold up everything else: the pool gets its servers when they come. */
  private atMost(limitMs: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.parts.clock.after(limitMs, resolve);
      void work.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Begins discovery as the options have it, in the place of the one before. Never rejects. */
  private discover(): Promise<void> {
    this.discovery?.stop();
    const { discover, name } = this.options;
    this.discovery =
      discover === null
        ? null
        : new Discovery(name, discover, this.parts, (servers) => {
            this.found = servers;
            this.place();
            void this.lookup();
          });
    return this.discovery?.start() ?? Promise.resolve();
  }

  /** The servers that should be there. One that is configured is not found once more. */
  private wanted(): Wanted[] {
    const { servers, discover } = this.options;
    const own = servers.map((server): Wanted => ({ server, from: 'config', metadata: {} }));
    const known = new Set(servers.map((server) => server.addr));
    if (discover === null) return own;
    const found = this.found.filter((one) => !known.has(one.addr));
    return [...own, ...found.map((one) => ({ server: serverOf(one), from: discover.type, metadata: one.metadata }))];
  }

  /**
   * Brings the places in line with what is wanted: those that stay keep their peers, those that go take no new
   * connections.
   */
  private place(): void {
    const before = [...this.places];
    const fresh = this.wanted().map((wanted) => {
      const at = before.findIndex(({ server, from }) => server.addr === wanted.server.addr && from === wanted.from);
      return at < 0 ? newPlace(wanted) : keep(before.splice(at, 1)[0], wanted);
    });
    for (const place of before) for (const peer of place.peers) peer.removed = true;
    this.places = fresh;
    this.rebuild();
  }

  private async lookup(): Promise<void> {
    this.lookupTimer?.cancel();
    const named = this.places.filter(({ server }) => server.path === null && !LITERAL.test(server.host));
    if (named.length === 0 || this.stopped) return;
    const outcomes = await Promise.all(named.map((place) => this.lookupOne(place)));
    if (this.stopped) return;
    if (outcomes.includes('changed')) this.rebuild();
    const { dnsRefreshMs } = this.options;
    const retryMs = dnsRefreshMs === 0 ? LOOKUP_RETRY_MS : Math.min(dnsRefreshMs, LOOKUP_RETRY_MS);
    const nextMs = outcomes.includes('failed') ? retryMs : dnsRefreshMs;
    if (nextMs === 0) return;
    this.lookupTimer?.cancel();
    this.lookupTimer = this.parts.clock.after(nextMs, () => void this.lookup());
  }

  /** Never rejects. */
  private async lookupOne(place: Place): Promise<'same' | 'changed' | 'failed'> {
    const { server } = place;
    let addresses: string[];
    try {
      addresses = await this.parts.transports.resolve(server.host);
    } catch (error) {
      this.parts.log('warn', 'PXY-LOOKUP', { upstream: this.options.name, host: server.host, error: errorText(error) });
      return 'failed';
    }
    const known = new Map(place.peers.map((peer) => [peer.host, peer]));
    const peers = addresses.map((address) => known.get(address) ?? newPeer(server, address, place));
    const same = peers.length === place.peers.length && peers.every((peer) => known.has(peer.host));
    if (same) return 'same';
    for (const peer of place.peers) peer.removed = !peers.includes(peer);
    place.peers = peers;
    return 'changed';
  }
}

/** The address is dialled, the configured name is asked for: in the Host header and, with TLS, for the certificate. */
function webTarget(
  { host: address, server: { host, port } }: Peer,
  tls: UpstreamOptions['tls'],
  path: string,
): DialTarget {
  const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const web = { url: `${tls === null ? 'ws' : 'wss'}://${place}${path}`, subprotocol: 'mqtt', address };
  return tls === null
    ? { kind: 'ws', ...web }
    : { kind: 'wss', ...web, tls: { ...tls, serverName: tls.serverName ?? host } };
}

function newPeer(server: ServerOptions, address: string, { from, metadata }: Wanted): Peer {
  const peer = new Peer(server, address, from);
  peer.metadata = metadata;
  return peer;
}

/** With a peer where the address is written down; a name has to be looked up first. */
function newPlace(wanted: Wanted): Place {
  const { server, from, metadata } = wanted;
  const address = server.path !== null ? '' : LITERAL.test(server.host) ? server.host : null;
  return { server, from, metadata, peers: address === null ? [] : [newPeer(server, address, wanted)] };
}

/** The place with other options; its peers begin the smooth round anew when the weight is another. */
function keep(place: Place, { server, metadata }: Wanted): Place {
  for (const peer of place.peers) {
    if (peer.server.weight !== server.weight) {
      peer.effectiveWeight = server.weight;
      peer.currentWeight = 0;
    }
    peer.server = server;
    peer.metadata = metadata;
  }
  place.server = server;
  place.metadata = metadata;
  return place;
}

/** What a source does not say is as in a configuration that does not say it. */
function serverOf({ addr, host, port, weight, backup }: Found): ServerOptions {
  return { addr, host, port, weight, backup, path: null, down: false, maxFails: 1, failTimeoutMs: 10_000, maxConns: 0 };
}
