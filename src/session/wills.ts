// Wills from the end of a connection until they are published or nobody wants them: delays, rights, what the journal
// keeps of them. Made and called by registry.ts; opening.ts takes one back. A will is judged when it is due, by the
// rights of that moment. Sources: MQTT 5.0 sections 3.1.2.5, 3.1.3.2.2; 3.1.1 section 3.1.2.5.
import type { Timer } from '../base/clock.ts';
import { Hold, Message, Publication } from '../mqtt/message.ts';
import type { Will } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { SUCCESS } from '../mqtt/reason.ts';
import type { TopicPlan } from '../policy/policy.ts';
import type { StoredWill } from '../store/store.ts';
import { checkPayload } from './payloads.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** How often, and how long apart, a source of rights is asked about a will. */
const WILL_ATTEMPTS = 12;
const WILL_RETRY_MS = 5000;

/** For clients without keep alive. */
const UNKNOWN_GRACE_MS = 60_000;

export class Wills {
  /** Set when the gateway stops. */
  stopping = false;
  private readonly core: Core;
  private readonly weigh: (session: Session) => void;
  /** Wills that are to be judged once more. */
  private readonly askAgain = new Set<Timer>();

  /** `weigh` is called when a session holds another will than before. */
  constructor(core: Core, weigh: (session: Session) => void) {
    this.core = core;
    this.weigh = weigh;
  }

  /** Has the journal keep the will of a client that has come: due if it is not back in time after a crash. */
  keep(session: Session, will: Will): void {
    this.core.journal.willPut(session.clientId, { message: this.message(session, will), dueAt: -graceMs(session) });
  }

  /** The session ends: a will that waits is sent now [MQTT-3.1.2-8]. */
  sendNow(session: Session): void {
    const pending = session.pendingWill;
    session.willTimer?.cancel();
    session.willTimer = null;
    session.pendingWill = null;
    if (pending !== null) this.publish(session, pending);
  }

  /** Takes up a will that an earlier process has left, of a session that ends at `expiresAt`. */
  restore(session: Session, stored: StoredWill, now: number, expiresAt: number): void {
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
    this.arm(session, will, Math.max(0, delayMs));
  }

  /** Nothing comes due any more. */
  stop(): void {
    for (const timer of this.askAgain) timer.cancel();
    this.askAgain.clear();
  }

  /** A client continues the session in time: a will that waits is not sent [MQTT-3.1.3-9]. */
  cancel(session: Session): void {
    if (session.willTimer === null) return;
    session.willTimer.cancel();
    session.willTimer = null;
    session.pendingWill = null;
    this.weigh(session);
    this.forget(session);
  }

  /** Publishes it after its delay, unless the client is back by then. */
  delay(session: Session, will: Will): void {
    // At the latest when the session ends [MQTT-3.1.2-8]; end() sees to that.
    const delayMs = will.delayInterval * 1000;
    this.arm(session, will, delayMs);
    if (session.outbox.durable) {
      const dueAt = this.core.clock.steady() + delayMs;
      this.core.journal.willPut(session.clientId, { message: this.message(session, will), dueAt });
    }
  }

  private arm(session: Session, will: Will, delayMs: number): void {
    session.pendingWill = will;
    this.weigh(session);
    session.willTimer?.cancel();
    session.willTimer = this.core.clock.after(delayMs, () => {
      session.willTimer = null;
      session.pendingWill = null;
      this.weigh(session);
      this.publish(session, will);
    });
  }

  /** The journal need not keep it any longer. */
  forget(session: Session): void {
    if (session.outbox.durable) this.core.journal.willDelete(session.clientId);
  }

  private message(session: Session, will: Will): Message {
    const properties: Properties | null = will.properties;
    const expiry = properties?.messageExpiryInterval;
    const expiresAt = expiry === undefined ? 0 : this.core.clock.steady() + expiry * 1000;
    return new Message(will.topicName, will.payload, will.qos, will.retain, properties, expiresAt, session.origin);
  }

  /** Publishes it now, if its client may; the session need not exist any more. */
  publish(session: Session, will: Will, attempt = 1): void {
    const { core } = this;
    const { identity } = session;
    const access = session.currentAccess ?? core.absentees.access(identity);
    const plan = core.policies?.of(identity)?.plan(will.topicName) ?? null;
    const topic = plan?.topic ?? will.topicName;
    // The client may be away for long: its user may have been removed meanwhile, and its rights are those of now.
    const allowed = access.vouches(identity) && access.authorizer.publish(identity, topic, will.qos, will.retain);
    const publish = (may: boolean): void => {
      if (!may || (plan !== null && plan.refusal !== 0)) core.stats.deniedWill++;
      else this.send(session, { ...will, topicName: topic }, plan);
      this.settled(session);
    };
    if (typeof allowed === 'boolean') publish(allowed);
    else void allowed.then(publish, () => this.publishLater(session, will, attempt, publish));
  }

  private send(session: Session, will: Will, plan: TopicPlan | null): void {
    const { core } = this;
    core.log('debug', 'SES-WILL', { clientId: session.clientId, topic: will.topicName });
    const publication = new Publication(session.origin);
    publication.load(this.message(session, will));
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
  private publishLater(session: Session, will: Will, attempt: number, publish: (may: boolean) => void): void {
    // Of a broker that stops the stored will is judged at the next start.
    if (this.stopping && session.outbox.durable) return;
    if (attempt >= WILL_ATTEMPTS || this.stopping) {
      publish(false);
      return;
    }
    const timer = this.core.clock.after(WILL_RETRY_MS, () => {
      this.askAgain.delete(timer);
      this.publish(session, will, attempt + 1);
    });
    this.askAgain.add(timer);
  }

  /** The store forgets the will together with what it brought, not before: a crash between them would lose it. */
  private settled(session: Session): void {
    // While a source of rights was asked the client may have come back: its new will stays.
    if (!session.outbox.durable || session.will !== null || session.pendingWill !== null) return;
    this.forget(session);
    this.core.journal.barrierAll(new Hold());
  }
}

/**
 * How long a client has to come back after a restart before it counts as gone: what its keep alive would have given it,
 * or its Will Delay.
 */
function graceMs(session: Session): number {
  const keepAliveMs = session.keepAlive > 0 ? session.keepAlive * 1500 : UNKNOWN_GRACE_MS;
  return Math.max(keepAliveMs, (session.will?.delayInterval ?? 0) * 1000);
}
