// The broker of our own: wires session/, router/, delivery/ and store/ behind the seam broker/broker.ts. Built by
// gateway/gateway.ts. Holds no rule of MQTT itself: those are in session/ and delivery/. Starts by restoring what the
// journal has kept.
import type { Absentees, Access, Identity } from '../../auth/auth.ts';
import { Absence, type Clock, type Timer, within } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { Ledger } from '../../base/ledger.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { Slab } from '../../base/slab.ts';
import type { Turn } from '../../base/turn.ts';
import type { BlockPool } from '../../base/writer.ts';
import { newDeliveryStats } from '../../delivery/delivery.ts';
import { Outbox } from '../../delivery/outbox.ts';
import { BRIDGE_SESSION, DELAYED_SESSION } from '../../mqtt/clientid.ts';
import { Hold, type Message, type Origin, Publication, type Via } from '../../mqtt/message.ts';
import { ADMINISTRATIVE_ACTION, NOT_AUTHORIZED, QUOTA_EXCEEDED, SERVER_SHUTTING_DOWN } from '../../mqtt/reason.ts';
import { EXCLUSIVE_PREFIX, isShared, matches } from '../../mqtt/topic.ts';
import type { Policies, Quotas, QuotaView, Usage } from '../../policy/policy.ts';
import type { Subscription } from '../../router/router.ts';
import { Routes } from '../../router/routes.ts';
import { COUNTED_TOPICS, WINDOW_MS } from '../../router/topics.ts';
import { Budget } from '../../session/budget.ts';
import { Caps } from '../../session/caps.ts';
import { Client } from '../../session/client.ts';
import { Contests } from '../../session/contest.ts';
import { Delayed, type DelayedParts } from '../../session/delayed.ts';
import { Exclusives } from '../../session/exclusive.ts';
import { Held } from '../../session/held.ts';
import { IntakeBuffer } from '../../session/intake.ts';
import { Pace } from '../../session/pace.ts';
import { enterScopes } from '../../session/quotas.ts';
import { Registry } from '../../session/registry.ts';
import { type Core, newSessionStats, type SessionLimits } from '../../session/session.ts';
import { inSlices } from '../../session/slices.ts';
import type { Session } from '../../session/state.ts';
import { judgedBy, remove } from '../../session/subscribe.ts';
import { CONNECTION_BYTES, connectionLimit, totalLimit } from '../../session/weight.ts';
import type { Journal, Restored, RestoredSession } from '../../store/store.ts';
import type { Connection } from '../../transport/transport.ts';
import type {
  Broker,
  BrokerEvent,
  ClientView,
  DelayedView,
  ListenerContext,
  LocalClient,
  LocalOptions,
  Preset,
  SubscriptionView,
  TopicTraffic,
} from '../broker.ts';
import { NativeLocalClient } from '../local.ts';
import { declareBrokerMetrics } from '../metrics.ts';
import { type SysOptions, SysTree } from '../sys.ts';

/** How often silent and stuck connections are looked for. */
const CHECK_MS = 500;
/** Who sends what the gateway answers. */
const SERVER: Origin = { kind: 'server', clientId: '', username: null, bridge: null };
/** How often expired retained messages are looked for, and spare memory that is not needed. */
const SWEEP_MS = 1000;

export interface NativeBrokerOptions {
  readonly clock: Clock;
  /** Told what clock.steady() is to say from now on: it goes on from the process before. */
  readonly resumeTime?: (steadyMs: number) => void;
  /** Processor time of this process in milliseconds; the clock's time when absent. */
  readonly cpuMs?: () => number;
  readonly turn: Turn;
  /** Output blocks, shared with the SP sockets. */
  readonly pool: BlockPool;
  /** Where everything that is kept is counted; one of its own when absent. */
  readonly ledger?: Ledger;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly journal: Journal;
  readonly limits: SessionLimits;
  /** What the configuration says about topics and payloads; absent or null: nothing. */
  readonly policies?: Policies | null;
  /** What clients may use; absent or null: there are no quotas. */
  readonly quotas?: Quotas | null;
  /** Rights of clients inside the process and of sessions that nobody has claimed yet. */
  readonly localAccess: () => Access;
  /** Rights of restored sessions, wills and stored messages. */
  readonly absentees: Absentees;
  readonly sys: SysOptions;
}

/** A quarter of the memory budget may wait for acknowledgements that are held back. */
function heldLimit({ memoryBudget }: SessionLimits): number {
  return memoryBudget > 0 ? memoryBudget / 4 : Number.POSITIVE_INFINITY;
}

/** Counts a refusal. */
function mayRetain(scopes: readonly Usage[]): boolean {
  const full = scopes.find((scope) => scope.full('retained'));
  full?.count('retained', 'refused');
  return full === undefined;
}

function delayedParts(options: NativeBrokerOptions): Omit<DelayedParts, 'ledger' | 'router' | 'caps'> {
  const { clock, journal, turn, absentees, log } = options;
  return { clock, journal, turn, absentees, log };
}

export class NativeBroker implements Broker {
  /** What the journal has kept for bridges; known after start(). */
  spools: Restored['spools'] = new Map();
  readonly bridgeSessions: RestoredSession[] = [];
  private readonly core: Core & { readonly router: Routes };
  private readonly registry: Registry;
  private readonly options: NativeBrokerOptions;
  private readonly clients_ = new Set<Client>();
  private readonly handlers = new Set<(event: BrokerEvent) => void>();
  private readonly sys: SysTree;
  private readonly timers: Timer[] = [];
  private stopping = false;
  /** Clients whose filters are being taken back because too many of them match one topic. */
  private readonly crowding = new Set<string>();
  private stopped = false;
  private rateSinceMs = 0;
  private rateCount = 0;
  private readonly refusals: Log;
  private readonly absence: Absence;
  private readonly forget = (client: Client): void => {
    if (this.clients_.delete(client)) this.core.ledger.add('connections', -CONNECTION_BYTES);
  };

  constructor(options: NativeBrokerOptions) {
    this.options = options;
    const delivery = newDeliveryStats();
    const ledger = options.ledger ?? new Ledger();
    ledger.keptLimit = options.limits.keptBudget;
    ledger.totalLimit = totalLimit(options.limits);
    ledger.watch('unsent', () => options.pool.usedBytes);
    ledger.watch('queued', () => delivery.queuedBytes);
    ledger.watch('caches', () => this.core.slab.spare.bytes);
    const used = (): number => options.pool.usedBytes + delivery.queuedBytes + ledger.of('input');
    const budget = new Budget(options.clock, options.log, used);
    budget.limit = options.limits.memoryBudget;
    const held = new Held();
    held.limit = heldLimit(options.limits);
    const caps = new Caps(options.log, () => options.clock.mono());
    const router = new Routes(options.journal, options.clock, ledger);
    router.retainedLimits = options.limits.retained;
    router.maxMatching = options.limits.maxMatching;
    router.onCrowded = (receiver, topic, excess) => this.crowded(receiver.clientId, topic, excess);
    router.onRetainedRefused = (clientId, topic) => caps.refused('retained', clientId, topic);
    const delayed = new Delayed({ ...delayedParts(options), ledger, router, caps });
    delayed.limits = options.policies?.delayed ?? null;
    this.core = {
      clock: options.clock,
      turn: options.turn,
      pool: options.pool,
      intake: new IntakeBuffer(),
      slab: new Slab(options.turn.source),
      log: options.log,
      journal: options.journal,
      router,
      limits: options.limits,
      stats: newSessionStats(),
      delivery,
      budget,
      absentees: options.absentees,
      ledger,
      pace: new Pace(() => options.clock.mono(), options.cpuMs),
      held,
      caps,
      contests: new Contests(),
      policies: options.policies ?? null,
      quotas: options.quotas ?? null,
      delayed,
      exclusives: new Exclusives(),
      makeOutbox: (outbox, resumable) => new Outbox(outbox, resumable),
      emit: (event) => this.emit(event),
    };
    this.refusals = limitLog(options.log, () => options.clock.mono(), 1000);
    this.absence = new Absence(CHECK_MS, options.clock.mono());
    this.registry = new Registry(this.core);
    const counts = (): { total: number; connected: number } => ({
      total: this.registry.size,
      connected: this.core.stats.connected,
    });
    declareBrokerMetrics(options.metrics, this.core, counts);
    this.sys = new SysTree(this.core, options.sys, counts);
    this.handlers.add((event) => this.sys.clientStatus(event));
  }

  async start(): Promise<void> {
    const restored = await this.core.journal.load();
    const { steadyMs } = this.core.journal;
    if (steadyMs !== null) this.options.resumeTime?.(steadyMs);
    this.spools = restored.spools;
    this.core.router.restore(restored.retained);
    const clients: RestoredSession[] = [];
    const delayed: RestoredSession[] = [];
    for (const one of restored.sessions) {
      const { clientId } = one.session;
      if (clientId.startsWith(DELAYED_SESSION)) delayed.push(one);
      else (clientId.startsWith(BRIDGE_SESSION) ? this.bridgeSessions : clients).push(one);
    }
    this.registry.restore(clients);
    this.countRetained();
    this.core.delayed.restore(delayed);
    this.sys.start();
    this.timers.push(this.core.clock.every(CHECK_MS, () => this.check()));
    this.timers.push(this.core.clock.every(SWEEP_MS, () => this.sweep()));
    this.timers.push(this.core.clock.every(WINDOW_MS, () => this.core.router.turnTopics()));
  }

  async stop(_deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    await this.stopClients(0);
    this.sys.stop();
    this.core.delayed.stop();
    await this.core.journal.close();
  }

  /**
   * Tells 5.0 clients that the server goes (0x8B) and closes; sessions stay, wills are sent as for any lost connection
   * [MQTT-3.1.2-8].
   */
  async stopClients(deadlineMs: number): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    this.registry.stopping = true;
    for (const timer of this.timers) timer.cancel();
    // No packet may follow a DISCONNECT [MQTT-3.14.4-1]: first the acknowledgements leave.
    const answered = Promise.all([...this.clients_].map((client) => client.lastAnswers()));
    if (deadlineMs > 0) await within(this.core.clock, deadlineMs, answered);
    this.core.turn.enter();
    for (const client of [...this.clients_]) client.disconnect(SERVER_SHUTTING_DOWN, 'the server is shutting down');
    this.core.turn.leave();
  }

  /** Where bridges keep what their remote end does not have yet. */
  get journal(): Journal {
    return this.core.journal;
  }

  accept(connection: Connection, listener: ListenerContext): void {
    if (this.stopping || !this.admits()) {
      connection.destroy();
      return;
    }
    const client = new Client(this.core, this.registry, connection, listener, this.forget);
    client.onOpened = (session) => this.emit({ kind: 'connected', client: this.view(session) });
    client.onClosed = (session, reason, reasonCode) =>
      this.emit({ kind: 'disconnected', client: this.view(session), reason, reasonCode });
    this.clients_.add(client);
    this.core.ledger.add('connections', CONNECTION_BYTES);
    client.start();
  }

  /** Limits that hold before a peer has said anything. */
  private admits(): boolean {
    const { limits, stats, clock } = this.core;
    const pending = this.clients_.size - stats.connected;
    let why = '';
    if (limits.maxPendingConnections > 0 && pending >= limits.maxPendingConnections)
      why = 'too many connections that are not let in yet';
    if (limits.maxConnectRate > 0) {
      const nowMs = clock.mono();
      if (nowMs - this.rateSinceMs >= 1000) {
        this.rateSinceMs = nowMs;
        this.rateCount = 0;
      }
      if (++this.rateCount > limits.maxConnectRate) why = 'too many connections a second';
    }
    const most = connectionLimit(limits);
    if (most > 0 && (this.core.ledger.of('connections') >= most || this.core.ledger.isFull(0)))
      why = 'no memory for more connections';
    if (why === '') return true;
    stats.refused++;
    this.refusals('warn', 'CON-REFUSED', { reason: why });
    return false;
  }

  attach(options: LocalOptions): LocalClient {
    return new NativeLocalClient(this.core, options, this.options.localAccess, () => {});
  }

  /** New limits, for clients that connect from now on and for checks made from now on. */
  setLimits(limits: SessionLimits): void {
    this.core.limits = limits;
    this.core.budget.limit = limits.memoryBudget;
    this.core.ledger.keptLimit = limits.keptBudget;
    this.core.ledger.totalLimit = totalLimit(limits);
    this.core.held.limit = heldLimit(limits);
    this.core.router.retainedLimits = limits.retained;
    this.core.router.maxMatching = limits.maxMatching;
    for (const session of this.registry.all()) session.outbox.limits = limits.outbox;
  }

  /**
   * What the configuration says about topics and payloads from now on. Clients whose mount point differs are closed.
   */
  setPolicies(policies: Policies | null): void {
    const { core } = this;
    core.policies = policies;
    core.delayed.limits = policies?.delayed ?? null;
    core.turn.enter();
    for (const session of [...this.registry.all()]) {
      const mount = policies?.of(session.identity)?.mount ?? '';
      if (session.client !== null && mount !== session.mount)
        session.client.disconnect(ADMINISTRATIVE_ACTION, 'the mount point of the listener has changed');
    }
    core.turn.leave();
  }

  /** What clients may use from now on; what they have stays. */
  setQuotas(quotas: Quotas | null): void {
    this.core.quotas = quotas;
    for (const session of this.registry.all()) enterScopes(this.core, session);
    for (const client of this.clients_) client.meter();
    this.countRetained();
  }

  quotas(): QuotaView[] {
    return this.core.quotas?.view() ?? [];
  }

  /** Retained messages count for those who have published them. */
  private countRetained(): void {
    const { quotas, clock, router } = this.core;
    const scopesOf = ({ clientId, username, arrival }: Origin): Usage[] => {
      const { listener = '', remoteAddress = '' } = arrival ?? {};
      return quotas?.of({ clientId, username, listener, remoteAddress }, clock.mono()) ?? [];
    };
    router.mayRetain = quotas === null ? null : (origin) => mayRetain(origin.kind === 'client' ? scopesOf(origin) : []);
    router.countRetained(
      quotas === null
        ? null
        : ({ origin, topic }, by) => {
            if (origin.kind !== 'client' || topic.startsWith('$')) return;
            for (const scope of scopesOf(origin)) scope.retained += by;
          },
    );
  }

  delayedMessages(): Iterable<DelayedView> {
    return this.core.delayed.list();
  }

  removeDelayed(id: number): boolean {
    return this.core.delayed.remove(id);
  }

  /** Makes sessions for clients that have not been here yet. */
  preset(sessions: readonly Preset[]): void {
    for (const { clientId, subscriptions } of sessions) {
      const stored = subscriptions.map((s) => ({ ...s, subscriptionIdentifier: 0 }));
      this.registry.preset(clientId, stored, this.options.localAccess);
    }
    if (sessions.length > 0) this.core.journal.barrierAll(new Hold());
  }

  /** How often $SYS is published from now on; 0 = not any more. */
  setSysInterval(intervalMs: number): void {
    this.sys.setInterval(intervalMs);
  }

  accessChanged(): void {
    this.core.router.invalidate();
  }

  /** Closes clients whose user may not be here any more. */
  dropRevoked(revoked: (listener: string, username: string | null, via?: Via) => boolean): number {
    let count = 0;
    for (const session of [...this.registry.all()]) {
      const { username, via } = session.identity;
      if (session.client === null || !revoked(session.listener, username, via)) continue;
      session.client.disconnect(NOT_AUTHORIZED, 'the user has been removed or changed');
      count++;
    }
    return count;
  }

  async endSubscriptions(denied: (identity: Identity, topicFilter: string) => boolean): Promise<number> {
    const { core, registry } = this;
    const sessions = [...registry.all()];
    let count = 0;
    const look = (i: number): undefined => {
      const session = sessions[i];
      if (registry.get(session.clientId) !== session) return;
      for (const topicFilter of [...session.subscriptions.keys()]) {
        if (!denied(session.identity, judgedBy(core, topicFilter))) continue;
        remove(core, session, topicFilter);
        this.emit({ kind: 'unsubscribed', clientId: session.clientId, topicFilter });
        count++;
      }
    };
    await inSlices(core.pace, sessions.length, look, () => !this.stopped);
    return count;
  }

  answer(clientId: string, topic: string, payload: Uint8Array): boolean {
    const session = this.registry.get(clientId);
    if (session === undefined || session.client === null || !session.outbox.mayReceive(topic)) return false;
    const own = [...session.subscriptions.keys()].some((filter) => !isShared(filter) && matches(filter, topic));
    if (!own) return false;
    const { core } = this;
    const publication = new Publication(SERVER, core.slab);
    publication.topic = topic;
    publication.buffer = payload;
    publication.payloadEnd = payload.length;
    const target = { receiver: session.outbox, qos: 0, retainAsPublished: false, order: 0 } as const;
    core.turn.enter();
    session.outbox.deliver(publication, { ...target, subscriptionIdentifiers: null, own: null, share: null });
    core.turn.leave();
    return true;
  }

  onEvent(handler: (event: BrokerEvent) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  *clients(): Iterable<ClientView> {
    for (const session of this.registry.all()) yield this.view(session);
  }

  client(clientId: string): ClientView | undefined {
    const session = this.registry.get(clientId);
    return session === undefined ? undefined : this.view(session);
  }

  identity(clientId: string): Identity | undefined {
    const session = this.registry.get(clientId);
    return session === undefined || session.unclaimed ? undefined : session.identity;
  }

  *subscriptions(clientId?: string): Iterable<SubscriptionView> {
    const one = clientId === undefined ? undefined : this.registry.get(clientId);
    const sessions = clientId === undefined ? this.registry.all() : one === undefined ? [] : [one];
    for (const session of sessions) {
      for (const subscription of session.subscriptions.values()) yield { clientId: session.clientId, ...subscription };
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
    const session = this.registry.get(clientId);
    if (session === undefined) return false;
    this.core.turn.enter();
    session.client?.disconnect(ADMINISTRATIVE_ACTION, 'closed by an administrator');
    if (dropSession && this.registry.get(clientId) === session) this.registry.end(session, 'kicked');
    this.core.turn.leave();
    return true;
  }

  private sweep(): void {
    this.core.router.sweep();
    this.core.quotas?.sweep(this.core.clock.mono());
    this.core.slab.spare.trim();
  }

  /**
   * A client has too many filters for one topic: the newest end, and it is told so. Not here and now: routes are being
   * found.
   */
  private crowded(clientId: string, topic: string, excess: readonly Subscription[]): void {
    if (this.crowding.has(clientId)) return;
    this.crowding.add(clientId);
    const { core } = this;
    const session = this.registry.get(clientId);
    const isThere = (): boolean => session !== undefined && this.registry.get(clientId) === session;
    const endOne = (i: number): undefined => {
      const { topicFilter } = excess[i];
      const exclusive = EXCLUSIVE_PREFIX + topicFilter;
      if (session !== undefined && (remove(core, session, topicFilter) || remove(core, session, exclusive)))
        this.emit({ kind: 'unsubscribed', clientId, topicFilter });
    };
    core.pace.later(() => {
      void Promise.resolve(inSlices(core.pace, excess.length, endOne, isThere)).then(() => {
        this.crowding.delete(clientId);
        core.caps.refused('matching', clientId, topic);
        core.turn.enter();
        if (isThere()) session?.client?.disconnect(QUOTA_EXCEEDED, 'too many topic filters match one topic');
        core.turn.leave();
      });
    });
  }

  private check(): void {
    const nowMs = this.core.clock.mono();
    this.core.turn.enter();
    if (this.absence.over(nowMs)) for (const client of this.clients_) client.excuse(nowMs);
    for (const client of this.clients_) client.check(nowMs);
    // Asked for each message that is queued: looked at now and then.
    this.core.delivery.full = this.core.ledger.isFull(0);
    this.core.turn.leave();
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

  private view(session: Session): ClientView {
    const { outbox, client } = session;
    return {
      clientId: session.clientId,
      username: session.identity.username,
      connected: client !== null,
      remote: session.remote,
      listener: session.listener,
      version: session.version,
      cleanStart: session.cleanStart,
      keepAlive: session.keepAlive,
      since: session.since,
      sessionExpiryInterval: session.expiryInterval,
      subscriptions: session.subscriptions.size,
      inflight: outbox.inflightCount,
      queued: outbox.queuedCount,
      queuedBytes: outbox.queuedBytes,
      unsentBytes: client?.writer.queuedBytes ?? 0,
      messagesIn: session.messagesIn,
      messagesOut: outbox.sent,
      dropped: outbox.dropped,
      willTopic: session.will?.topicName ?? null,
      will: session.will,
      lastError: session.lastError,
    };
  }
}
