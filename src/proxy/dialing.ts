// From a pool to a connection: dials one server after the other until one takes the client. Called by relay.ts.
// The pool is told how every attempt went; a client that has gone meanwhile is nobody's failure.
// Source: NGINX, proxy_next_upstream of ngx_stream_proxy_module (only while connecting).
import type { Clock } from '../base/clock.ts';
import type { Connection } from '../transport/transport.ts';
import type { Facts } from './facts.ts';
import { outOfDescriptors } from './ownfault.ts';
import type { Peer } from './peer.ts';
import type { Pool } from './pool.ts';
import type { ProxyOptions } from './proxy.ts';

export interface Reached {
  readonly server: Connection;
  /** It is counted as connected: to be called once, when it is not any more. */
  readonly release: () => void;
}

export class Dialing {
  /** Addresses that were tried, in order. */
  readonly tried: string[] = [];
  /** It was not for the servers: this process has no file descriptors left. */
  outOfDescriptors = false;
  private readonly pool: Pool;
  private readonly client: Connection;
  private readonly clock: Clock;
  private abort: AbortController | null = null;
  private given = false;

  constructor(pool: Pool, client: Connection, clock: Clock) {
    this.pool = pool;
    this.client = client;
    this.clock = clock;
  }

  /** null = no server can be reached, or the client has gone. Never rejects. */
  async reach(facts: Facts, options: Pick<ProxyOptions, 'connectTimeoutMs' | 'nextUpstream'>): Promise<Reached | null> {
    const { nextUpstream, connectTimeoutMs } = options;
    const selection = this.pool.select(facts);
    const beganMs = this.clock.mono();
    const most = nextUpstream.tries === 0 ? selection.tries : Math.min(nextUpstream.tries, selection.tries);
    for (let tries = 0; tries < most && !this.given && !this.outOfDescriptors; tries++) {
      const nowMs = this.clock.mono();
      if (tries > 0 && nextUpstream.timeoutMs > 0 && nowMs - beganMs >= nextUpstream.timeoutMs) break;
      const peer = selection.next(nowMs);
      if (peer === null) break;
      this.tried.push(peer.address);
      const server = await this.dial(peer, connectTimeoutMs);
      if (server !== null) return { server, release: this.pool.join(peer, facts) };
    }
    return null;
  }

  /** The client has gone. */
  giveUp(): void {
    this.given = true;
    this.abort?.abort();
  }

  private async dial(peer: Peer, timeoutMs: number): Promise<Connection | null> {
    const { pool } = this;
    this.abort = new AbortController();
    try {
      const server = await pool.dial(peer, timeoutMs, this.client, this.abort.signal);
      pool.connected(peer);
      if (!this.given) return server;
      server.destroy();
      pool.release(peer);
    } catch (error) {
      if (this.given) pool.release(peer);
      else {
        pool.failed(peer, error);
        this.outOfDescriptors = outOfDescriptors(error);
      }
    } finally {
      this.abort = null;
    }
    return null;
  }
}
