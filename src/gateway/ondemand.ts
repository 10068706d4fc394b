// Parts of a gateway that are loaded when the configuration first asks for them, at start or at a reload: the webhook,
// the proxies, what is kept of the past. Built by gateway.ts; running.ts gives them their sections again. Code of a
// part that nobody has configured is never loaded.
import type { Happenings } from '../archive/happenings.ts';
import type { AccessControl } from '../auth/chain.ts';
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Engine } from '../broker/broker.ts';
import type { Config, WebhookConfig } from '../config/config.ts';
import type { Proxies } from '../proxy/proxies.ts';
import type { Webhook } from '../webhook/webhook.ts';
import type { Past } from './archive.ts';
import { proxiesOptions } from './options.ts';
import { proxyTransports } from './transports.ts';

/** Time for events that wait when a reload brings another webhook. */
const HOOK_DRAIN_MS = 1000;

export interface OnDemandParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly ledger: Ledger;
  readonly happenings: Happenings;
  /** What they work on; throws while the gateway does not run. */
  readonly running: () => { readonly broker: Engine; readonly access: AccessControl };
}

export class OnDemand {
  webhook: Webhook | null = null;
  past: Past | null = null;
  proxies: Proxies | null = null;
  private readonly parts: OnDemandParts;

  constructor(parts: OnDemandParts) {
    this.parts = parts;
  }

  /** Takes the place of the webhook before, which goes on where this one is wrong. */
  async applyWebhook(config: Config): Promise<void> {
    const before = this.webhook;
    const next = config.webhook === null ? null : await this.makeWebhook(config.webhook);
    this.webhook = next;
    // The one before hears no more from here on, and gets a moment for what waits.
    const stopped = before?.stop(HOOK_DRAIN_MS);
    await next?.start();
    await stopped;
  }

  private async makeWebhook(config: WebhookConfig): Promise<Webhook> {
    const { Webhook } = await import('../webhook/webhook.ts');
    const { clock, log, metrics, running } = this.parts;
    const webhook = new Webhook(config, { broker: running().broker, clock, log, metrics });
    await webhook.prepare();
    return webhook;
  }

  async startPast(config: Config, broker: Engine): Promise<void> {
    const { Past } = await import('./archive.ts');
    const { clock, ledger, log, metrics, happenings } = this.parts;
    const small = config.broker.profile === 'small';
    this.past = new Past(config, { broker, clock, ledger, log, metrics, happenings, small });
    this.past.start();
  }

  async applyRecord(config: Config): Promise<void> {
    if (this.past !== null) this.past.apply(config.record);
    else if (config.record.topics.length > 0) await this.startPast(config, this.parts.running().broker);
  }

  /** At start, a proxy that cannot listen is an error. */
  async startProxies(config: Config): Promise<void> {
    const options = proxiesOptions(config);
    if (options.proxies.some((proxy) => proxy.enable)) await this.makeProxies(options);
  }

  /** Gives the names of those that failed: their errors are logged, the rest goes on. */
  async applyProxies(config: Config): Promise<string[]> {
    const options = proxiesOptions(config);
    if (this.proxies === null && !options.proxies.some((proxy) => proxy.enable)) return [];
    const proxies = this.proxies ?? (await this.makeProxies({ proxies: [], upstreams: [] }));
    return proxies.apply(options);
  }

  private async makeProxies(options: ReturnType<typeof proxiesOptions>): Promise<Proxies> {
    const { Proxies } = await import('../proxy/proxies.ts');
    const { clock, log, metrics, running } = this.parts;
    const { broker, access } = running();
    const proxies = new Proxies(
      {
        clock,
        log,
        metrics,
        transports: proxyTransports(),
        local: (connection, proxy, connectTimeoutMs) => {
          const name = `proxy.${proxy}`;
          broker.accept(connection, { name, connectTimeoutMs, access: () => access.access(name) });
        },
        env: process.env,
      },
      options,
    );
    this.proxies = proxies;
    await proxies.start();
    return proxies;
  }
}
