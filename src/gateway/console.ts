// The wiring of what speaks HTTP: console and REST API (http_server), Prometheus (metrics). Loaded by gateway.ts when
// one is configured. Hands console/ the parts of a running gateway as its seam wants them. Decides nothing: who may do
// what is console/'s matter.
import { hostname } from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { LogTail } from '../base/logtail.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { Config, HttpServerConfig, MetricsConfig } from '../config/config.ts';
import type { CertificateView, JsonObject, LogTail as LogLines } from '../console/console.ts';
import type { HttpServer } from '../console/http.ts';
import type { ProcessMetrics } from '../console/process.ts';
import type { Proxies } from '../proxy/proxies.ts';
import { version } from '../version.ts';
import type { Past } from './archive.ts';
import { explainer } from './explain.ts';
import { httpSettings, loginsPath, metricsSettings, sessionLimits } from './options.ts';
import type { Part, Running, RunningConfig } from './running.ts';

export interface WebParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly ledger: Ledger;
  readonly turn: Turn;
  /** null where no log lines are kept to be shown. */
  readonly tail: LogTail | null;
  readonly current: RunningConfig;
  readonly running: Running;
  /** Whatever is started goes behind what is there: its owner stops it in reverse. */
  readonly started: Part[];
  /** null while no proxy is configured; may come with a reload. */
  readonly proxies: () => Proxies | null;
  /** Whether everything has been started and nothing is being stopped. */
  readonly ready: () => boolean;
  /** Of the control socket; null: there is none. */
  readonly controlFolder: string | null;
  readonly certificates: () => readonly CertificateView[];
  /** null: nothing of the past is kept. */
  readonly past: () => Past | null;
}

/** Figures that only rise, of those that are kept over time. */
const COUNTERS = [
  'received',
  'sent',
  'dropped',
  'received_bytes',
  'sent_bytes',
  'connects',
  'refused',
  'denied',
] as const;

/** Bound addresses, of what is configured. */
export interface WebAddresses {
  readonly http?: string;
  readonly metrics?: string;
}

export class Web {
  private readonly parts: WebParts;
  private server: HttpServer | null = null;

  constructor(parts: WebParts) {
    this.parts = parts;
  }

  /** Takes up renewed certificates and keys. */
  async reload(): Promise<void> {
    await this.server?.reload();
  }

  /** Starts http_server and metrics, as far as they are configured. Throws TRANSPORT-BIND when an address is in use. */
  async start(config: Config): Promise<WebAddresses> {
    const { clock, log, metrics, turn, current, started } = this.parts;
    const addresses: { http?: string; metrics?: string } = {};
    const { ProcessMetrics } = await import('../console/process.ts');
    const { latencyHistogram } = await import('../console/latency.ts');
    turn.measure(clock, latencyHistogram(metrics));
    const processMetrics = new ProcessMetrics(metrics, clock, version);
    await processMetrics.start();
    started.push({ name: 'process metrics', stop: () => processMetrics.stop() });
    const { matchesHash, requireHashes } = await import('./webhash.ts');
    await requireHashes(config.httpServer);
    if (config.httpServer !== null) addresses.http = await this.startConsole(config.httpServer, processMetrics);
    if (config.metrics !== null) {
      const { MetricsServer } = await import('../console/metricsserver.ts');
      const first: MetricsConfig = config.metrics;
      const settings = () => metricsSettings(first, current.config.httpServer);
      const server = new MetricsServer({ clock, log, metrics, settings, matchesHash });
      await server.start();
      started.push({ name: 'metrics', stop: (deadlineMs) => server.stop(deadlineMs) });
      addresses.metrics = server.address;
    }
    return addresses;
  }

  private async startConsole(first: HttpServerConfig, processMetrics: ProcessMetrics): Promise<string> {
    const { clock, log, metrics, current, running, started, ready } = this.parts;
    const { broker, control, access, listeners } = running;
    const { HttpServer } = await import('../console/http.ts');
    const { loadPages } = await import('../console/pages.ts');
    const { configKeys } = await import('./keys.ts');
    const { documentSchemas } = await import('./keyschema.ts');
    const { storeView } = await import('./storeview.ts');
    const { makeHash, matchesHash } = await import('./webhash.ts');
    const server = new HttpServer(
      {
        version,
        nodeName: hostname(),
        clock,
        log,
        metrics,
        broker,
        ledger: this.parts.ledger,
        bridges: control,
        rules: running.rules,
        accounts: () => running.accounts.control(),
        followAccounts: (note) =>
          running.accounts.follow(({ by, done }) => {
            if (by?.via !== 'mqtt') return;
            for (const { command, name } of done) note(by, `${command} ${name}`.trimEnd());
          }),
        config: { ...current.control(), keys: configKeys },
        security: () => access.view(),
        explain: explainer(broker, access, () => sessionLimits(current.config).sessionOwner),
        proxy: {
          upstreams: () => this.proxyViews(),
          drain: (upstream, name, on) =>
            this.parts.proxies()?.drain(upstream, name, on) ? { ok: true } : { ok: false, why: 'missing' },
        },
        logTail: this.logLines(),
        store: () => storeView(metrics, current.config.persistence),
        pages: await loadPages(),
        ready,
        controlFolder: this.parts.controlFolder,
        certificates: this.parts.certificates,
        loginsFile: loginsPath(current.config),
        past: () => this.parts.past()?.control() ?? null,
        documents: documentSchemas,
        listening: () => listeners.openCount >= current.config.listeners.length,
        settings: () => httpSettings(first, current.config.httpServer ?? first),
        matchesHash,
        makeHash,
      },
      processMetrics,
    );
    await server.start();
    this.parts.past()?.sample({ counters: COUNTERS, look: () => server.figures() });
    this.server = server;
    started.push({ name: 'http_server', stop: (deadlineMs) => server.stop(deadlineMs) });
    return server.address;
  }

  private proxyViews(): JsonObject[] {
    return JSON.parse(JSON.stringify(this.parts.proxies()?.upstreams() ?? [])) as JsonObject[];
  }

  private logLines(): LogLines | null {
    const { tail } = this.parts;
    if (tail === null) return null;
    const plain = (line: ReturnType<LogTail['recent']>[number]) => ({
      ...line,
      fields: JSON.parse(JSON.stringify(line.fields)) as JsonObject,
    });
    return {
      recent: (limit) => tail.recent(limit).map(plain),
      follow: (handler) => tail.follow((line) => handler(plain(line))),
    };
  }
}
