// All sessions of a broker: who has which client id, what happens when a connection ends, when sessions and wills are
// due. Called by opening.ts (open) and client.ts (close). Sources: MQTT 5.0 sections 3.1.2.11.2, 3.1.3.2.2, 4.1; 3.1.1
// section 3.1.2.4.
import type { Absentees, Access, Identity } from '../auth/auth.ts';
import type { Timer } from '../base/clock.ts';
import { Hold, Message, Publication } from '../mqtt/message.ts';
import type { Version, Will } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { SUCCESS } from '../mqtt/reason.ts';
import type { TopicPlan } from '../policy/policy.ts';
import type { RestoredSession, StoredSession, StoredSubscription, StoredWill } from '../store/store.ts';
import { capExpiry } from './opening.ts';
import { checkPayload } from './payloads.ts';
import { enterScopes, leaveScopes } from './quotas.ts';
import type { Core } from './session.ts';
import { NEVER, Session } from './state.ts';
import { put, withdraw } from './subscribe.ts';
import { bytesOf, EXCHANGE_BYTES } from './weight.ts';

export class Registry {
  private readonly sessions = new Map<string, Session>();
  /** Set when the gateway stops. */
  stopping = false;
  private readonly core: Core;
  /** Wills that are to be judged once more. */
  private readonly askAgain = new Set<Timer>();

  constructor(core: Core) {
    this.core = core;
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
      if (session.will !== null)
        journal.willPut(session.clientId, {
          message: this.willMessage(session, session.will),
          dueAt: -graceMs(session),
        });
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
    if (will !== null && !withWill) this.forgetWill(session); // [MQTT-3.14.4-3]
    const lives = session.expiryInterval > 0;
    // A clean stop is no end for a session that is stored: its will waits for the next start (MQTT 5.0 section 3.1.2.5
    // allows it).
    const deferred = this.stopping && session.outbox.durable;
    // Before the will: a session that gets its own is not there to take it, and has not been sent it [MQTT-3.3.1-1].
    session.outbox.detach();
    if (will !== null && withWill && !deferred) {
      if (lives && will.delayInterval > 0) this.delayWill(session, will);
      else this.publishWill(session, will);
    }
    if (!lives && !takenOver) {
      this.end(session, 'closed');
      return;
    }
    if (!takenOver && lives) this.schedule(session, this.expiresAt(session));
    this.weigh(session);
  }

  /** A client continues the session in time: a will that waits is not sent [MQTT-3.1.3-9]. */
  cancelWill(session: Session): void {
    if (session.willTimer === null) return;
    session.willTimer.cancel();
    session.willTimer = null;
    session.pendingWill = null;
    this.weigh(session);
    this.forgetWill(session);
  }

  /** Ends a session for good: subscriptions, queue and packet ids go; a will that waits is sent now [MQTT-3.1.2-8]. */
  end(session: Session, why: string): void {
    const pending = session.pendingWill;
    session.willTimer?.cancel();
    session.willTimer = null;
    session.pendingWill = null;
    session.expiryTimer?.cancel();
    session.expiryTimer = null;
    if (pending !== null) this.publishWill(session, pending);
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
      if (will !== null) this.restoreWill(session, will, now, expiresAt);
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

  private restoreWill(session: Session, stored: StoredWill, now: number, expiresAt: number): void {
    const { message } = stored;
    const connected = stored.dueAt <= 0;
    const dueAt = connected ? now - stored.dueAt : stored.dueAt;
    // The grace after a crash begins once: further restarts do not renew it.
    if (connected) this.core.journal.willPut(session.clientId, { message, dueAt });
    const will: Will = {
      topicName: message.topic,
      payload: message.payload,
      qos: message.qos,
      retain: message.retain,
      properties: message.properties,
      delayInterval: 0,
    };
    const delayMs = Math.min(dueAt, expiresAt) - now;
    this.armWill(session, will, Math.max(0, delayMs));
  }

  /** Nothing comes due any more: the broker has ended, and what is stored waits for the next start. */
  stop(): void {
    this.stopping = true;
    for (const session of this.sessions.values()) {
      session.willTimer?.cancel();
      session.willTimer = null;
      session.expiryTimer?.cancel();
      session.expiryTimer = null;
    }
    for (const timer of this.askAgain) timer.cancel();
    this.askAgain.clear();
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

  private delayWill(session: Session, will: Will): void {
    // At the latest when the session ends [MQTT-3.1.2-8]; end() sees to that.
    const delayMs = will.delayInterval * 1000;
    this.armWill(session, will, delayMs);
    if (session.outbox.durable) {
      const dueAt = this.core.clock.steady() + delayMs;
      this.core.journal.willPut(session.clientId, { message: this.willMessage(session, will), dueAt });
    }
  }

  private armWill(session: Session, will: Will, delayMs: number): void {
    session.pendingWill = will;
    this.weigh(session);
    session.willTimer?.cancel();
    session.willTimer = this.core.clock.after(delayMs, () => {
      session.willTimer = null;
      session.pendingWill = null;
      this.weigh(session);
      this.publishWill(session, will);
    });
  }

  private forgetWill(session: Session): void {
    if (session.outbox.durable) this.core.journal.willDelete(session.clientId);
  }

  private willMessage(session: Session, will: Will): Message {
    const properties: Properties | null = will.properties;
    const expiry = properties?.messageExpiryInterval;
    const expiresAt = expiry === undefined ? 0 : this.core.clock.steady() + expiry * 1000;
    return new Message(will.topicName, will.payload, will.qos, will.retain, properties, expiresAt, session.origin);
  }

  private publishWill(session: Session, will: Will, attempt = 1): void {
    const { core } = this;
    const { identity } = session;
    const access = session.currentAccess ?? core.absentees.access(identity);
    const plan = core.policies?.of(identity)?.plan(will.topicName) ?? null;
    const topic = plan?.topic ?? will.topicName;
    // The client may be away for long: its user may have been removed meanwhile, and its rights are those of now.
    const allowed = access.vouches(identity) && access.authorizer.publish(identity, topic, will.qos, will.retain);
    const publish = (may: boolean): void => {
      if (!may || (plan !== null && plan.refusal !== 0)) core.stats.deniedWill++;
      else this.sendWill(session, { ...will, topicName: topic }, plan);
      this.willSettled(session);
    };
    if (typeof allowed === 'boolean') publish(allowed);
    else void allowed.then(publish, () => this.publishWillLater(session, will, attempt, publish));
  }

  private sendWill(session: Session, will: Will, plan: TopicPlan | null): void {
    const { core } = this;
    core.log('debug', 'SES-WILL', { clientId: session.clientId, topic: will.topicName });
    const publication = new Publication(session.origin);
    publication.load(this.willMessage(session, will));
    publication.promised = true;
    if (plan !== null) {
      if (plan.rewritten) core.stats.rewrittenPublish++;
      if (checkPayload(plan, publication) !== SUCCESS) return;
      if (plan.delaySeconds > 0) {
        core.delayed.put(publication, plan.delaySeconds);
        return;
      }
    }
    core.turn.enter();
    core.router.publish(publication, core.router.route(will.topicName));
    core.turn.leave();
  }

  /** The source of rights could not say: it is asked again for a while. */
  private publishWillLater(session: Session, will: Will, attempt: number, publish: (may: boolean) => void): void {
    // Of a broker that stops the stored will is judged at the next start.
    if (this.stopping && session.outbox.durable) return;
    if (attempt >= WILL_ATTEMPTS || this.stopping) {
      publish(false);
      return;
    }
    const timer = this.core.clock.after(WILL_RETRY_MS, () => {
      this.askAgain.delete(timer);
      this.publishWill(session, will, attempt + 1);
    });
    this.askAgain.add(timer);
  }

  /** The store forgets the will together with what it brought, not before: a crash between them would lose it. */
  private willSettled(session: Session): void {
    // While a source of rights was asked the client may have come back: its new will stays.
    if (!session.outbox.durable || session.will !== null || session.pendingWill !== null) return;
    this.forgetWill(session);
    this.core.journal.barrierAll(new Hold());
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

/**
 * How long a client has to come back after a restart before it counts as gone: what its keep alive would have given it,
 * or its Will Delay.
 */
function graceMs(session: Session): number {
  const keepAliveMs = session.keepAlive > 0 ? session.keepAlive * 1500 : UNKNOWN_GRACE_MS;
  return Math.max(keepAliveMs, (session.will?.delayInterval ?? 0) * 1000);
}

/** How often, and how long apart, a source of rights is asked about a will. */
const WILL_ATTEMPTS = 12;
const WILL_RETRY_MS = 5000;

/** For clients without keep alive. */
const UNKNOWN_GRACE_MS = 60_000;
