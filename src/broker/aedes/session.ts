// One session of the engine aedes as the router sees it: its subscriptions, its rights, and how a message goes to the
// client that aedes serves. aedes bounds none of this, so what a slow reader leaves is counted here and dropped here.
// Built by engine.ts.
import type { Identity } from '../../auth/auth.ts';
import type { DeliveryStats, OutboxLimits, Receiver, Target } from '../../delivery/delivery.ts';
import type { Origin, Publication } from '../../mqtt/message.ts';
import type { Qos, SubscriptionRequest, Version } from '../../mqtt/packet.ts';
import { matches } from '../../mqtt/topic.ts';
import { originOf, sameArrival } from '../../session/origin.ts';
import type { ClientView } from '../broker.ts';
import type { Front } from './front.ts';
import type { AedesClient, AedesPacket } from './parts.ts';

export interface SessionParts {
  readonly stats: DeliveryStats;
  readonly limits: () => OutboxLimits;
  readonly mayReceive: (session: AedesSession, topic: string) => boolean;
  /** The packet of a publication that is delivered at QoS 0: made once for all. */
  readonly packet: (publication: Publication) => AedesPacket;
  /** The same for one of a run. */
  readonly fresh: (publication: Publication) => AedesPacket;
  /** The session takes this message at QoS 1 or 2: it is delivered once it is stored where it has to be. */
  readonly later: (session: AedesSession, qos: Qos) => void;
  readonly onTrouble: (session: AedesSession, reason: 'queue-full' | 'slow') => void;
}

export class AedesSession implements Receiver {
  readonly clientId: string;
  identity: Identity;
  /** Of its messages. */
  origin: Origin;
  client: AedesClient | null = null;
  front: Front | null = null;
  clean = true;
  version: Version = 4;
  keepAlive = 0;
  remote = '';
  listener = '';
  /** Wall-clock milliseconds of the last connect or disconnect. */
  since = 0;
  willTopic: string | null = null;
  /** It is a bridge by the bit in its CONNECT: its own messages do not come back. */
  bridge = false;
  announced = false;
  readonly subscriptions = new Map<string, SubscriptionRequest>();
  /** Messages in its stored queue, delivered and not acknowledged ones included, as far as this gateway knows. */
  stored = 0;
  inflight = 0;
  unsentBytes = 0;
  messagesIn = 0;
  messagesOut = 0;
  dropped = 0;
  lastError: string | null = null;
  private troubled = false;
  private readonly parts: SessionParts;

  constructor(clientId: string, identity: Identity, parts: SessionParts) {
    this.clientId = clientId;
    this.identity = identity;
    this.origin = originOf(identity);
    this.parts = parts;
  }

  /** Another connection of its user. */
  adopt(identity: Identity): void {
    if (!sameArrival(this.identity, identity)) this.origin = originOf(identity);
    this.identity = identity;
  }

  get kept(): boolean {
    return !this.clean;
  }

  /** Whether a client may continue this session: it is that of the same user, of the same realm. */
  isFor({ username, realm = '' }: Identity): boolean {
    return this.identity.username === username && (this.identity.realm ?? '') === realm;
  }

  get online(): boolean {
    return this.client !== null;
  }

  get ready(): boolean {
    return this.client !== null;
  }

  /** Not in the gateway's own store. */
  get stores(): boolean {
    return false;
  }

  mayReceive(topic: string): boolean {
    return this.parts.mayReceive(this, topic);
  }

  /** The highest QoS of the subscriptions that match, -1 = none does [MQTT-3.3.5-1]. */
  qosOf(topic: string): number {
    let qos = -1;
    for (const subscription of this.subscriptions.values())
      if (subscription.qos > qos && matches(subscription.topicFilter, topic)) qos = subscription.qos;
    return qos;
  }

  deliver(publication: Publication, target: Target): void {
    const qos = publication.qos < target.qos ? publication.qos : target.qos;
    if (qos > 0) this.parts.later(this, qos);
    else this.now(this.parts.packet(publication));
  }

  deliverRun(publication: Publication, _target: Target, start: number, end: number): void {
    for (let at = start; at < end; ) {
      at = publication.step(at);
      this.now(this.parts.fresh(publication));
    }
  }

  /** Sends at QoS 1 or 2 what is stored if it has to be. */
  send(packet: AedesPacket): void {
    const { client } = this;
    if (client === null) return;
    const { inflight, queueLength } = this.parts.limits();
    // Of a session that ends with its connection nothing is kept anywhere else.
    if (client.clean && queueLength > 0 && this.inflight >= inflight + queueLength) {
      this.parts.stats.droppedQueueFull++;
      this.drop('queue-full');
      return;
    }
    this.inflight++;
    this.pass(client, packet);
  }

  acknowledged(): void {
    if (this.inflight > 0) this.inflight--;
    if (this.stored > 0) this.stored--;
  }

  drop(reason: 'queue-full' | 'slow'): void {
    this.dropped++;
    if (this.troubled) return;
    this.troubled = true;
    this.parts.onTrouble(this, reason);
  }

  view(): ClientView {
    return {
      clientId: this.clientId,
      username: this.identity.username,
      connected: this.client !== null,
      remote: this.remote,
      listener: this.listener,
      version: this.version,
      cleanStart: this.clean,
      keepAlive: this.keepAlive,
      since: this.since,
      sessionExpiryInterval: this.clean ? 0 : 0xffffffff,
      subscriptions: this.subscriptions.size,
      inflight: this.inflight,
      queued: this.client === null ? this.stored : Math.max(0, this.stored - this.inflight),
      queuedBytes: 0,
      unsentBytes: this.unsentBytes,
      messagesIn: this.messagesIn,
      messagesOut: this.messagesOut,
      dropped: this.dropped,
      willTopic: this.willTopic,
      lastError: this.lastError,
    };
  }

  // ---- inside

  private now(packet: AedesPacket): void {
    const { client } = this;
    const { stats, limits } = this.parts;
    if (client === null) {
      stats.droppedOffline++;
      return;
    }
    const { writeBuffer } = limits();
    if (writeBuffer > 0 && this.unsentBytes > writeBuffer) {
      stats.droppedSlow++;
      this.drop('slow');
      return;
    }
    this.pass(client, packet);
  }

  private pass(client: AedesClient, packet: AedesPacket): void {
    const bytes = packet.payload.length + packet.topic.length + 8;
    const { stats } = this.parts;
    this.unsentBytes += bytes;
    stats.queuedBytes += bytes;
    stats.queuedMessages++;
    stats.sent++;
    stats.sentBytes += bytes;
    this.messagesOut++;
    const done = (): void => {
      this.unsentBytes -= bytes;
      stats.queuedBytes -= bytes;
      stats.queuedMessages--;
      if (this.unsentBytes === 0) this.troubled = false;
    };
    if (packet.qos === 0) client.deliver0(packet, done);
    else client.deliverQoS(packet, done);
  }
}
