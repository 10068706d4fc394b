// The topics of one client that the configuration makes something else of (policy/policy.ts): what was found out about
// each, so that its rules are gone through once per topic. Made by named.ts where anything concerns the client. Bounded
// like the verdicts it stands beside: verdicts of such topics are kept here and never in the table of ordinary ones.
import { ENTRY_BYTES, OBJECT_BYTES, textBytes } from '../base/ledger.ts';
import { TOPIC_NAME_INVALID } from '../mqtt/reason.ts';
import type { ClientPolicy, TopicPlan } from '../policy/policy.ts';
import type { KnownTopic } from '../router/router.ts';
import type { Core } from './session.ts';

/** Topics remembered for one client; above that all are forgotten. */
const TOPICS = 256;
/** Above this memory of all clients together a client remembers the newest only. */
const ALL_BYTES = 32 * 1024 * 1024;

export interface Special {
  readonly plan: TopicPlan;
  /** The one it goes by. */
  readonly topic: KnownTopic;
  /** Whether the client may publish there; null = not known. */
  allowed: boolean | null;
  /** The same for the packet at hand. */
  may: boolean;
}

export class Specials {
  private readonly core: Core;
  private readonly policy: ClientPolicy;
  /** By the serial of the topic as it was published; null: nothing unusual about it. */
  private readonly map = new Map<number, Special | null>();
  private bytes = 0;

  constructor(core: Core, policy: ClientPolicy) {
    this.core = core;
    this.policy = policy;
  }

  /** null: nothing is unusual about the topic. */
  of(topic: KnownTopic): Special | null {
    const known = this.map.get(topic.serial);
    if (known !== undefined) return known;
    const special = this.find(topic);
    const bytes = ENTRY_BYTES + (special === null ? 0 : 2 * OBJECT_BYTES + textBytes(special.plan.topic));
    const { ledger } = this.core;
    if (this.map.size >= TOPICS || ledger.of('caches') > ALL_BYTES) this.clear();
    this.map.set(topic.serial, special);
    this.bytes += bytes;
    ledger.add('caches', bytes);
    return special;
  }

  clear(): void {
    this.map.clear();
    this.core.ledger.add('caches', -this.bytes);
    this.bytes = 0;
  }

  private find(topic: KnownTopic): Special | null {
    const plan = this.policy.plan(topic.name);
    if (plan === null) return null;
    if (plan.topic === topic.name) return { plan, topic, allowed: null, may: false };
    const { known } = this.core.router;
    const utf8 = Buffer.from(plan.topic);
    const goesBy = known.find(utf8, 0, utf8.length, null) ?? known.add(plan.topic, utf8, 0, utf8.length);
    const most = this.core.limits.maxTopicLevels;
    const deep = most > 0 && goesBy.levels > most;
    const limited = deep && plan.refusal === 0 ? { ...plan, refusal: TOPIC_NAME_INVALID } : plan;
    return { plan: limited, topic: goesBy, allowed: null, may: false };
  }
}
