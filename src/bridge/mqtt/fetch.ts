// Remote to local: subscribes at the remote broker by the rules of a bridge, and publishes here what comes.
// Made by bridge.ts, one for a bridge; told of each connection. Publishes as a local client, so rights and limits hold.
// Source: docs/mqtt-bridges.md.
import type { Log } from '../../base/log.ts';
import type { Cell } from '../../base/metrics.ts';
import type { LocalClient } from '../../broker/broker.ts';
import { Hold, type Publication } from '../../mqtt/message.ts';
import type { Qos, SubscriptionRequest } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { NOT_AUTHORIZED, QUOTA_EXCEEDED, reasonText, SUCCESS, TOPIC_NAME_INVALID } from '../../mqtt/reason.ts';
import { isShared } from '../../mqtt/topic.ts';
import { BRIDGE_METRICS } from '../counters.ts';
import type { Traced } from '../trace.ts';
import type { MqttBridgeOptions, MqttParts, MqttSubscription } from './options.ts';
import type { Remote } from './remote.ts';
import { FetchRule } from './rules.ts';
import { type FilterSink, Transparent } from './transparent.ts';

/** Whether a message has crossed the bridge before, and its properties once it has. */
export interface Loops {
  crossed(properties: Properties | null): boolean;
  marked(properties: Properties | null): Properties | null;
}

type Payload = Pick<Traced, 'bytes' | 'start' | 'end' | 'properties'>;

export class Fetcher {
  rules: readonly FetchRule[] = [];
  readonly unmatched: Cell;
  private options: MqttBridgeOptions;
  private readonly parts: MqttParts;
  private readonly log: Log;
  private readonly warn: Log;
  private readonly labels: { readonly bridge: string; readonly type: 'mqtt' };
  private readonly transparent: Transparent | null;
  private readonly loops: Loops;
  private client: LocalClient | null = null;
  private lastHold: Hold | null = null;
  /** All subscriptions were granted in the session that the remote keeps. */
  private subscribed = false;

  /** @param loops tells what has crossed this bridge before, and marks what crosses it now */
  constructor(options: MqttBridgeOptions, parts: MqttParts, warn: Log, loops: Loops) {
    this.loops = loops;
    this.options = options;
    this.parts = parts;
    this.log = parts.log;
    this.warn = warn;
    this.labels = { bridge: options.name, type: 'mqtt' };
    this.unmatched = parts.metrics.cell(BRIDGE_METRICS.unmatched, this.labels);
    this.transparent = options.transparent ? new Transparent(parts.broker, parts.clock) : null;
  }

  start(client: LocalClient): void {
    this.client = client;
    this.take(this.options);
  }

  stop(): void {
    this.transparent?.close();
    this.client = null;
  }

  /** Other rules; at an open connection they are asked for at once. */
  change(options: MqttBridgeOptions, remote: Remote | null): void {
    const before = this.rules;
    this.take(options);
    if (remote === null) return;
    const wanted = new Set(options.subscription.map((rule) => rule.remoteTopic));
    for (const { options: rule } of before) if (!wanted.has(rule.remoteTopic)) remote.unsubscribe(rule.remoteTopic);
    this.subscribe(remote);
  }

  /** A connection is open. `resumed`: what the remote has granted before is still there. */
  attach(remote: Remote, resumed: boolean): void {
    if (!resumed || !this.subscribed) this.subscribe(remote);
    this.transparent?.attach(this.filterSink(remote));
  }

  detach(): void {
    this.transparent?.detach();
  }

  // ---- messages

  /** A message of the remote; gives the reason code of its acknowledgement. */
  received(publication: Publication, identifiers: readonly number[] | null): number {
    this.lastHold = null;
    const code = this.byRules(publication, identifiers);
    if (code >= 0) return code;
    const { topic, retain } = publication;
    if (this.transparent?.wants(topic) === true) return this.publish(publication, plainOf(publication), topic, retain);
    this.unmatched.value++;
    this.warn('warn', 'MQB-UNMATCHED', { ...this.labels, topic });
    return SUCCESS;
  }

  /** What the acknowledgement of the message just received waits for. */
  hold(): Hold | null {
    return this.lastHold;
  }

  /** -1 when no rule is about it. The remote's word on which rules, where there is one, is not taken for the topic. */
  private byRules(publication: Publication, identifiers: readonly number[] | null): number {
    const { rules } = this;
    let code = -1;
    if (identifiers !== null && this.options.subProperties.identifier === null) {
      for (const identifier of identifiers) {
        const rule: FetchRule | undefined = rules[identifier - 1];
        if (rule?.takes(publication.topic) === true) code = Math.max(code, this.accept(rule, publication));
      }
      return code;
    }
    for (const rule of rules) {
      if (rule.takes(publication.topic)) return this.accept(rule, publication);
    }
    return code;
  }

  private accept(rule: FetchRule, publication: Publication): number {
    const { counters, options } = rule;
    counters.matched.value++;
    // No Local holds only for what comes straight back; this is for what has gone round.
    if (options.noLocal && this.loops.crossed(publication.properties)) {
      counters.drop('loop');
      return SUCCESS;
    }
    const topic = rule.topic(publication);
    if (topic === undefined) {
      counters.drop('missing-field');
      return TOPIC_NAME_INVALID;
    }
    const traced = rule.trace(publication);
    const code =
      topic === null
        ? TOPIC_NAME_INVALID
        : this.publish(publication, traced, topic, options.retain ?? publication.retain);
    if (code === SUCCESS) {
      counters.forwarded.value++;
      counters.bytes.value += traced.end - traced.start;
    } else if (code === NOT_AUTHORIZED) counters.drop('denied');
    else counters.drop(code === QUOTA_EXCEEDED ? 'refused' : 'invalid-topic');
    return code;
  }

  private publish(publication: Publication, payload: Payload, topic: string, retain: boolean): number {
    const { client } = this;
    if (client === null) return QUOTA_EXCEEDED;
    const { bytes, start, end, properties } = payload;
    const { qos } = publication;
    const outcome = client.publish(topic, bytes, start, end, qos, retain, this.loops.marked(properties));
    if (outcome === 'denied') return NOT_AUTHORIZED;
    if (outcome === 'invalid-topic') return TOPIC_NAME_INVALID;
    if (outcome === 'refused') return QUOTA_EXCEEDED;
    this.also(client.lastHold());
    return SUCCESS;
  }

  /** Several rules may have published: the acknowledgement waits for all of them. */
  private also(hold: Hold | null): void {
    if (hold === null) return;
    const before = this.lastHold;
    if (before === null) {
      this.lastHold = hold;
      return;
    }
    const both = new Hold();
    for (const one of [before, hold]) {
      both.add();
      one.whenDone((code) => (one.refused ? both.done(code) : both.unstored(code)));
    }
    this.lastHold = both;
  }

  // ---- subscriptions

  private take(options: MqttBridgeOptions): void {
    this.options = options;
    this.rules = options.subscription.map((rule, i) => new FetchRule(i, rule, options.name, this.parts.metrics));
    this.subscribed = false;
  }

  private subscribe(remote: Remote): void {
    this.subscribed = true;
    const { identifier } = this.options.subProperties;
    for (const [index, rule] of this.rules.entries()) {
      const told = remote.identifiersAvailable ? (identifier ?? index + 1) : 0;
      this.ask(remote, requestOf(rule.options), told, rule);
    }
  }

  private ask(remote: Remote, wanted: SubscriptionRequest, identifier: number, rule: FetchRule | null): void {
    remote.subscribe(wanted, identifier, (reasonCode) => {
      const refused = reasonCode >= 0x80 ? reasonText(reasonCode) : null;
      if (rule !== null) rule.refused = refused;
      if (refused === null) return;
      this.subscribed = false;
      this.log('warn', 'MQB-REFUSED', { ...this.labels, topic: wanted.topicFilter, reason: refused });
    });
  }

  /** For what local clients subscribe to; filters of rules are the rules'. */
  private filterSink(remote: Remote): FilterSink {
    const ruled = (topicFilter: string): boolean => this.rules.some((rule) => rule.options.remoteTopic === topicFilter);
    return {
      subscribe: (topicFilter: string, qos: Qos) => {
        if (ruled(topicFilter)) return;
        this.ask(remote, { topicFilter, qos, noLocal: true, retainAsPublished: true, retainHandling: 0 }, 0, null);
      },
      unsubscribe: (topicFilter: string) => {
        if (!ruled(topicFilter)) remote.unsubscribe(topicFilter);
      },
    };
  }
}

function plainOf({ buffer: bytes, payloadStart: start, payloadEnd: end, properties }: Publication): Payload {
  return { bytes, start, end, properties };
}

function requestOf(rule: MqttSubscription): SubscriptionRequest {
  return {
    topicFilter: rule.remoteTopic,
    qos: rule.qos,
    noLocal: rule.noLocal && !isShared(rule.remoteTopic), // [MQTT-3.8.3-4]
    retainAsPublished: rule.retainAsPublished,
    retainHandling: rule.retainHandling,
  };
}
