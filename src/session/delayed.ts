// Messages that are published later ($delayed/<seconds>/<topic>). Each is kept like a will whose client has gone: in
// the store as the will of a session of its own, so it survives a crash, and published by the rights its publisher has
// when it is due. Made by broker/, one for a broker. Bounded in number and bytes.
import type { Absentees } from '../auth/auth.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { type Ledger, OBJECT_BYTES } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Turn } from '../base/turn.ts';
import type { DelayedView } from '../broker/broker.ts';
import { DELAYED_SESSION } from '../mqtt/clientid.ts';
import { Hold, Message, Publication } from '../mqtt/message.ts';
import { QUOTA_EXCEEDED, SUCCESS } from '../mqtt/reason.ts';
import type { DelayedLimits } from '../policy/policy.ts';
import type { Router } from '../router/router.ts';
import type { Journal, RestoredSession } from '../store/store.ts';
import type { Caps } from './caps.ts';
import { publisherOf } from './origin.ts';

/** How often, and how long apart, a source of rights is asked about a message. */
const ATTEMPTS = 12;
const RETRY_MS = 5000;
/** What a message costs beside itself: its record, its timer, its entry. */
const RECORD_BYTES = 4 * OBJECT_BYTES;
/** Session Expiry Interval that means never. */
const NEVER = 0xffff_ffff;

export interface DelayedParts {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly ledger: Ledger;
  readonly turn: Turn;
  readonly router: Router;
  readonly absentees: Absentees;
  readonly caps: Caps;
  readonly log: Log;
}

interface Waiting {
  readonly message: Message;
  /** Steady milliseconds. */
  readonly dueAt: number;
  timer: Timer;
}

export class Delayed {
  /** null: no more are taken; those that wait are published all the same. */
  limits: DelayedLimits | null = null;
  readonly counts = { accepted: 0, refused: 0, published: 0, denied: 0, expired: 0, removed: 0 };
  bytes = 0;
  private readonly parts: DelayedParts;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private stopped = false;

  constructor(parts: DelayedParts) {
    this.parts = parts;
  }

  get count(): number {
    return this.waiting.size;
  }

  /**
   * Takes a message, whose topic is the one it is published on. Sets publication.stored where the acknowledgement has
   * to wait for the store. Gives SUCCESS or the reason code of a refusal.
   */
  put(publication: Publication, seconds: number): number {
    const { limits, counts } = this;
    const { clock, journal, caps, ledger } = this.parts;
    const { clientId } = publication.origin;
    const bytes = publication.payloadEnd - publication.payloadStart;
    const many = limits === null || this.count >= limits.messages || this.bytes + bytes > limits.bytes;
    const full = many || ledger.isFull(bytes);
    if (full || (journal.durable && !journal.accepting)) {
      counts.refused++;
      caps.refused(full ? 'delayed' : 'store', clientId, publication.topic);
      return QUOTA_EXCEEDED;
    }
    const message = postponed(publication.message(), seconds);
    message.settle();
    const id = this.nextId++;
    const dueAt = clock.steady() + seconds * 1000;
    this.keep(id, message, dueAt);
    counts.accepted++;
    if (!journal.durable) return SUCCESS;
    const { origin } = message;
    const key = DELAYED_SESSION + id;
    journal.sessionPut({
      clientId: key,
      username: origin.username,
      expiresAt: Number.POSITIVE_INFINITY,
      expiryInterval: NEVER,
      version: 5,
      arrival: origin.arrival ?? null,
      validUntil: 0,
    });
    journal.willPut(key, { message, dueAt });
    publication.stored = true;
    return SUCCESS;
  }

  /** Takes over what the journal has kept; what came due meanwhile is published soon. */
  restore(sessions: readonly RestoredSession[]): void {
    for (const { session, will } of sessions) {
      const id = Number(session.clientId.slice(DELAYED_SESSION.length));
      if (will === null || !Number.isSafeInteger(id)) {
        this.parts.journal.sessionDelete(session.clientId);
        continue;
      }
      const { topic, payload, qos, retain, properties, expiresAt, origin } = will.message;
      const whose = { ...origin, arrival: session.arrival };
      this.keep(id, new Message(topic, payload, qos, retain, properties, expiresAt, whose), will.dueAt);
      if (id >= this.nextId) this.nextId = id + 1;
    }
  }

  /** In no particular order. */
  *list(): Iterable<DelayedView> {
    const now = this.parts.clock.steady();
    for (const [id, { message, dueAt }] of this.waiting) {
      const { topic, qos, retain, payload, origin } = message;
      const { clientId } = origin;
      yield { id, topic, qos, retain, bytes: payload.length, clientId, inMs: Math.max(0, dueAt - now) };
    }
  }

  /** Forgets one; false when there is none. */
  remove(id: number): boolean {
    if (!this.waiting.has(id)) return false;
    this.forget(id);
    this.counts.removed++;
    return true;
  }

  /** Nothing is published any more; what is stored waits for the next start. */
  stop(): void {
    this.stopped = true;
    for (const { timer } of this.waiting.values()) timer.cancel();
  }

  // ---- inside

  private keep(id: number, message: Message, dueAt: number): void {
    const { clock, ledger } = this.parts;
    const timer = clock.after(Math.max(0, dueAt - clock.steady()), () => this.due(id, message, 1));
    this.waiting.set(id, { message, dueAt, timer });
    this.bytes += message.payload.length;
    ledger.add('delayed', message.bytes + RECORD_BYTES);
  }

  private forget(id: number): void {
    const { journal, ledger } = this.parts;
    const one = this.waiting.get(id);
    if (one === undefined) return;
    one.timer.cancel();
    this.waiting.delete(id);
    this.bytes -= one.message.payload.length;
    ledger.add('delayed', -one.message.bytes - RECORD_BYTES);
    if (!journal.durable) return;
    // Together with what it has brought, not before: a crash between them would lose it.
    journal.sessionDelete(DELAYED_SESSION + id);
    journal.barrierAll(new Hold());
  }

  private due(id: number, message: Message, attempt: number): void {
    if (this.stopped || !this.waiting.has(id)) return;
    const { clock } = this.parts;
    if (message.expiresAt > 0 && message.expiresAt <= clock.steady()) {
      this.counts.expired++;
      this.forget(id);
      return;
    }
    const allowed = this.mayPublish(message);
    if (typeof allowed === 'boolean') {
      this.settle(id, message, allowed);
      return;
    }
    allowed.then(
      (may) => this.settle(id, message, may),
      () => this.later(id, message, attempt),
    );
  }

  /** The publisher may have lost its rights, or its user be gone, since it sent the message. */
  private mayPublish({ origin, topic, qos, retain }: Message): boolean | Promise<boolean> {
    if (origin.kind === 'server' || origin.kind === 'api') return true;
    const { absentees } = this.parts;
    const identity = publisherOf(origin, absentees);
    const access = absentees.access(identity);
    return access.vouches(identity) && access.authorizer.publish(identity, topic, qos, retain);
  }

  /** The source of rights could not say: it is asked again for a while. */
  private later(id: number, message: Message, attempt: number): void {
    const one = this.waiting.get(id);
    if (one === undefined || this.stopped) return;
    if (attempt >= ATTEMPTS) this.settle(id, message, false);
    else one.timer = this.parts.clock.after(RETRY_MS, () => this.due(id, message, attempt + 1));
  }

  private settle(id: number, message: Message, may: boolean): void {
    if (this.stopped || !this.waiting.has(id)) return;
    const { router, turn, log } = this.parts;
    if (may) {
      this.counts.published++;
      const publication = new Publication(message.origin);
      publication.load(message);
      publication.promised = true;
      turn.enter();
      router.publish(publication, router.route(message.topic));
      turn.leave();
    } else {
      this.counts.denied++;
      log('info', 'SES-DELAYED-DENIED', { clientId: message.origin.clientId, topic: message.topic });
    }
    this.forget(id);
  }
}

/** Its time to live begins when it is published. */
function postponed(message: Message, seconds: number): Message {
  const { topic, payload, qos, retain, properties, expiresAt, origin } = message;
  if (expiresAt === 0) return message;
  return new Message(topic, payload, qos, retain, properties, expiresAt + seconds * 1000, origin);
}
