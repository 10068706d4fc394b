// One outgoing message that has to be remembered: queued for a session, or in flight in a session that can be resumed.
// Made and owned by outbox.ts; restored from store/.
import type { Message } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { StoredMessage } from '../store/store.ts';
import type { Share, Target } from './delivery.ts';

export interface Entry {
  /** Position in the session's queue, ascending. */
  readonly sequence: number;
  readonly message: Message;
  readonly qos: Qos;
  /** The RETAIN flag to send. */
  readonly retain: boolean;
  readonly subscriptionIdentifiers: readonly number[] | null;
  readonly share: Share | null;
  /** 0 while it only waits. */
  packetId: number;
  /** PUBLISH has been sent at least once: the next time it carries DUP [MQTT-3.3.1-1]. */
  sent: boolean;
  /** The journal knows it. */
  readonly stored: boolean;
}

/** The entry of a message that has just come. QoS 0 is never stored. */
export function newEntry(
  sequence: number,
  message: Message,
  qos: Qos,
  retain: boolean,
  target: Target,
  stored: boolean,
): Entry {
  return {
    sequence,
    message,
    qos,
    retain,
    subscriptionIdentifiers: target.subscriptionIdentifiers,
    share: target.share,
    packetId: 0,
    sent: false,
    stored: stored && qos > 0,
  };
}

/** The entry of a message found in the store. */
export function entryOf(stored: StoredMessage): Entry {
  return {
    sequence: stored.sequence,
    message: stored.message,
    qos: stored.qos,
    retain: stored.retain,
    subscriptionIdentifiers: stored.subscriptionIdentifiers.length > 0 ? stored.subscriptionIdentifiers : null,
    share: null,
    packetId: stored.packetId,
    sent: stored.state !== 'queued',
    stored: true,
  };
}

/** What the store is to know. `released`: PUBREC has come, so what is missing is the answer to PUBREL. */
export function storedOf(entry: Entry, released: boolean): StoredMessage {
  return {
    sequence: entry.sequence,
    message: entry.message,
    qos: entry.qos,
    retain: entry.retain,
    subscriptionIdentifiers: entry.subscriptionIdentifiers ?? [],
    state: released ? 'received' : entry.sent ? 'sent' : 'queued',
    packetId: entry.packetId,
  };
}
