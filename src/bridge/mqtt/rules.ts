// The rules of a bridge to a remote broker at work: one receiver of the local broker for each forward, one mapper for
// each subscription. Made by bridge.ts. A rule renames, counts, and keeps messages from going back where they came
// from; it sends and publishes nothing itself.
import type { Metrics } from '../../base/metrics.ts';
import type { LocalClient, LocalReceiver, LocalSubscription } from '../../broker/broker.ts';
import { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { parseShare } from '../../mqtt/topic.ts';
import { DROPS, RuleCounters } from '../counters.ts';
import { jsonOf, Traced } from '../trace.ts';
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
  private readonly traced = new Traced();
  private readonly bridge: string;

  constructor(index: number, options: MqttForward, name: string, forwarder: Forwarder, metrics: Metrics) {
    this.index = index;
    this.options = options;
    this.forwarder = forwarder;
    this.bridge = `mqtt:${name}`;
    this.counters = new RuleCounters(metrics, name, 'mqtt', `forwards.${index}`, DROPS.forward);
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
    const topic = topicOf(this.mapper, publication, options.fallbackTopic);
    if (topic === null || topic === undefined) {
      counters.drop(topic === null ? 'invalid-topic' : 'missing-field');
      return;
    }
    const qos = options.qos ?? publication.qos;
    const { maxQos = 2 } = options;
    const level = qos > maxQos ? maxQos : qos;
    const retain = options.retain ?? publication.retain;
    if (this.retrace(publication)) this.forwardTraced(publication, topic, level, retain);
    else this.forwarder.forward(publication, topic, level, retain, this.index);
  }

  /** Whether `trace` changes the message: then `traced` has the result. */
  private retrace({ buffer, payloadStart, payloadEnd, properties }: Publication): boolean {
    const { trace = 'keep' } = this.options;
    if (trace === 'keep') return false;
    const { traced } = this;
    traced.take(trace, buffer, payloadStart, payloadEnd, properties);
    return traced.bytes !== buffer || traced.start !== payloadStart;
  }

  /** Forwards what is in `traced`; the publisher waits for it as for the message it came from. */
  private forwardTraced(from: Publication, topic: string, qos: Qos, retain: boolean): void {
    const { traced } = this;
    const sent = new Publication(from.origin);
    sent.topic = from.topic;
    sent.qos = from.qos;
    sent.retain = from.retain;
    sent.expiresAt = from.expiresAt;
    sent.promised = from.promised;
    sent.properties = traced.properties;
    sent.buffer = traced.bytes;
    sent.payloadStart = traced.start;
    sent.payloadEnd = traced.end;
    this.forwarder.forward(sent, topic, qos, retain, this.index);
    if (sent.stored) from.stored = true;
    const { held } = sent;
    if (held === null) return;
    const hold = from.hold();
    hold.add();
    held.whenDone((code) => (held.refused ? hold.done(code) : hold.unstored(code)));
  }
}

/** The new name; undefined where a field is missing and there is no `fallback`, null where it is no Topic Name. */
function topicOf(mapper: TopicMapper, publication: Publication, fallback = ''): string | null | undefined {
  const { topic, buffer, payloadStart, payloadEnd } = publication;
  if (!mapper.json) return mapper.map(topic);
  const mapped = mapper.mapFrom(topic, jsonOf(buffer, payloadStart, payloadEnd));
  return mapped === undefined && fallback !== '' ? fallback : mapped;
}

/** Remote to local. */
export class FetchRule {
  readonly options: MqttSubscription;
  readonly counters: RuleCounters;
  /** Why the remote broker did not grant it; null = granted, or not known yet. */
  refused: string | null = null;
  private readonly traced = new Traced();
  private readonly mapper: TopicMapper;

  constructor(index: number, options: MqttSubscription, name: string, metrics: Metrics) {
    this.options = options;
    this.counters = new RuleCounters(metrics, name, 'mqtt', `subscription.${index}`, DROPS.fetch);
    const { remoteTopic, localTopic: target, prefix, suffix } = options;
    const filter = parseShare(remoteTopic)?.topicFilter ?? remoteTopic;
    this.mapper = new TopicMapper({ filter, target, prefix, suffix });
  }

  takes(topic: string): boolean {
    return this.mapper.matches(topic);
  }

  /** The local topic; null when it can be none, undefined when a field for it is missing. */
  topic(publication: Publication): string | null | undefined {
    return topicOf(this.mapper, publication, this.options.fallbackTopic);
  }

  /** The message as `trace` leaves it; valid until the next call. */
  trace({ buffer, payloadStart, payloadEnd, properties }: Publication): Traced {
    this.traced.take(this.options.trace ?? 'keep', buffer, payloadStart, payloadEnd, properties);
    return this.traced;
  }
}

export function describeForward(rule: MqttForward): string {
  const { localTopic, remoteTopic, qos, maxQos = 2, retain, trace = 'keep', prefix, suffix } = rule;
  const to = prefix + (remoteTopic === '' ? '(topic)' : remoteTopic) + suffix;
  const level = qos !== null ? `, qos ${qos}` : maxQos < 2 ? `, qos ${maxQos} at most` : '';
  const traced = trace === 'keep' ? '' : `, trace ${trace}`;
  const more = `${level}${retain === null ? '' : `, retain ${retain}`}${traced}`;
  return `${localTopic} -> ${to}${more}`;
}

export function describeFetch(rule: MqttSubscription): string {
  const { localTopic, remoteTopic, qos, retain, trace = 'keep', prefix, suffix } = rule;
  const traced = trace === 'keep' ? '' : `, trace ${trace}`;
  const to = prefix + (localTopic === '' ? '(topic)' : localTopic) + suffix;
  return `${remoteTopic} -> ${to}, qos ${qos}${retain === null ? '' : `, retain ${retain}`}${traced}`;
}
