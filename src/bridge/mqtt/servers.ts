// The servers of a bridge to a remote broker: which one is tried, dialling it, and when the next attempt is. Made by
// bridge.ts, which is called back for each outcome. Knows nothing of MQTT.
import { errorText, GatewayError } from '../../base/errors.ts';
import type { Connection } from '../../transport/transport.ts';
import type { BridgeState, MqttBridgeOptions } from '../bridge.ts';
import { remoteTarget } from './connect.ts';
import type { MqttParts, Retry } from './options.ts';

export interface ServersUser {
  /** With the options that hold now. */
  readonly options: MqttBridgeOptions;
  dialled(connection: Connection): void;
  /** `error`: trying again will hardly help, for this server is not trusted or cannot be dialled. */
  undialled(state: 'retrying' | 'error', reason: string): void;
}

export class Servers {
  private readonly urls: readonly string[];
  private readonly dialOne: MqttParts['dial'];
  private readonly user: ServersUser;
  private readonly retry: Retry;
  /** Which of them is connected or tried. */
  private place = 0;
  private attempt: AbortController | null = null;
  private stopped = false;

  constructor(options: MqttBridgeOptions, parts: Pick<MqttParts, 'dial' | 'retry'>, user: ServersUser) {
    this.urls = [options.server, ...options.hybridServers];
    this.dialOne = parts.dial;
    this.retry = parts.retry(options.backoffMaxMs);
    this.user = user;
  }

  get current(): string {
    return this.urls[this.place];
  }

  dial(): void {
    if (this.stopped) return;
    const { current, user } = this;
    const target = remoteTarget(current, user.options);
    if (target === null) {
      user.undialled('error', `${current} is no server that can be dialled`);
      return;
    }
    const attempt = new AbortController();
    this.attempt = attempt;
    this.dialOne(target, user.options.cancelTimeoutMs, attempt.signal).then(
      (connection) => {
        this.attempt = null;
        if (this.stopped) connection.destroy();
        else user.dialled(connection);
      },
      (error: unknown) => {
        this.attempt = null;
        if (this.stopped) return;
        const distrusted = error instanceof GatewayError && error.code === 'TRANSPORT-TLS';
        const text = `${distrusted ? 'tls_verify_failed: ' : ''}${errorText(error)}`;
        user.undialled(distrusted ? 'error' : 'retrying', text);
      },
    );
  }

  /** Tries again later, the next server or after a connection that `served` the first one. Gives the time in ms. */
  again(served: boolean): number {
    this.place = served ? 0 : (this.place + 1) % this.urls.length;
    if (served) this.retry.reset();
    return Math.round(this.retry.schedule(() => this.dial()));
  }

  stop(): void {
    this.stopped = true;
    this.retry.cancel();
    this.attempt?.abort();
  }

  /** As status() shows them; `state` and `lastError` are those of the current one, `bound` its name when connected. */
  view(state: BridgeState, lastError: string | null, bound: string | null) {
    return this.urls.map((url, i) => {
      const isCurrent = i === this.place;
      return {
        url,
        state: isCurrent ? state : ('waiting' as const),
        bound: isCurrent ? bound : null,
        lastError: isCurrent ? lastError : null,
      };
    });
  }
}
