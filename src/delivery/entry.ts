// One outgoing message that has to be remembered: queued for a session, or in flight in a session that can be resumed.
// Made and owned by outbox.ts; restored from store/. It is what the journal is told as well: one object a message, not
// two.
import type { Message } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { QueuedState, StoredMessage } from '../store/store.ts';
import type { Target } from './delivery.ts';

export interface Entry extends StoredMessage {
  readonly sequence: number;
  readonly message: Message;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly subscriptionIdentifiers: readonly number[];
  readonly share: string | null;
  /** 'queued' until PUBLISH has been sent once: the next time it carries DUP [MQTT-3.3.1-1]. */
  state: QueuedState;
  /** 0 while it only waits. */
  packetId: number;
  /** The journal knows it. */
  readonly stored: boolean;
}

const NO_IDENTIFIERS: readonly number[] = Object.freeze([]);

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
    subscriptionIdentifiers: target.subscriptionIdentifiers ?? NO_IDENTIFIERS,
    share: target.share,
    state: 'queued',
    packetId: 0,
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
    subscriptionIdentifiers: stored.subscriptionIdentifiers,
    share: stored.share,
    state: stored.state,
    packetId: stored.packetId,
    stored: true,
  };
}

/** As a PUBLISH is written with: null where there are none. */
export function identifiersOf({ subscriptionIdentifiers }: Entry): readonly number[] | null {
  return subscriptionIdentifiers.length > 0 ? subscriptionIdentifiers : null;
}
