// What the configuration makes of the topics of one client: rewritten, then below its mount point; checks of payloads
// and delays beside it. Built by gateway/; its answers are remembered by session/. Pure but for what checks count.
import type { Identity } from '../auth/auth.ts';
import type { Qos, SubscriptionRequest } from '../mqtt/packet.ts';
import { NOT_AUTHORIZED, TOPIC_FILTER_INVALID, TOPIC_NAME_INVALID } from '../mqtt/reason.ts';
import { EXCLUSIVE_PREFIX, isShared, isTopicFilter, isTopicName, parseShare } from '../mqtt/topic.ts';
import { isDelayed, parseDelayed } from './delayedtopic.ts';
import { type Names, withNames } from './naming.ts';
import type { PayloadRules } from './payload.ts';
import type { ClientPolicy, DelayedLimits, Policies, TopicPlan } from './policy.ts';
import { type RewriteOptions, Rewriter } from './rewrite.ts';

export interface AutoSubscription {
  /** With %c and %u. */
  readonly topic: string;
  readonly qos: Qos;
  readonly noLocal: boolean;
  readonly retainAsPublished: boolean;
  readonly retainHandling: 0 | 1 | 2;
  /** Name of a listener; "" = all. */
  readonly listener: string;
}

export interface TopicOptions {
  readonly rewrite: readonly RewriteOptions[];
  readonly autoSubscribe: readonly AutoSubscription[];
  readonly exclusive: boolean;
  readonly delayed: DelayedLimits | null;
  /** Mount points by the name of the listener, with %c and %u. */
  readonly mounts: ReadonlyMap<string, string>;
}

export class TopicPolicies implements Policies {
  readonly exclusive: boolean;
  readonly delayed: DelayedLimits | null;
  private readonly options: TopicOptions;
  private readonly payloads: PayloadRules | null;

  constructor(options: TopicOptions, payloads: PayloadRules | null) {
    this.options = options;
    this.payloads = payloads;
    this.exclusive = options.exclusive;
    this.delayed = options.delayed;
  }

  of(identity: Identity): ClientPolicy | null {
    const { rewrite, autoSubscribe, mounts } = this.options;
    const { listener } = identity;
    const mount = withNames(mounts.get(listener) ?? '', identity);
    const publishes = new Rewriter(rewrite, 'publish', listener, identity);
    const subscribes = new Rewriter(rewrite, 'subscribe', listener, identity);
    const own = autoSubscribe.filter((one) => one.listener === '' || one.listener === listener);
    const plain = mount === '' && publishes.empty && subscribes.empty && own.length === 0;
    if (plain && this.payloads === null && this.delayed === null) return null;
    return new OneClient(this, mount, publishes, subscribes, subscriptionsOf(own, mount ?? '', identity));
  }

  planInside(topic: string): TopicPlan | null {
    return this.planOf(topic, '', null);
  }

  /** @param publishes the client's rules, null = none */
  planOf(raw: string, mount: string, publishes: Rewriter | null): TopicPlan | null {
    const delayed = this.delayed !== null && isDelayed(raw);
    const parsed = delayed ? parseDelayed(raw) : null;
    if (delayed && (parsed === null || parsed.seconds > (this.delayed?.maxSeconds ?? 0)))
      return refused(raw, TOPIC_NAME_INVALID);
    const asked = parsed?.topic ?? raw;
    const named = publishes === null ? asked : publishes.topic(asked);
    if (named === null) return refused(raw, NOT_AUTHORIZED);
    // The mount point is outermost: no rule leads out of it.
    const topic = mount + named;
    if (topic !== raw && (named === '' || !isTopicName(topic))) return refused(raw, TOPIC_NAME_INVALID);
    const checks = this.payloads?.of(topic) ?? null;
    const delaySeconds = parsed?.seconds ?? 0;
    if (topic === raw && checks === null) return null;
    return { topic, refusal: 0, delaySeconds, checks, rewritten: named !== asked };
  }
}

function refused(topic: string, refusal: number): TopicPlan {
  return { topic, refusal, delaySeconds: 0, checks: null, rewritten: false };
}

class OneClient implements ClientPolicy {
  readonly mount: string;
  readonly unfit: string | null;
  readonly subscriptions: readonly SubscriptionRequest[];
  private readonly all: TopicPolicies;
  private readonly publishes: Rewriter;
  private readonly subscribes: Rewriter;

  constructor(
    all: TopicPolicies,
    mount: string | null,
    publishes: Rewriter,
    subscribes: Rewriter,
    subscriptions: readonly SubscriptionRequest[],
  ) {
    this.all = all;
    this.mount = mount ?? '';
    this.unfit = mount === null ? 'the names of the client do not fit the mount point' : null;
    this.publishes = publishes;
    this.subscribes = subscribes;
    this.subscriptions = subscriptions;
  }

  plan(topic: string): TopicPlan | null {
    return this.all.planOf(topic, this.mount, this.publishes);
  }

  filter(topicFilter: string): string | number {
    const [prefix, inner] = this.split(topicFilter);
    const filter = this.subscribes.filter(inner);
    if (filter === null) return NOT_AUTHORIZED;
    const placed = prefix + this.mount + filter;
    if (placed === topicFilter) return topicFilter;
    return filter !== '' && isTopicFilter(placed) ? placed : TOPIC_FILTER_INVALID;
  }

  /** What stands before a filter, and the filter itself. */
  private split(topicFilter: string): readonly [string, string] {
    const share = isShared(topicFilter) ? parseShare(topicFilter) : null;
    if (share !== null) return [`$share/${share.shareName}/`, share.topicFilter];
    if (!this.all.exclusive || !topicFilter.startsWith(EXCLUSIVE_PREFIX)) return ['', topicFilter];
    return [EXCLUSIVE_PREFIX, topicFilter.slice(EXCLUSIVE_PREFIX.length)];
  }
}

/** Those that this client can have: one whose names do not fit a template goes without. */
function subscriptionsOf(all: readonly AutoSubscription[], mount: string, names: Names): SubscriptionRequest[] {
  return all.flatMap(({ topic, listener: _, ...options }) => {
    const filter = withNames(topic, names);
    return filter === null ? [] : [{ ...options, topicFilter: mount + filter }];
  });
}
