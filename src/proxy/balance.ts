// Which peer gets the next connection: NGINX's methods for streams, choice by choice as NGINX makes them. A Selection
// lives for one client, from its first try to its last; pool.ts makes it, relay.ts asks it. Pure but for the peers'
// counters. Source: NGINX, ngx_stream_upstream_{round_robin,least_conn,hash,random}_module.
import { crc32 } from 'node:zlib';
import type { Peer } from './peer.ts';
import type { UpstreamOptions } from './proxy.ts';
import { findPoint, type Ring } from './ring.ts';

/** Peers that are tried together: the servers of a pool, or its backup servers. */
export interface Group {
  readonly peers: readonly Peer[];
  /** Of all peers, also those that are down. */
  readonly totalWeight: number;
}

export interface Balanced {
  readonly balance: UpstreamOptions['balance'];
  readonly slowStartMs: number;
  readonly primary: Group;
  /** Tried when no server of `primary` is left; null = there are none. */
  readonly backup: Group | null;
  /** One peer in all: its failures do not count. */
  readonly single: boolean;
  /** Only for consistent_hash. */
  readonly ring: Ring | null;
}

export function makeGroup(peers: readonly Peer[]): Group {
  return { peers, totalWeight: peers.reduce((sum, peer) => sum + peer.server.weight, 0) };
}

/** After so many places that could not be used a hash or random method goes on as round robin. */
const MOST_TRIES = 20;

export class Selection {
  /** How often next() is worth calling: as many servers are not down. */
  readonly tries: number;
  private readonly of: Balanced;
  private readonly key: string;
  private stuck: string | null;
  private group: Group;
  private readonly tried = new Set<Peer>();
  private rehash = 0;
  private hash = 0;
  private misses = 0;
  private point = -1;
  private readonly random: () => number;

  /**
   * `key` is what hash methods hash. `random` gives numbers from 0 to 1, 1 not included. `stuck` is the address that is
   * tried first, where it can be used; null = none.
   */
  constructor(of: Balanced, key: string, random: () => number = Math.random, stuck: string | null = null) {
    this.of = of;
    this.key = key;
    this.stuck = stuck;
    this.group = of.primary;
    this.random = random;
    const up = (peers: readonly Peer[]): number => peers.filter((peer) => !peer.server.down).length;
    this.tries = up(of.primary.peers) + (of.backup === null ? 0 : up(of.backup.peers));
  }

  /**
   * The next peer to try, counted as a connection of it; null when none can be used. O(peers), consistent hashing
   * O(points) at worst.
   */
  next(nowMs: number): Peer | null {
    const { of } = this;
    let peer = this.stuckPeer(nowMs) ?? (of.single ? this.only(nowMs) : this.byMethod(nowMs));
    if (peer === null && of.backup !== null && this.group !== of.backup) {
      this.group = of.backup;
      peer = of.balance === 'least_conn' ? this.leastConn(nowMs) : this.roundRobin(nowMs);
    }
    if (peer === null) return null;
    this.tried.add(peer);
    peer.chosen(nowMs);
    return peer;
  }

  /** Where the client was the last time; asked for once. */
  private stuckPeer(nowMs: number): Peer | null {
    const { of, stuck } = this;
    if (stuck === null) return null;
    this.stuck = null;
    const peers = of.backup === null ? of.primary.peers : [...of.primary.peers, ...of.backup.peers];
    return peers.find((peer) => peer.address === stuck && peer.usable(nowMs, of.single)) ?? null;
  }

  private only(nowMs: number): Peer | null {
    const peer = this.group.peers[0];
    return !this.tried.has(peer) && peer.usable(nowMs, true) ? peer : null;
  }

  private byMethod(nowMs: number): Peer | null {
    if (this.group !== this.of.primary)
      return this.of.balance === 'least_conn' ? this.leastConn(nowMs) : this.roundRobin(nowMs);
    if (this.group.peers.length === 0) return null;
    switch (this.of.balance) {
      case 'round_robin':
        return this.roundRobin(nowMs);
      case 'least_conn':
        return this.leastConn(nowMs);
      case 'hash':
      case 'ip_hash':
        return this.byHash(nowMs);
      case 'consistent_hash':
        return this.byRing(nowMs);
      case 'random':
        return this.byChance(nowMs);
    }
  }

  private free(peer: Peer, nowMs: number): boolean {
    return !this.tried.has(peer) && peer.usable(nowMs, false);
  }

  /** Smooth weighted round robin: 5, 1, 1 gives a a b a c a a. */
  private roundRobin(nowMs: number): Peer | null {
    return this.heaviest(this.group.peers, nowMs, null);
  }

  /** One round over those of `peers` that can be used and fit `like`; `best` starts as the choice so far. */
  private heaviest(peers: readonly Peer[], nowMs: number, like: ((peer: Peer) => boolean) | null): Peer | null {
    let best: Peer | null = null;
    let total = 0;
    for (const peer of peers) {
      if (!this.free(peer, nowMs) || (like !== null && !like(peer))) continue;
      const weight = peer.weightNow(nowMs, this.of.slowStartMs);
      peer.currentWeight += weight;
      total += weight;
      if (peer.effectiveWeight < peer.server.weight) peer.effectiveWeight++;
      if (best === null || peer.currentWeight > best.currentWeight) best = peer;
    }
    if (best !== null) best.currentWeight -= total;
    return best;
  }

  /** Fewest connections for its weight; among equals smooth weighted round robin. */
  private leastConn(nowMs: number): Peer | null {
    let best: Peer | null = null;
    let many = false;
    for (const peer of this.group.peers) {
      if (!this.free(peer, nowMs)) continue;
      const [mine, least] = best === null ? [0, 1] : [this.load(peer, best, nowMs), this.load(best, peer, nowMs)];
      if (mine < least) {
        best = peer;
        many = false;
      } else if (mine === least) many = true;
    }
    if (best === null || !many) return best;
    const first: Peer = best;
    return this.heaviest(
      this.group.peers,
      nowMs,
      (peer) => peer === first || this.load(peer, first, nowMs) === this.load(first, peer, nowMs),
    );
  }

  /** Connections of `peer` times the weight of `other`: what is compared instead of a quotient. */
  private load(peer: Peer, other: Peer, nowMs: number): number {
    const { slowStartMs } = this.of;
    const weight = other.slowSinceMs < 0 ? other.server.weight : other.weightNow(nowMs, slowStartMs);
    return peer.conns * weight;
  }

  /**
   * Cache::Memcached's: a part of the hash, modulo the weights; again with a number before the key when that peer
   * cannot be used.
   */
  private byHash(nowMs: number): Peer | null {
    while (this.misses <= MOST_TRIES) {
      const text = this.rehash > 0 ? `${this.rehash}${this.key}` : this.key;
      this.hash += (crc32(text) >>> 16) & 0x7fff;
      this.rehash++;
      const peer = atWeight(this.group, this.hash % this.group.totalWeight);
      if (this.free(peer, nowMs)) return peer;
      this.misses++;
    }
    return this.roundRobin(nowMs);
  }

  private byRing(nowMs: number): Peer | null {
    const { ring } = this.of;
    if (ring === null || ring.hashes.length === 0) return null;
    if (this.point < 0) this.point = findPoint(ring, crc32(this.key));
    // Servers looked at already: their other points need no second look.
    const passed = new Set<string>();
    for (let steps = 0; steps < ring.servers.length; steps++) {
      const addr = ring.servers[this.point % ring.servers.length];
      if (!passed.has(addr)) {
        const peer = this.heaviest(this.group.peers, nowMs, (candidate) => candidate.server.addr === addr);
        if (peer !== null) return peer;
        passed.add(addr);
      }
      this.point++;
    }
    return null;
  }

  /**
   * Two by chance, weighted; the one with fewer connections for its weight, the first where they are equal: its draw
   * was by weight.
   */
  private byChance(nowMs: number): Peer | null {
    const { group } = this;
    if (group.peers.length < 2) return this.roundRobin(nowMs);
    let first: Peer | null = null;
    while (this.misses <= MOST_TRIES) {
      const peer = atWeight(group, Math.floor(this.random() * group.totalWeight));
      if (peer !== first && this.free(peer, nowMs)) {
        if (first === null) first = peer;
        else return this.load(peer, first, nowMs) < this.load(first, peer, nowMs) ? peer : first;
      } else this.misses++;
    }
    // The other one is hardly ever drawn, or nobody: then the one there is.
    return first ?? this.roundRobin(nowMs);
  }
}

/** The peer in whose share of the total weight `w` lies. */
function atWeight(group: Group, w: number): Peer {
  let last = group.peers[0];
  for (const peer of group.peers) {
    last = peer;
    if (w < peer.server.weight) return peer;
    w -= peer.server.weight;
  }
  return last;
}
