// All proxies and pools of a gateway: started, changed on reload and stopped together. Built by gateway/ondemand.ts.
// A proxy finds its pool by name at every connection, so a reload of one does not touch the other.
import { errorText, GatewayError } from '../base/errors.ts';
import type { Service } from '../base/service.ts';
import type { Bound } from '../transport/transport.ts';
import { AccessLog } from './accesslog.ts';
import { DatagramEntrance } from './datagrams.ts';
import { Entrance, type EntranceContext } from './entrance.ts';
import { PROXY_METRICS } from './metrics.ts';
import { Pool } from './pool.ts';
import type { ProxyOptions, ProxyParts, UpstreamOptions, UpstreamView } from './proxy.ts';

export interface ProxiesOptions {
  readonly proxies: readonly ProxyOptions[];
  readonly upstreams: readonly UpstreamOptions[];
}

export class Proxies implements Service {
  private readonly parts: ProxyParts;
  private options: ProxiesOptions;
  private readonly pools = new Map<string, Pool>();
  private readonly entrances = new Map<string, Entrance | DatagramEntrance>();
  /** Proxies that are not configured any more, while they have sessions; with what they were configured as. */
  private readonly retired = new Map<Entrance | DatagramEntrance, ProxyOptions>();
  private readonly logs = new Map<string, AccessLog>();

  constructor(parts: ProxyParts, options: ProxiesOptions) {
    this.parts = parts;
    this.options = options;
  }

  /** Addresses that are bound. */
  get bound(): Bound[] {
    return [...this.entrances.values()].flatMap((entrance) => [...entrance.addresses]);
  }

  /** Throws TRANSPORT-BIND, TRANSPORT-TLS, or CFG-INVALID for an access log that cannot be opened. */
  async start(): Promise<void> {
    const { proxies, upstreams } = this.options;
    const wanted = proxies.filter((proxy) => proxy.enable);
    this.openLogs(wanted, true);
    await Promise.all(upstreams.map((options) => this.addPool(options)));
    for (const options of wanted) await this.addEntrance(options);
    this.checkDescriptors(wanted);
  }

  async stop(deadlineMs: number): Promise<void> {
    const all = [...this.entrances.values(), ...this.retired.keys()];
    await Promise.all(all.map((entrance) => entrance.stop(deadlineMs)));
    for (const { name } of [...this.options.proxies, ...this.retired.values()])
      this.parts.metrics.drop({ proxy: name });
    this.entrances.clear();
    this.retired.clear();
    for (const pool of this.pools.values()) pool.stop();
    this.pools.clear();
    for (const log of this.logs.values()) log.close();
    this.logs.clear();
  }

  /**
   * Applies other options and opens access logs anew. Failures are logged; what can be applied is. Gives the names of
   * proxies that failed.
   */
  async apply(options: ProxiesOptions): Promise<string[]> {
    const failed: string[] = [];
    const before = new Map(this.options.proxies.map((proxy) => [proxy.name, proxy]));
    this.options = options;
    const wanted = new Map(options.proxies.filter((proxy) => proxy.enable).map((proxy) => [proxy.name, proxy]));
    await Promise.all(
      options.upstreams.map((upstream) => {
        const pool = this.pools.get(upstream.name);
        return pool === undefined ? this.addPool(upstream) : pool.update(upstream);
      }),
    );
    for (const [name, entrance] of this.entrances) {
      const protocol = entrance instanceof DatagramEntrance ? 'udp' : 'tcp';
      if (wanted.get(name)?.protocol === protocol) continue;
      this.entrances.delete(name);
      await this.retire(entrance, before.get(name));
    }
    for (const log of this.logs.values()) log.reopen();
    this.openLogs([...wanted.values(), ...this.retired.values()], false);
    for (const proxy of wanted.values()) {
      try {
        const entrance = this.entrances.get(proxy.name);
        if (entrance === undefined) await this.addEntrance(proxy);
        else await entrance.update(proxy);
      } catch (error) {
        failed.push(proxy.name);
        this.parts.log('error', 'PXY-FAILED', { proxy: proxy.name, error: errorText(error) });
      }
    }
    this.checkDescriptors([...wanted.values()]);
    const names = new Set(options.upstreams.map((upstream) => upstream.name));
    for (const [name, pool] of this.pools) {
      if (names.has(name)) continue;
      this.pools.delete(name);
      pool.stop();
    }
    return failed;
  }

  /** Its clients stay connected as they are; the last of them takes the rest of it along. */
  private async retire(entrance: Entrance | DatagramEntrance, options: ProxyOptions | undefined): Promise<void> {
    if (options !== undefined) this.retired.set(entrance, options);
    await entrance.retire(() => {
      this.retired.delete(entrance);
      const name = options?.name ?? '';
      if (!this.entrances.has(name)) this.parts.metrics.drop({ proxy: name });
    });
  }

  upstreams(): UpstreamView[] {
    return [...this.pools.values()].map((pool) => pool.view());
  }

  /**
   * Takes no new connections to a server of a pool, or takes them again. False when there is no such pool or server.
   */
  drain(upstream: string, server: string, on: boolean): boolean {
    return this.pools.get(upstream)?.drain(server, on) ?? false;
  }

  /** Every client takes a descriptor, and one more where it is led to a server. */
  private checkDescriptors(proxies: readonly ProxyOptions[]): void {
    const { log, transports } = this.parts;
    const limit = transports.descriptorLimit;
    const wanted = proxies.reduce((sum, proxy) => sum + proxy.maxConnections * 2, 0);
    if (limit !== null && wanted > limit) log('warn', 'PXY-LIMIT', { wanted, limit });
  }

  private async addPool(options: UpstreamOptions): Promise<void> {
    const pool = new Pool(options, this.parts);
    this.pools.set(options.name, pool);
    await pool.start();
  }

  private async addEntrance(options: ProxyOptions): Promise<void> {
    const context: EntranceContext = {
      parts: this.parts,
      pool: (name) => this.pools.get(name),
      accessLog: (file) => this.logs.get(file),
    };
    const entrance =
      options.protocol === 'udp' ? new DatagramEntrance(options, context) : new Entrance(options, context);
    this.entrances.set(options.name, entrance);
    // A socket of datagrams cannot be shared: one that still serves old sessions makes room.
    if (options.protocol === 'udp')
      for (const [old, { host, port }] of this.retired)
        if (old instanceof DatagramEntrance && host === options.host && port === options.port) await old.stop(0);
    await entrance.start();
  }

  private openLogs(proxies: readonly ProxyOptions[], fail: boolean): void {
    const wanted = new Map(
      proxies.flatMap(({ accessLog }) => (accessLog === null ? [] : [[accessLog.file, accessLog]])),
    );
    for (const [file, log] of this.logs) {
      if (wanted.has(file)) continue;
      this.logs.delete(file);
      log.close();
    }
    const lost = this.parts.metrics.cell(PROXY_METRICS.logLost);
    for (const [file, { rotation }] of wanted) {
      const known = this.logs.get(file);
      known?.setRotation(rotation);
      if (known !== undefined) continue;
      const log = new AccessLog(file, rotation, lost, (error) => this.parts.log('error', 'PXY-LOG', { error }));
      try {
        log.open();
      } catch (error) {
        if (fail) throw new GatewayError('CFG-INVALID', `access_log ${file}: ${errorText(error)}`, error);
        this.parts.log('error', 'PXY-LOG', { error: errorText(error) });
        continue;
      }
      this.logs.set(file, log);
    }
  }
}
