// What both engines do alike: what clients share (Core), limits before CONNECT, events, clients inside the process,
// introspection, kicks, revoked users, $SYS, what is looked at now and then. Extended by native/engine.ts and
// aedes/engine.ts, which say what a session is and how a connection is served. Holds no rule of MQTT itself.
import type { Absentees, Access, Identity } from '../auth/auth.ts';
import { Absence, type Clock, type Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { Ledger } from '../base/ledger.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { Slab } from '../base/slab.ts';
import type { Turn } from '../base/turn.ts';
import type { BlockPool } from '../base/writer.ts';
import { type Alter, newDeliveryStats, type Sent } from '../delivery/delivery.ts';
import { Outbox } from '../delivery/outbox.ts';
import type { Message, Via } from '../mqtt/message.ts';
import type { SubscriptionRequest } from '../mqtt/packet.ts';
import { ADMINISTRATIVE_ACTION, NOT_AUTHORIZED } from '../mqtt/reason.ts';
import type { Policies, Quotas } from '../policy/policy.ts';
import type { Routes } from '../router/routes.ts';
import { COUNTED_TOPICS, WINDOW_MS } from '../router/topics.ts';
import { Budget } from '../session/budget.ts';
import { Caps } from '../session/caps.ts';
import { Contests } from '../session/contest.ts';
import { Delayed } from '../session/delayed.ts';
import { Exclusives } from '../session/exclusive.ts';
import { Held } from '../session/held.ts';
import { IntakeBuffer } from '../session/intake.ts';
import { Pace } from '../session/pace.ts';
import { type Core, newSessionStats, type SessionLimits } from '../session/session.ts';
import { CONNECTION_BYTES, totalLimit } from '../session/weight.ts';
import type { Journal } from '../store/store.ts';
import type { Connection } from '../transport/transport.ts';
import type {
  BrokerEvent,
  ClientView,
  ListenerContext,
  LocalClient,
  LocalOptions,
  SubscriptionView,
  TopicTraffic,
} from './broker.ts';
import { NativeLocalClient } from './local.ts';
import { declareBrokerMetrics } from './metrics.ts';
import { Newcomers } from './newcomers.ts';
import { type SysOptions, SysTree } from './sys.ts';

/** How often silent and stuck connections are looked for. */
const CHECK_MS = 500;
/** How often expired retained messages are looked for, and spare memory that is not needed. */
const SWEEP_MS = 1000;

export interface EngineOptions {
  readonly clock: Clock;
  /** Called with what clock.steady() is to say from now on: it goes on from the process before. */
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
  /** What a program makes of each message for one client; absent or null: nothing. */
  readonly alterFor?: ((identity: Identity) => Alter) | null;
  /** Who is told of what was written to one client; absent or null: nobody. */
  readonly sentFor?: ((identity: Identity) => Sent) | null;
  /** The router of the native engine where it is not the ordinary one. */
  readonly newRoutes?: ((journal: Journal, clock: Clock, ledger: Ledger) => Routes) | null;
  /** Rights of clients inside the process and of sessions that nobody has claimed yet. */
  readonly localAccess: () => Access;
  /** Rights of restored sessions, wills and stored messages. */
  readonly absentees: Absentees;
  readonly sys: SysOptions;
}

/** A session, whichever engine keeps it. */
export interface EngineSession {
  readonly clientId: string;
  readonly identity: Identity;
  /** Where its client is, or was last. */
  readonly listener: string;
  readonly subscriptions: ReadonlyMap<string, SubscriptionRequest & { readonly subscriptionIdentifier?: number }>;
}

/** A connection, whichever engine serves it. */
export interface EngineConnection {
  start(): void;
  /** Closes what is silent or stuck for too long. */
  check(nowMs: number): void;
  /** The gateway itself was away: silence before now proves nothing. */
  excuse(nowMs: number): void;
}

/** What sessions an engine keeps. */
export interface EngineSessions<S> {
  readonly size: number;
  all(): Iterable<S>;
  get(clientId: string): S | undefined;
}

/** A quarter of the memory budget may wait for acknowledgements that are held back. */
function heldLimit({ memoryBudget }: SessionLimits): number {
  return memoryBudget > 0 ? memoryBudget / 4 : Number.POSITIVE_INFINITY;
}

/** `router` gives the engine's router, made once everything that it is told of is there. */
export abstract class EngineBase<S extends EngineSession, C extends EngineConnection, R extends Routes> {
  protected readonly options: EngineOptions;
  protected readonly core: Core & { readonly router: R };
  protected readonly connections = new Set<C>();
  /** At most one line a second. */
  protected readonly refusals: Log;
  protected readonly timers: Timer[] = [];
  protected stopping = false;
  private readonly handlers = new Set<(event: BrokerEvent) => void>();
  private readonly sys: SysTree;
  private readonly newcomers: Newcomers;
  private readonly absence: Absence;

  constructor(options: EngineOptions, router: (ledger: Ledger) => R) {
    this.options = options;
    this.core = this.newCore(options, router);
    const { clock, log } = options;
    this.newcomers = new Newcomers(clock, this.core.ledger);
    this.refusals = limitLog(log, () => clock.mono(), 1000);
    this.absence = new Absence(CHECK_MS, clock.mono());
    this.limit(options.limits);
    const counts = (): { total: number; connected: number } => ({
      total: this.sessions.size,
      connected: this.core.stats.connected,
    });
    declareBrokerMetrics(options.metrics, this.core, counts);
    this.sys = new SysTree(this.core, options.sys, counts);
    this.handlers.add((event) => this.sys.clientStatus(event));
  }

  // ---- what an engine says of itself

  protected abstract readonly sessions: EngineSessions<S>;
  /** Serves a connection that may come in. */
  protected abstract serve(connection: Connection, listener: ListenerContext): C;
  protected abstract view(session: S): ClientView;
  /** Closes the connection of a session; false when there is none. */
  protected abstract close(session: S, reasonCode: number, why: string): boolean;
  /** Ends a session whose connection is closed. */
  protected abstract end(session: S): void;

  // ---- the same for all

  /** Where bridges keep what their remote end does not have yet. */
  get journal(): Journal {
    return this.core.journal;
  }

  accept(connection: Connection, listener: ListenerContext): void {
    const { limits, stats, ledger } = this.core;
    const why = this.stopping ? 'stopping' : this.newcomers.refusal(limits, this.connections.size - stats.connected);
    if (why !== null) {
      if (!this.stopping) {
        stats.refused++;
        this.refusals('warn', 'CON-REFUSED', { reason: why });
      }
      connection.destroy();
      return;
    }
    const served = this.serve(connection, listener);
    this.connections.add(served);
    ledger.add('connections', CONNECTION_BYTES);
    served.start();
  }

  attach(options: LocalOptions): LocalClient {
    return new NativeLocalClient(this.core, options, this.options.localAccess, () => {});
  }

  /** New limits, for clients that connect from now on and for checks made from now on. */
  setLimits(limits: SessionLimits): void {
    this.limit(limits);
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
    for (const session of [...this.sessions.all()]) {
      const { username, via } = session.identity;
      if (!revoked(session.listener, username, via)) continue;
      if (this.close(session, NOT_AUTHORIZED, 'the user has been removed or changed')) count++;
    }
    return count;
  }

  onEvent(handler: (event: BrokerEvent) => void): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  *clients(): Iterable<ClientView> {
    for (const session of this.sessions.all()) yield this.view(session);
  }

  client(clientId: string): ClientView | undefined {
    const session = this.sessions.get(clientId);
    return session === undefined ? undefined : this.view(session);
  }

  identity(clientId: string): Identity | undefined {
    return this.sessions.get(clientId)?.identity;
  }

  *subscriptions(clientId?: string): Iterable<SubscriptionView> {
    const one = clientId === undefined ? undefined : this.sessions.get(clientId);
    const sessions = clientId === undefined ? this.sessions.all() : one === undefined ? [] : [one];
    for (const session of sessions) {
      for (const subscription of session.subscriptions.values())
        yield { subscriptionIdentifier: 0, ...subscription, clientId: session.clientId };
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
    this.core.turn.enter();
    this.close(session, ADMINISTRATIVE_ACTION, 'closed by an administrator');
    if (dropSession && this.sessions.get(clientId) === session) this.end(session);
    this.core.turn.leave();
    return true;
  }

  // ---- for the engine

  protected startTimers(): void {
    const { clock, router, slab } = this.core;
    this.sys.start();
    this.timers.push(clock.every(CHECK_MS, () => this.check()));
    this.timers.push(clock.every(SWEEP_MS, () => router.sweep()));
    this.timers.push(clock.every(SWEEP_MS, () => this.core.quotas?.sweep(clock.mono())));
    this.timers.push(clock.every(SWEEP_MS, () => slab.spare.trim()));
    this.timers.push(clock.every(WINDOW_MS, () => router.turnTopics()));
  }

  /** Nobody comes in any more, and nothing is done now and then. False when that was so already. */
  protected stopAccepting(): boolean {
    if (this.stopping) return false;
    this.stopping = true;
    for (const timer of this.timers) timer.cancel();
    return true;
  }

  protected stopSys(): void {
    this.sys.stop();
  }

  /** A connection has gone. */
  protected forget(connection: C): void {
    if (this.connections.delete(connection)) this.core.ledger.add('connections', -CONNECTION_BYTES);
  }

  protected emit(event: BrokerEvent): void {
    for (const handler of this.handlers) {
      try {
        handler(event);
      } catch (error) {
        this.core.log('error', 'GW-INTERNAL', { error: errorText(error) });
      }
    }
  }

  // ---- inside

  private newCore(options: EngineOptions, router: (ledger: Ledger) => R): Core & { readonly router: R } {
    const { clock, log, pool, turn } = options;
    const delivery = newDeliveryStats();
    const ledger = options.ledger ?? new Ledger();
    const slab = new Slab(turn.source);
    ledger.watch('unsent', () => pool.usedBytes);
    ledger.watch('queued', () => delivery.queuedBytes);
    ledger.watch('caches', () => slab.spare.bytes);
    const caps = new Caps(log, () => clock.mono());
    const made = router(ledger);
    made.onRetainedRefused = (clientId, topic) => caps.refused('retained', clientId, topic);
    const { journal, absentees } = options;
    const delayed = new Delayed({ clock, journal, turn, absentees, log, ledger, router: made, caps });
    delayed.limits = options.policies?.delayed ?? null;
    return {
      clock,
      turn,
      pool,
      intake: new IntakeBuffer(),
      slab,
      log,
      journal,
      router: made,
      limits: options.limits,
      stats: newSessionStats(),
      delivery,
      budget: new Budget(clock, log, () => pool.usedBytes + delivery.queuedBytes + ledger.of('input')),
      absentees,
      ledger,
      pace: new Pace(() => clock.mono(), options.cpuMs),
      held: new Held(),
      caps,
      contests: new Contests(),
      policies: options.policies ?? null,
      quotas: options.quotas ?? null,
      alterFor: options.alterFor ?? null,
      sentFor: options.sentFor ?? null,
      delayed,
      exclusives: new Exclusives(),
      makeOutbox: (outbox, resumable) => new Outbox(outbox, resumable),
      emit: (event) => this.emit(event),
    };
  }

  private limit(limits: SessionLimits): void {
    const { core } = this;
    core.limits = limits;
    core.budget.limit = limits.memoryBudget;
    core.ledger.keptLimit = limits.keptBudget;
    core.ledger.totalLimit = totalLimit(limits);
    core.held.limit = heldLimit(limits);
    core.router.retainedLimits = limits.retained;
  }

  private check(): void {
    const { clock, turn, delivery, ledger } = this.core;
    const nowMs = clock.mono();
    turn.enter();
    if (this.absence.over(nowMs)) for (const connection of this.connections) connection.excuse(nowMs);
    for (const connection of this.connections) connection.check(nowMs);
    // Asked for each message that is queued: looked at now and then.
    delivery.full = ledger.isFull(0);
    turn.leave();
  }
}
