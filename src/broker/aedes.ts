// The second engine behind the seam broker.ts: aedes 1.x serves the clients (MQTT 3.1 and 3.1.1), with Redis for several gateways at once.
// Built by gateway.ts when broker.engine = aedes. aedes speaks the protocol; who comes in, what they may do, where messages go and how much
// of anything is kept is decided here and in the files aedes*.ts beside it.
//
//   connection -> aedesfront (CONNECT, sizes) -> aedes -> authorizePublish -> aedesrouter -> receivers in this process
//                                                                                \-> aedesrelay -> stored queues, other gateways, clients
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Access, Identity } from '../auth/auth.ts';
import type { Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import { newDeliveryStats } from '../delivery/delivery.ts';
import { Outbox } from '../delivery/outbox.ts';
import type { Message, Origin, Publication } from '../mqtt/message.ts';
import { Publication as View } from '../mqtt/message.ts';
import type { ConnectPacket } from '../mqtt/packet.ts';
import { SERVER_UNAVAILABLE as UNAVAILABLE } from '../mqtt/reason.ts';
import { exceedsLevels, hasWildcard, isShared, isTopicFilter, isTopicName } from '../mqtt/topic.ts';
import { COUNTED_TOPICS, WINDOW_MS } from '../router/topics.ts';
import { Budget } from '../session/budget.ts';
import { Caps } from '../session/caps.ts';
import { checkLimits, credentialsOf, type Refusal } from '../session/connect.ts';
import { Contests } from '../session/contest.ts';
import { Held } from '../session/held.ts';
import { type Core, newSessionStats, type SessionLimits } from '../session/session.ts';
import type { Journal } from '../store/store.ts';
import type { Connection } from '../transport/transport.ts';
import { Admission } from './admission.ts';
import { Front } from './aedesfront.ts';
import {
  type Aedes,
  type AedesClient,
  type AedesPacket,
  type AedesSubscription,
  type Callback,
  loadAedes,
} from './aedesparts.ts';
import { openShared, type SharedStore } from './aedesredis.ts';
import { Relay } from './aedesrelay.ts';
import { AedesRouter, type Later } from './aedesrouter.ts';
import { AedesSession, type SessionParts } from './aedessession.ts';
import type {
  BrokerEvent,
  ClientView,
  Engine,
  ListenerContext,
  LocalClient,
  LocalOptions,
  SubscriptionView,
  TopicTraffic,
} from './broker.ts';
import { NativeLocalClient } from './local.ts';
import { declareBrokerMetrics } from './metrics.ts';
import type { NativeBrokerOptions } from './native.ts';
import { SysTree } from './sys.ts';

/** aedes and its persistence match topics of so many levels at most. */
const MOST_LEVELS = 100;
const SWEEP_MS = 1000;
const EXPIRY_MS = 60_000;
/** Return codes of CONNACK, 3.1.1 section 3.2.2.3. */
const SERVER_UNAVAILABLE = 3;
const REFUSED = 5;

export interface AedesBrokerOptions extends Omit<NativeBrokerOptions, 'pool'> {
  /** null = this gateway alone, in memory. */
  readonly redis: string | null;
}

/** Remembers no duplicates: the order of delivery is kept by aedesrelay.ts, and QoS 0 may overtake what is being stored. */
const NO_DUPLICATES = new Proxy(Object.freeze(Object.create(null) as object), {
  get: () => undefined,
  set: () => true,
  deleteProperty: () => true,
});

function withLimits(limits: SessionLimits): SessionLimits {
  const { maxTopicLevels } = limits;
  return { ...limits, maxTopicLevels: maxTopicLevels === 0 ? MOST_LEVELS : Math.min(maxTopicLevels, MOST_LEVELS) };
}

function refusal(returnCode: number, text: string): Error {
  return Object.assign(new Error(text), { returnCode });
}

export class AedesBroker implements Engine {
  readonly journal: Journal;
  readonly spools = new Map();
  private readonly options: AedesBrokerOptions;
  private readonly core: Core & { readonly router: AedesRouter };
  private readonly handlers = new Set<(event: BrokerEvent) => void>();
  private readonly sessions = new Map<string, AedesSession>();
  private readonly fronts = new Set<Front>();
  private readonly handled = new WeakSet<AedesPacket>();
  private readonly admission: Admission;
  private readonly refusals: Log;
  private readonly queueLog: Log;
  private readonly sys: SysTree;
  private readonly timers: Timer[] = [];
  private readonly sessionParts: SessionParts;
  private aedes: Aedes | null = null;
  private relay: Relay | null = null;
  private shared: SharedStore | null = null;
  private stopping = false;

  constructor(options: AedesBrokerOptions) {
    this.options = options;
    // One that keeps nothing: config/engine.ts refuses another.
    this.journal = options.journal;
    const { clock, log, journal } = options;
    const delivery = newDeliveryStats();
    const budget = new Budget(clock, log, () => delivery.queuedBytes);
    budget.limit = options.limits.memoryBudget;
    const caps = new Caps(log, () => clock.mono());
    const router = new AedesRouter(journal, clock, (publication) => this.packetOf(publication));
    router.retainedLimits = options.limits.retained;
    router.onRetainedRefused = (clientId, topic) => caps.refused('retained', clientId, topic);
    router.onward = (publication, later) => this.onward(publication, later);
    this.core = {
      clock,
      turn: options.turn,
      pool: { usedBytes: 0 } as Core['pool'],
      log,
      journal,
      router,
      limits: withLimits(options.limits),
      stats: newSessionStats(),
      delivery,
      budget,
      held: new Held(),
      caps,
      contests: new Contests(),
      makeOutbox: (outbox, resumable) => new Outbox(outbox, resumable),
      emit: (event) => this.emit(event),
    };
    this.admission = new Admission(clock);
    this.refusals = limitLog(log, () => clock.mono(), 1000);
    this.queueLog = limitLog(log, () => clock.mono(), 10_000);
    this.sessionParts = {
      stats: delivery,
      limits: () => this.core.limits.outbox,
      mayReceive: (session, topic) => this.accessOf(session).authorizer.deliver(session.identity, topic),
      packet: router.packet,
      fresh: (publication) => this.packetOf(publication),
      later: router.later,
      onTrouble: (session, reason) => this.trouble(session, reason),
    };
    const counts = (): { total: number; connected: number } => ({
      total: this.sessions.size,
      connected: this.core.stats.connected,
    });
    declareBrokerMetrics(options.metrics, this.core, counts);
    this.sys = new SysTree(this.core, options.sys, counts);
    this.handlers.add((event) => this.sys.clientStatus(event));
  }

  /** Throws BROKER-ENGINE when a package is missing or Redis cannot be reached. */
  async start(): Promise<void> {
    const { clock, redis, log, metrics } = this.options;
    const { router } = this.core;
    const constructed = await loadAedes();
    if (redis !== null) this.shared = await this.openRedis(redis);
    const { limits } = this.core;
    const aedes = new constructed({
      id: randomUUID(),
      ...(this.shared === null ? {} : { mq: this.shared.emitter, persistence: this.shared.persistence }),
      concurrency: 0,
      // The front has its own.
      connectTimeout: 0x7fffffff,
      drainTimeout: limits.sendTimeoutMs,
      maxClientsIdLength: 65_535,
      maxTopicLevels: MOST_LEVELS,
      maxInflightInbound: limits.maxAwaitingRel,
      authenticate: (client, _username, _password, done) => this.authenticate(client, done),
      authorizePublish: (client, packet, done) => this.authorizePublish(client, packet, done),
      authorizeSubscribe: (client, subscription, done) => this.authorizeSubscribe(client, subscription, done),
      authorizeForward: (client, packet) => this.authorizeForward(client, packet),
    });
    this.aedes = aedes;
    this.listenTo(aedes);
    await aedes.listen();
    this.wrapPersistence(aedes);
    router.sharing = this.shared !== null;
    this.relay = new Relay({
      aedes,
      stats: this.core.delivery,
      limits: () => this.core.limits.outbox,
      session: (clientId) => this.sessions.get(clientId),
      queueLength: (clientId) => this.shared?.queueLength(clientId) ?? this.sessions.get(clientId)?.stored ?? 0,
      shared: this.shared !== null,
      log,
      mono: () => clock.mono(),
    });
    const { relay } = this;
    metrics.read(
      {
        name: 'tidegate_publish_unshared_total',
        text: 'Messages that other gateways of the shared broker were not told: Redis was away',
        type: 'counter',
        unit: 'messages',
      },
      () => relay.unshared,
    );
    if (this.shared !== null) await this.join(aedes);
    this.sys.start();
    this.timers.push(clock.every(SWEEP_MS, () => router.sweep()));
    this.timers.push(clock.every(WINDOW_MS, () => router.turnTopics()));
    this.timers.push(clock.every(EXPIRY_MS, () => this.expire()));
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    for (const timer of this.timers) timer.cancel();
    this.sys.stop();
    for (const front of [...this.fronts]) front.refuse('the server is shutting down');
    const { aedes } = this;
    if (aedes !== null) {
      let timer: Timer | null = null;
      // Redis may be away: quitting it must not hold the stop.
      await new Promise<void>((resolve) => {
        timer = this.options.clock.after(Math.max(100, deadlineMs / 2), resolve);
        aedes.close(() => resolve());
      });
      (timer as Timer | null)?.cancel();
    }
    this.shared?.close();
  }

  accept(connection: Connection, listener: ListenerContext): void {
    const { clock } = this.options;
    const { stats } = this.core;
    const why = this.stopping
      ? 'stopping'
      : this.admission.refusal(this.core.limits, this.fronts.size - stats.connected);
    if (why !== null) {
      if (!this.stopping) {
        stats.refused++;
        this.refusals('warn', 'CON-REFUSED', { reason: why });
      }
      connection.destroy();
      return;
    }
    const front = new Front({
      connection,
      listener,
      clock,
      limits: () => this.core.limits,
      onConnect: (of, packet) => this.connecting(of, packet),
      onBytes: (count) => {
        stats.bytesIn += count;
      },
      onGone: (of, reason) => this.gone(of, reason),
    });
    this.fronts.add(front);
    front.start();
  }

  attach(options: LocalOptions): LocalClient {
    return new NativeLocalClient(this.core, options, this.options.localAccess, () => {});
  }

  setLimits(limits: SessionLimits): void {
    this.core.limits = withLimits(limits);
    this.core.budget.limit = limits.memoryBudget;
    this.core.router.retainedLimits = limits.retained;
  }

  setSysInterval(intervalMs: number): void {
    this.sys.setInterval(intervalMs);
  }

  /** There are none: config/engine.ts refuses them. */
  preset(): void {}

  accessChanged(): void {
    this.core.router.invalidate();
  }

  dropRevoked(revoked: (listener: string, username: string | null) => boolean): number {
    let count = 0;
    for (const session of [...this.sessions.values()]) {
      if (session.front === null || !revoked(session.listener, session.identity.username)) continue;
      session.front.refuse('the user has been removed or changed');
      count++;
    }
    return count;
  }

  onEvent(handler: (event: BrokerEvent) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  *clients(): Iterable<ClientView> {
    for (const session of this.sessions.values()) yield session.view();
  }

  client(clientId: string): ClientView | undefined {
    return this.sessions.get(clientId)?.view();
  }

  identity(clientId: string): Identity | undefined {
    const session = this.sessions.get(clientId);
    return session === undefined || session.client === null ? undefined : session.identity;
  }

  *subscriptions(clientId?: string): Iterable<SubscriptionView> {
    for (const session of this.sessions.values()) {
      if (clientId !== undefined && session.clientId !== clientId) continue;
      for (const subscription of session.subscriptions.values())
        yield { clientId: session.clientId, ...subscription, subscriptionIdentifier: 0 };
    }
  }

  *retained(topicFilter: string): Iterable<Message> {
    const messages = this.core.router.retained(topicFilter);
    for (let step = messages.next(); step.done !== true; step = messages.next()) yield step.value;
  }

  traffic(): TopicTraffic {
    const { topics } = this.core.router;
    return { limit: COUNTED_TOPICS, windowMs: topics.windowMs, topics: topics.list(), others: topics.others() };
  }

  kick(clientId: string, dropSession: boolean): boolean {
    const session = this.sessions.get(clientId);
    if (session === undefined) return false;
    session.front?.refuse('closed by an administrator');
    if (dropSession && this.sessions.get(clientId) === session) this.end(session);
    return true;
  }

  // ---- connecting

  private connecting(front: Front, packet: ConnectPacket): Refusal | null {
    const { aedes, core } = this;
    if (aedes === null) return { reasonCode: UNAVAILABLE, why: 'not started' };
    const wrong = checkLimits(core.limits, packet);
    if (wrong !== null) return wrong;
    aedes.handle(front);
    return null;
  }

  private authenticate(client: AedesClient, done: (error: Error | null, accepted: boolean) => void): void {
    const front = client.conn as Front;
    const { connect, connection, listener } = front;
    if (connect === null) {
      done(refusal(REFUSED, 'no CONNECT'), false);
      return;
    }
    // A client without an id has been given one by aedes.
    const packet = { ...connect, clientId: client.id };
    const credentials = credentialsOf(packet, connection.remoteAddress, listener.name, connection.tls);
    const decide = (result: Awaited<ReturnType<Access['authenticator']['authenticate']>>): void => {
      if (front.destroyed || this.stopping) return;
      if (!result.accepted) {
        front.why = result.why;
        this.core.stats.refused++;
        const { clientId, username } = credentials;
        const { remote } = connection;
        this.refusals('warn', 'CON-REFUSED', { reason: result.why, clientId, username, remote });
        this.emit({ kind: 'refused', clientId, username, remote, reason: result.why, reasonCode: result.reasonCode });
        done(
          refusal(result.reasonCode === 0x86 || result.reasonCode === 0x87 ? REFUSED : SERVER_UNAVAILABLE, ''),
          false,
        );
        return;
      }
      this.admit(client, front, packet, result.identity).then(
        (why) => done(why === null ? null : refusal(SERVER_UNAVAILABLE, why), why === null),
        (error: unknown) => done(refusal(SERVER_UNAVAILABLE, errorText(error)), false),
      );
    };
    const result = listener.access().authenticator.authenticate(credentials);
    if (result instanceof Promise) void result.then(decide);
    else decide(result);
  }

  /** Ends the older connection, finds or makes the session. Why it cannot be, or null. */
  private async admit(
    client: AedesClient,
    front: Front,
    packet: ConnectPacket,
    identity: Identity,
  ): Promise<string | null> {
    const { core, sessions } = this;
    const clientId = client.id;
    const { maxSessions } = core.limits;
    let session = sessions.get(clientId);
    if (session === undefined && maxSessions > 0 && sessions.size >= maxSessions) {
      core.caps.refused('sessions', clientId);
      return 'too many sessions';
    }
    if (session?.client != null) {
      core.stats.takeovers++;
      const previous = session.remote;
      core.log('info', 'SES-TAKEOVER', { clientId, remote: front.connection.remote, previous });
      session.front?.refuse('the client id connected again');
    }
    // What another user has left is not for this one.
    if (session !== undefined && (packet.cleanStart || session.identity.username !== identity.username)) {
      this.forget(session);
      await this.discard(clientId);
    }
    if (front.destroyed || this.stopping) return 'gone';
    session = sessions.get(clientId) ?? new AedesSession(clientId, identity, this.sessionParts);
    sessions.set(clientId, session);
    session.identity = identity;
    session.client = client;
    session.front = front;
    session.clean = packet.cleanStart;
    session.version = packet.version;
    session.keepAlive = packet.keepAlive;
    session.remote = front.connection.remote;
    session.listener = front.listener.name;
    session.since = core.clock.now();
    session.willTopic = packet.will?.topicName ?? null;
    session.bridge = packet.bridge;
    session.inflight = 0;
    front.identity = identity;
    front.session = session;
    client.duplicates = NO_DUPLICATES;
    core.router.invalidate();
    return null;
  }

  private gone(front: Front, why: string): void {
    this.fronts.delete(front);
    const { session } = front;
    const { stats } = this.core;
    if (session === null || session.front !== front) {
      if (session === null && why !== '' && !this.stopping && front.connect === null) {
        stats.refused++;
        this.refusals('warn', 'CON-REFUSED', { reason: why, remote: front.connection.remote });
      }
      return;
    }
    session.front = null;
    session.client = null;
    session.since = this.core.clock.now();
    session.lastError = why === '' ? null : why;
    if (session.announced) {
      session.announced = false;
      stats.connected--;
      stats.disconnects++;
      this.emit({ kind: 'disconnected', client: session.view(), reason: why === '' ? 'closed' : why, reasonCode: 0 });
    }
    if (session.clean) this.forget(session);
  }

  /** Takes the session out of this process. */
  private forget(session: AedesSession): void {
    for (const filter of session.subscriptions.keys()) this.core.router.unsubscribe(session, filter);
    session.subscriptions.clear();
    session.stored = 0;
    if (this.sessions.get(session.clientId) === session) this.sessions.delete(session.clientId);
  }

  private end(session: AedesSession): void {
    this.forget(session);
    this.discard(session.clientId).catch((error: unknown) => {
      this.core.log('error', 'GW-INTERNAL', { error: errorText(error) });
    });
  }

  /** Drops subscriptions and queue that are kept for a client id. */
  private async discard(clientId: string): Promise<void> {
    const { aedes } = this;
    if (aedes === null) return;
    const { persistence } = aedes;
    const client = { id: clientId };
    await persistence.cleanSubscriptions(client);
    for await (const packet of persistence.outgoingStream(client))
      await persistence.outgoingClearMessageId(client, packet as AedesPacket);
  }

  /** Sessions that have been away for too long end. */
  private expire(): void {
    const { maxSessionExpiryMs } = this.core.limits;
    if (maxSessionExpiryMs === 0) return;
    const before = this.core.clock.now() - maxSessionExpiryMs;
    for (const session of [...this.sessions.values()]) {
      if (session.client !== null || session.since > before) continue;
      this.core.stats.expiredSessions++;
      this.core.log('info', 'SES-EXPIRED', { clientId: session.clientId });
      this.end(session);
    }
  }

  // ---- what clients send

  private authorizePublish(client: AedesClient | null, packet: AedesPacket, done: Callback): void {
    // The will of a client whose gateway has gone: it was judged when it came, and its topic is checked below.
    const front = client === null ? null : (client.conn as Front);
    const { topic } = packet;
    const levels = this.core.limits.maxTopicLevels;
    if (!isTopicName(topic) || exceedsLevels(topic, levels)) {
      done(new Error('topic name not valid'));
      return;
    }
    if (packet.retain && !this.core.limits.retainAvailable) {
      done(new Error('retained messages are not available'));
      return;
    }
    if (front === null || front.identity === null) {
      done(topic.startsWith('$') ? new Error('topic is reserved') : null);
      return;
    }
    const { identity } = front;
    const decided = (allowed: boolean): void => this.judged(front, packet, allowed, done);
    const { authorizer } = front.listener.access();
    const verdict = !reserved(topic) && authorizer.publish(identity, topic, packet.qos, packet.retain);
    if (typeof verdict === 'boolean' && front.judging === null) {
      decided(verdict);
      return;
    }
    // One after the other: what is judged later may not overtake.
    const mine = (front.judging ?? Promise.resolve())
      .then(() => verdict)
      .then(decided)
      .then(() => {
        if (front.judging === mine) front.judging = null;
      });
    front.judging = mine;
  }

  private judged(front: Front, packet: AedesPacket, allowed: boolean, done: Callback): void {
    if (allowed) {
      // PUBACK leaves when aedes is told to go on: that is after the message is where it has to be, not before.
      if (packet.qos !== 1) done(null);
      else {
        this.handled.add(packet);
        this.take(packet, front, done);
      }
      return;
    }
    this.core.stats.deniedPublish++;
    if (front.listener.access().denyAction === 'disconnect') {
      done(new Error('publish not allowed'));
      return;
    }
    // 3.1.1 has no answer for it: acknowledged and dropped [MQTT-3.3.5-2].
    this.handled.add(packet);
    done(null);
  }

  /** In the place of aedes' own publish. */
  private published(packet: AedesPacket, client: AedesClient | Callback | null | undefined, callback?: Callback): void {
    const done = (typeof client === 'function' ? client : callback) ?? (() => {});
    const from = typeof client === 'function' || client === undefined ? null : client;
    const { aedes } = this;
    if (aedes === null) {
      done(new Error('stopped'));
      return;
    }
    if (from === null && packet.topic.startsWith('$SYS/')) {
      // What brokers tell each other.
      const { topic, payload } = packet;
      const brokerId = aedes.id;
      const brokerCounter = ++aedes.counter;
      aedes.mq.emit(
        { cmd: 'publish', topic, payload, qos: 0, retain: false, dup: false, brokerId, brokerCounter },
        (error) => done(error ?? null),
      );
      return;
    }
    if (this.handled.has(packet)) done(null);
    else this.take(packet, from === null ? null : (from.conn as Front), done);
  }

  /** A message of a client: routed at once; `done` when its receivers in this process and the queues have it. */
  private take(packet: AedesPacket, front: Front | null, done: Callback): void {
    const { stats } = this.core;
    const { identity, session } = front ?? { identity: null, session: null };
    stats.received++;
    stats.receivedBytes += packet.payload.length + packet.topic.length;
    if (session !== null) session.messagesIn++;
    const clientId = identity?.clientId ?? packet.clientId ?? '';
    const origin: Origin = { kind: 'client', clientId, username: identity?.username ?? null, bridge: null };
    const settle = front === null ? done : front.acknowledge((error) => done(error));
    this.core.turn.enter();
    const publication = this.publish(packet, origin);
    this.core.turn.leave();
    const { held } = publication;
    if (held === null) settle(null);
    else held.whenDone((code) => settle(code === 0 ? null : new Error(`not accepted: 0x${code.toString(16)}`)));
    if (front !== null && this.core.budget.exceeded)
      this.core.budget.hold({ pause: () => front.hold(), resume: () => front.go() });
  }

  private publish(packet: AedesPacket, origin: Origin): Publication {
    const { router } = this.core;
    const publication = new View(origin);
    publication.topic = packet.topic;
    publication.qos = packet.qos;
    publication.retain = packet.retain;
    publication.buffer = packet.payload;
    publication.payloadEnd = packet.payload.length;
    router.publish(publication, router.route(packet.topic));
    return publication;
  }

  private authorizeSubscribe(
    client: AedesClient,
    subscription: AedesSubscription,
    done: (error: Error | null, subscription: AedesSubscription | null) => void,
  ): void {
    const front = client.conn as Front;
    const { session, identity } = front;
    const { topic } = subscription;
    const { limits, stats } = this.core;
    if (session === null || identity === null) {
      done(new Error('not let in'), null);
      return;
    }
    if (!isTopicFilter(topic) || exceedsLevels(topic, limits.maxTopicLevels)) {
      done(new Error('topic filter not valid'), null);
      return;
    }
    const access = front.listener.access();
    const decided = (allowed: boolean): void => {
      if (front.destroyed || session.front !== front) {
        done(new Error('gone'), null);
        return;
      }
      if (!allowed) {
        stats.deniedSubscribe++;
        done(access.denyAction === 'disconnect' ? new Error('subscription not allowed') : null, null);
        return;
      }
      this.subscribe(session, subscription);
      done(null, subscription);
    };
    // Refused with 0x80 [MQTT-3.9.3-2]: aedes has no shared subscriptions, and limits hold.
    if (isShared(topic) || (!limits.wildcardAvailable && hasWildcard(topic)) || !this.roomFor(session, topic)) {
      done(null, null);
      return;
    }
    const verdict = access.authorizer.subscribe(identity, topic, subscription.qos);
    if (typeof verdict === 'boolean') decided(verdict);
    else void verdict.then(decided);
  }

  private roomFor(session: AedesSession, filter: string): boolean {
    const { limits, router, caps } = this.core;
    if (session.subscriptions.has(filter)) return true;
    const own = limits.maxSubscriptions > 0 && session.subscriptions.size >= limits.maxSubscriptions;
    const all = limits.maxTotalSubscriptions > 0 && router.subscriptionCount >= limits.maxTotalSubscriptions;
    if (!own && !all) return true;
    caps.refused('subscriptions', session.clientId, filter);
    return false;
  }

  private subscribe(session: AedesSession, { topic, qos }: AedesSubscription): void {
    const request = {
      topicFilter: topic,
      qos,
      noLocal: session.bridge,
      retainAsPublished: false,
      retainHandling: 0,
    } as const;
    session.subscriptions.set(topic, request);
    this.core.router.subscribe({
      ...request,
      filter: topic,
      shareName: null,
      subscriptionIdentifier: 0,
      receiver: session,
    });
  }

  // ---- what clients get

  /** The last word before a packet leaves: rights as they are now, and the QoS that was asked for [MQTT-3.8.4-6]. */
  private authorizeForward(client: AedesClient, packet: AedesPacket): AedesPacket | null {
    const { session } = client.conn as Front;
    if (session === null) return null;
    const qos = session.qosOf(packet.topic);
    if (qos < 0 && packet.qos > 0 && packet.retain === false && packet.messageId === undefined) return null;
    if (!this.accessOf(session).authorizer.deliver(session.identity, packet.topic)) {
      this.core.delivery.droppedForbidden++;
      return null;
    }
    if (qos >= 0 && packet.qos > qos) packet.qos = qos === 0 ? 0 : 1;
    return packet;
  }

  private onward(publication: Publication, later: readonly Later[]): void {
    const { aedes, relay } = this;
    if (aedes === null || relay === null || publication.origin.kind === 'server') return;
    const foreign = this.foreign;
    const away = this.shared !== null && foreign === null;
    if (publication.qos === 0 && later.length === 0 && !away) return;
    const message = publication.message();
    const packet = foreign ?? this.packetOf(publication);
    if (foreign === null) {
      packet.qos = publication.qos;
      packet.retain = publication.retain;
      if (publication.qos > 0) packet.counters = [0, ++aedes.counter, ++aedes.counter];
    }
    relay.push({
      packet,
      message,
      later,
      hold: publication.qos > 0 && foreign === null ? publication.hold() : null,
      foreign: foreign !== null,
      retained: publication.retain && away ? this.retainedNow(publication.topic, packet) : null,
      full: null,
      state: 'working',
    });
  }

  /** What is to be kept for a topic after a retained publish: limits may have refused it. */
  private retainedNow(topic: string, packet: AedesPacket): AedesPacket {
    const kept = this.core.router.retained(topic).next();
    const payload = kept.done === true ? Buffer.alloc(0) : asBuffer(kept.value.payload);
    return { ...packet, payload };
  }

  private packetOf(publication: Publication): AedesPacket {
    const { aedes } = this;
    const { kind, clientId, username, bridge } = publication.origin;
    const packet: AedesPacket = {
      cmd: 'publish',
      topic: publication.topic,
      payload: asBuffer(publication.message().payload),
      qos: 0,
      retain: false,
      dup: false,
      brokerId: aedes?.id ?? '',
      brokerCounter: aedes === null ? 0 : ++aedes.counter,
      clientId,
    };
    if (kind !== 'server') packet.kind = kind;
    if (username !== null) packet.username = username;
    if (bridge !== null) packet.bridge = bridge;
    return packet;
  }

  // ---- aedes itself

  private listenTo(aedes: Aedes): void {
    const { stats } = this.core;
    aedes.publish = (packet, client, done) => this.published(packet, client, done);
    const [subscribe, unsubscribe] = [aedes.subscribe.bind(aedes), aedes.unsubscribe.bind(aedes)];
    // Subscriptions of clients are in the router; those of the persistence are not.
    aedes.subscribe = (topic, handler, done) => {
      if (this.relay === null) subscribe(topic, handler, done);
      else setImmediate(done, null);
    };
    aedes.unsubscribe = (topic, handler, done) => {
      if (this.relay === null) unsubscribe(topic, handler, done);
      else if (done !== undefined) setImmediate(done, null);
    };
    aedes.on('client', (client) => {
      const { session } = client.conn as Front;
      if (session === null || session.client !== client) return;
      session.announced = true;
      stats.connects++;
      stats.connected++;
      this.emit({ kind: 'connected', client: session.view() });
    });
    const failed = (client: AedesClient, error: Error): void => {
      const front = client.conn as Front;
      if (front.why === '') front.why = errorText(error);
      if (front.session !== null && !this.stopping) stats.protocolErrors++;
    };
    aedes.on('clientError', failed);
    aedes.on('connectionError', failed);
    aedes.on('error', (error) => this.refusals('error', 'BRK-SHARE', { error: errorText(error) }));
    aedes.on('ack', (_, client) => (client.conn as Front).session?.acknowledged());
    aedes.on('subscribe', (subscriptions, client) => {
      for (const { topic, qos } of subscriptions)
        if (qos <= 2) this.emit({ kind: 'subscribed', clientId: client.id, topicFilter: topic });
    });
    aedes.on('unsubscribe', (filters, client) => {
      const { session } = client.conn as Front;
      if (client.closed || session === null) return;
      for (const topicFilter of filters) {
        if (!session.subscriptions.delete(topicFilter)) continue;
        this.core.router.unsubscribe(session, topicFilter);
        this.emit({ kind: 'unsubscribed', clientId: client.id, topicFilter });
      }
    });
  }

  /** Retained messages come from the router, with its limits; what was refused is not kept as a subscription. */
  private wrapPersistence(aedes: Aedes): void {
    const { persistence } = aedes;
    const add = persistence.addSubscriptions.bind(persistence);
    persistence.addSubscriptions = (client, subscriptions) => {
      const session = this.sessions.get(client.id);
      const granted = subscriptions.filter(({ topic }) => session?.subscriptions.has(topic));
      return granted.length === 0 ? Promise.resolve() : add(client, granted);
    };
    const { delWill } = persistence;
    // aedes looks at neither outcome: one that failed would end the process.
    persistence.delWill = (client) =>
      delWill.call(persistence, client).catch((error: unknown) => {
        this.refusals('error', 'BRK-SHARE', { error: errorText(error) });
      });
    const outgoing = persistence.outgoingStream.bind(persistence);
    persistence.outgoingStream = (client) => Readable.from(sentBefore(outgoing(client)));
    persistence.createRetainedStreamCombi = (filters) => Readable.from(this.retainedPackets(filters));
  }

  private *retainedPackets(filters: readonly string[]): Iterable<object> {
    const sent = new Set<string>();
    for (const filter of filters) {
      for (const message of this.retained(filter)) {
        if (filters.length > 1 && sent.has(message.topic)) continue;
        if (filters.length > 1) sent.add(message.topic);
        if (!this.sourceMayWrite(message)) continue;
        const { topic, qos } = message;
        yield { cmd: 'publish', topic, qos, payload: asBuffer(message.payload), retain: true };
      }
    }
  }

  private sourceMayWrite(message: Message): boolean {
    if (!this.core.limits.checkRetainSource || message.origin.kind !== 'client') return true;
    const { clientId, username } = message.origin;
    const identity = { clientId, username, remoteAddress: '', listener: '', claims: null, internal: false };
    const verdict = this.options.localAccess().authorizer.publish(identity, message.topic, message.qos, true);
    return verdict === true;
  }

  // ---- other gateways

  private openRedis(url: string): Promise<SharedStore> {
    const { log, metrics, clock } = this.options;
    const { limits } = this.core;
    return openShared({
      url,
      keepSeconds: Math.ceil(limits.maxSessionExpiryMs / 1000),
      mostQueued: limits.outbox.queueLength + limits.outbox.inflight,
      log,
      metrics,
      mono: () => clock.mono(),
    });
  }

  /** The message of another gateway that is being routed. */
  private foreign: AedesPacket | null = null;

  /** Takes what is retained, and from now on what the others publish. */
  private async join(aedes: Aedes): Promise<void> {
    await new Promise<void>((resolve) => {
      aedes.mq.on(
        '#',
        (packet, done) => {
          try {
            this.heard(aedes, packet);
          } catch (error) {
            this.refusals('error', 'BRK-SHARE', { error: errorText(error) });
          }
          done();
        },
        resolve,
      );
    });
    for await (const packet of aedes.persistence.createRetainedStream('#')) {
      const { topic, payload, qos } = packet as AedesPacket;
      if (!isTopicName(topic) || topic.startsWith('$SYS/')) continue;
      this.fromAway(packet as AedesPacket, { topic, payload, qos });
    }
  }

  private heard(aedes: Aedes, packet: AedesPacket): void {
    const { topic, payload, qos } = packet;
    if (packet.brokerId === aedes.id || typeof topic !== 'string') return;
    if (reserved(topic)) {
      // The client is at another gateway now.
      if (!topic.endsWith('/new/clients')) return;
      const session = this.sessions.get(payload.toString());
      if (session !== undefined) this.forget(session);
      return;
    }
    if (!isTopicName(topic) || exceedsLevels(topic, MOST_LEVELS)) return;
    this.fromAway(packet, { topic, payload, qos });
  }

  private fromAway(packet: AedesPacket, { topic, payload, qos }: Pick<AedesPacket, 'topic' | 'payload' | 'qos'>): void {
    const { kind = 'client', clientId = '', username = null, bridge = null } = packet;
    this.foreign = packet;
    try {
      this.publish({ ...packet, topic, payload: asBuffer(payload), qos }, { kind, clientId, username, bridge });
    } finally {
      this.foreign = null;
    }
  }

  // ---- small things

  private accessOf(session: AedesSession): Access {
    return session.front?.listener.access() ?? this.options.localAccess();
  }

  private trouble(session: AedesSession, reason: 'queue-full' | 'slow'): void {
    const { clientId } = session;
    this.queueLog('warn', 'SES-QUEUE-FULL', { clientId, reason });
    this.emit({ kind: 'dropped', clientId, reason, count: 1 });
  }

  private emit(event: BrokerEvent): void {
    for (const handler of this.handlers) {
      try {
        handler(event);
      } catch (error) {
        this.core.log('error', 'GW-INTERNAL', { error: errorText(error) });
      }
    }
  }
}

/** What brokers tell each other, and the gateway's own values: nobody else writes there. */
function reserved(topic: string): boolean {
  return topic.startsWith('$SYS/') && !topic.startsWith('$SYS/broker/connection/');
}

/** What has had a packet id goes out as a duplicate [MQTT-3.3.1-1]. */
async function* sentBefore(packets: AsyncIterable<AedesPacket>): AsyncIterable<AedesPacket> {
  for await (const packet of packets) {
    if (packet.cmd === 'publish' && packet.messageId !== undefined) packet.dup = true;
    yield packet;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
