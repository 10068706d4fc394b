// Keeps the servers of a pool up to date from a source outside the configuration: asks it again and again, and passes
// on what is new. Made by pool.ts. An answer that fails or is empty keeps the servers there are and raises an alarm; a
// source is never asked twice at once. Never throws and never rejects. Sources: dns.ts, file.ts, http.ts, consul.ts,
// one row each in SOURCES.
import type { Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { UPSTREAM_METRICS as M } from '../metrics.ts';
import type { DiscoveryOptions, DiscoveryView, ProxyParts } from '../proxy.ts';
import { consulSource } from './consul.ts';
import { dnsSource } from './dns.ts';
import { fileSource } from './file.ts';
import type { Found, Source } from './found.ts';
import { httpSource } from './http.ts';

const SOURCES: Readonly<Record<DiscoveryOptions['type'], (options: DiscoveryOptions, parts: ProxyParts) => Source>> = {
  dns: dnsSource,
  srv: dnsSource,
  file: fileSource,
  http: httpSource,
  consul: consulSource,
};

/** After a failure the source is asked again after this time, doubling up to the refresh time or a minute. */
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60_000;

export class Discovery {
  readonly options: DiscoveryOptions;
  private readonly parts: ProxyParts;
  private readonly upstream: string;
  private readonly onServers: (servers: readonly Found[]) => void;
  private readonly source: Source;
  private readonly abort = new AbortController();
  private timer: Timer | null = null;
  private servers: readonly Found[] = [];
  private answeredMs: number | null = null;
  private error: string | null = null;
  private retryMs = FIRST_RETRY_MS;

  constructor(
    upstream: string,
    options: DiscoveryOptions,
    parts: ProxyParts,
    onServers: (servers: readonly Found[]) => void,
  ) {
    this.upstream = upstream;
    this.options = options;
    this.parts = parts;
    this.onServers = onServers;
    this.source = SOURCES[options.type](options, parts);
    const labels = { upstream };
    parts.metrics.read(M.discovered, () => this.servers.length, labels);
    parts.metrics.read(M.discoveryFailing, () => (this.error === null ? 0 : 1), labels);
  }

  /** Resolves when the source has answered or failed once. */
  start(): Promise<void> {
    return this.ask();
  }

  stop(): void {
    this.abort.abort();
    this.timer?.cancel();
  }

  view(): DiscoveryView {
    const { answeredMs, error } = this;
    const nowMs = this.parts.clock.mono();
    const ageMs = answeredMs === null ? null : Math.round(nowMs - answeredMs);
    return { type: this.options.type, source: this.source.where, servers: this.servers.length, ageMs, error };
  }

  private async ask(): Promise<void> {
    let againMs: number;
    try {
      const answer = await this.source.next(this.abort.signal);
      if (this.abort.signal.aborted) return;
      if (answer.servers !== null) this.take(answer.servers);
      this.answeredMs = this.parts.clock.mono();
      this.retryMs = FIRST_RETRY_MS;
      againMs = answer.againMs;
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.failed(errorText(error));
      againMs = this.retryMs;
      this.retryMs = Math.min(
        this.retryMs * 2,
        Math.max(FIRST_RETRY_MS, Math.min(this.options.refreshMs, LAST_RETRY_MS)),
      );
    }
    this.timer = this.parts.clock.after(againMs, () => void this.ask());
  }

  private take(servers: readonly Found[]): void {
    if (servers.length === 0) throw new Error('the answer has no servers');
    const before = new Map(this.servers.map((server) => [server.addr, server]));
    const added = servers.filter((server) => !before.has(server.addr));
    const now = new Set(servers.map((server) => server.addr));
    const removed = this.servers.filter((server) => !now.has(server.addr));
    const changed = servers.filter((server) => isChanged(before.get(server.addr), server));
    if (this.error !== null) this.parts.log('info', 'PXY-DISCOVERY-BACK', { upstream: this.upstream });
    this.error = null;
    if (added.length + removed.length + changed.length === 0) return;
    this.servers = servers;
    this.parts.log('info', 'PXY-DISCOVERED', {
      upstream: this.upstream,
      source: this.source.where,
      servers: servers.length,
      added: named(added),
      removed: named(removed),
      changed: named(changed),
    });
    this.onServers(servers);
  }

  private failed(error: string): void {
    if (error !== this.error) {
      const { upstream, source } = this;
      this.parts.log('warn', 'PXY-DISCOVERY', { upstream, source: source.where, kept: this.servers.length, error });
    }
    this.error = error;
  }
}

/** A log line stays short, however many servers come at once. */
const MOST_NAMED = 10;

function named(servers: readonly Found[]): string[] {
  const names = servers.slice(0, MOST_NAMED).map((server) => server.addr);
  return servers.length > MOST_NAMED ? [...names, `and ${servers.length - MOST_NAMED} more`] : names;
}

function isChanged(before: Found | undefined, now: Found): boolean {
  if (before === undefined) return false;
  return (
    before.weight !== now.weight ||
    before.backup !== now.backup ||
    JSON.stringify(before.metadata) !== JSON.stringify(now.metadata)
  );
}
