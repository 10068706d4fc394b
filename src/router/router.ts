// SEAM of router/: from a topic to everybody who gets it. Used by session/ (subscribe, publish), broker/ (local
// clients, introspection). A Route is the answer for one topic, cached until any subscription changes; whoever keeps
// one compares its version. Contract: publish() serves targets in the order of their subscriptions, stores retained
// messages, and never throws.
//
// Map (made by `make docs`):
//   known.ts         Topic Names by their bytes: one that has been seen is found without text, checks
//   retained.ts      Retained messages by topic, in a trie of their own
//   routecache.ts    Routes found so far, by topic: bounded in number and in memory
//   routes.ts        The router: subscriptions, the routes found from them, retained messages
//   shared.ts        Shared subscriptions (MQTT 5.0 section 4.8.2): each message goes to exactly one member of a group
//   targetsets.ts    The receivers of a topic from the subscriptions that match it
//   topics.ts        Counts what is published topic by topic, for whoever looks: REST, console, `ctl topics`
//   tracedroutes.ts  The router where messages are traced
//   trie.ts          Subscriptions by topic filter: finding all that match a topic costs its levels
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Message, Publication, TopicNames } from '../mqtt/message.ts';
import type { SubscriptionRequest } from '../mqtt/packet.ts';

/** One subscription as the router keeps it. */
export interface Subscription extends SubscriptionRequest {
  readonly receiver: Receiver;
  /** The filter without $share/<name>/. */
  readonly filter: string;
  readonly shareName: string | null;
  /** 0 = none. */
  readonly subscriptionIdentifier: number;
  /** Rank among all subscriptions; a replaced one keeps its rank. */
  readonly order: number;
}

/** A shared subscription with the members that match a topic. */
export interface GroupTargets {
  pick(publication: Publication): Target | null;
  /** The one that pick() would give now. */
  peek(): Target | null;
}

/** What has been published on a topic, raised in place for each message. */
export interface TopicCount {
  messages: number;
  /** Of payloads. */
  bytes: number;
}

export interface Route {
  readonly topic: string;
  readonly version: number;
  /**
   * The same array for all topics of one version that go to the same targets: their packets may be handed on together.
   */
  readonly targets: readonly Target[];
  readonly groups: readonly GroupTargets[];
  /** Of the topic, whatever its routes were before. */
  readonly count: TopicCount;
}

/** A Topic Name that has been seen, with what was found out about it. */
export interface KnownTopic {
  readonly name: string;
  readonly utf8: Uint8Array;
  readonly levels: number;
  /** Never the same for two topics: what somebody remembers of a topic can be kept under it. */
  readonly serial: number;
  /** As it was found last; whoever uses it compares its version. */
  route: Route | null;
}

/** Topic Names by their bytes; names for a run of packets that have several (mqtt/message.ts). */
export interface KnownTopics extends TopicNames {
  /**
   * The topic in buffer[start, end), null when it is not known; `before` is the one that the same sender used before,
   * if any.
   */
  find(buffer: Uint8Array, start: number, end: number, before: KnownTopic | null): KnownTopic | null;
  /**
   * Takes up a Topic Name that has been checked and that find() did not find. Long ones are known to their caller only.
   */
  add(name: string, buffer: Uint8Array, start: number, end: number): KnownTopic;
}

/** One message that is traced, while it is routed. */
export interface TracedMessage {
  /** A receiver gets it now. */
  handing(): void;
  /** It has it: done, queued or dropped. */
  handed(receiver: Receiver): void;
  /** Every receiver has it. */
  routed(publication: Publication): void;
}

/** Chooses the messages that are traced (tracedroutes.ts). */
export interface RouteTracer {
  /** The message as a traced one, null when it is not chosen. May give it other properties. */
  begin(publication: Publication): TracedMessage | null;
  /**
   * How many of the next `count` messages, none with properties, pass before one is chosen; `count` when none of them
   * is.
   */
  before(count: number): number;
  /** The message that before() has come to; null where nothing is traced on its topic, or there is too much. */
  chosen(publication: Publication): TracedMessage | null;
}

/** Bounds of what is retained; 0 = no limit. */
export interface RetainedLimits {
  readonly messages: number;
  /** Memory. */
  readonly bytes: number;
}

/** Counters, changed in place. */
export interface RouterStats {
  received: number;
  noSubscribers: number;
}

export interface Router {
  /** Rises with every change of subscriptions or rights. */
  readonly version: number;
  /** Adds or replaces [MQTT-3.8.4-3]; true when the same filter was subscribed before. */
  subscribe(subscription: Omit<Subscription, 'order'>): boolean;
  /** Whether one more subscription may be kept: within the memory for what stays. */
  hasRoomFor(topicFilter: string): boolean;
  /** False when there was no such subscription. */
  unsubscribe(receiver: Receiver, topicFilter: string): boolean;
  /** Rights have changed: routes are found anew. */
  invalidate(): void;
  route(topic: string): Route;
  readonly known: KnownTopics;
  /**
   * Stores it if it is retained and delivers it by `route`, which must be current. Returns how many receivers it had.
   */
  publish(publication: Publication, route: Route): number;
  /**
   * Whether publish() would be refused by somebody: a receiver that needs the store, or the retained messages. For QoS
   * 2, where a refusal must have had no effect on anybody. O(receivers).
   */
  refuses(publication: Publication, route: Route): boolean;
  /**
   * Delivers a run of packets (delivery.ts, deliverRun) by `route`. The counts of their topics are raised by the
   * caller, who knows them. A run of several topics (publication.names is set) has routes with the same targets and no
   * groups.
   */
  publishRun(
    publication: Publication,
    route: Route,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): number;
  /**
   * A member of the shared subscription `topicFilter` could not finish this message: another one gets it (MQTT 5.0
   * section 4.8.2).
   */
  redeliver(topicFilter: string, message: Message, except: Receiver): boolean;
  /** Retained messages that match, lazily; the store may change meanwhile. */
  retained(topicFilter: string): Iterator<Message>;
  /** The same in pieces of bounded work: null where many topics were looked at and none matched. */
  retainedInPieces(topicFilter: string): Iterator<Message | null>;
  readonly stats: RouterStats;
  /** Subscriptions that were looked at to find routes, so far: what tells of dear topics. */
  readonly searched: number;
  readonly subscriptionCount: number;
  readonly sharedCount: number;
  /** Different topic filters, shared ones by name and filter. */
  readonly filterCount: number;
  /** Retained messages of clients and bridges; the gateway's own $SYS values are not counted. */
  readonly retainedCount: number;
  readonly retainedBytes: number;
}
