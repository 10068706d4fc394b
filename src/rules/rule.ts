// One rule that runs: a receiver of the broker for each of its filters, its counters, what it remembers of topics, its target.
// Made by engine.ts. A publisher of QoS 1 or 2 has its acknowledgement when what the rule made of its message is accepted too.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Cell, Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { Broker, LocalClient, LocalReceiver, LocalSubscription, PublishOutcome } from '../broker/broker.ts';
import type { Hold, Origin, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { type Chain, type Chains, LONGEST_CHAIN } from './chain.ts';
import type { CompiledRule, RuleSource } from './compiler.ts';
import { RULE_METRICS } from './metrics.ts';
import { Changes, Throttle } from './pace.ts';
import type { RuleOptions, RuleStatus } from './rules.ts';
import { type RuleInput, Transform } from './transform.ts';

/** A message that a rule has made. */
export interface RuleOutput {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
}

/** Where messages come from and go to apart from the broker. */
export interface RuleTargets {
  /** Sends through an NNG bridge; false when there is none of that name that sends, or it does not take the message. */
  nng(name: string, output: RuleOutput): boolean;
  /** Gives to the webhook; false when there is none. */
  webhook(output: RuleOutput): boolean;
  /** Has `taker` called for each message that comes in through an NNG bridge; gives the function that ends it. */
  tap(name: string, taker: Taker): () => void;
}

/** Gets a message of an NNG bridge: payload = bytes[start, end), valid until it returns. */
export type Taker = (topic: string, bytes: Uint8Array, start: number, end: number, qos: Qos, retain: boolean) => void;

export interface RuleParts {
  readonly broker: Pick<Broker, 'attach'>;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly metrics: Metrics;
  readonly targets: RuleTargets;
  readonly chains: Chains;
  readonly warn: Log;
}

/** A kept message and the chain it goes out by. */
interface Kept extends RuleOutput {
  readonly chain: Chain;
  readonly properties: Properties | null;
}

const NOBODY: Origin = { kind: 'bridge', clientId: '', username: null, bridge: null };

export class RunningRule {
  readonly options: RuleOptions;
  private readonly rule: CompiledRule;
  private readonly parts: RuleParts;
  private readonly transform: Transform;
  private readonly matched: Cell;
  private readonly passed: Cell;
  private readonly reasons = new Map<string, Cell>();
  private readonly changes: Changes | null;
  private readonly throttle: Throttle<Kept> | null;
  private client: LocalClient | null = null;
  private readonly subscriptions: LocalSubscription[] = [];
  private readonly taps: (() => void)[] = [];
  private lastError: RuleStatus['lastError'] = null;
  private lastChain: Chain | null = null;

  constructor(rule: CompiledRule, parts: RuleParts) {
    const { options } = rule;
    this.options = options;
    this.rule = rule;
    this.parts = parts;
    this.transform = new Transform(rule, () => parts.clock.now());
    this.matched = parts.metrics.cell(RULE_METRICS.matched, { rule: options.name });
    this.passed = parts.metrics.cell(RULE_METRICS.passed, { rule: options.name });
    this.changes = rule.changed === null ? null : new Changes(options.by);
    this.throttle =
      options.throttleMs > 0 ? new Throttle(options.throttleMs, parts.clock, (kept) => this.sendLater(kept)) : null;
  }

  /** Subscribes. A message that several filters match comes in by the first of them alone. */
  start(): void {
    const { parts, rule, options } = this;
    const clientId = `rule-in:${options.name}`;
    const client = parts.broker.attach({ clientId, username: null, kind: 'api', bridge: null, trusted: true });
    this.client = client;
    for (const source of rule.sources) {
      if (source.bridge !== null) {
        this.taps.push(parts.targets.tap(source.bridge, (...message) => this.tapped(source, ...message)));
        continue;
      }
      const receiver: LocalReceiver = { receive: (publication, qos) => this.receive(source, publication, qos) };
      const subscription: LocalSubscription = { topicFilter: source.filter, qos: 2, receiver, retainHandling: 2 };
      this.subscriptions.push(subscription);
      client.subscribe(subscription);
    }
  }

  /** What is kept is sent first. */
  stop(): void {
    for (const subscription of this.subscriptions) this.client?.unsubscribe(subscription);
    for (const end of this.taps) end();
    this.throttle?.stop();
    this.client?.close();
    this.client = null;
  }

  status(): RuleStatus {
    const { name, enable, from, to } = this.options;
    const dropped = Object.fromEntries([...this.reasons].map(([reason, cell]) => [reason, cell.value]));
    const { lastError } = this;
    return {
      name,
      enabled: enable,
      from,
      to,
      matched: this.matched.value,
      passed: this.passed.value,
      dropped,
      lastError,
    };
  }

  private receive(source: RuleSource, publication: Publication, qos: Qos): void {
    const { origin } = publication;
    if (this.rule.sources.length > 1 && this.rule.sources.find((one) => one.takes(publication.topic)) !== source)
      return;
    const chain = this.chainOf(origin, publication.topic);
    if (chain === null) return;
    this.take(source, publication, qos, origin, chain, publication);
  }

  private tapped(
    source: RuleSource,
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    retain: boolean,
  ): void {
    const chain = this.chainOf(NOBODY, topic);
    if (chain === null) return;
    const input = { topic, buffer: bytes, payloadStart: start, payloadEnd: end, retain, properties: null };
    this.take(source, input, qos, NOBODY, chain, null);
  }

  /** The chain that what comes out belongs to; null when this message has been through here, or through too many rules. */
  private chainOf(origin: Origin, topic: string): Chain | null {
    const { chains, warn } = this.parts;
    const before = chains.of(origin);
    if (before === null) {
      this.lastChain ??= chains.extend(null, this.options.name);
      return this.lastChain;
    }
    const { name } = this.options;
    // What a rule made does not enter it again: that is how it is meant, and no alarm.
    if (before.names.at(-1) === name) return null;
    const chain = chains.extend(before, name);
    if (chain !== null) return chain;
    this.matched.value++;
    this.drop('loop');
    warn('warn', 'RULE-LOOP', { rule: name, topic, rules: [...before.names, name], most: LONGEST_CHAIN });
    return null;
  }

  private take(
    source: RuleSource,
    input: RuleInput,
    qos: Qos,
    origin: Origin,
    chain: Chain,
    publication: Publication | null,
  ): void {
    const { transform } = this;
    this.matched.value++;
    const outcome = transform.run(source, input, qos, origin.clientId, origin.username);
    if (outcome !== 'passed') {
      this.drop(outcome);
      if (outcome === 'error') this.failed(input.topic);
      return;
    }
    if (this.changes !== null) {
      const value = transform.changedValue();
      if (value === null) {
        this.drop('error');
        this.failed(input.topic);
        return;
      }
      if (!this.changes.differs(input.topic, value)) {
        this.drop('unchanged');
        return;
      }
    }
    const outQos = this.options.qos ?? qos;
    if (this.throttle !== null && !this.throttle.allows(input.topic)) {
      if (this.throttle.keep(input.topic, this.kept(chain, input, outQos))) this.drop('throttled');
      return;
    }
    const { topic, bytes, start, end } = transform;
    this.send(chain, topic, bytes, start, end, outQos, this.propertiesOf(input), publication);
  }

  private kept(chain: Chain, input: RuleInput, qos: Qos): Kept {
    const { topic, bytes, start, end } = this.transform;
    const payload = Uint8Array.from(bytes.subarray(start, end));
    return { chain, topic, payload, qos, retain: this.options.retain, properties: this.propertiesOf(input) };
  }

  private sendLater(kept: Kept): void {
    const { turn } = this.parts;
    turn.enter();
    const { chain, topic, payload, qos, properties } = kept;
    this.send(chain, topic, payload, 0, payload.length, qos, properties, null);
    turn.leave();
  }

  private send(
    chain: Chain,
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    qos: Qos,
    properties: Properties | null,
    publication: Publication | null,
  ): void {
    const { nng, webhook, retain, to } = this.options;
    if (nng !== '' || webhook) {
      const output = { topic, payload: bytes.subarray(start, end), qos, retain };
      if (webhook && !this.parts.targets.webhook(output)) this.drop('no-webhook');
      if (nng !== '' && !this.parts.targets.nng(nng, output)) {
        this.drop('no-bridge');
        return;
      }
      if (nng !== '' || to === '') {
        this.passed.value++;
        return;
      }
    }
    const { client } = chain;
    const outcome =
      qos === 0 && !retain && properties === null
        ? client.publishSoon(topic, bytes, start, end)
        : client.publish(topic, bytes, start, end, qos, retain, properties);
    this.settle(outcome, qos > 0 ? client.lastHold() : null, publication);
  }

  /** Counts, and lets the publisher's acknowledgement wait for what became of the rule's message. */
  private settle(outcome: PublishOutcome, hold: Hold | null, publication: Publication | null): void {
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      this.drop(outcome);
      return;
    }
    this.passed.value++;
    if (hold === null || !hold.open || publication === null || publication.qos === 0) return;
    const waiting = publication.hold();
    waiting.add();
    hold.whenDone((reasonCode) => waiting.done(reasonCode));
  }

  /** Properties of the message, those that speak of its payload only where it stays. */
  private propertiesOf(input: RuleInput): Properties | null {
    const { properties } = input;
    if (properties === null || this.rule.set.length === 0) return properties;
    return { ...properties, payloadFormatIndicator: 1, contentType: 'application/json' };
  }

  private drop(reason: string): void {
    let cell = this.reasons.get(reason);
    if (cell === undefined) {
      cell = this.parts.metrics.cell(RULE_METRICS.dropped, { rule: this.options.name, reason });
      this.reasons.set(reason, cell);
    }
    cell.value++;
  }

  private failed(topic: string): void {
    const { clock, warn } = this.parts;
    const text = this.transform.error;
    this.lastError = { atMs: clock.now(), topic, text };
    warn('warn', 'RULE-ERROR', { rule: this.options.name, topic, error: text });
  }
}
