// What a gateway does because others share its broker through Redis: it takes what is retained, hears what the others
// publish and who comes to them, and catches up when Redis has been away. Opened by engine.ts when the configuration
// names a Redis.
import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { exceedsLevels, isTopicName } from '../../mqtt/topic.ts';
import type { ClientView } from '../broker.ts';
import { Elsewhere } from './elsewhere.ts';
import { IN_STEP, InStep } from './instep.ts';
import { REDIS_METRICS } from './metrics.ts';
import { tell } from './packets.ts';
import { type Aedes, type AedesPacket, MOST_LEVELS } from './parts.ts';
import { openShared, type SharedStore } from './redis.ts';
import { reserved } from './rights.ts';

/** How often sessions of other gateways are looked up. */
const LOOK_MS = 5000;

export interface SharingParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** For failures of Redis: at most one line a second. */
  readonly refusals: Log;
  /** Another gateway has published this. */
  readonly takeForeign: (packet: AedesPacket) => void;
  /** The client is at another gateway now. */
  readonly moved: (clientId: string) => void;
  /** Changes may have been missed, and are known now. */
  readonly caughtUp: () => void;
}

export class Sharing {
  readonly store: SharedStore;
  private readonly parts: SharingParts;
  private readonly elsewhere = new Elsewhere();
  private inStep: InStep | null = null;
  private timer: Timer | null = null;

  private constructor(store: SharedStore, parts: SharingParts) {
    this.store = store;
    this.parts = parts;
  }

  /** Throws BROKER-ENGINE when Redis cannot be reached. @param keepSeconds of queued messages, 0 = for ever */
  static async open(url: string, keepSeconds: number, parts: SharingParts): Promise<Sharing> {
    const { log, metrics, clock } = parts;
    let sharing: Sharing | null = null;
    const store = await openShared({
      url,
      keepSeconds,
      onLost: () => sharing?.inStep?.lost(),
      onReady: () => void sharing?.inStep?.catchUp(),
      log,
      metrics,
      mono: () => clock.mono(),
    });
    sharing = new Sharing(store, parts);
    return sharing;
  }

  /** Everything that the others have told is known here. */
  get isInStep(): boolean {
    return this.inStep?.now !== false;
  }

  /** Clients of other gateways. */
  clients(here: (clientId: string) => boolean): Iterable<ClientView> {
    return this.elsewhere.views(here);
  }

  /** Takes what is retained, and from now on what the others publish. */
  async join(aedes: Aedes): Promise<void> {
    const { clock, log, metrics, caughtUp } = this.parts;
    this.inStep = new InStep({
      clock,
      log,
      ready: () => this.store.ready(),
      clients: () => this.store.clients(),
      subscriptions: (id) => aedes.persistence.subscriptionsByClient({ id }),
      tell: (topic, payload) => tell(aedes, topic, Buffer.from(payload)),
      onReturn: caughtUp,
    });
    metrics.read(REDIS_METRICS.inStep, () => (this.isInStep ? 1 : 0));
    this.timer = clock.every(LOOK_MS, () => void this.look());
    await this.look();
    await new Promise<void>((resolve) => {
      const hear = (packet: AedesPacket, done: () => void): void => {
        try {
          this.heard(aedes, packet);
        } catch (error) {
          this.parts.refusals('error', 'BRK-SHARE', { error: errorText(error) });
        }
        done();
      };
      aedes.mq.on('#', hear, resolve);
    });
    for await (const packet of aedes.persistence.createRetainedStream('#')) {
      const kept = packet as AedesPacket;
      if (isTopicName(kept.topic) && !kept.topic.startsWith('$SYS/')) this.parts.takeForeign(kept);
    }
  }

  /** Looks at the others no more. */
  rest(): void {
    this.timer?.cancel();
  }

  close(): void {
    this.rest();
    this.inStep?.stop();
    this.store.close();
  }

  private async look(): Promise<void> {
    try {
      this.elsewhere.refresh(await this.store.clients());
    } catch {
      // Redis is away: what was known before is shown.
    }
  }

  private heard(aedes: Aedes, packet: AedesPacket): void {
    const { topic, payload } = packet;
    if (topic === IN_STEP) this.inStep?.heard(payload.toString());
    if (packet.brokerId === aedes.id || typeof topic !== 'string') return;
    if (reserved(topic)) {
      this.elsewhere.heard(topic, payload.toString());
      if (topic.endsWith('/new/clients')) this.parts.moved(payload.toString());
      return;
    }
    if (isTopicName(topic) && !exceedsLevels(topic, MOST_LEVELS)) this.parts.takeForeign(packet);
  }
}
