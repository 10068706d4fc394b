// SEAM of delivery/: the outbound half. router/ finds Targets for a topic and hands each publication to their
// Receivers; an Outbox (one per session) is the receiver that speaks MQTT. Nothing here knows subscriptions, sockets or
// files. Contract: deliver() and deliverRun() return at once and never throw; what a receiver does not take it counts.
// Bytes of a publication are valid only during the call. Order: what is delivered first leaves first, per topic and QoS
// [MQTT-4.6.0-6].
//
// Map (made by `make docs`):
//   alias.ts           Topic aliases towards one client (MQTT 5.0 section 3.3.2.3.4): the first topics get one each
//   alteringsender.ts  The packets that go to a client whose messages are altered
//   backlogs.ts        Stored messages that new subscriptions of one session are still owed: pulled one at a time
//   entry.ts           One outgoing message that has to be remembered
//   inflight.ts        Packet Identifiers of one session's outgoing QoS 1 and 2 messages and what each waits for
//   outbox.ts          What one session is to be sent: its queue, its flow control and, while a client is connected
//   sender.ts          The packets that go to one connected client: PUBLISH in the form its version
//   tally.ts           What one session has been sent and what it has lost
//   tracedsender.ts    The packets that go to a client whose deliveries are watched
//   waiting.ts         Messages of one session that wait to be sent, in order, with the bytes of their payloads
import type { Clock } from '../base/clock.ts';
import type { Writer } from '../base/writer.ts';
import type { Message, Publication } from '../mqtt/message.ts';
import type { Qos, Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import type { Journal, StoredMessage } from '../store/store.ts';

/** All subscriptions of one receiver that match one topic, merged: one copy at the highest QoS [MQTT-3.3.5-1]. */
export interface Target {
  readonly receiver: Receiver;
  readonly qos: Qos;
  readonly retainAsPublished: boolean;
  /** Every matching Subscription Identifier [MQTT-3.3.4-3], null = none. */
  readonly subscriptionIdentifiers: readonly number[] | null;
  /**
   * What the receiver gets of its own messages: this target less its No Local subscriptions [MQTT-3.8.3-3]; null =
   * nothing.
   */
  own: Target | null;
  /** The shared subscription through which it matched ($share/<name>/<filter>), if any. */
  readonly share: string | null;
  /** Rank of the earliest subscription: targets are served in this order. */
  readonly order: number;
}

export interface Receiver {
  readonly clientId: string;
  readonly online: boolean;
  /** False while a new message would have to wait here: shared groups prefer others. */
  readonly ready: boolean;
  /** Keeps messages of QoS 1 and 2 in the store, so it takes new ones only while the store does. */
  readonly stores: boolean;
  /** Of a client inside the process: the bridge ("nng:<name>"), or the client id. Absent: an MQTT session. */
  readonly local?: string;
  /** Takes commands below $CONTROL/, which go to nobody else; absent: it does not. */
  readonly control?: boolean;
  /** Whether the receiver may read this topic; routes leave it out otherwise. */
  mayReceive(topic: string): boolean;
  deliver(publication: Publication, target: Target): void;
  /**
   * Takes `count` whole QoS 0 PUBLISH packets at once: publication.buffer[start, end), all of publication.wireVersion,
   * without RETAIN and without properties. They are of one topic unless publication.names is set: step() then finds the
   * topic of each. `longest` is the size of the largest of them.
   */
  deliverRun(
    publication: Publication,
    target: Target,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): void;
}

/** Counters of the whole outbound half, changed in place; declared as metrics by broker/. */
export interface DeliveryStats {
  sent: number;
  sentBytes: number;
  droppedQueueFull: number;
  droppedSlow: number;
  droppedOffline: number;
  droppedTooLarge: number;
  droppedExpired: number;
  droppedForbidden: number;
  /** A function of the embedding program or a plugin said so. */
  droppedByHook: number;
  /** Not taken for a durable session because the store is full or failing. */
  refusedStore: number;
  /** Bytes of messages in queues and in flight, all sessions together. */
  queuedBytes: number;
  queuedMessages: number;
  /** Nothing more is queued: memory of all kinds together is at its bound. */
  full: boolean;
}

export function newDeliveryStats(): DeliveryStats {
  return {
    sent: 0,
    sentBytes: 0,
    droppedQueueFull: 0,
    droppedSlow: 0,
    droppedOffline: 0,
    droppedTooLarge: 0,
    droppedExpired: 0,
    droppedForbidden: 0,
    droppedByHook: 0,
    refusedStore: 0,
    queuedBytes: 0,
    queuedMessages: 0,
    full: false,
  };
}

/** Bounds of one outbox. 0 = no limit. */
export interface OutboxLimits {
  /** Unacknowledged QoS 1 and 2 messages at once (max_inflight_window); the client's Receive Maximum lowers it. */
  readonly inflight: number;
  /** Messages that wait (max_mqueue_len) and their bytes (max_mqueue_bytes). */
  readonly queueLength: number;
  readonly queueBytes: number;
  /** Bytes of all sessions together past which no queue takes more; absent = no bound. */
  readonly totalBytes?: number;
  /** Whether QoS 0 waits for an offline session (queue_qos0). */
  readonly queueQos0: boolean;
  /** Unsent bytes of a slow reader (max_client_write_buffer). */
  readonly writeBuffer: number;
  /** Topic aliases assigned towards a client that offers them (max_topic_alias_out). */
  readonly topicAliases: number;
}

/** What goes to one client in the place of a message. */
export interface Altered {
  readonly payload: Uint8Array;
  readonly properties: Properties | null;
}

/** null = the message as it is, false = nothing. Must not throw, and must not change the publication. */
export type Alter = (publication: Publication, qos: Qos, retain: boolean) => Altered | false | null;

/** Told of each message that was written to a client for the first time, as it was written. Must not throw. */
export type Sent = (publication: Publication, qos: Qos, retain: boolean) => void;

/** The client at the other end, while there is one. */
export interface Peer {
  readonly writer: Writer;
  readonly version: Version;
  /** Receive Maximum of the client, 65,535 when it sent none. */
  readonly receiveMaximum: number;
  /** Maximum Packet Size of the client in bytes, Infinity when it sent none. */
  readonly maximumPacketSize: number;
  /** Topic Alias Maximum of the client. */
  readonly topicAliasMaximum: number;
  /** What is taken off the beginning of each topic; "" = nothing. */
  readonly mount?: string;
  /** Asked for each message before it is written; absent or null: every message goes as it is. */
  readonly alter?: Alter | null;
  /** Absent or null: nobody is told. */
  readonly sent?: Sent | null;
}

/** Stored messages still to be sent to a new subscription: pulled as there is room, so any number costs little. */
export interface Backlog {
  /**
   * The next message, null when there are no more, undefined when a while was spent and none found yet; a promise never
   * rejects.
   */
  next(): Message | null | undefined | Promise<Message | undefined>;
  readonly target: Target;
  /** Of the subscription: another one with the same takes its place. */
  readonly filter: string;
}

export interface OutboxOptions {
  readonly clientId: string;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly limits: OutboxLimits;
  readonly stats: DeliveryStats;
  /**
   * Read right of the session's present user for a topic; asked again for what waited: rights are those of the moment
   * of delivery.
   */
  readonly mayReceive: (topic: string) => boolean;
  /**
   * Gives a message that this session cannot finish to another member of its shared subscription (MQTT 5.0 section
   * 4.8.2). True when the journal was told of it there.
   */
  readonly redeliver: (share: string, message: Message, except: Receiver) => boolean;
  /**
   * Called when a message is dropped because the queue is full or the reader too slow; at most once until that is over.
   */
  readonly onTrouble: (reason: 'queue-full' | 'slow') => void;
  /** Calls back when it is this session's turn again: for stored messages, of which there may be many. */
  readonly later: (go: () => void) => void;
}

/** The receiver of one session (outbox.ts), as session/ uses it. */
export interface SessionOutbox extends Receiver {
  /** Messages sent and dropped for this session. */
  readonly sent: number;
  readonly dropped: number;
  readonly inflightCount: number;
  readonly queuedCount: number;
  readonly queuedBytes: number;
  /** True when the session outlives its connection: what is not acknowledged is kept. */
  resumable: boolean;
  /** True when the journal is told. */
  durable: boolean;
  limits: OutboxLimits;
  /** PUBACK; false when the identifier waits for none. */
  acknowledge(packetId: number): boolean;
  /** PUBREC; false when the identifier waits for another acknowledgement. */
  received(packetId: number, reasonCode: number): boolean;
  /** PUBCOMP; false when the identifier waits for none. */
  complete(packetId: number): boolean;
  /** Whether the identifier waits for an acknowledgement of any kind. */
  waits(packetId: number): boolean;
  /** A client has connected: what was not acknowledged is sent again, then what waited. */
  attach(peer: Peer): void;
  /** The client has gone. */
  detach(): void;
  /** The session has ended. */
  end(): void;
  /** Takes over the messages of a session found in the store. */
  restore(messages: readonly StoredMessage[]): void;
  /** Sends what waits while there is room. */
  pump(): void;
  deliverBacklog(backlog: Backlog): void;
  /** The filter is subscribed no more: stored messages still owed for it are not sent. */
  dropBacklog(filter: string): void;
}

export type MakeOutbox = (options: OutboxOptions, resumable: boolean) => SessionOutbox;
