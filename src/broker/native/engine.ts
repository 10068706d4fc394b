// The broker of our own: wires session/, router/, delivery/ and store/ behind the seam broker/broker.ts. Built by
// gateway/engine.ts. Holds no rule of MQTT itself: those are in session/ and delivery/. Starts by restoring what the
// journal has kept.
import type { Identity } from '../../auth/auth.ts';
import { within } from '../../base/clock.ts';
import { BRIDGE_SESSION, DELAYED_SESSION } from '../../mqtt/clientid.ts';
import { Hold, type Origin, Publication } from '../../mqtt/message.ts';
import { ADMINISTRATIVE_ACTION, QUOTA_EXCEEDED, SERVER_SHUTTING_DOWN } from '../../mqtt/reason.ts';
import { EXCLUSIVE_PREFIX, isShared, matches } from '../../mqtt/topic.ts';
import type { Policies, Quotas, QuotaView, Usage } from '../../policy/policy.ts';
import type { Subscription } from '../../router/router.ts';
import { Routes } from '../../router/routes.ts';
import { Client } from '../../session/client.ts';
import { enterScopes } from '../../session/quotas.ts';
import { Registry } from '../../session/registry.ts';
import type { SessionLimits } from '../../session/session.ts';
import { inSlices } from '../../session/slices.ts';
import type { Session } from '../../session/state.ts';
import { judgedBy, remove } from '../../session/subscriptions.ts';
import type { Restored, RestoredSession } from '../../store/store.ts';
import type { Connection } from '../../transport/transport.ts';
import { EngineBase, type EngineOptions } from '../base.ts';
import type { ClientView, DelayedView, Engine, ListenerContext, Preset } from '../broker.ts';

/** Who sends what the gateway answers. */
const SERVER: Origin = { kind: 'server', clientId: '', username: null, bridge: null };

/** Counts a refusal. */
function mayRetain(scopes: readonly Usage[]): boolean {
  const full = scopes.find((scope) => scope.full('retained'));
  full?.count('retained', 'refused');
  return full === undefined;
}

export class NativeBroker extends EngineBase<Session, Client, Routes> implements Engine {
  /** What the journal has kept for bridges; known after start(). */
  spools: Restored['spools'] = new Map();
  readonly bridgeSessions: RestoredSession[] = [];
  protected readonly sessions: Registry;
  private stopped = false;
  /** Clients whose filters are being taken back because too many of them match one topic. */
  private readonly crowding = new Set<string>();
  private readonly gone = (client: Client): void => this.forget(client);

  constructor(options: EngineOptions) {
    const { journal, clock, newRoutes = null } = options;
    super(options, (ledger) => newRoutes?.(journal, clock, ledger) ?? new Routes(journal, clock, ledger));
    this.core.router.maxMatching = options.limits.maxMatching;
    this.core.router.onCrowded = (receiver, topic, excess) => this.crowded(receiver.clientId, topic, excess);
    this.sessions = new Registry(this.core);
  }

  async start(): Promise<void> {
    const { journal, router } = this.core;
    const restored = await journal.load();
    const { steadyMs } = journal;
    if (steadyMs !== null) this.options.resumeTime?.(steadyMs);
    this.spools = restored.spools;
    router.restore(restored.retained);
    const clients: RestoredSession[] = [];
    const delayed: RestoredSession[] = [];
    for (const one of restored.sessions) {
      const { clientId } = one.session;
      if (clientId.startsWith(DELAYED_SESSION)) delayed.push(one);
      else (clientId.startsWith(BRIDGE_SESSION) ? this.bridgeSessions : clients).push(one);
    }
    this.sessions.restore(clients);
    this.countRetained();
    this.core.delayed.restore(delayed);
    this.startTimers();
  }

  async stop(_deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    await this.stopClients(0);
    this.stopSys();
    this.core.delayed.stop();
    this.sessions.stop();
    await this.core.journal.close();
  }

  /**
   * Tells 5.0 clients that the server goes (0x8B) and closes; sessions stay, wills are sent as for any lost connection
   * [MQTT-3.1.2-8].
   */
  async stopClients(deadlineMs: number): Promise<void> {
    if (!this.stopAccepting()) return;
    this.sessions.beginStop();
    // No packet may follow a DISCONNECT [MQTT-3.14.4-1]: first the acknowledgements leave.
    const answered = Promise.all([...this.connections].map((client) => client.lastAnswers()));
    if (deadlineMs > 0) await within(this.core.clock, deadlineMs, answered);
    this.core.turn.enter();
    for (const client of [...this.connections]) client.disconnect(SERVER_SHUTTING_DOWN, 'the server is shutting down');
    this.core.turn.leave();
  }

  override setLimits(limits: SessionLimits): void {
    super.setLimits(limits);
    this.core.router.maxMatching = limits.maxMatching;
    for (const session of this.sessions.all()) session.outbox.limits = limits.outbox;
  }

  /**
   * What the configuration says about topics and payloads from now on. Clients whose mount point differs are closed.
   */
  setPolicies(policies: Policies | null): void {
    const { core } = this;
    core.policies = policies;
    core.delayed.limits = policies?.delayed ?? null;
    core.turn.enter();
    for (const session of [...this.sessions.all()]) {
      const mount = policies?.of(session.identity)?.mount ?? '';
      if (session.client !== null && mount !== session.mount)
        session.client.disconnect(ADMINISTRATIVE_ACTION, 'the mount point of the listener has changed');
    }
    core.turn.leave();
  }

  /** What clients may use from now on; what they have stays. */
  setQuotas(quotas: Quotas | null): void {
    this.core.quotas = quotas;
    for (const session of this.sessions.all()) enterScopes(this.core, session);
    for (const client of this.connections) client.meter();
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
      this.sessions.preset(clientId, stored, this.options.localAccess);
    }
    if (sessions.length > 0) this.core.journal.barrierAll(new Hold());
  }

  async endSubscriptions(denied: (identity: Identity, topicFilter: string) => boolean): Promise<number> {
    const { core, sessions: registry } = this;
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
    const session = this.sessions.get(clientId);
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

  /** Nobody's while its first user has not come. */
  override identity(clientId: string): Identity | undefined {
    const session = this.sessions.get(clientId);
    return session === undefined || session.unclaimed ? undefined : session.identity;
  }

  protected serve(connection: Connection, listener: ListenerContext): Client {
    const client = new Client(this.core, this.sessions, connection, listener, this.gone);
    client.onOpened = (session) => this.emit({ kind: 'connected', client: this.view(session) });
    client.onClosed = (session, reason, reasonCode) =>
      this.emit({ kind: 'disconnected', client: this.view(session), reason, reasonCode });
    return client;
  }

  protected close(session: Session, reasonCode: number, why: string): boolean {
    const { client } = session;
    client?.disconnect(reasonCode, why);
    return client !== null;
  }

  protected end(session: Session): void {
    this.sessions.end(session, 'kicked');
  }

  /**
   * A client has too many filters for one topic: the newest end, and it is told so. Not here and now: routes are being
   * found.
   */
  private crowded(clientId: string, topic: string, excess: readonly Subscription[]): void {
    if (this.crowding.has(clientId)) return;
    this.crowding.add(clientId);
    const { core } = this;
    const session = this.sessions.get(clientId);
    const isThere = (): boolean => session !== undefined && this.sessions.get(clientId) === session;
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

  protected view(session: Session): ClientView {
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
