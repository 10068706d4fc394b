// The open batch: events told and not yet sent to the writer, who waits for them, and which may stay behind for a
// moment. Called by commit.ts only. Knows no thread and no clock: it is told when a round of the linger timer is over.
//
// Elision: a message that its session is done with before it is written is never written, and whoever waits for it is
// released. To let that happen, a message just sent to a client that acknowledges quickly may be carried into the next
// batch, until it has seen two rounds. What keeps a crash harmless: nothing is carried past a later message of its
// session (order), past an inbound QoS 2 id or any event somebody waits for (pinned), and deletions told after a
// carried message are carried with it.
import type { Hold, Message } from '../mqtt/message.ts';
import { isDeletion } from './compact.ts';
import {
  DONE,
  type Event,
  GONE,
  INBOUND_DELETE,
  INBOUND_PUT,
  MESSAGE,
  OPEN,
  PATIENCE,
  POSTED,
  QUEUED,
  RETAINED_DELETE,
  RETAINED_PUT,
  SENT,
  SESSION_DELETE,
  SESSION_PUT,
  SPOOL_DELETE,
  SPOOL_PUT,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
  WILL_DELETE,
  WILL_PUT,
} from './event.ts';
import { type FrameWriter, messageFlags, subscriptionOptions } from './frame.ts';
import type { StoredMessage, StoredSession, StoredSubscription, StoredWill } from './store.ts';

/**
 * A batch on its way: its events and waiters are kept until the writer confirms, so that a failed one can be told
 * again.
 */
export class Batch {
  readonly serial: number;
  readonly events: Event[] = [];
  readonly holds: Hold[] = [];
  postedMs = 0;
  /** False once it is committed or taken back. */
  underway = true;

  constructor(serial: number) {
    this.serial = serial;
  }
}

/** A batch stops growing at this size, with the message that has reached it; what is left becomes the next one. */
const BATCH_BYTES = 4 * 1024 * 1024;

export class OpenLog {
  /** Somebody waits for something that will not be elided soon. */
  urgent = false;
  /** Rounds of the linger timer so far. */
  round = 0;
  private events: Event[] = [];
  /** Number of what is stored together: a message at all its receivers, and the packet id under which it came. */
  private group = 0;
  /** Events told since another message began. */
  private fresh = 0;
  /** What is told belongs to one message until its packet id comes. */
  private gathering = false;
  /** Events before this index belong to barriers already called. */
  private grouped = 0;
  private holds: Hold[] = [];
  private pinned = false;
  /** Events told since the last barrier that a barrier waits for. */
  private told = 0;
  /** An open event of an earlier group has changed since the last barrier in a way that a barrier waits for. */
  private touched = false;
  /** The last batch that took events before their barrier was called. */
  private strayed: Batch | null = null;
  private pruneAt = 4096;
  /** No event before this index is open. */
  private passed = 0;

  get length(): number {
    return this.events.length;
  }

  add(event: Event): void {
    if (this.events.length >= this.pruneAt) this.prune();
    this.events.push(event);
    this.fresh++;
    if (event.kind !== DONE && event.kind !== SPOOL_DELETE) this.told++;
    // A repeated PUBLISH with this id would be taken for one that is stored: nothing told with it may come later.
    if (event.kind !== INBOUND_PUT) return;
    this.pinned = true;
    this.join();
  }

  /** An open event has taken over a new state that the next barrier is to wait for. */
  touch(): void {
    this.touched = true;
  }

  /** What is told from here on belongs to another message: a batch may end in between. */
  separate(): void {
    if (!this.gathering) this.fresh = 0;
  }

  /** Journal.gather(). */
  gather(on: boolean): void {
    this.gathering = on;
    this.fresh = 0;
  }

  /** A packet id was told behind its message: both are stored together. O(receivers). */
  private join(): void {
    const { events } = this;
    this.group++;
    for (let i = events.length - 1; i >= 0 && this.fresh > 0; i--, this.fresh--) events[i].group = this.group;
    this.gather(false);
  }

  /**
   * `hold` waits for what was told since the last barrier, or for everything if that is nothing. O(events since then).
   */
  barrier(hold: Hold, posted: Batch | null): void {
    const strayed = this.strayed;
    this.strayed = null;
    if (this.told === 0 && !this.touched && strayed === null) {
      this.wholeBarrier(hold, posted);
      return;
    }
    let other = this.touched;
    const events = this.events;
    for (let i = this.grouped; i < events.length; i++) {
      const event = events[i];
      if (event.place !== OPEN || event.kind === DONE || event.kind === SPOOL_DELETE) continue;
      if (event.kind === QUEUED || event.kind === SPOOL_PUT) {
        hold.add();
        event.hold = hold;
        if (!hopeful(event)) this.urgent = true;
      } else other = true;
    }
    this.grouped = events.length;
    this.told = 0;
    this.touched = false;
    if (other) this.wait(hold);
    if (strayed?.underway) {
      hold.add();
      strayed.holds.push(hold);
    }
  }

  private wholeBarrier(hold: Hold, posted: Batch | null): void {
    this.grouped = this.events.length;
    this.everything(hold, posted);
  }

  /** `hold` waits for all that was told so far; what the next barrier covers stays as it is. */
  everything(hold: Hold, posted: Batch | null): void {
    if (this.anyOpen()) this.wait(hold);
    else if (posted !== null) {
      hold.add();
      posted.holds.push(hold);
    }
  }

  /** Amortised O(1): what has been passed over is never open again. */
  private anyOpen(): boolean {
    const events = this.events;
    while (this.passed < events.length && events[this.passed].place !== OPEN) this.passed++;
    return this.passed < events.length;
  }

  private wait(hold: Hold): void {
    hold.add();
    this.holds.push(hold);
    this.pinned = true;
    this.urgent = true;
  }

  /**
   * Writes what is due into `frame` and moves it to `batch`; the rest stays open.
   * @param all nothing is carried
   * @param limit events at most
   * @returns false when nothing was written
   */
  take(frame: FrameWriter, batch: Batch, all: boolean, limit: number): boolean {
    const whole = all || this.pinned;
    if (!whole) this.mark(batch.serial);
    const events = this.events;
    const rest: Event[] = [];
    let grouped = 0;
    let carrying = false;
    let ended = false;
    let last: Event | null = null;
    let message: Message | null = null;
    for (let i = 0; i < events.length; i++) {
      const event = events[i];
      if (event.place !== OPEN) continue;
      ended ||= (frame.at >= BATCH_BYTES || batch.events.length >= limit) && separable(last, event);
      if (ended || (!whole && stays(event, i, batch.serial, this.round, carrying))) {
        carrying = true;
        rest.push(event);
        if (i < this.grouped) grouped++;
        continue;
      }
      if (event.kind === QUEUED) {
        const stored = event.body as StoredMessage;
        // Receivers of one message are told in a row: its bytes go once.
        if (stored.message !== message) {
          message = stored.message;
          frame.event(MESSAGE, 0);
          frame.message(message);
        }
      }
      writeEvent(frame, event);
      event.place = POSTED;
      if (event.slot !== null) {
        event.slot.written = true;
        if (event.kind === SPOOL_PUT && event.sequence > event.slot.top) event.slot.top = event.sequence;
        if (this.round - event.born >= 2 && hopeful(event)) event.slot.misses++;
      }
      batch.events.push(event);
      last = event;
      if (i >= this.grouped) this.strayed = batch;
    }
    const cut = batch.events.length > 0 && (frame.at >= BATCH_BYTES || batch.events.length >= limit) && rest.length > 0;
    this.events = rest;
    this.passed = 0;
    this.grouped = grouped;
    this.separate();
    if (cut) return true;
    for (const hold of this.holds) batch.holds.push(hold);
    this.holds = [];
    this.pinned = false;
    this.urgent = false;
    return batch.events.length > 0;
  }

  /** Marks the sessions of which a later message has to be written now. */
  private mark(serial: number): void {
    const events = this.events;
    for (let i = events.length - 1; i >= 0; i--) {
      const event = events[i];
      if (event.place !== OPEN || (event.kind !== QUEUED && event.kind !== SPOOL_PUT) || event.slot === null) continue;
      if (event.slot.mark === serial || (hopeful(event) && this.round - event.born < 2)) continue;
      event.slot.mark = serial;
      event.slot.markAt = i;
    }
  }

  /** Takes everything back that was on its way, before what is open; gives whoever waits. */
  reopen(batches: readonly Batch[]): Hold[] {
    const holds: Hold[] = [];
    const events: Event[] = [];
    for (const batch of batches) {
      batch.underway = false;
      for (const event of batch.events) {
        if (event.place === POSTED) event.place = OPEN;
        events.push(event);
      }
      holds.push(...batch.holds);
    }
    for (const event of this.events) events.push(event);
    for (const event of events) {
      if (event.hold === null) continue;
      holds.push(event.hold);
      event.hold = null;
    }
    for (const hold of this.holds) holds.push(hold);
    this.holds = [];
    this.events = events.filter(isOpen);
    this.passed = 0;
    this.grouped = this.events.length;
    this.told = 0;
    this.touched = false;
    this.strayed = null;
    this.pinned = false;
    this.urgent = false;
    return holds;
  }

  /** Replaces what is open (compaction while the writer cannot write). */
  rearrange(order: (events: Event[]) => Event[]): void {
    this.events = order(this.events);
    this.passed = 0;
    this.grouped = this.events.length;
  }

  /** How many open events satisfy `test`. */
  count(test: (event: Event) => boolean): number {
    return this.events.reduce((sum, event) => (event.place === OPEN && test(event) ? sum + 1 : sum), 0);
  }

  /** The sum of `size` over the open events. */
  sum(size: (event: Event) => number): number {
    return this.events.reduce((sum, event) => (event.place === OPEN ? sum + size(event) : sum), 0);
  }

  /** Forgets what is GONE. Amortised O(1) an event. */
  private prune(): void {
    const events = this.events;
    let kept = 0;
    let grouped = 0;
    for (let i = 0; i < events.length; i++) {
      if (events[i].place === GONE) continue;
      if (i < this.grouped) grouped++;
      events[kept++] = events[i];
    }
    events.length = kept;
    this.passed = 0;
    this.grouped = grouped;
    this.pruneAt = Math.max(4096, kept * 2);
  }
}

function isOpen(event: Event): boolean {
  return event.place === OPEN;
}

/**
 * Whether a batch may end between two events: never between a message and the packet id under which it came, however
 * large both are. Deletions make room and stand for themselves (compact.ts).
 */
function separable(before: Event | null, event: Event): boolean {
  if (before === null || event.group === 0 || before.group !== event.group) return true;
  return isDeletion(before) && !isDeletion(event);
}

/** Whether its session is likely to be done with it within a moment. */
function hopeful(event: Event): boolean {
  if (event.slot === null || event.slot.misses >= PATIENCE) return false;
  return event.kind === SPOOL_PUT || (event.kind === QUEUED && event.state === SENT);
}

function stays(event: Event, index: number, serial: number, round: number, carrying: boolean): boolean {
  if (event.kind === DONE || event.kind === SPOOL_DELETE) return carrying;
  if (event.slot === null || !hopeful(event)) return false;
  const ordered = event.slot.mark !== serial || index > event.slot.markAt;
  return ordered && round - event.born < 2;
}

/** The layouts are drawn in frame.ts. */
function writeEvent(frame: FrameWriter, event: Event): void {
  frame.event(event.kind, event.slot === null ? 0 : event.slot.id);
  switch (event.kind) {
    case QUEUED: {
      const stored = event.body as StoredMessage;
      frame.f64(event.sequence);
      frame.u8(messageFlags(stored.qos, stored.retain));
      frame.u8(event.state);
      frame.u32(event.packetId);
      frame.numbers(stored.subscriptionIdentifiers);
      frame.text(stored.share);
      return;
    }
    case STATE:
      frame.f64(event.sequence);
      frame.u8(event.state);
      frame.u32(event.packetId);
      return;
    case DONE:
    case INBOUND_PUT:
    case INBOUND_DELETE:
      frame.f64(event.sequence);
      return;
    case SESSION_PUT: {
      const session = event.body as StoredSession;
      frame.text(session.clientId);
      frame.text(session.username);
      frame.f64(session.expiresAt);
      frame.f64(session.expiryInterval);
      frame.u8(session.version);
      frame.arrival(session.arrival);
      frame.f64(session.validUntil);
      return;
    }
    case SUBSCRIPTION_PUT: {
      const subscription = event.body as StoredSubscription;
      frame.text(subscription.topicFilter);
      frame.u8(subscriptionOptions(subscription));
      frame.f64(subscription.subscriptionIdentifier);
      return;
    }
    case SUBSCRIPTION_DELETE:
    case RETAINED_DELETE:
      frame.text(event.body as string);
      return;
    case RETAINED_PUT:
      frame.message(event.body as Message);
      frame.arrival((event.body as Message).origin.arrival ?? null);
      return;
    case WILL_PUT: {
      const will = event.body as StoredWill;
      frame.f64(will.dueAt);
      frame.message(will.message);
      return;
    }
    case SPOOL_PUT:
    case SPOOL_DELETE:
      frame.text(event.slot === null ? '' : event.slot.name);
      frame.f64(event.sequence);
      if (event.kind === SPOOL_PUT) frame.blob(event.body as Uint8Array);
      return;
    case SESSION_DELETE:
    case WILL_DELETE:
      return;
    default:
      throw new RangeError(`event ${event.kind} has no layout`);
  }
}
