// The rules of a bridge to a remote broker at work: one receiver of the local broker for each forward, one mapper for
// each subscription. Made by bridge.ts. A rule renames, counts, and keeps messages from going back where they came
// from; it sends and publishes nothing itself.
import type { Metrics } from '../../base/metrics.ts';
import type { LocalClient, LocalReceiver, LocalSubscription } from '../../broker/broker.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { parseShare } from '../../mqtt/topic.ts';
import { RuleCounters } from '../counters.ts';
import type { MqttForward, MqttSubscription } from './options.ts';
import { TopicMapper } from './topic.ts';

/** Who sends what the rules take. */
export interface Forwarder {
  forward(publication: Publication, topic: string, qos: Qos, retain: boolean, rule: number): void;
  /** Whether the message has crossed this bridge before. */
  crossed(properties: Properties | null): boolean;
  /** What it takes at QoS 1 and 2 goes to the store. */
  readonly stores: boolean;
}

/** Local to remote. */
export class ForwardRule implements LocalReceiver {
  subscription: LocalSubscription;
  readonly counters: RuleCounters;
  private readonly index: number;
  private readonly options: MqttForward;
  private readonly forwarder: Forwarder;
  private readonly mapper: TopicMapper;
  private readonly bridge: string;

  constructor(index: number, options: MqttForward, name: string, forwarder: Forwarder, metrics: Metrics) {
    this.index = index;
    this.options = options;
    this.forwarder = forwarder;
    this.bridge = `mqtt:${name}`;
    this.counters = new RuleCounters(metrics, name, 'mqtt', `forwards.${index}`);
    const { localTopic: filter, remoteTopic: target, prefix, suffix } = options;
    this.mapper = new TopicMapper({ filter, target, prefix, suffix });
    this.subscription = { topicFilter: filter, qos: 2, receiver: this, retainHandling: 2 };
  }

  get stores(): boolean {
    return this.forwarder.stores;
  }

  /**
   * Takes the retained messages that match once more, where that is asked for. Nothing published meanwhile is missed
   * within a turn.
   */
  takeStored(client: LocalClient): void {
    if (this.options.stored !== true || this.subscription.topicFilter === '') return;
    client.unsubscribe(this.subscription);
    this.subscription = { ...this.subscription, retainHandling: 0 };
    client.subscribe(this.subscription);
  }

  receive(publication: Publication): void {
    const { counters, options } = this;
    if (publication.origin.bridge === this.bridge || this.forwarder.crossed(publication.properties)) {
      counters.drop('loop');
      return;
    }
    counters.matched.value++;
    const topic = this.mapper.map(publication.topic);
    if (topic === null) {
      counters.drop('invalid-topic');
      return;
    }
    const qos = options.qos ?? publication.qos;
    const { maxQos = 2 } = options;
    this.forwarder.forward(
      publication,
      topic,
      qos > maxQos ? maxQos : qos,
      options.retain ?? publication.retain,
      this.index,
    );
  }
}

/** Remote to local. */
export class FetchRule {
  readonly options: MqttSubscription;
  readonly counters: RuleCounters;
  /** Why the remote broker did not grant it; null = granted, or not known yet. */
  refused: string | null = null;
  private readonly mapper: TopicMapper;

  constructor(index: number, options: MqttSubscription, name: string, metrics: Metrics) {
    this.options = options;
    this.counters = new RuleCounters(metrics, name, 'mqtt', `subscription.${index}`);
    const { remoteTopic, localTopic: target, prefix, suffix } = options;
    const filter = parseShare(remoteTopic)?.topicFilter ?? remoteTopic;
    this.mapper = new TopicMapper({ filter, target, prefix, suffix });
  }

  /** The local topic; null when it can be none, undefined when the rule is not about `topic`. */
  topic(topic: string): string | null | undefined {
    return this.mapper.take(topic);
  }
}

export function describeForward(rule: MqttForward): string {
  const { localTopic, remoteTopic, qos, maxQos = 2, retain, prefix, suffix } = rule;
  const to = prefix + (remoteTopic === '' ? '(topic)' : remoteTopic) + suffix;
  const level = qos !== null ? `, qos ${qos}` : maxQos < 2 ? `, qos ${maxQos} at most` : '';
  const more = `${level}${retain === null ? '' : `, retain ${retain}`}`;
  return `${localTopic} -> ${to}${more}`;
}

export function describeFetch(rule: MqttSubscription): string {
  const { localTopic, remoteTopic, qos, retain, prefix, suffix } = rule;
  const to = prefix + (localTopic === '' ? '(topic)' : localTopic) + suffix;
  return `${remoteTopic} -> ${to}, qos ${qos}${retain === null ? '' : `, retain ${retain}`}`;
}
