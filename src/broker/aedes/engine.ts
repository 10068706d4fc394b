// The second engine behind the seam broker/broker.ts: aedes 1.x serves the clients (MQTT 3.1 and 3.1.1), with Redis for
// several gateways at once. Built by gateway/gateway.ts when broker.engine = aedes. aedes speaks the protocol; who
// comes in, what they may do, where messages go and how much of anything is kept is decided here and in the files
// beside it.
//
//   connection -> front.ts (CONNECT, sizes) -> aedes -> rights.ts -> publishing.ts -> router.ts -> local receivers
//                                                                             \-> relay.ts -> queues, other gateways
import { randomUUID } from 'node:crypto';
import type { Identity } from '../../auth/auth.ts';
import type { Timer } from '../../base/clock.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { ConnectPacket } from '../../mqtt/packet.ts';
import { SERVER_UNAVAILABLE } from '../../mqtt/reason.ts';
import { checkLimits, type Refusal } from '../../session/checks.ts';
import type { SessionLimits } from '../../session/session.ts';
import type { Connection } from '../../transport/transport.ts';
import { EngineBase, type EngineOptions } from '../base.ts';
import type { ClientView, Engine, ListenerContext } from '../broker.ts';
import { Front } from './front.ts';
import { Incoming } from './incoming.ts';
import { REDIS_METRICS } from './metrics.ts';
import { listenTo, overrideBroker, overridePersistence } from './overrides.ts';
import { Packets } from './packets.ts';
import { type Aedes, loadAedes, MOST_LEVELS } from './parts.ts';
import { Publishing } from './publishing.ts';
import { Relay } from './relay.ts';
import { AedesRights } from './rights.ts';
import { AedesRouter } from './router.ts';
import type { AedesSession, SessionParts } from './session.ts';
import { AedesSessions } from './sessions.ts';
import { Sharing } from './sharing.ts';

const EXPIRY_MS = 60_000;

export interface AedesBrokerOptions extends EngineOptions {
  /** null = this gateway alone, in memory. */
  readonly redis: string | null;
}

function withLimits(limits: SessionLimits): SessionLimits {
  const { maxTopicLevels } = limits;
  return { ...limits, maxTopicLevels: maxTopicLevels === 0 ? MOST_LEVELS : Math.min(maxTopicLevels, MOST_LEVELS) };
}

export class AedesBroker extends EngineBase<AedesSession, Front, AedesRouter> implements Engine {
  readonly spools = new Map();
  readonly bridgeSessions = [];
  protected readonly sessions: AedesSessions;
  private readonly redis: string | null;
  private readonly packets: Packets;
  private readonly publishing: Publishing;
  private readonly rights: AedesRights;
  private readonly queueLog: Log;
  /** null without other gateways. */
  private sharing: Sharing | null = null;
  private stopped = false;

  /** The journal is one that keeps nothing: config/engine.ts refuses another. */
  constructor(options: AedesBrokerOptions) {
    const packets = new Packets();
    const limits = withLimits(options.limits);
    super({ ...options, limits }, (ledger) => new AedesRouter(options.journal, options.clock, ledger, packets));
    this.redis = options.redis;
    this.packets = packets;
    this.rights = new AedesRights({
      core: this.core,
      brokerId: () => packets.brokerId,
      take: (packet, front, done) => this.publishing.take(packet, front, done),
      mayReceive: (session, topic) => this.mayReceive(session, topic),
    });
    this.publishing = new Publishing(this.core, packets, (packet) => this.rights.settled(packet));
    this.queueLog = limitLog(options.log, () => options.clock.mono(), 10_000);
    const { delivery, router } = this.core;
    const session: SessionParts = {
      stats: delivery,
      limits: () => this.core.limits.outbox,
      mayReceive: (of, topic) => this.mayReceive(of, topic),
      packet: router.packet,
      fresh: (publication) => packets.of(publication),
      later: router.later,
      onTrouble: (of, reason) => this.trouble(of, reason),
    };
    this.sessions = new AedesSessions({
      core: this.core,
      session,
      persistence: () => packets.aedes?.persistence ?? null,
      stopping: () => this.stopping,
    });
  }

  /** Throws BROKER-ENGINE when a package is missing or Redis cannot be reached. */
  async start(): Promise<void> {
    const { clock, log, metrics } = this.options;
    const { core, sessions, packets } = this;
    const constructed = await loadAedes();
    if (this.redis !== null) this.sharing = await this.openSharing(this.redis);
    const { sharing } = this;
    const aedes = new constructed(this.aedesOptions());
    packets.aedes = aedes;
    packets.shared = sharing !== null;
    const { publishing, refusals } = this;
    const overriding = {
      core,
      sessions,
      publishing,
      refusals,
      stopping: () => this.stopping,
      emit: core.emit,
    };
    const open = overrideBroker(aedes, overriding);
    listenTo(aedes, overriding);
    await aedes.listen();
    const incoming = new Incoming(aedes.persistence, (client) =>
      (client.conn as Front).refuse('the shared broker is away'),
    );
    overridePersistence(aedes.persistence, overriding);
    core.router.sharing = sharing !== null;
    const relay = new Relay({
      aedes,
      stats: core.delivery,
      limits: () => core.limits.outbox,
      session: (clientId) => sessions.get(clientId),
      queueLength: (clientId) => sharing?.store.queueLength(clientId) ?? sessions.get(clientId)?.stored ?? 0,
      shared: sharing !== null,
      inStep: () => sharing?.isInStep !== false,
      log,
      mono: () => clock.mono(),
    });
    publishing.start({ aedes, relay, incoming });
    open();
    metrics.read(REDIS_METRICS.unshared, () => relay.unshared);
    await sharing?.join(aedes);
    this.startTimers();
    this.timers.push(clock.every(EXPIRY_MS, () => sessions.expire()));
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    await this.stopClients();
    this.stopSys();
    const { aedes } = this.packets;
    if (aedes !== null) await this.closeAedes(aedes, Math.max(100, deadlineMs / 2));
    this.sharing?.close();
  }

  /** What is not acknowledged by now is not: its clients send it again. */
  async stopClients(): Promise<void> {
    if (!this.stopAccepting()) return;
    this.sharing?.rest();
    for (const front of [...this.connections]) front.refuse('the server is shutting down');
  }

  override setLimits(limits: SessionLimits): void {
    super.setLimits(withLimits(limits));
  }

  /** There are none: config/engine.ts refuses them. */
  preset(): void {}

  /** aedes cannot take back one subscription of a client: its session ends. */
  async endSubscriptions(denied: (identity: Identity, topicFilter: string) => boolean): Promise<number> {
    let count = 0;
    for (const session of [...this.sessions.all()]) {
      const filters = [...session.subscriptions.keys()].filter((filter) => denied(session.identity, filter));
      if (filters.length > 0 && this.kick(session.clientId, true)) count += filters.length;
    }
    return count;
  }

  override *clients(): Iterable<ClientView> {
    yield* super.clients();
    if (this.sharing !== null) yield* this.sharing.clients((clientId) => this.sessions.get(clientId) !== undefined);
  }

  protected serve(connection: Connection, listener: ListenerContext): Front {
    const { stats } = this.core;
    return new Front({
      connection,
      listener,
      clock: this.options.clock,
      limits: () => this.core.limits,
      onConnect: (front, packet) => this.connecting(front, packet),
      onBytes: (count) => {
        stats.bytesIn += count;
      },
      onGone: (front, reason) => {
        this.forget(front);
        this.sessions.gone(front, reason);
      },
    });
  }

  protected view(session: AedesSession): ClientView {
    return session.view();
  }

  protected close({ front }: AedesSession, _reasonCode: number, why: string): boolean {
    front?.refuse(why);
    return front !== null;
  }

  protected end(session: AedesSession): void {
    this.sessions.end(session);
  }

  // ---- inside

  private connecting(front: Front, packet: ConnectPacket): Refusal | null {
    const { aedes } = this.packets;
    if (aedes === null) return { reasonCode: SERVER_UNAVAILABLE, why: 'not started' };
    const refusal = checkLimits(this.core.limits, packet, front.listener.rules);
    if (refusal === null) aedes.handle(front);
    return refusal;
  }

  private aedesOptions(): ConstructorParameters<Awaited<ReturnType<typeof loadAedes>>>[0] {
    const { rights, sessions } = this;
    const { limits } = this.core;
    const store = this.sharing?.store;
    return {
      id: randomUUID(),
      ...(store === undefined ? {} : { mq: store.emitter, persistence: store.persistence }),
      concurrency: 0,
      // The front has its own.
      connectTimeout: 0x7fffffff,
      drainTimeout: limits.sendTimeoutMs,
      maxClientsIdLength: 65_535,
      maxTopicLevels: MOST_LEVELS,
      maxInflightInbound: limits.maxAwaitingRel,
      authenticate: (client, _username, _password, done) => sessions.authenticate(client, done),
      authorizePublish: (client, packet, done) => rights.authorizePublish(client, packet, done),
      authorizeSubscribe: (client, subscription, done) => rights.authorizeSubscribe(client, subscription, done),
      authorizeForward: (client, packet) => rights.authorizeForward(client, packet),
    };
  }

  private openSharing(url: string): Promise<Sharing> {
    const { clock, log, metrics } = this.options;
    const { refusals, sessions } = this;
    return Sharing.open(url, Math.ceil(this.core.limits.maxSessionExpiryMs / 1000), {
      clock,
      log,
      metrics,
      refusals,
      takeForeign: (packet) => this.publishing.takeForeign(packet),
      moved: (clientId) => {
        const session = sessions.get(clientId);
        if (session !== undefined) sessions.forget(session);
      },
      // What was published meanwhile is queued for kept sessions; their clients get it when they come again.
      caughtUp: () => {
        for (const session of [...sessions.all()])
          if (!session.clean) session.front?.refuse('the shared broker was away');
      },
    });
  }

  private async closeAedes(aedes: Aedes, deadlineMs: number): Promise<void> {
    let timer: Timer | null = null;
    await new Promise<void>((resolve) => {
      timer = this.options.clock.after(deadlineMs, resolve);
      aedes.close(() => resolve());
      // A Redis that is away would not let go of it.
      if (this.sharing?.store.ready() === false) setImmediate(resolve);
    });
    (timer as Timer | null)?.cancel();
  }

  private mayReceive(session: AedesSession, topic: string): boolean {
    const access = session.front?.listener.access() ?? this.core.absentees.access(session.identity);
    return access.authorizer.deliver(session.identity, topic);
  }

  private trouble({ clientId }: AedesSession, reason: 'queue-full' | 'slow'): void {
    this.queueLog('warn', 'SES-QUEUE-FULL', { clientId, reason });
    this.emit({ kind: 'dropped', clientId, reason, count: 1 });
  }
}
