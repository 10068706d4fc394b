// Keeps the open log small while the writer cannot write: of everything told about one row only the last word stays.
// Called by commit.ts when a batch has failed and whenever the log has doubled since; pure but for the events' own
// fields. Afterwards deletions stand in front, so that they can make the room that the rest needs.

import type { Message } from '../mqtt/message.ts';
import {
  DONE,
  type Event,
  GONE,
  INBOUND_DELETE,
  INBOUND_PUT,
  OPEN,
  QUEUED,
  RETAINED_DELETE,
  RETAINED_PUT,
  SESSION_DELETE,
  SPOOL_DELETE,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
  WILL_DELETE,
  WILL_PUT,
} from './event.ts';
import type { StoredSubscription } from './store.ts';

/** Names the row an event is about. */
function rowOf(event: Event): string {
  const slot = event.slot === null ? 0 : event.slot.id;
  switch (event.kind) {
    case QUEUED:
    case STATE:
    case DONE:
      return `q ${slot} ${event.sequence}`;
    case INBOUND_PUT:
    case INBOUND_DELETE:
      return `i ${slot} ${event.sequence}`;
    case SUBSCRIPTION_PUT:
      return `u ${slot} ${(event.body as StoredSubscription).topicFilter}`;
    case SUBSCRIPTION_DELETE:
      return `u ${slot} ${event.body as string}`;
    case RETAINED_PUT:
      return `r ${(event.body as Message).topic}`;
    case RETAINED_DELETE:
      return `r ${event.body as string}`;
    case WILL_PUT:
    case WILL_DELETE:
      return `w ${slot}`;
    case SPOOL_DELETE:
      return `d ${slot}`;
    default:
      return `${event.kind} ${slot} ${event.sequence}`;
  }
}

/** Whether applying it can only make room. */
export function isDeletion(event: Event): boolean {
  switch (event.kind) {
    case DONE:
    case SESSION_DELETE:
    case SUBSCRIPTION_DELETE:
    case INBOUND_DELETE:
    case RETAINED_DELETE:
    case WILL_DELETE:
    case SPOOL_DELETE:
      return true;
    default:
      return false;
  }
}

/** The events that are left, deletions first, each part in the order told. O(events). */
export function compact(events: readonly Event[]): Event[] {
  const last = new Map<string, Event>();
  const ended = new Set<number>();
  const kept: Event[] = [];
  for (let i = events.length - 1; i >= 0; i--) {
    const event = events[i];
    if (event.place !== OPEN) continue;
    const slot = event.slot;
    if (slot !== null && ended.has(slot.id)) {
      event.place = GONE;
      continue;
    }
    if (event.kind === SESSION_DELETE && slot !== null) {
      ended.add(slot.id);
      // A session that never reached the writer leaves nothing to delete.
      if (!slot.written) {
        event.place = GONE;
        continue;
      }
    }
    const row = rowOf(event);
    const later = last.get(row);
    if (later === undefined) {
      last.set(row, event);
      kept.push(event);
    } else if (event.kind === QUEUED && later.kind === STATE) {
      // The message takes over the state that was told later, and stands for both.
      event.state = later.state;
      event.packetId = later.packetId;
      later.place = GONE;
      slot?.states.delete(later.sequence);
      last.set(row, event);
      kept.push(event);
    } else event.place = GONE;
  }
  kept.reverse();
  const open = kept.filter((event) => event.place === OPEN);
  return [...open.filter(isDeletion), ...open.filter((event) => !isDeletion(event))];
}
