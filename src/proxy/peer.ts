// One address of a server of a pool: what balancing, failures and health checks have to remember about it. Made by
// pool.ts, changed by it, balance.ts and health.ts. Kept over reloads and new lookups as long as server and address
// stay. Source: NGINX, ngx_stream_upstream_round_robin (effective weight, fails, checked, accessed).
import type { PeerView, ServerOptions } from './proxy.ts';

export class Peer {
  server: ServerOptions;
  /** The address dialled; that of the server unless it is a name. "" for a Unix socket. */
  readonly host: string;
  /** Connections open and being opened. */
  conns = 0;
  /** All connections that were opened. */
  served = 0;
  /** Failures that count now. */
  fails = 0;
  /** Monotonic ms of the last failure. */
  accessedMs = Number.NEGATIVE_INFINITY;
  /** Monotonic ms of the last failure, or of the first choice after fail_timeout had passed. */
  checkedMs = Number.NEGATIVE_INFINITY;
  currentWeight = 0;
  /** Lowered by failures, comes back by one with every choice. */
  effectiveWeight: number;
  /** What active checks say. */
  healthy = true;
  draining = false;
  /** Monotonic ms when it came back from failure, while its share still grows; -1 = it has its full share. */
  slowSinceMs = -1;
  /** Gone from the configuration or from the name's addresses: no new connections, no checks. */
  removed = false;
  lastError: string | null = null;
  /** Who names it. */
  readonly from: PeerView['from'];
  metadata: PeerView['metadata'] = {};

  constructor(server: ServerOptions, host: string, from: PeerView['from'] = 'config') {
    this.server = server;
    this.host = host;
    this.from = from;
    this.effectiveWeight = server.weight;
  }

  /** Where it is, for logs and people: "10.0.0.1:1883", "unix:/path". */
  get address(): string {
    const { path, port } = this.server;
    if (path !== null) return `unix:${path}`;
    return this.host.includes(':') ? `[${this.host}]:${port}` : `${this.host}:${port}`;
  }

  /** Whether max_fails failures keep it out now. */
  resting(nowMs: number): boolean {
    const { maxFails, failTimeoutMs } = this.server;
    return maxFails > 0 && this.fails >= maxFails && nowMs - this.checkedMs <= failTimeoutMs;
  }

  /** Whether it may be chosen. `single`: the only one there is, whose failures do not count. */
  usable(nowMs: number, single: boolean): boolean {
    const { down, maxConns } = this.server;
    if (down || this.draining || !this.healthy || this.removed) return false;
    if (maxConns > 0 && this.conns >= maxConns) return false;
    return single || !this.resting(nowMs);
  }

  /** The weight of this choice; during slow start it grows to the full one. */
  weightNow(nowMs: number, slowStartMs: number): number {
    if (this.slowSinceMs < 0) return this.effectiveWeight;
    const share = (nowMs - this.slowSinceMs) / slowStartMs;
    if (!(share < 1)) {
      this.slowSinceMs = -1;
      return this.effectiveWeight;
    }
    return this.effectiveWeight * Math.max(share, 0.01);
  }

  /** Counts the choice: one more connection. */
  chosen(nowMs: number): void {
    this.conns++;
    if (nowMs - this.checkedMs > this.server.failTimeoutMs) this.checkedMs = nowMs;
  }

  view(nowMs: number, single: boolean): PeerView {
    const state = this.server.down
      ? 'down'
      : this.draining
        ? 'draining'
        : !this.healthy
          ? 'unhealthy'
          : !single && this.resting(nowMs)
            ? 'resting'
            : 'up';
    const { addr, weight, backup } = this.server;
    const { address, conns, served, fails, lastError, from, metadata } = this;
    return {
      server: addr,
      from,
      metadata,
      address,
      weight,
      backup,
      state,
      connections: conns,
      served,
      fails,
      lastError,
    };
  }
}
