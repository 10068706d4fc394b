// The small server of `metrics`: one page for Prometheus on a bind of its own, plain node:http. Built by
// gateway/console.ts when the block is present. It serves /metrics and nothing else. With auth = basic it wants the
// credentials of http_server.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Service } from '../base/service.ts';
import { WebAccess } from './access.ts';
import { type Answer, fail } from './answer.ts';
import { send } from './app.ts';
import type { HttpSettings, MatchesHash, MetricsSettings } from './console.ts';
import { addressText, Listening, SERVER_OPTIONS } from './listening.ts';
import { PROMETHEUS_TYPE, renderMetrics } from './metrics.ts';

/** Scrapers keep one connection each. */
const MAX_CONNECTIONS = 64;

export interface MetricsServerOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  settings(): MetricsSettings;
  readonly matchesHash?: MatchesHash;
}

/** The metrics server's settings as access.ts reads them: it never is open unless `auth` says so. */
function asHttp({ host, port, users }: MetricsSettings): HttpSettings {
  return { host, port, users, tls: null, maxBodyBytes: 0, maxRequests: 0, authType: 'basic', jwt: null };
}

export class MetricsServer implements Service {
  private readonly options: MetricsServerOptions;
  private readonly access: WebAccess;
  private listening: Listening | null = null;

  constructor(options: MetricsServerOptions) {
    this.options = options;
    const { clock, log, metrics, matchesHash } = options;
    this.access = new WebAccess(() => asHttp(options.settings()), clock, log, metrics, matchesHash);
  }

  /** "127.0.0.1:9100" once started, with the real port. */
  get address(): string {
    return addressText(this.options.settings().host, this.port);
  }

  /** 0 while not started. */
  get port(): number {
    return this.listening?.port ?? 0;
  }

  async start(): Promise<void> {
    const { host, port } = this.options.settings();
    const server = createServer(SERVER_OPTIONS, (incoming, outgoing) => {
      outgoing.on('error', () => {});
      void this.answer(incoming).then((answer) => this.finish(answer, incoming, outgoing));
    });
    this.listening = await Listening.open(server, host, port, 'metrics', MAX_CONNECTIONS);
    this.options.log('info', 'WEB-UP', { address: this.address, metrics: true });
  }

  async stop(deadlineMs: number): Promise<void> {
    const { listening } = this;
    this.listening = null;
    await listening?.close(deadlineMs);
  }

  private async answer(incoming: IncomingMessage): Promise<Answer> {
    const path = (incoming.url ?? '').split('?', 1)[0];
    if (path !== '/metrics' && path !== '/') return fail('path');
    if (incoming.method !== 'GET' && incoming.method !== 'HEAD') return fail('method', undefined, '', { allow: 'GET' });
    const { auth, users } = this.options.settings();
    if (auth === 'basic') {
      // Without users there is nobody to let in.
      if (users.length === 0) return fail('anonymous');
      const asking = { headers: incoming.headers, remote: incoming.socket.remoteAddress ?? '', secure: false };
      const caller = await this.access.admit(asking, 'viewer', false);
      if ('status' in caller) return caller;
    }
    return { status: 200, contentType: PROMETHEUS_TYPE, body: renderMetrics(this.options.metrics) };
  }

  private finish(answer: Answer, incoming: IncomingMessage, outgoing: ServerResponse): void {
    // Nobody has a reason to send a body here.
    if (!incoming.complete) outgoing.shouldKeepAlive = false;
    send(outgoing, answer, null);
  }
}
