// Clients inside the process: bridges, REST. They publish and subscribe like any other, without bytes, sessions or
// packet ids. Made by broker/base.ts (attach). Each subscription is a receiver of its own, so every rule that
// matches gets the message, in order.
import type { Access, Identity } from '../auth/auth.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Flushable } from '../base/turn.ts';
import { type Hold, type Origin, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { SUCCESS } from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { Policies, TopicPlan } from '../policy/policy.ts';
import type { Route } from '../router/router.ts';
import { checkPayload, DROPPED } from '../session/payloads.ts';
import type { Core } from '../session/session.ts';
import { Batch } from './batch.ts';
import type { LocalClient, LocalOptions, LocalSubscription, PublishOutcome, Source } from './broker.ts';
import { LocalTarget } from './localtarget.ts';

/** Topics remembered with route and verdict. */
const TOPICS = 4096;

interface LocalTopic {
  readonly utf8: Uint8Array;
  route: Route;
  allowed: boolean | null;
  /** Where a publish on it is not an ordinary one: `allowed` is then null, and `may` says what rights say. */
  readonly plan: TopicPlan | null;
  may: boolean | null;
}

/** A denial is told this often, and shown as long. */
const DENIED_MS = 60_000;

export class NativeLocalClient implements LocalClient, Flushable {
  dirty = false;
  private readonly core: Core;
  private readonly options: LocalOptions;
  private readonly access: () => Access;
  private readonly identity: Identity;
  private readonly publication: Publication;
  private readonly targets = new Map<LocalSubscription, LocalTarget>();
  private readonly topics = new Map<string, LocalTopic>();
  private verdictVersion = -1;
  private policies: Policies | null = null;
  private readonly batch = new Batch();
  /** The last topic in the batch, and the way that all of it goes. */
  private batched: LocalTopic | null = null;
  private way: Route | null = null;
  private mixed = false;
  /** What of the batch has been counted by topic. */
  private countedMessages = 0;
  private countedBytes = 0;
  private batchedTopic = '';
  private batchedOutcome: PublishOutcome = 'accepted';
  private readonly onClose: () => void;
  private readonly warn: Log;
  private lastDenied: string | null = null;
  private lastDeniedMs = Number.NEGATIVE_INFINITY;

  constructor(core: Core, options: LocalOptions, access: () => Access, onClose: () => void) {
    this.core = core;
    this.options = options;
    this.access = access;
    this.onClose = onClose;
    this.warn = limitLog(core.log, () => core.clock.mono(), DENIED_MS);
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
    const target = new LocalTarget(this.options, subscription);
    if (this.options.kind === 'bridge' && !this.targets.has(subscription)) this.core.intake.bridge(1);
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
    if (this.options.kind === 'bridge') this.core.intake.bridge(-1);
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
    if (known.allowed !== true) {
      if (known.plan === null) return this.denied(known);
      this.flush();
      return this.unusual(known.plan, known, this.read(known, bytes, start, end, qos, retain, properties));
    }
    const { core } = this;
    this.flush();
    if (known.route.version !== core.router.version) known.route = core.router.route(topic);
    const publication = this.read(known, bytes, start, end, qos, retain, properties);
    const receivers = core.router.publish(publication, known.route);
    if (publication.stored) core.journal.barrier(publication.hold());
    return receivers > 0 ? 'accepted' : 'no-subscribers';
  }

  private read(
    known: LocalTopic,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    retain: boolean,
    properties: Properties | null,
  ): Publication {
    const { core, publication } = this;
    publication.reset();
    publication.topic = known.route.topic;
    publication.topicUtf8 = known.utf8;
    publication.qos = qos > core.limits.maxQos ? core.limits.maxQos : qos;
    publication.retain = retain;
    publication.properties = properties;
    const expiry = properties?.messageExpiryInterval;
    if (expiry !== undefined) publication.expiresAt = core.clock.steady() + expiry * 1000;
    publication.buffer = bytes;
    publication.payloadStart = start;
    publication.payloadEnd = end;
    return publication;
  }

  /** A publish on a topic that is delayed or checked. */
  private unusual(plan: TopicPlan, known: LocalTopic, publication: Publication): PublishOutcome {
    const { core } = this;
    if (plan.refusal !== 0) return 'invalid-topic';
    if (known.may !== true) return this.denied({ ...known, allowed: known.may });
    const code = checkPayload(plan, publication);
    if (code !== SUCCESS) return code === DROPPED ? 'no-subscribers' : 'refused';
    if (plan.delaySeconds > 0) {
      const taken = core.delayed.put(publication, plan.delaySeconds);
      if (publication.stored) core.journal.barrier(publication.hold());
      return taken === SUCCESS ? 'accepted' : 'refused';
    }
    if (known.route.version !== core.router.version) known.route = core.router.route(plan.topic);
    const receivers = core.router.publish(publication, known.route);
    if (publication.stored) core.journal.barrier(publication.hold());
    return receivers > 0 ? 'accepted' : 'no-subscribers';
  }

  publishSoon(topic: string, bytes: Uint8Array, start: number, end: number, count = 1, stride = 0): PublishOutcome {
    const { batch } = this;
    let outcome: PublishOutcome = 'accepted';
    for (let i = 0; i < count; ) {
      const at = start + i * stride;
      outcome = this.publishOne(topic, bytes, at, end + i * stride);
      i++;
      // The first one has settled everything; the others are only bytes, as long as there is room for them.
      if (i < count && this.batched !== null) i += batch.addMany(bytes, at + stride, end - start, stride, count - i);
    }
    return outcome;
  }

  private publishOne(topic: string, bytes: Uint8Array, start: number, end: number): PublishOutcome {
    const { batch, core } = this;
    // The topic of the one before, within the same turn: nothing has changed.
    if (topic === this.batchedTopic && batch.count > 0 && this.batched !== null) {
      if (batch.add(this.batched.utf8, bytes, start, end)) return this.batchedOutcome;
    }
    const known = this.find(topic, 0, false);
    if (known === null) return 'invalid-topic';
    if (known.allowed !== true)
      return known.plan === null ? this.denied(known) : this.publish(topic, bytes, start, end, 0, false);
    if (known.route.version !== core.router.version) known.route = core.router.route(topic);
    this.turnTo(known);
    if (!batch.add(known.utf8, bytes, start, end)) {
      this.flush();
      if (!batch.add(known.utf8, bytes, start, end)) return this.publish(topic, bytes, start, end, 0, false);
      this.batched = known;
      this.way = known.route;
    }
    if (!this.dirty) core.turn.touch(this);
    this.batchedTopic = topic;
    this.batchedOutcome = known.route.targets.length + known.route.groups.length > 0 ? 'accepted' : 'no-subscribers';
    return this.batchedOutcome;
  }

  /** The batch goes on with this topic, or is delivered where it goes another way. */
  private turnTo(known: LocalTopic): void {
    const { batch, batched, way } = this;
    if (batched === known) return;
    const { route } = known;
    const joins = batched !== null && way !== null && way.version === route.version && way.targets === route.targets;
    if (joins && way.groups.length + route.groups.length === 0) {
      this.settle(batched.route);
      this.mixed = true;
      batch.turn();
    } else {
      this.flush();
      this.way = route;
    }
    this.batched = known;
  }

  private settle({ count }: Route): void {
    const { batch } = this;
    count.messages += batch.count - this.countedMessages;
    count.bytes += batch.payloadBytes - this.countedBytes;
    this.countedMessages = batch.count;
    this.countedBytes = batch.payloadBytes;
  }

  /** Delivers what publishSoon() has gathered; called by the turn. */
  flush(): void {
    const { batch, batched: known, core, publication, mixed, way } = this;
    this.batched = null;
    this.mixed = false;
    if (known === null || way === null || batch.count === 0) return;
    const { router } = core;
    this.settle(known.route);
    publication.reset();
    publication.topic = known.route.topic;
    publication.topicUtf8 = mixed ? null : known.utf8;
    publication.names = mixed ? router.known : null;
    publication.qos = 0;
    publication.retain = false;
    publication.buffer = batch.buffer;
    publication.wireVersion = 4;
    publication.step(0);
    if (mixed && way.version !== router.version) this.flushEach();
    else {
      const route = way.version === router.version ? way : router.route(way.topic);
      router.publishRun(publication, route, 0, batch.bytes, batch.count, batch.longest);
    }
    this.countedMessages = 0;
    this.countedBytes = 0;
    batch.clear();
  }

  /** Subscriptions have changed since the topics were found to go the same way. */
  private flushEach(): void {
    const { batch, publication, core } = this;
    const { router } = core;
    for (let at = 0; at < batch.bytes; ) {
      const start = at;
      at = publication.step(start);
      router.publishRun(publication, router.route(publication.topic), start, at, 1, at - start);
    }
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
    this.flush();
    for (const subscription of [...this.targets.keys()]) this.unsubscribe(subscription);
    this.onClose();
  }

  // ---- inside

  private denied(known: LocalTopic): PublishOutcome {
    // While a remote source of rights has not answered nobody has refused it either.
    if (known.allowed === false) {
      this.core.stats.deniedPublish++;
      const { topic } = known.route;
      this.lastDenied = topic;
      this.lastDeniedMs = this.core.clock.mono();
      const { clientId, username, bridge } = this.options;
      this.warn('warn', 'BRG-DENIED', { bridge, clientId, username, topic });
    }
    return 'denied';
  }

  deniedTopic(): string | null {
    return this.core.clock.mono() - this.lastDeniedMs < DENIED_MS ? this.lastDenied : null;
  }

  private find(topic: string, qos: Qos, retain: boolean): LocalTopic | null {
    const authorizer = this.access().authorizer;
    if (authorizer.version !== this.verdictVersion || this.policies !== this.core.policies) {
      this.topics.clear();
      this.verdictVersion = authorizer.version;
      this.policies = this.core.policies;
    }
    const known = this.topics.get(topic);
    return known === undefined ? this.meet(topic, qos, retain) : known;
  }

  /** A topic that is new here. */
  private meet(asked: string, qos: Qos, retain: boolean): LocalTopic | null {
    const { router, limits, policies } = this.core;
    const { authorizer } = this.access();
    const most = limits.maxTopicLevels;
    if (!isTopicName(asked) || (most > 0 && exceedsLevels(asked, most))) return null;
    if (this.topics.size >= TOPICS) this.topics.clear();
    const plan = policies?.planInside(asked) ?? null;
    const topic = plan?.topic ?? asked;
    const utf8 = Buffer.from(topic);
    // Runs of several topics are taken apart by their bytes.
    if (router.known.find(utf8, 0, utf8.length, null) === null) router.known.add(topic, utf8, 0, utf8.length);
    const verdict = this.options.trusted || authorizer.publish(this.identity, topic, qos, retain);
    const may = typeof verdict === 'boolean' ? verdict : null;
    const made: LocalTopic = { utf8, route: router.route(topic), allowed: plan === null ? may : null, plan, may };
    this.topics.set(asked, made);
    // A remote source of rights answers later: what comes until then is refused, not let through.
    if (typeof verdict !== 'boolean') {
      verdict.then(
        (allowed) => {
          made.may = allowed;
          if (plan === null) made.allowed = allowed;
        },
        // Nobody could say: the next message asks again.
        () => this.topics.delete(asked),
      );
    }
    return made;
  }

  private receiveRetained(subscription: LocalSubscription): void {
    const messages = this.core.router.retained(subscription.topicFilter);
    const view = new Publication(this.publication.origin);
    const now = this.core.clock.steady();
    for (let step = messages.next(); step.done !== true; step = messages.next()) {
      const message = step.value;
      if (message.expiresAt > 0 && message.expiresAt <= now) continue;
      view.load(message);
      subscription.receiver.receive(view, message.qos < subscription.qos ? message.qos : subscription.qos);
    }
  }
}
