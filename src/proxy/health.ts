// Active health checks: every interval each peer is dialled, and with type mqtt has to answer CONNECT with CONNACK 0.
// Owned by pool.ts, which is told when a peer changes sides. Peers start as healthy. Never throws; a check that hangs
// is cut by its timeout. Source: NGINX, ngx_stream_upstream_hc_module (interval, fails, passes); MQTT 3.1.1 sections
// 3.1, 3.2, 3.14.
import { randomBytes } from 'node:crypto';
import type { Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Cell } from '../base/metrics.ts';
import { newFrame } from '../codec/codec.ts';
import { decodeConnack, encodeConnect } from '../codec/connect.ts';
import { readFrame } from '../codec/frame.ts';
import { CONNACK, CONNECT } from '../mqtt/packet.ts';
import type { Connection } from '../transport/transport.ts';
import { UPSTREAM_METRICS as M } from './metrics.ts';
import { ownFault } from './ownfault.ts';
import type { Peer } from './peer.ts';
import type { HealthOptions, ProxyParts, UpstreamOptions } from './proxy.ts';

const DISCONNECT = Buffer.from([0xe0, 0]);
/** A CONNACK of 3.1.1 has four bytes; whoever sends more before it is no MQTT server. */
const LONGEST_ANSWER = 64;
/** Seconds; the probe is gone long before. */
const PROBE_KEEP_ALIVE = 10;
/** Checks of many peers are spread by up to this part of the interval. */
const JITTER = 0.1;

export interface Checked {
  readonly options: UpstreamOptions;
  dial(peer: Peer, timeoutMs: number, client: null): Promise<Connection>;
  healthChanged(peer: Peer, healthy: boolean, error: string | null): void;
}

interface Watch {
  timer: Timer | null;
  /** Equal outcomes in a row. */
  passes: number;
  fails: number;
  readonly clientId: string;
}

export class HealthCheck {
  private readonly pool: Checked;
  private readonly parts: ProxyParts;
  private readonly watched = new Map<Peer, Watch>();
  /** Client ids of two gateways that check one server must differ, and those of two peers that are one server. */
  private readonly prefix = `hc${randomBytes(5).toString('hex')}`;
  private made = 0;
  private options: HealthOptions | null = null;

  constructor(pool: Checked, parts: ProxyParts) {
    this.pool = pool;
    this.parts = parts;
  }

  /** Checks these peers from now on and no others; null = none. */
  watch(options: HealthOptions | null, peers: readonly Peer[]): void {
    this.options = options;
    if (options !== null) for (const result of ['passed', 'failed'] as const) this.count(result);
    const wanted = new Set(options === null ? [] : peers.filter((peer) => !peer.server.down));
    for (const [peer, watch] of this.watched) {
      if (wanted.has(peer)) continue;
      watch.timer?.cancel();
      this.watched.delete(peer);
      // Nobody would ever find out that it is well again.
      peer.healthy = true;
    }
    for (const peer of wanted) {
      if (this.watched.has(peer)) continue;
      const watch: Watch = { timer: null, passes: 0, fails: 0, clientId: `${this.prefix}${this.made++}` };
      this.watched.set(peer, watch);
      this.later(peer, watch, 0);
    }
  }

  stop(): void {
    this.watch(null, []);
  }

  private later(peer: Peer, watch: Watch, afterMs: number): void {
    watch.timer = this.parts.clock.after(afterMs, () => void this.check(peer, watch));
  }

  /** Never rejects. */
  private async check(peer: Peer, watch: Watch): Promise<void> {
    const { options } = this;
    if (options === null) return;
    let ours = false;
    const error = await this.probe(peer, watch, options).then(
      () => null,
      (failure: unknown) => {
        ours = ownFault(failure) !== null;
        return errorText(failure);
      },
    );
    if (this.watched.get(peer) !== watch) return;
    if (ours) {
      // Nothing was asked, nothing is known.
      this.later(peer, watch, options.intervalMs);
      return;
    }
    this.count(error === null ? 'passed' : 'failed').value++;
    watch.passes = error === null ? watch.passes + 1 : 0;
    watch.fails = error === null ? 0 : watch.fails + 1;
    if (!peer.healthy && watch.passes >= options.passes) this.pool.healthChanged(peer, true, null);
    else if (peer.healthy && watch.fails >= options.fails) this.pool.healthChanged(peer, false, error);
    this.later(peer, watch, options.intervalMs * (1 + JITTER * (Math.random() - 0.5)));
  }

  private count(result: 'passed' | 'failed'): Cell {
    return this.parts.metrics.cell(M.checks, { upstream: this.pool.options.name, result });
  }

  private async probe(peer: Peer, watch: Watch, options: HealthOptions): Promise<void> {
    const { clock } = this.parts;
    const untilMs = clock.mono() + options.timeoutMs;
    const connection = await this.pool.dial(peer, options.timeoutMs, null);
    if (options.type === 'tcp') connection.end();
    else {
      const deadline = (fn: () => void): Timer => clock.after(Math.max(1, untilMs - clock.mono()), fn);
      await askMqtt(connection, probeConnect(watch.clientId, options), options.anyConnack, deadline);
    }
  }
}

/** CONNECT, CONNACK 0, DISCONNECT. Rejects with what was wrong. */
function askMqtt(
  connection: Connection,
  connect: Buffer,
  anyConnack: boolean,
  deadline: (fn: () => void) => Timer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let got = Buffer.alloc(0);
    let done = false;
    const timer = deadline(() => over('no CONNACK in time'));
    const over = (wrong: string | null): void => {
      if (done) return;
      done = true;
      timer.cancel();
      if (wrong === null) {
        connection.write(DISCONNECT, () => {});
        connection.end();
        resolve();
      } else {
        connection.destroy();
        reject(new Error(wrong));
      }
    };
    connection.onClose(({ error }) => over(error ?? 'closed instead of answering'));
    connection.onEnd(() => over('closed instead of answering'));
    connection.onData((chunk) => {
      got = Buffer.concat([got, chunk.subarray(0, LONGEST_ANSWER)]);
      const verdict = judge(got, anyConnack);
      if (verdict !== 'more') over(verdict);
    });
    connection.write(connect, () => {});
  });
}

function probeConnect(clientId: string, { username, password }: HealthOptions): Buffer {
  return encodeConnect({
    type: CONNECT,
    version: 4,
    bridge: false,
    clientId,
    cleanStart: true,
    keepAlive: PROBE_KEEP_ALIVE,
    username,
    password: password === null ? null : Buffer.from(password),
    will: null,
    properties: null,
  });
}

/** null = a good answer. */
function judge(got: Buffer, anyConnack: boolean): string | null | 'more' {
  try {
    const frame = newFrame();
    if (readFrame(got, 0, got.length, frame, LONGEST_ANSWER) === 0) return 'more';
    if (frame.type !== CONNACK) return 'answered with something else than CONNACK';
    const { reasonCode } = decodeConnack(got, frame, 4);
    return reasonCode === 0 || anyConnack ? null : `CONNACK with return code ${reasonCode}`;
  } catch (error) {
    return errorText(error);
  }
}
