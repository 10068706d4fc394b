// SEAM of policy/: what the configuration says about topics and payloads of clients, beside their rights: topics that
// are rewritten or mounted, subscriptions that clients get by themselves, payloads that are checked, messages that are
// delayed. Built by gateway/; asked by session/ once per client and topic, never per message of an ordinary topic.
// Rights are judged on what comes out of it, so it can lead nobody around them.
//
// Map (made by `make docs`):
//   bucket.ts        A token bucket: so much a second, and a burst at once
//   delayedtopic.ts  Topics that say when their message is to be published: $delayed/<seconds>/<topic>
//   jsonschema.ts    JSON Schema (2020-12, 2019-09 and draft-07) for payload.ts: compiled once by ajv
//   naming.ts        Names of a client inside topics that operators write: %c the client id, %u the username
//   payload.ts       Checks of payloads by topic: size, UTF-8, JSON, a JSON Schema
//   quota.ts         Quotas: what the clients of one scope
//   rewrite.ts       Topic rewriting: the first rule whose pattern matches gives the topic or filter another name
//   topics.ts        What the configuration makes of the topics of one client: rewritten, then below its mount point
import type { Identity } from '../auth/auth.ts';
import type { SubscriptionRequest } from '../mqtt/packet.ts';

/** What is done with a payload. A tag is a User Property. */
export type PayloadVerdict =
  | { readonly kind: 'pass' | 'refuse' | 'drop' }
  | { readonly kind: 'tag'; readonly tags: readonly (readonly [string, string])[] };

/** The checks of one topic. */
export interface PayloadChecks {
  /** Counts what it says. Takes time by the size of the payload, which it bounds. Never throws. */
  judge(payload: Uint8Array): PayloadVerdict;
}

/** What becomes of a message that is published on one topic. */
export interface TopicPlan {
  /** The topic it goes by, whose rights count. */
  readonly topic: string;
  /** Reason code for the publisher when it can go nowhere, else 0. */
  readonly refusal: number;
  /** Seconds until it is published; 0 = now. */
  readonly delaySeconds: number;
  readonly checks: PayloadChecks | null;
  /** A rewrite rule has changed the topic. */
  readonly rewritten: boolean;
}

/** What holds for one client. */
export interface ClientPolicy {
  /** Begins all its topics and filters, without being seen by it; "" = nothing does. */
  readonly mount: string;
  /** Why the client cannot be served (its names do not fit the mount point), or null. */
  readonly unfit: string | null;
  /** null: nothing is unusual about this topic. O(rules). */
  plan(topic: string): TopicPlan | null;
  /** The filter that a valid one of a SUBSCRIBE or UNSUBSCRIBE stands for, or a reason code. O(rules). */
  filter(topicFilter: string): string | number;
  /** Subscriptions it gets when it connects, as they are in force. */
  readonly subscriptions: readonly SubscriptionRequest[];
}

export interface Policies {
  /** null: nothing concerns this client. */
  of(identity: Identity): ClientPolicy | null;
  /** As ClientPolicy.plan(), for publishers inside the process. */
  planInside(topic: string): TopicPlan | null;
  /** $exclusive/<filter> may have one subscriber. */
  readonly exclusive: boolean;
  /** Bounds of delayed messages; null = there are none. */
  readonly delayed: DelayedLimits | null;
}

export interface DelayedLimits {
  readonly maxSeconds: number;
  readonly messages: number;
  readonly bytes: number;
}

/** What is done when a rate or the messages in flight exceed a quota; requests for more of the rest are refused. */
export type QuotaAction = 'delay' | 'drop' | 'disconnect';
export type QuotaWhat = 'connects' | 'publishes' | 'sessions' | 'subscriptions' | 'retained' | 'inflight';

/** Whose something is, as quotas see it: an Identity and the Origin of a client's messages have it. */
export interface Whose {
  readonly clientId: string;
  readonly username: string | null;
  readonly listener: string;
  readonly remoteAddress: string;
}

/** What the clients of one scope use together. */
export interface Usage {
  sessions: number;
  subscriptions: number;
  retained: number;
  /** Publishers that wait for their turn. */
  waiting: number;
  /** Each connected publisher, by how many of its messages are in flight. */
  readonly members: Set<() => number>;
  readonly action: QuotaAction;
  /** Requests refused so far: who goes on asking in vain is not read for a moment. */
  readonly refusals: number;
  /** Whether publishes are looked at. */
  readonly metered: boolean;
  count(what: QuotaWhat, outcome: 'delayed' | 'dropped' | 'refused'): void;
  /** No more of it is granted. */
  full(what: 'sessions' | 'subscriptions' | 'retained'): boolean;
  /** Counts a CONNECT; milliseconds that it is ahead of its time. */
  connectMs(nowMs: number): number;
  /** A CONNECT that is refused does not count. */
  giveBackConnect(): void;
  /** Milliseconds until the next PUBLISH may be handled. */
  publishMs(nowMs: number): number;
  inflightFull(): boolean;
  /** Publishes that may be handled now. */
  room(nowMs: number): number;
  charge(messages: number, bytes: number): void;
}

/** A quota, for people. */
export interface QuotaView {
  readonly name: string;
  readonly per: string;
  readonly action: QuotaAction;
  readonly limits: Readonly<Record<string, number>>;
  /** By what and outcome, as in "publishes delayed". */
  readonly counts: Readonly<Record<string, number>>;
  readonly scopes: number;
  /** Some of the scopes, those that wait first. */
  readonly rows: readonly {
    readonly key: string;
    readonly sessions: number;
    readonly subscriptions: number;
    readonly retained: number;
    readonly waiting: number;
  }[];
}

export interface Quotas {
  /** Every scope that somebody counts in. O(quotas). */
  of(whose: Whose, nowMs: number): Usage[];
  /** Those that are known before anybody is authenticated, and the others. */
  ofPlace(whose: Whose, nowMs: number): Usage[];
  ofName(whose: Whose, nowMs: number): Usage[];
  view(): QuotaView[];
  /** Forgets scopes of which nothing is left. */
  sweep(nowMs: number): void;
}
