// SEAM of policy/: what the configuration says about topics and payloads of clients, beside their rights: topics that
// are rewritten or mounted, subscriptions that clients get by themselves, payloads that are checked, messages that are
// delayed. Built by gateway/; asked by session/ once per client and topic, never per message of an ordinary topic.
// Rights are judged on what comes out of it, so it can lead nobody around them.
//
// Map (made by `make docs`):
//   delayedtopic.ts  Topics that say when their message is to be published: $delayed/<seconds>/<topic>
//   jsonschema.ts    JSON Schema (2020-12, 2019-09 and draft-07) for payload.ts: compiled once by ajv
//   naming.ts        Names of a client inside topics that operators write: %c the client id, %u the username
//   payload.ts       Checks of payloads by topic: size, UTF-8, JSON, a JSON Schema
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
