// One outgoing message that has to be remembered: queued for a session, or in flight in a session that can be resumed.
// Made and owned by outbox.ts; restored from store/.
import type { Message } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Share } from './delivery.ts';

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
