// All sessions of a broker: who has which client id, what happens when a connection ends, when sessions are due; their
// wills are in wills.ts. Called by opening.ts (open) and client.ts (close). Sources: MQTT 5.0 sections 3.1.2.11.2, 4.1;
// 3.1.1 section 3.1.2.4.
import type { Absentees, Access, Identity } from '../auth/auth.ts';
import type { Version } from '../mqtt/packet.ts';
import type { RestoredSession, StoredSession, StoredSubscription } from '../store/store.ts';
import { capExpiry } from './opening.ts';
import { enterScopes, leaveScopes } from './quotas.ts';
import type { Core } from './session.ts';
import { NEVER, Session } from './state.ts';
import { put, withdraw } from './subscriptions.ts';
import { bytesOf, EXCHANGE_BYTES } from './weight.ts';
import { Wills } from './wills.ts';

export class Registry {
  private readonly sessions = new Map<string, Session>();
  private readonly core: Core;
  readonly wills: Wills;

  constructor(core: Core) {
    this.core = core;
    this.wills = new Wills(core, (session) => this.weigh(session));
  }

  /** The gateway stops: no will of a session that is stored is sent any more. */
  beginStop(): void {
    this.wills.stopping = true;
  }

  get size(): number {
    return this.sessions.size;
  }

  get(clientId: string): Session | undefined {
    return this.sessions.get(clientId);
  }

  all(): Iterable<Session> {
    return this.sessions.values();
  }

  /**
   * Whether a client may come with its client id: a session belongs to its user, who may not be robbed of it
   * (connect.ts refuses).
   */
  mayContinue(session: Session, identity: Identity): boolean {
    return this.core.limits.sessionOwner === 'client_id' || session.isFor(identity);
  }

  /** The session a client continues, or a new one. */
  open(
    identity: Identity,
    version: Version,
    cleanStart: boolean,
  ): { session: Session; present: boolean; discarded: boolean } {
    const known = this.sessions.get(identity.clientId);
    if (known !== undefined && !cleanStart && this.mayContinue(known, identity)) {
      known.expiryTimer?.cancel();
      known.expiryTimer = null;
      known.adopt(identity, version, cleanStart);
      return { session: known, present: true, discarded: false }; // [MQTT-3.1.2-5] [MQTT-3.2.2-2]
    }
    // A clean start discards what was there [MQTT-3.1.2-4], and ends the old session: its will is due now
    // [MQTT-3.1.3-9].
    const discarded = known?.outbox.durable === true;
    if (known !== undefined) this.end(known, 'clean start');
    const session = new Session(this.core, identity, version, cleanStart);
    this.sessions.set(identity.clientId, session);
    return { session, present: false, discarded };
  }

  /** Counts what the session's record takes now: to be called when its names, will or claims have changed. */
  weigh(session: Session): void {
    if (this.sessions.get(session.clientId) !== session) return;
    const bytes = bytesOf(session);
    this.core.ledger.add('sessions', bytes - session.bytes);
    session.bytes = bytes;
  }

  /**
   * A client has come: how long the session lives after it. True when the journal was told something its CONNACK has to
   * wait for.
   */
  begin(session: Session, expiryInterval: number): boolean {
    session.expiryInterval = expiryInterval;
    const resumable = expiryInterval > 0;
    session.outbox.resumable = resumable;
    const { journal } = this.core;
    const durable = resumable && journal.durable;
    if (durable) {
      const first = !session.outbox.durable;
      session.outbox.durable = true;
      this.tell(session, 0);
      if (first)
        for (const subscription of session.subscriptions.values())
          journal.subscriptionPut(session.clientId, subscription);
      if (session.will !== null) this.wills.keep(session, session.will);
      else journal.willDelete(session.clientId);
    } else if (session.outbox.durable) {
      session.outbox.durable = false;
      journal.sessionDelete(session.clientId);
      return true;
    }
    return durable;
  }

  /**
   * The connection has ended. `withWill`: it was not a normal DISCONNECT. `takenOver`: another connection continues the
   * session. Publishes or schedules the will, then keeps or ends the session.
   */
  close(session: Session, withWill: boolean, takenOver: boolean): void {
    session.client = null;
    session.moved();
    session.since = this.core.clock.now();
    const will = session.will;
    session.will = null;
    if (will !== null && !withWill) this.wills.forget(session); // [MQTT-3.14.4-3]
    const lives = session.expiryInterval > 0;
    // A clean stop is no end for a session that is stored: its will waits for the next start (MQTT 5.0 section 3.1.2.5
    // allows it).
    const deferred = this.wills.stopping && session.outbox.durable;
    // Before the will: a session that gets its own is not there to take it, and has not been sent it [MQTT-3.3.1-1].
    session.outbox.detach();
    if (will !== null && withWill && !deferred) {
      if (lives && will.delayInterval > 0) this.wills.delay(session, will);
      else this.wills.publish(session, will);
    }
    if (!lives && !takenOver) {
      this.end(session, 'closed');
      return;
    }
    if (!takenOver && lives) this.schedule(session, this.expiresAt(session));
    this.weigh(session);
  }

  /** Ends a session for good: subscriptions, queue and packet ids go; a will that waits is sent now [MQTT-3.1.2-8]. */
  end(session: Session, why: string): void {
    session.expiryTimer?.cancel();
    session.expiryTimer = null;
    this.wills.sendNow(session);
    leaveScopes(session);
    const filters = [...session.subscriptions.keys()];
    session.subscriptions.clear();
    for (const topicFilter of filters) withdraw(this.core, session, topicFilter);
    this.core.ledger.add('sessions', -session.bytes - EXCHANGE_BYTES * session.inbound.size);
    session.bytes = 0;
    session.inbound.clear();
    session.forgetVerdicts();
    session.outbox.end();
    if (session.outbox.durable) this.core.journal.sessionDelete(session.clientId);
    session.outbox.durable = false;
    if (this.sessions.get(session.clientId) === session) this.sessions.delete(session.clientId);
    if (why === 'expired') {
      this.core.stats.expiredSessions++;
      this.core.log('info', 'SES-EXPIRED', { clientId: session.clientId });
    }
  }

  /** Takes over what the journal has kept; sessions and wills that came due meanwhile are ended and published. */
  restore(restored: readonly RestoredSession[]): void {
    const { absentees } = this.core;
    // First all of them, then what came due: wills and messages of shared subscriptions find everybody they are for.
    for (const { session: stored, subscriptions, queue, inbound } of restored) {
      const identity = storedIdentity(stored, absentees);
      const session = new Session(this.core, identity, stored.version, false);
      session.listener = identity.listener;
      session.mount = this.core.policies?.of(identity)?.mount ?? '';
      session.setAccess(() => absentees.access(session.identity));
      session.expiryInterval = stored.expiryInterval;
      enterScopes(this.core, session);
      session.outbox.resumable = true;
      session.outbox.durable = true;
      session.outbox.restore(queue);
      for (const packetId of inbound) session.inbound.set(packetId, null);
      this.core.ledger.add('sessions', EXCHANGE_BYTES * inbound.length);
      for (const subscription of subscriptions) put(this.core, session, subscription, false);
      this.sessions.set(stored.clientId, session);
      this.weigh(session);
    }
    const now = this.core.clock.steady();
    for (const { session: stored, will } of restored) {
      const session = this.sessions.get(stored.clientId);
      if (session === undefined) continue;
      // A session that was connected when the gateway died counts from now.
      const expiresAt = stored.expiresAt === 0 ? this.expiresAt(session) : stored.expiresAt;
      if (will !== null) this.wills.restore(session, will, now, expiresAt);
      if (expiresAt <= now) this.end(session, 'expired');
      else if (stored.expiresAt === 0) this.schedule(session, expiresAt);
      else this.arm(session, expiresAt);
    }
  }

  /**
   * Makes the session of a client that has not been here yet; one that is there is left as it is, and still open to its
   * first user.
   */
  preset(clientId: string, subscriptions: readonly StoredSubscription[], access: () => Access): void {
    const known = this.sessions.get(clientId);
    if (known !== undefined) {
      const { username, partial } = known.identity;
      if (known.client === null && username === null && partial === true) {
        known.unclaimed = true;
        known.setAccess(access);
      }
      return;
    }
    const session = new Session(this.core, nobody(clientId), 5, false);
    session.setAccess(access);
    session.unclaimed = true;
    session.expiryInterval = capExpiry(this.core.limits, NEVER);
    session.outbox.resumable = true;
    session.outbox.durable = this.core.journal.durable;
    this.sessions.set(clientId, session);
    this.weigh(session);
    this.schedule(session, this.expiresAt(session));
    for (const subscription of subscriptions) put(this.core, session, subscription);
  }

  // ---- inside

  /** Nothing comes due any more: the broker has ended, and what is stored waits for the next start. */
  stop(): void {
    this.beginStop();
    for (const session of this.sessions.values()) {
      session.willTimer?.cancel();
      session.willTimer = null;
      session.expiryTimer?.cancel();
      session.expiryTimer = null;
    }
    this.wills.stop();
  }

  private expiresAt(session: Session): number {
    return session.expiryInterval >= NEVER
      ? Number.POSITIVE_INFINITY
      : this.core.clock.steady() + session.expiryInterval * 1000;
  }

  private schedule(session: Session, expiresAt: number): void {
    if (session.outbox.durable) this.tell(session, expiresAt);
    this.arm(session, expiresAt);
  }

  private arm(session: Session, expiresAt: number): void {
    if (expiresAt === Number.POSITIVE_INFINITY) return;
    session.expiryTimer?.cancel();
    session.expiryTimer = this.core.clock.after(Math.max(0, expiresAt - this.core.clock.steady()), () =>
      this.end(session, 'expired'),
    );
  }

  private tell(session: Session, expiresAt: number): void {
    this.core.journal.sessionPut({
      clientId: session.clientId,
      username: session.identity.username,
      expiresAt,
      expiryInterval: session.expiryInterval,
      version: session.version,
      arrival: session.unclaimed ? null : (session.origin.arrival ?? null),
      validUntil: session.identity.validUntil ?? 0,
    });
  }
}

/** Whoever comes first: of the global realm until then. */
function nobody(clientId: string): Identity {
  return { clientId, username: null, remoteAddress: '', listener: '', claims: null, internal: false };
}

/** Who a stored session belongs to. A store of an earlier format has kept the user name only. */
function storedIdentity(stored: StoredSession, absentees: Absentees): Identity {
  const { clientId, username, arrival, validUntil } = stored;
  if (arrival === null) return { ...nobody(clientId), username, realm: absentees.realmOf(username), partial: true };
  const identity: Identity = { ...arrival, clientId, username, internal: false };
  return validUntil > 0 ? { ...identity, validUntil } : identity;
}
