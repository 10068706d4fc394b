// SEAM of broker/: one MQTT broker, whichever engine stands behind it (broker/native/engine.ts,
// broker/aedes/engine.ts). Built by gateway/gateway.ts; used by listeners (accept), bridges, REST and console (attach,
// introspection). Engines pass one contract suite (test/contract/broker.ts).
//
// Map (made by `make docs`):
//   base.ts              What both engines do alike: what clients share (Core), limits before CONNECT, events
//   batch.ts             QoS 0 publishes of a client inside the process that come one after another and go the same way
//   local.ts             Clients inside the process: bridges, REST
//   localtarget.ts       One subscription of a client inside the process as the router sees it
//   metrics.ts           The broker's metrics: every counter of session/, router/ and delivery/ by name
//   newcomers.ts         Limits that hold before a peer has said anything: how many connections may come a second
//   sys.ts               The $SYS tree: the names mosquitto users know, NanoMQ's client status events, bridges
//   aedes/elsewhere.ts   Sessions of a shared broker that are at other gateways, or at none
//   aedes/engine.ts      The second engine behind the seam broker/broker.ts: aedes 1.x serves the clients
//   aedes/front.ts       What stands between a connection and aedes: reads CONNECT itself, bounded in bytes and time
//   aedes/guard.ts       Finds where packets begin and end in a stream of bytes
//   aedes/incoming.ts    QoS 2 from clients of the engine aedes
//   aedes/instep.ts      Whether this gateway is in step with the others that share its broker
//   aedes/metrics.ts     The metrics that only a broker on aedes with Redis has, each once
//   aedes/overrides.ts   What of aedes and its persistence is replaced, and what is heard of it
//   aedes/packets.ts     Messages of the gateway as packets of aedes
//   aedes/parts.ts       What is used of the packages behind engine = aedes, and how they are loaded
//   aedes/publishing.ts  What becomes of a message that a client of aedes publishes, or that another gateway tells of
//   aedes/redis.ts       The three connections to Redis through which gateways form one broker
//   aedes/relay.ts       What becomes of a message at QoS 1 and 2, and of one for other gateways
//   aedes/rights.ts      What clients of the engine aedes may do: asked by aedes for each PUBLISH, will
//   aedes/router.ts      The router of the engine aedes
//   aedes/session.ts     One session of the engine aedes as the router sees it: its subscriptions
//   aedes/sessions.ts    All sessions of the engine aedes: who is let in, takes over, leaves
//   aedes/sharing.ts     What a gateway does because others share its broker through Redis: it takes what is retained
//   aedes/whose.ts       Whose a packet is that carries its origin with it
//   native/engine.ts     The broker of our own: wires session/, router/
import type { Access, Identity } from '../auth/auth.ts';
import type { Service } from '../base/service.ts';
import type { Hold, Message, Publication, Via } from '../mqtt/message.ts';
import type { Qos, SubscriptionRequest, Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import type { Policies, Quotas, QuotaView } from '../policy/policy.ts';
import type { SessionLimits } from '../session/session.ts';
import type { Journal, Restored } from '../store/store.ts';
import type { Connection } from '../transport/transport.ts';

/** What a listener asks of its clients beyond what holds for all. */
export interface ClientRules {
  /** Highest QoS of publishes and subscriptions; that of all clients holds too. */
  readonly maxQos: Qos;
  /** Whether a client may come without a client id. */
  readonly allowEmptyClientId: boolean;
  /** What the client id of such a client begins with. */
  readonly autoClientIdPrefix: string;
  /** The client id is the username; without one nobody is let in. */
  readonly useUsernameAsClientId: boolean;
}

/** What a connection's listener decides for its clients. */
export interface ListenerContext {
  /** "tcp", "tcp.second", "ssl", "ws", "unix" ... */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** Absent: nothing beyond what holds for all. */
  readonly rules?: ClientRules;
  /** Asked at CONNECT, so that a reload holds for the next client. */
  access(): Access;
}

/**
 * A subscriber inside the process: called for each matching publication, in the order accepted. Must not throw and must
 * copy what it keeps.
 */
export interface LocalReceiver {
  /** Takes commands: what is published below $CONTROL/ goes to such receivers and to nobody else. */
  readonly control?: boolean;
  /** Keeps messages of QoS 1 and 2 in the store and refuses them while the store takes none. */
  readonly stores?: boolean;
  /**
   * `qos` is already lowered to the subscription's. To delay the publisher's acknowledgement, add() to
   * publication.hold().
   */
  receive(publication: Publication, qos: Qos): void;
  /**
   * In the place of receive() for QoS 0 packets of one topic that lie in publication.buffer[start, end): walk them with
   * step().
   */
  receiveRun?(publication: Publication, start: number, end: number): void;
}

export interface LocalSubscription {
  readonly topicFilter: string;
  readonly qos: Qos;
  readonly receiver: LocalReceiver;
  /** 0 = the stored retained messages are received at once, 2 = not. */
  readonly retainHandling: 0 | 2;
}

export interface LocalOptions {
  readonly clientId: string;
  readonly username: string | null;
  /** 'bridge' with its name ("nng:<name>", "mqtt:<name>"), or 'api'. */
  readonly kind: 'bridge' | 'api';
  readonly bridge: string | null;
  /** Bypass the authorizer (publishes of a bridge are checked as its clientid and username unless this is set). */
  readonly trusted: boolean;
}

export type PublishOutcome = 'accepted' | 'no-subscribers' | 'denied' | 'invalid-topic' | 'refused';

/**
 * A client inside the process. Its publishes pass ACL, limits and rules like any other; it has no session and no packet
 * ids.
 */
export interface LocalClient {
  /** A subscription that matches twice is received twice: each is one rule. */
  subscribe(subscription: LocalSubscription): void;
  unsubscribe(subscription: LocalSubscription): void;
  /** Publishes payload = bytes[start, end), copied where it is kept. Wrap many calls in turn.enter()/leave(). */
  publish(
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    retain: boolean,
    properties?: Properties | null,
  ): PublishOutcome;
  /**
   * As publish() with QoS 0 and without RETAIN, but it need not be delivered before the end of the turn: those of one
   * topic that follow each other go as one. For who brings many at once, within a turn: `count` payloads (1 when left
   * out) of one length, each `stride` bytes behind the one before. The outcome is that of all of them.
   */
  publishSoon(
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    count?: number,
    stride?: number,
  ): PublishOutcome;
  /** A topic that was denied to this client within the last minute, null = none was. */
  deniedTopic(): string | null;
  /** The hold of the last publish() if something delays its acknowledgement (full outboxes, a commit), else null. */
  lastHold(): Hold | null;
  /**
   * Called by who publishes from a source now and then: while the gateway is over its memory budget the source is held
   * for a moment.
   */
  relieve(source: Source): void;
  /** The source is gone. */
  relieved(source: Source): void;
  close(): void;
}

/** Something that is read from and can be held. */
export interface Source {
  pause(): void;
  resume(): void;
}

/** What is shown of a client in REST, console and `ctl`. */
export interface ClientView {
  readonly clientId: string;
  readonly username: string | null;
  readonly connected: boolean;
  readonly remote: string;
  readonly listener: string;
  readonly version: Version;
  readonly cleanStart: boolean;
  /** Seconds. */
  readonly keepAlive: number;
  /** Wall-clock milliseconds of the last connect or disconnect. */
  readonly since: number;
  readonly sessionExpiryInterval: number;
  readonly subscriptions: number;
  readonly inflight: number;
  readonly queued: number;
  readonly queuedBytes: number;
  readonly unsentBytes: number;
  readonly messagesIn: number;
  readonly messagesOut: number;
  readonly dropped: number;
  readonly willTopic: string | null;
  /** The will itself, for admins; absent where the engine does not show it. */
  readonly will?: Pick<Message, 'payload' | 'qos' | 'retain'> | null;
  readonly lastError: string | null;
}
export interface SubscriptionView {
  readonly clientId: string;
  readonly topicFilter: string;
  readonly qos: Qos;
  readonly noLocal: boolean;
  readonly retainAsPublished: boolean;
  readonly retainHandling: number;
  readonly subscriptionIdentifier: number;
}

/** Messages that were published on one topic, whoever published them and whoever got them. */
export interface TopicView {
  readonly topic: string;
  /** Since the topic is counted. */
  readonly messages: number;
  /** Of payloads. */
  readonly bytes: number;
  /** A second, over the window. */
  readonly messageRate: number;
  readonly byteRate: number;
}
export interface TopicTraffic {
  /** Topics that are counted one by one at most. */
  readonly limit: number;
  /** Milliseconds that the rates are over. */
  readonly windowMs: number;
  /** Topics counted one by one, in no particular order. */
  readonly topics: Iterable<TopicView>;
  /**
   * All others together: topics past the limit, very long ones, those that had been silent and made room. Its topic is
   * "".
   */
  readonly others: TopicView;
}

/** Things that happened, for console, webhooks and $SYS client status. Emitted in order, never per message. */
export type BrokerEvent =
  | { readonly kind: 'connected'; readonly client: ClientView }
  | { readonly kind: 'disconnected'; readonly client: ClientView; readonly reason: string; readonly reasonCode: number }
  | {
      readonly kind: 'refused';
      readonly clientId: string;
      readonly username: string | null;
      readonly remote: string;
      readonly reason: string;
      readonly reasonCode: number;
    }
  | { readonly kind: 'subscribed' | 'unsubscribed'; readonly clientId: string; readonly topicFilter: string }
  | { readonly kind: 'dropped'; readonly clientId: string; readonly reason: string; readonly count: number };

export interface Broker extends Service {
  /** Takes over a new connection: everything from CONNECT on. */
  accept(connection: Connection, listener: ListenerContext): void;
  attach(options: LocalOptions): LocalClient;
  /** Rights or users have changed: caches are dropped, clients and subscriptions checked again. */
  accessChanged(): void;
  onEvent(handler: (event: BrokerEvent) => void): () => void;

  clients(): Iterable<ClientView>;
  client(clientId: string): ClientView | undefined;
  subscriptions(clientId?: string): Iterable<SubscriptionView>;
  /** Stored retained messages that match the filter. */
  retained(topicFilter: string): Iterable<Message>;
  /** What is published, topic by topic; absent where the engine does not count that. */
  traffic?(): TopicTraffic;
  /** What clients may use and do; absent where the engine has no quotas. */
  quotas?(): QuotaView[];
  /** Messages that are published later; absent where the engine delays none. */
  delayedMessages?(): Iterable<DelayedView>;
  /** Forgets one; false when there is none. */
  removeDelayed?(id: number): boolean;
  /** Ends the connection (v5: DISCONNECT 0x98) and, if asked, the session. False when there is no such client. */
  kick(clientId: string, dropSession: boolean): boolean;
}

/** A message that is published later, for people. */
export interface DelayedView {
  readonly id: number;
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly bytes: number;
  readonly clientId: string;
  /** Milliseconds until it is due. */
  readonly inMs: number;
}

/** A session for a client that has not been here yet. */
export interface Preset {
  readonly clientId: string;
  readonly subscriptions: readonly SubscriptionRequest[];
}

/** A broker core as the gateway runs it: what listeners, bridges and console see, and what a reload changes. */
export interface Engine extends Broker {
  /** Where bridges keep what their remote end does not have yet, and what was kept there; known after start(). */
  readonly journal: Journal;
  readonly spools: Restored['spools'];
  /** This end of the sessions that remote brokers keep for bridges. */
  readonly bridgeSessions: Restored['sessions'];
  /** New limits, for clients that connect from now on and for checks made from now on. */
  setLimits(limits: SessionLimits): void;
  /** What the configuration says about topics and payloads from now on; only the native engine has any. */
  setPolicies?(policies: Policies | null): void;
  /** The same for what clients may use. */
  setQuotas?(quotas: Quotas | null): void;
  /** How often $SYS is published from now on; 0 = not any more. */
  setSysInterval(intervalMs: number): void;
  /** Makes these sessions where there are none. */
  preset(sessions: readonly Preset[]): void;
  /** Closes clients whose user may not be here any more; gives their number. */
  dropRevoked(revoked: (listener: string, username: string | null, via?: Via) => boolean): number;
  /**
   * Ends subscriptions that were granted before and are denied now, of clients that are here and of those that are not.
   * Resolves with their number when all have been looked at.
   */
  endSubscriptions(denied: (identity: Identity, topicFilter: string) => boolean): Promise<number>;
  /**
   * Sends a message to one client alone, at QoS 0, if it has a subscription that takes it and may receive it; absent
   * where commands over MQTT are not served.
   */
  answer?(clientId: string, topic: string, payload: Uint8Array): boolean;
  /** Whose a client id is while it has a session, connected or not, as its rights are judged. */
  identity(clientId: string): Identity | undefined;
  /**
   * Takes no new connections and reads no more from clients; what was read is answered as far as it is accepted within
   * `deadlineMs`, then all connections are closed. Comes before stop(), while bridges still take messages.
   */
  stopClients(deadlineMs: number): Promise<void>;
}
