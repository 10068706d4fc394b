// What the journal is told, as records that wait for the close of their batch, and the book-keeping of each session
// (Slot). Made by sqlite.ts, ordered and written by log.ts. One class for every kind: all code that touches them sees
// one shape.
import type { Hold, Message } from '../mqtt/message.ts';
import type { StoredMessage, StoredSession, StoredSubscription, StoredWill } from './store.ts';

export const SESSION_PUT = 1;
export const SESSION_DELETE = 2;
export const SUBSCRIPTION_PUT = 3;
export const SUBSCRIPTION_DELETE = 4;
/** Only in frames: the message that the QUEUED events behind it refer to. */
export const MESSAGE = 5;
export const QUEUED = 6;
export const STATE = 7;
export const DONE = 8;
export const INBOUND_PUT = 9;
export const INBOUND_DELETE = 10;
export const RETAINED_PUT = 11;
export const RETAINED_DELETE = 12;
export const WILL_PUT = 13;
export const WILL_DELETE = 14;
export const SPOOL_PUT = 15;
export const SPOOL_DELETE = 16;

/** QueuedState as a number. */
export const WAITING = 0;
export const SENT = 1;
export const RECEIVED = 2;

/** Where an event is: in the open log, in a batch on its way, or of no more concern (committed or elided). */
export const OPEN = 0;
export const POSTED = 1;
export const GONE = 2;

export type Body =
  | StoredSession
  | StoredSubscription
  | StoredMessage
  | Message
  | StoredWill
  | Uint8Array
  | string
  | null;

export class Event {
  readonly kind: number;
  /** Session or bridge it belongs to; null for retained messages. */
  readonly slot: Slot | null;
  /** Position in the queue or spool; the packet id of an INBOUND event. */
  readonly sequence: number;
  body: Body;
  state = WAITING;
  packetId = 0;
  place = OPEN;
  /** Number of what is stored together, 0 = by itself (log.ts). */
  group = 0;
  /** Waits for this one message to be durable or done. */
  hold: Hold | null = null;
  /** Round of the linger timer in which it was told. */
  readonly born: number;

  constructor(kind: number, slot: Slot | null, sequence: number, body: Body, born: number) {
    this.kind = kind;
    this.slot = slot;
    this.sequence = sequence;
    this.body = body;
    this.born = born;
  }
}

/** So many messages in a row that were not acknowledged in time, and a session is not waited for any more. */
export const PATIENCE = 32;

/**
 * A session (or the spool of a bridge) as the journal sees it: its number in the tables and its events that are not
 * committed yet.
 */
export class Slot {
  readonly id: number;
  readonly name: string;
  /** Messages in a row that had to be written because nobody was done with them in time. */
  misses: number;
  /**
   * The close that writes a later message of this session: earlier ones may not stay behind, order would be lost in a
   * crash.
   */
  mark = 0;
  /** Where in the log that later message stands. */
  markAt = 0;
  /** Spools: the highest sequence that has gone to the writer, and up to which they were deleted again. */
  top = -1;
  deleted = -1;
  /** Something of it has gone to the writer: only then is there anything to delete. */
  written = false;
  /** QUEUED or SPOOL_PUT events, ascending by sequence; those before `head` are GONE. */
  private readonly pending: Event[] = [];
  private head = 0;
  private trimAt = 64;
  /** STATE events of committed messages by sequence. */
  readonly states = new Map<number, Event>();

  constructor(id: number, name: string, misses: number) {
    this.id = id;
    this.name = name;
    this.misses = misses;
  }

  push(event: Event): void {
    const pending = this.pending;
    if (pending.length >= this.trimAt) this.trim();
    pending.push(event);
  }

  private trim(): void {
    const pending = this.pending;
    let kept = 0;
    for (let i = this.head; i < pending.length; i++) if (pending[i].place !== GONE) pending[kept++] = pending[i];
    pending.length = kept;
    this.head = 0;
    this.trimAt = Math.max(64, kept * 2);
  }

  /** The first event that is not GONE, or null. Amortised O(1). */
  first(): Event | null {
    const pending = this.pending;
    while (this.head < pending.length) {
      const event = pending[this.head];
      if (event.place !== GONE) return event;
      this.head++;
    }
    pending.length = 0;
    this.head = 0;
    return null;
  }

  /** The event of this sequence that is not committed yet, or null. O(1) in order, else O(log n). */
  find(sequence: number): Event | null {
    const first = this.first();
    if (first === null || first.sequence === sequence) return first;
    const pending = this.pending;
    let low = this.head + 1;
    let high = pending.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const event = pending[middle];
      if (event.sequence === sequence) return event.place === GONE ? null : event;
      if (event.sequence < sequence) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }

  /** Everything not committed yet, in order. */
  *open(): Iterable<Event> {
    for (let i = this.head; i < this.pending.length; i++) if (this.pending[i].place !== GONE) yield this.pending[i];
  }
}

/** Whoever waits for this message waits no longer. */
export function release(event: Event): void {
  const hold = event.hold;
  if (hold === null) return;
  event.hold = null;
  hold.done(0);
}

/** What an event adds to the bytes that wait for the writer. */
export function sizeOf(event: Event): number {
  switch (event.kind) {
    case QUEUED:
      return (event.body as StoredMessage).message.bytes;
    case RETAINED_PUT:
      return (event.body as Message).bytes;
    case SPOOL_PUT:
      return (event.body as Uint8Array).length;
    default:
      return 0;
  }
}
