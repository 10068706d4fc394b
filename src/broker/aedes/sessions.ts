// All sessions of the engine aedes: who is let in, takes over, leaves, comes back or stays away too long. Built by
// engine.ts. aedes keeps subscriptions and queues by client id alone; whose they are, and until when, is kept here.
import type { Access, Credentials, Identity } from '../../auth/auth.ts';
import { errorText } from '../../base/errors.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { ConnectPacket } from '../../mqtt/packet.ts';
import { foreignOwner } from '../../session/checks.ts';
import { credentialsOf } from '../../session/connect.ts';
import type { Core } from '../../session/session.ts';
import type { Front } from './front.ts';
import type { AedesClient, AedesPacket, Persistence } from './parts.ts';
import { AedesSession, type SessionParts } from './session.ts';

/** Return codes of CONNACK, 3.1.1 section 3.2.2.3. */
const IDENTIFIER_REJECTED = 2;
const SERVER_UNAVAILABLE = 3;
const REFUSED = 5;

/** Remembers no duplicates: the order of delivery is kept by relay.ts, and QoS 0 may overtake what is being stored. */
const NO_DUPLICATES = new Proxy(Object.freeze(Object.create(null) as object), {
  get: () => undefined,
  set: () => true,
  deleteProperty: () => true,
});

function refusal(returnCode: number, text: string): Error {
  return Object.assign(new Error(text), { returnCode });
}

export interface SessionsParts {
  readonly core: Core;
  readonly session: SessionParts;
  /** null until the broker has started. */
  readonly persistence: () => Persistence | null;
  readonly stopping: () => boolean;
}

export class AedesSessions {
  private readonly byId = new Map<string, AedesSession>();
  private readonly core: Core;
  private readonly parts: SessionsParts;
  private readonly refusals: Log;

  constructor(parts: SessionsParts) {
    this.parts = parts;
    this.core = parts.core;
    const { log, clock } = parts.core;
    this.refusals = limitLog(log, () => clock.mono(), 1000);
  }

  get size(): number {
    return this.byId.size;
  }

  all(): Iterable<AedesSession> {
    return this.byId.values();
  }

  get(clientId: string): AedesSession | undefined {
    return this.byId.get(clientId);
  }

  authenticate(client: AedesClient, done: (error: Error | null, accepted: boolean) => void): void {
    const front = client.conn as Front;
    const { connect, connection, listener } = front;
    if (connect === null) {
      done(refusal(REFUSED, 'no CONNECT'), false);
      return;
    }
    // A client without an id has been given one by aedes.
    const packet = { ...connect, clientId: client.id };
    const credentials = credentialsOf(packet, connection, listener.name, () => front.destroyed);
    const decide = (result: Awaited<ReturnType<Access['authenticator']['authenticate']>>): void => {
      if (front.destroyed || this.parts.stopping()) return;
      if (!result.accepted) {
        const code = result.reasonCode === 0x86 || result.reasonCode === 0x87 ? REFUSED : SERVER_UNAVAILABLE;
        this.refused(front, credentials, result.why, result.reasonCode);
        done(refusal(code, ''), false);
        return;
      }
      const known = this.byId.get(client.id);
      const foreign = known === undefined ? null : foreignOwner(this.core, known, result.identity);
      if (foreign !== null) {
        this.refused(front, credentials, foreign.why, foreign.reasonCode);
        done(refusal(IDENTIFIER_REJECTED, ''), false);
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

  private refused(front: Front, { clientId, username }: Credentials, reason: string, reasonCode: number): void {
    const { remote } = front.connection;
    front.why = reason;
    this.core.stats.refused++;
    this.refusals('warn', 'CON-REFUSED', { reason, clientId, username, remote });
    this.core.emit({ kind: 'refused', clientId, username, remote, reason, reasonCode });
  }

  /** Ends the older connection, finds or makes the session. Why it cannot be, or null. */
  private async admit(
    client: AedesClient,
    front: Front,
    packet: ConnectPacket,
    identity: Identity,
  ): Promise<string | null> {
    const { core, byId: sessions } = this;
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
    const foreign = session !== undefined && core.limits.sessionOwner === 'user' && !session.isFor(identity);
    if (session !== undefined && (packet.cleanStart || foreign)) {
      this.forget(session);
      await this.discard(clientId);
    }
    if (front.destroyed || this.parts.stopping()) return 'gone';
    session = sessions.get(clientId) ?? new AedesSession(clientId, identity, this.parts.session);
    sessions.set(clientId, session);
    session.adopt(identity);
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

  /** aedes has let the client in. */
  entered(session: AedesSession): void {
    const { core } = this;
    const { clientId, remote, listener, version, keepAlive } = session;
    session.announced = true;
    core.stats.connects++;
    core.stats.connected++;
    const { username } = session.identity;
    const cleanStart = session.clean;
    core.log('info', 'CLI-CONNECT', { clientId, username, remote, listener, version, cleanStart, keepAlive });
    core.emit({ kind: 'connected', client: session.view() });
  }

  gone(front: Front, why: string): void {
    const { session } = front;
    const { stats } = this.core;
    if (session === null || session.front !== front) {
      if (session === null && why !== '' && !this.parts.stopping() && front.connect === null) {
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
      const { clientId, remote } = session;
      this.core.log('info', 'CLI-DISCONNECT', { clientId, remote, reason: why === '' ? 'closed' : why, reasonCode: 0 });
      this.core.emit({
        kind: 'disconnected',
        client: session.view(),
        reason: why === '' ? 'closed' : why,
        reasonCode: 0,
      });
    }
    if (session.clean) this.forget(session);
  }

  /** Takes the session out of this process. */
  forget(session: AedesSession): void {
    for (const filter of session.subscriptions.keys()) this.core.router.unsubscribe(session, filter);
    session.subscriptions.clear();
    session.stored = 0;
    if (this.byId.get(session.clientId) === session) this.byId.delete(session.clientId);
  }

  end(session: AedesSession): void {
    this.forget(session);
    this.discard(session.clientId).catch((error: unknown) => {
      this.core.log('error', 'GW-INTERNAL', { error: errorText(error) });
    });
  }

  /** Drops subscriptions and queue that are kept for a client id. */
  private async discard(clientId: string): Promise<void> {
    const persistence = this.parts.persistence();
    if (persistence === null) return;
    const client = { id: clientId };
    await persistence.cleanSubscriptions(client);
    for await (const packet of persistence.outgoingStream(client))
      await persistence.outgoingClearMessageId(client, packet as AedesPacket);
  }

  /** Sessions that have been away for too long end. */
  expire(): void {
    const { maxSessionExpiryMs } = this.core.limits;
    if (maxSessionExpiryMs === 0) return;
    const before = this.core.clock.now() - maxSessionExpiryMs;
    for (const session of [...this.byId.values()]) {
      if (session.client !== null || session.since > before) continue;
      this.core.stats.expiredSessions++;
      this.core.log('info', 'SES-EXPIRED', { clientId: session.clientId });
      this.end(session);
    }
  }
}
