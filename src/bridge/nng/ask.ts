// MQTT requests that a local process answers (type req): a message with a Response Topic becomes a request to an SP
// peer (req0), the reply goes to the Response Topic with the Correlation Data. Used by bridge.ts. A request has a time
// limit; without a reply the requester gets an error. Source: MQTT 5.0 section 4.10 (request / response),
// docs/local-analytics.md.
import type { LocalClient, LocalReceiver, LocalSubscription } from '../../broker/broker.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { capturesOf, fillTemplate, parseTemplate, wildcardCount } from '../../mqtt/template.ts';
import type { SpSocket } from '../../sp/sp.ts';
import type { ReqBridgeOptions, RequestOptions, RuleView } from '../bridge.ts';
import { DROPS, RuleCounters } from '../counters.ts';
import type { BridgeParts } from './link.ts';
import { Outgoing } from './outgoing.ts';
import { joinFrame } from './rules.ts';

interface Running {
  readonly rule: RequestOptions;
  readonly counters: RuleCounters;
  readonly outgoing: Outgoing;
  readonly subscription: LocalSubscription;
}

export class NngAsk {
  private options: ReqBridgeOptions;
  private readonly parts: BridgeParts;
  private client: LocalClient | null = null;
  private socket: SpSocket | null = null;
  private rules: Running[] = [];

  constructor(options: ReqBridgeOptions, parts: BridgeParts) {
    this.options = options;
    this.parts = parts;
  }

  start(client: LocalClient): void {
    this.client = client;
    const { name, type, compat } = this.options;
    for (const [index, rule] of this.options.requests.entries()) {
      const counters = new RuleCounters(this.parts.metrics, name, type, String(index), DROPS.ask);
      const outgoing = new Outgoing(rule, compat);
      const receiver: LocalReceiver = { receive: (publication) => this.ask(running, publication) };
      const subscription: LocalSubscription = { topicFilter: rule.localTopic, qos: 2, receiver, retainHandling: 2 };
      const running: Running = { rule, counters, outgoing, subscription };
      this.rules.push(running);
      if (rule.enable) client.subscribe(subscription);
    }
  }

  attach(socket: SpSocket): void {
    this.socket = socket;
  }

  change(options: ReqBridgeOptions): void {
    const { client } = this;
    this.leave();
    this.options = options;
    if (client !== null) this.start(client);
  }

  /** Takes no more requests; replies of those under way still go out. */
  leave(): void {
    for (const { subscription } of this.rules) this.client?.unsubscribe(subscription);
    this.rules = [];
  }

  stop(): void {
    this.socket = null;
    this.client = null;
  }

  views(): RuleView[] {
    return this.rules.map(({ counters }, index) => counters.view(index));
  }

  describe(): string[] {
    return this.rules.map(({ rule }) => `${rule.localTopic} -> request, ${rule.timeoutMs} ms`);
  }

  private ask({ rule, counters, outgoing }: Running, publication: Publication): void {
    if (publication.origin.bridge === `nng:${this.options.name}`) return;
    counters.matched.value++;
    const topic = responseTopic(rule, publication);
    if (topic === '') {
      counters.drop('no-response-topic');
      return;
    }
    const correlationData = publication.properties?.correlationData;
    const correlation: Properties = correlationData === undefined ? {} : { correlationData };
    outgoing.make(publication);
    const body = joinFrame(outgoing.head, outgoing.bytes, outgoing.start, outgoing.end);
    const { qos } = rule;
    const cancel = this.socket?.request?.(body, rule.timeoutMs, {
      reply: (bytes, start, end) => this.answer(counters, topic, bytes, start, end, qos, correlation),
      ended: (how) => {
        if (how !== 'answered') this.fail(counters, topic, how, qos, correlation);
      },
    });
    if (cancel === null || cancel === undefined) this.fail(counters, topic, 'busy', qos, correlation);
  }

  private answer(
    counters: RuleCounters,
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    properties: Properties,
  ): void {
    const { client } = this;
    if (client === null) return;
    const given = Object.keys(properties).length === 0 ? null : properties;
    const outcome = client.publish(topic, bytes, start, end, qos, false, given);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      counters.drop(outcome);
      return;
    }
    counters.forwarded.value++;
    counters.bytes.value += end - start;
  }

  /** Tells the requester that there is no reply. */
  private fail(
    counters: RuleCounters,
    topic: string,
    error: 'timeout' | 'stopped' | 'busy',
    qos: Qos,
    correlation: Properties,
  ): void {
    const { turn } = this.parts;
    counters.drop(error === 'busy' ? 'queue-full' : error);
    const body = Buffer.from(JSON.stringify({ error }));
    const properties: Properties = {
      ...correlation,
      payloadFormatIndicator: 1,
      contentType: 'application/json',
      userProperties: [['status', 'error']],
    };
    turn.enter();
    this.client?.publish(topic, body, 0, body.length, qos, false, properties);
    turn.leave();
  }
}

/** Where the reply goes: what the request says, else what the rule says; "" = nowhere. */
function responseTopic(rule: RequestOptions, publication: Publication): string {
  const asked = publication.properties?.responseTopic;
  if (asked !== undefined && asked !== '') return asked;
  if (rule.responseTopic === '') return '';
  const captures = wildcardCount(rule.localTopic);
  const template = parseTemplate(rule.responseTopic, captures, ['topic']);
  return fillTemplate(template, publication.topic, '', capturesOf(rule.localTopic, publication.topic));
}
