// The second engine behind the seam broker/broker.ts: aedes 1.x serves the clients (MQTT 3.1 and 3.1.1), with Redis for
// several gateways at once. Built by gateway/gateway.ts when broker.engine = aedes. aedes speaks the protocol; who
// comes in, what they may do, where messages go and how much of anything is kept is decided here and in the files
// aedes*.ts beside it.
//
//   connection -> aedesfront (CONNECT, sizes) -> aedes -> authorizePublish -> aedesrouter -> receivers in this process
//                                                   \-> relay.ts -> stored queues, other gateways, clients

import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Identity } from '../../auth/auth.ts';
import { Absence, type Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { Ledger } from '../../base/ledger.ts';
import { type Log, limitLog } from '../../base/log.ts';
import { Slab } from '../../base/slab.ts';
import { newDeliveryStats } from '../../delivery/delivery.ts';
import { Outbox } from '../../delivery/outbox.ts';
import { packArrival } from '../../mqtt/arrival.ts';
import type { Message, Origin, Publication, Via } from '../../mqtt/message.ts';
import { Publication as View } from '../../mqtt/message.ts';
import type { ConnectPacket } from '../../mqtt/packet.ts';
import { SERVER_UNAVAILABLE as UNAVAILABLE } from '../../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../../mqtt/topic.ts';
import { COUNTED_TOPICS, WINDOW_MS } from '../../router/topics.ts';
import { Budget } from '../../session/budget.ts';
import { Caps } from '../../session/caps.ts';
import { checkLimits, type Refusal } from '../../session/checks.ts';
import { Contests } from '../../session/contest.ts';
import { Delayed } from '../../session/delayed.ts';
import { Exclusives } from '../../session/exclusive.ts';
import { Held } from '../../session/held.ts';
import { IntakeBuffer } from '../../session/intake.ts';
import { sourceMayWrite } from '../../session/origin.ts';
import { Pace } from '../../session/pace.ts';
import { type Core, newSessionStats, type SessionLimits } from '../../session/session.ts';
import type { Journal } from '../../store/store.ts';
import type { Connection } from '../../transport/transport.ts';
import { Admission } from '../admission.ts';
import type {
  BrokerEvent,
  ClientView,
  Engine,
  ListenerContext,
  LocalClient,
  LocalOptions,
  SubscriptionView,
  TopicTraffic,
} from '../broker.ts';
import { NativeLocalClient } from '../local.ts';
import { declareBrokerMetrics } from '../metrics.ts';
import type { NativeBrokerOptions } from '../native/engine.ts';
import { SysTree } from '../sys.ts';
import { Elsewhere } from './elsewhere.ts';
import { Front } from './front.ts';
import { Incoming } from './incoming.ts';
import { IN_STEP, InStep } from './instep.ts';
import { REDIS_METRICS } from './metrics.ts';
import { type Aedes, type AedesClient, type AedesPacket, type Callback, loadAedes } from './parts.ts';
import { openShared, type SharedStore } from './redis.ts';
import { Relay } from './relay.ts';
import { AedesRights, reserved } from './rights.ts';
import { AedesRouter, type Later } from './router.ts';
import type { AedesSession, SessionParts } from './session.ts';
import { AedesSessions } from './sessions.ts';
import { foreignOrigin, willFields } from './whose.ts';

/** aedes and its persistence match topics of so many levels at most. */
const MOST_LEVELS = 100;
const SWEEP_MS = 1000;
/** How often sessions of other gateways are looked up. */
const LOOK_MS = 5000;
/** How often connections are looked at for silence. */
const CHECK_MS = 1000;
const EXPIRY_MS = 60_000;

export interface AedesBrokerOptions extends Omit<NativeBrokerOptions, 'pool'> {
  /** null = this gateway alone, in memory. */
  readonly redis: string | null;
}

function withLimits(limits: SessionLimits): SessionLimits {
  const { maxTopicLevels } = limits;
  return { ...limits, maxTopicLevels: maxTopicLevels === 0 ? MOST_LEVELS : Math.min(maxTopicLevels, MOST_LEVELS) };
}

export class AedesBroker implements Engine {
  readonly journal: Journal;
  readonly spools = new Map();
  readonly bridgeSessions = [];
  private readonly options: AedesBrokerOptions;
  private readonly core: Core & { readonly router: AedesRouter };
  private readonly handlers = new Set<(event: BrokerEvent) => void>();
  private readonly sessions: AedesSessions;
  private readonly fronts = new Set<Front>();
  private readonly rights: AedesRights;
  private readonly admission: Admission;
  private readonly refusals: Log;
  private readonly absence: Absence;
  private readonly queueLog: Log;
  private readonly sys: SysTree;
  private readonly timers: Timer[] = [];
  private aedes: Aedes | null = null;
  private relay: Relay | null = null;
  private shared: SharedStore | null = null;
  /** null without other gateways. */
  private inStep: InStep | null = null;
  private incoming: Incoming | null = null;
  private readonly elsewhere = new Elsewhere();
  private stopping = false;
  private stopped = false;

  constructor(options: AedesBrokerOptions) {
    this.options = options;
    // One that keeps nothing: config/engine.ts refuses another.
    this.journal = options.journal;
    const { clock, log, journal } = options;
    const delivery = newDeliveryStats();
    const budget = new Budget(clock, log, () => delivery.queuedBytes);
    budget.limit = options.limits.memoryBudget;
    const caps = new Caps(log, () => clock.mono());
    const ledger = new Ledger();
    const router = new AedesRouter(journal, clock, (publication) => this.packetOf(publication));
    router.retainedLimits = options.limits.retained;
    router.onRetainedRefused = (clientId, topic) => caps.refused('retained', clientId, topic);
    router.onward = (publication, later) => this.onward(publication, later);
    this.core = {
      clock,
      turn: options.turn,
      pool: { usedBytes: 0 } as Core['pool'],
      intake: new IntakeBuffer(),
      slab: new Slab(options.turn.source),
      log,
      journal,
      router,
      limits: withLimits(options.limits),
      absentees: options.absentees,
      stats: newSessionStats(),
      delivery,
      budget,
      ledger,
      pace: new Pace(() => clock.mono()),
      held: new Held(),
      caps,
      contests: new Contests(),
      // The native engine alone has them: config/engine.ts refuses a configuration that asks for any.
      policies: null,
      quotas: null,
      delayed: new Delayed({
        clock,
        journal,
        ledger,
        turn: options.turn,
        router,
        absentees: options.absentees,
        caps,
        log,
      }),
      exclusives: new Exclusives(),
      makeOutbox: (outbox, resumable) => new Outbox(outbox, resumable),
      emit: (event) => this.emit(event),
    };
    this.rights = new AedesRights({
      core: this.core,
      brokerId: () => this.aedes?.id ?? '',
      take: (packet, front, done) => this.take(packet, front, done),
      mayReceive: (session, topic) => this.mayReceive(session, topic),
    });
    this.admission = new Admission(clock);
    this.absence = new Absence(CHECK_MS, clock.mono());
    this.refusals = limitLog(log, () => clock.mono(), 1000);
    this.queueLog = limitLog(log, () => clock.mono(), 10_000);
    const session: SessionParts = {
      stats: delivery,
      limits: () => this.core.limits.outbox,
      mayReceive: (of, topic) => this.mayReceive(of, topic),
      packet: router.packet,
      fresh: (publication) => this.packetOf(publication),
      later: router.later,
      onTrouble: (of, reason) => this.trouble(of, reason),
    };
    this.sessions = new AedesSessions({
      core: this.core,
      session,
      persistence: () => this.aedes?.persistence ?? null,
      stopping: () => this.stopping,
    });
    const counts = (): { total: number; connected: number } => ({
      total: this.sessions.byId.size,
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
      authenticate: (client, _username, _password, done) => this.sessions.authenticate(client, done),
      authorizePublish: (client, packet, done) => this.rights.authorizePublish(client, packet, done),
      authorizeSubscribe: (client, subscription, done) => this.rights.authorizeSubscribe(client, subscription, done),
      authorizeForward: (client, packet) => this.rights.authorizeForward(client, packet),
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
      session: (clientId) => this.sessions.byId.get(clientId),
      queueLength: (clientId) => this.shared?.queueLength(clientId) ?? this.sessions.byId.get(clientId)?.stored ?? 0,
      shared: this.shared !== null,
      inStep: () => this.inStep?.now !== false,
      log,
      mono: () => clock.mono(),
    });
    const { relay } = this;
    metrics.read(REDIS_METRICS.unshared, () => relay.unshared);
    if (this.shared !== null) await this.join(aedes, this.shared);
    this.sys.start();
    this.timers.push(clock.every(CHECK_MS, () => this.check()));
    this.timers.push(clock.every(SWEEP_MS, () => router.sweep()));
    this.timers.push(clock.every(SWEEP_MS, () => this.core.slab.spare.trim()));
    this.timers.push(clock.every(WINDOW_MS, () => router.turnTopics()));
    this.timers.push(clock.every(EXPIRY_MS, () => this.sessions.expire()));
  }

  private check(): void {
    const nowMs = this.options.clock.mono();
    const excused = this.absence.over(nowMs);
    for (const front of this.fronts) {
      if (excused) front.excuse(nowMs);
      front.check(nowMs);
    }
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    await this.stopClients();
    this.sys.stop();
    const { aedes } = this;
    if (aedes !== null) {
      let timer: Timer | null = null;
      await new Promise<void>((resolve) => {
        timer = this.options.clock.after(Math.max(100, deadlineMs / 2), resolve);
        aedes.close(() => resolve());
        // A Redis that is away would not let go of it.
        if (this.shared?.ready() === false) setImmediate(resolve);
      });
      (timer as Timer | null)?.cancel();
    }
    this.inStep?.stop();
    this.shared?.close();
  }

  /** What is not acknowledged by now is not: its clients send it again. */
  async stopClients(): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    for (const timer of this.timers) timer.cancel();
    for (const front of [...this.fronts]) front.refuse('the server is shutting down');
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
      onGone: (of, reason) => {
        this.fronts.delete(of);
        this.sessions.gone(of, reason);
      },
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

  dropRevoked(revoked: (listener: string, username: string | null, via?: Via) => boolean): number {
    let count = 0;
    for (const session of [...this.sessions.byId.values()]) {
      const { username, via } = session.identity;
      if (session.front === null || !revoked(session.listener, username, via)) continue;
      session.front.refuse('the user has been removed or changed');
      count++;
    }
    return count;
  }

  /** aedes cannot take back one subscription of a client: its session ends. */
  async endSubscriptions(denied: (identity: Identity, topicFilter: string) => boolean): Promise<number> {
    let count = 0;
    for (const session of [...this.sessions.byId.values()]) {
      const filters = [...session.subscriptions.keys()].filter((filter) => denied(session.identity, filter));
      if (filters.length > 0 && this.kick(session.clientId, true)) count += filters.length;
    }
    return count;
  }

  onEvent(handler: (event: BrokerEvent) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  *clients(): Iterable<ClientView> {
    for (const session of this.sessions.byId.values()) yield session.view();
    yield* this.elsewhere.views((clientId) => this.sessions.byId.has(clientId));
  }

  client(clientId: string): ClientView | undefined {
    return this.sessions.byId.get(clientId)?.view();
  }

  identity(clientId: string): Identity | undefined {
    const session = this.sessions.byId.get(clientId);
    return session?.identity;
  }

  *subscriptions(clientId?: string): Iterable<SubscriptionView> {
    for (const session of this.sessions.byId.values()) {
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
    const session = this.sessions.byId.get(clientId);
    if (session === undefined) return false;
    session.front?.refuse('closed by an administrator');
    if (dropSession && this.sessions.byId.get(clientId) === session) this.sessions.end(session);
    return true;
  }

  // ---- connecting

  private connecting(front: Front, packet: ConnectPacket): Refusal | null {
    const { aedes, core } = this;
    if (aedes === null) return { reasonCode: UNAVAILABLE, why: 'not started' };
    const wrong = checkLimits(core.limits, packet, front.listener.rules);
    if (wrong !== null) return wrong;
    aedes.handle(front);
    return null;
  }

  // ---- what clients send

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
      tell(aedes, packet.topic, packet.payload).then(() => done(null), done);
      return;
    }
    const settled = this.rights.settled(packet);
    const front = from === null ? null : (from.conn as Front);
    if (from !== null && packet.qos === 2 && !front?.destroyed) this.exactlyOnce(packet, from, settled, done);
    else if (settled) done(null);
    else this.take(packet, front, done);
  }

  /**
   * PUBREC leaves when the message and then its identifier are where they have to be, in the order of the packets
   * [MQTT-4.6.0-3].
   */
  private exactlyOnce(packet: AedesPacket, client: AedesClient, settled: boolean, done: Callback): void {
    const { incoming } = this;
    const front = client.conn as Front;
    const answer = front.acknowledge((error) => done(error));
    const taken = new Promise<void>((resolve, reject) => {
      if (settled) resolve();
      else this.take(packet, null, (error) => (error ? reject(error) : resolve()), front);
    });
    const remembered = incoming === null ? taken : incoming.published(client, packet, taken);
    remembered.then(
      () => answer(null),
      (error: unknown) => answer(error instanceof Error ? error : new Error(errorText(error))),
    );
  }

  /** A message of a client: routed at once; `done` when its receivers in this process and the queues have it. */
  private take(packet: AedesPacket, front: Front | null, done: Callback, from: Front | null = front): void {
    const { stats } = this.core;
    const session = from?.session ?? null;
    stats.received++;
    stats.receivedBytes += packet.payload.length + packet.topic.length;
    if (session !== null) session.messagesIn++;
    const origin = session?.origin ?? foreignOrigin(packet);
    const settle = front === null ? done : front.acknowledge((error) => done(error));
    this.core.turn.enter();
    const publication = this.publish(packet, origin);
    this.core.turn.leave();
    const { held } = publication;
    if (held === null) settle(null);
    else held.whenDone((code) => settle(code === 0 ? null : new Error(`not accepted: 0x${code.toString(16)}`)));
    if (from !== null && this.core.budget.exceeded)
      this.core.budget.hold({ pause: () => from.hold(), resume: () => from.go() });
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

  // ---- what clients get

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
    const { kind, clientId, username, bridge, arrival } = publication.origin;
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
    // Others need it only where the message outlives its publisher.
    if (arrival && publication.retain && this.shared !== null) packet.arrival = packArrival(arrival);
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
      this.sessions.entered(session);
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
    this.incoming = new Incoming(persistence, (client) => (client.conn as Front).refuse('the shared broker is away'));
    const add = persistence.addSubscriptions.bind(persistence);
    persistence.addSubscriptions = (client, subscriptions) => {
      const session = this.sessions.byId.get(client.id);
      const granted = subscriptions.filter(({ topic }) => session?.subscriptions.has(topic));
      return granted.length === 0 ? Promise.resolve() : add(client, granted);
    };
    const { delWill } = persistence;
    const putWill = persistence.putWill.bind(persistence);
    // Another gateway may have to publish it when this one has gone, and to judge whose it was.
    persistence.putWill = (client, packet) => {
      const origin = this.sessions.byId.get(client.id)?.origin;
      if (origin === undefined) return putWill(client, packet);
      return putWill(client, Object.assign(packet, willFields(origin)));
    };
    // aedes looks at neither outcome: one that failed would end the process.
    persistence.delWill = (client) =>
      delWill.call(persistence, client).catch((error: unknown) => {
        this.refusals('error', 'BRK-SHARE', { error: errorText(error) });
      });
    const outgoing = persistence.outgoingStream.bind(persistence);
    persistence.outgoingStream = (client) => Readable.from(sentBefore(outgoing(client)));
    persistence.createRetainedStreamCombi = (filters) => Readable.from(this.retainedPackets(filters));
  }

  private async *retainedPackets(filters: readonly string[]): AsyncIterable<object> {
    const sent = new Set<string>();
    for (const filter of filters) {
      for (const message of this.retained(filter)) {
        if (filters.length > 1 && sent.has(message.topic)) continue;
        if (filters.length > 1) sent.add(message.topic);
        if (this.core.limits.checkRetainSource && !(await sourceMayWrite(this.core, message))) continue;
        const { topic, qos } = message;
        yield { cmd: 'publish', topic, qos, payload: asBuffer(message.payload), retain: true };
      }
    }
  }

  // ---- other gateways

  private openRedis(url: string): Promise<SharedStore> {
    const { log, metrics, clock } = this.options;
    const { limits } = this.core;
    return openShared({
      url,
      keepSeconds: Math.ceil(limits.maxSessionExpiryMs / 1000),
      onLost: () => this.inStep?.lost(),
      onReady: () => void this.inStep?.catchUp(),
      log,
      metrics,
      mono: () => clock.mono(),
    });
  }

  /** The message of another gateway that is being routed. */
  private foreign: AedesPacket | null = null;

  /** Takes what is retained, and from now on what the others publish. */
  private async join(aedes: Aedes, shared: SharedStore): Promise<void> {
    const { clock, log } = this.options;
    this.inStep = new InStep({
      clock,
      log,
      ready: () => shared.ready(),
      clients: () => shared.clients(),
      subscriptions: (id) => aedes.persistence.subscriptionsByClient({ id }),
      tell: (topic, payload) => tell(aedes, topic, Buffer.from(payload)),
      onReturn: () => this.caughtUp(),
    });
    this.options.metrics.read(REDIS_METRICS.inStep, () => (this.inStep?.now === false ? 0 : 1));
    this.timers.push(clock.every(LOOK_MS, () => void this.lookElsewhere(shared)));
    await this.lookElsewhere(shared);
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

  private async lookElsewhere(shared: SharedStore): Promise<void> {
    try {
      this.elsewhere.refresh(await shared.clients());
    } catch {
      // Redis is away: what was known before is shown.
    }
  }

  /** What was published meanwhile is queued for kept sessions; their clients get it when they come again. */
  private caughtUp(): void {
    for (const session of [...this.sessions.byId.values()])
      if (!session.clean) session.front?.refuse('the shared broker was away');
  }

  private heard(aedes: Aedes, packet: AedesPacket): void {
    const { topic, payload, qos } = packet;
    if (topic === IN_STEP) this.inStep?.heard(payload.toString());
    if (packet.brokerId === aedes.id || typeof topic !== 'string') return;
    if (reserved(topic)) {
      this.elsewhere.heard(topic, payload.toString());
      // The client is at another gateway now.
      if (!topic.endsWith('/new/clients')) return;
      const session = this.sessions.byId.get(payload.toString());
      if (session !== undefined) this.sessions.forget(session);
      return;
    }
    if (!isTopicName(topic) || exceedsLevels(topic, MOST_LEVELS)) return;
    this.fromAway(packet, { topic, payload, qos });
  }

  private fromAway(packet: AedesPacket, { topic, payload, qos }: Pick<AedesPacket, 'topic' | 'payload' | 'qos'>): void {
    this.foreign = packet;
    try {
      this.publish({ ...packet, topic, payload: asBuffer(payload), qos }, foreignOrigin(packet));
    } finally {
      this.foreign = null;
    }
  }

  // ---- small things

  private mayReceive(session: AedesSession, topic: string): boolean {
    const access = session.front?.listener.access() ?? this.core.absentees.access(session.identity);
    return access.authorizer.deliver(session.identity, topic);
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

/** Tells all gateways of the broker something, this one included. Rejects when Redis does not take it. */
function tell(aedes: Aedes, topic: string, payload: Buffer): Promise<void> {
  const brokerId = aedes.id;
  const brokerCounter = ++aedes.counter;
  return new Promise((resolve, reject) => {
    aedes.mq.emit(
      { cmd: 'publish', topic, payload, qos: 0, retain: false, dup: false, brokerId, brokerCounter },
      (error) => (error ? reject(error) : resolve()),
    );
  });
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
