// Clients inside the process: bridges, REST. They publish and subscribe like any other, without bytes, sessions or packet ids.
// Made by native.ts (attach). Each subscription is a receiver of its own, so every rule that matches gets the message, in order.
import type { Access, Identity } from '../auth/auth.ts';
import type { Receiver, Target } from '../delivery/delivery.ts';
import { type Hold, type Origin, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { Route } from '../router/router.ts';
import type { Core } from '../session/session.ts';
import type { LocalClient, LocalOptions, LocalSubscription, PublishOutcome, Source } from './broker.ts';

/** One subscription of a local client as the router sees it. Bridges need no read right: their rules are the operator's word. */
class LocalTarget implements Receiver {
  readonly clientId: string;
  readonly online = true;
  readonly ready = true;
  private readonly subscription: LocalSubscription;

  constructor(clientId: string, subscription: LocalSubscription) {
    this.clientId = clientId;
    this.subscription = subscription;
  }

  mayReceive(): boolean {
    return true;
  }

  deliver(publication: Publication, target: Target): void {
    this.subscription.receiver.receive(publication, publication.qos < target.qos ? publication.qos : target.qos);
  }

  deliverRun(publication: Publication, _target: Target, start: number, end: number): void {
    const { receiver } = this.subscription;
    for (let at = start; at < end; ) {
      at = publication.step(at);
      receiver.receive(publication, 0);
    }
  }
}

/** Topics remembered with route and verdict; a bridge mostly publishes to few. */
const TOPICS = 1000;

interface KnownTopic {
  readonly utf8: Uint8Array;
  route: Route;
  allowed: boolean | null;
}

export class NativeLocalClient implements LocalClient {
  private readonly core: Core;
  private readonly options: LocalOptions;
  private readonly access: () => Access;
  private readonly identity: Identity;
  private readonly publication: Publication;
  private readonly targets = new Map<LocalSubscription, LocalTarget>();
  private readonly topics = new Map<string, KnownTopic>();
  private verdictVersion = -1;
  private readonly onClose: () => void;

  constructor(core: Core, options: LocalOptions, access: () => Access, onClose: () => void) {
    this.core = core;
    this.options = options;
    this.access = access;
    this.onClose = onClose;
    this.identity = {
      clientId: options.clientId,
      username: options.username,
      remoteAddress: '',
      listener: '',
      claims: null,
      internal: true,
    };
    const origin: Origin = {
      kind: options.kind,
      clientId: options.clientId,
      username: options.username,
      bridge: options.bridge,
    };
    this.publication = new Publication(origin);
  }

  subscribe(subscription: LocalSubscription): void {
    const target = new LocalTarget(this.options.clientId, subscription);
    this.targets.set(subscription, target);
    this.core.router.subscribe({
      topicFilter: subscription.topicFilter,
      filter: subscription.topicFilter,
      shareName: null,
      qos: subscription.qos,
      noLocal: false,
      retainAsPublished: true,
      retainHandling: subscription.retainHandling,
      subscriptionIdentifier: 0,
      receiver: target,
    });
    if (subscription.retainHandling === 0) this.receiveRetained(subscription);
  }

  unsubscribe(subscription: LocalSubscription): void {
    const target = this.targets.get(subscription);
    if (target === undefined) return;
    this.targets.delete(subscription);
    this.core.router.unsubscribe(target, subscription.topicFilter);
  }

  publish(
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    retain: boolean,
    properties: Properties | null = null,
  ): PublishOutcome {
    const known = this.find(topic, qos, retain);
    if (known === null) return 'invalid-topic';
    if (known.allowed === null) return 'denied';
    if (!known.allowed) {
      this.core.stats.deniedPublish++;
      return 'denied';
    }
    const { core, publication } = this;
    if (known.route.version !== core.router.version) known.route = core.router.route(topic);
    publication.reset();
    publication.topic = topic;
    publication.topicUtf8 = known.utf8;
    publication.qos = qos > core.limits.maxQos ? core.limits.maxQos : qos;
    publication.retain = retain;
    publication.properties = properties;
    const expiry = properties?.messageExpiryInterval;
    if (expiry !== undefined) publication.expiresAt = core.clock.now() + expiry * 1000;
    publication.buffer = bytes;
    publication.payloadStart = start;
    publication.payloadEnd = end;
    const receivers = core.router.publish(publication, known.route);
    if (publication.stored) core.journal.barrier(publication.hold());
    return receivers > 0 ? 'accepted' : 'no-subscribers';
  }

  lastHold(): Hold | null {
    return this.publication.held;
  }

  relieve(source: Source): void {
    const { budget } = this.core;
    if (budget.exceeded) budget.hold(source);
  }

  relieved(source: Source): void {
    this.core.budget.release(source);
  }

  close(): void {
    for (const subscription of [...this.targets.keys()]) this.unsubscribe(subscription);
    this.onClose();
  }

  // ---- inside

  private find(topic: string, qos: Qos, retain: boolean): KnownTopic | null {
    const authorizer = this.access().authorizer;
    if (authorizer.version !== this.verdictVersion) {
      this.topics.clear();
      this.verdictVersion = authorizer.version;
    }
    const known = this.topics.get(topic);
    if (known !== undefined) return known;
    const most = this.core.limits.maxTopicLevels;
    if (!isTopicName(topic) || (most > 0 && exceedsLevels(topic, most))) return null;
    if (this.topics.size >= TOPICS) this.topics.clear();
    const verdict = this.options.trusted || authorizer.publish(this.identity, topic, qos, retain);
    const made: KnownTopic = {
      utf8: Buffer.from(topic),
      route: this.core.router.route(topic),
      allowed: typeof verdict === 'boolean' ? verdict : null,
    };
    this.topics.set(topic, made);
    // A remote source of rights answers later: what comes until then is refused, not let through.
    if (typeof verdict !== 'boolean') void verdict.then((allowed) => (made.allowed = allowed));
    return made;
  }

  private receiveRetained(subscription: LocalSubscription): void {
    const messages = this.core.router.retained(subscription.topicFilter);
    const view = new Publication(this.publication.origin);
    const now = this.core.clock.now();
    for (let step = messages.next(); step.done !== true; step = messages.next()) {
      const message = step.value;
      if (message.expiresAt > 0 && message.expiresAt <= now) continue;
      view.load(message);
      subscription.receiver.receive(view, message.qos < subscription.qos ? message.qos : subscription.qos);
    }
  }
}
