// One rule that runs: a receiver of the broker for each of its filters, its counters, what it remembers of topics, its
// target. Made by engine.ts. A publisher of QoS 1 or 2 has its acknowledgement when what the rule made of its message
// is accepted too.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Cell, Metrics } from '../base/metrics.ts';
import type { Flushable, Turn } from '../base/turn.ts';
import type { Broker, LocalClient, LocalReceiver, LocalSubscription } from '../broker/broker.ts';
import { type Hold, type Origin, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { type Chain, type Chains, LONGEST_CHAIN } from './chain.ts';
import type { CompiledRule, RuleSource } from './compiler.ts';
import { RULE_METRICS } from './metrics.ts';
import { Changes, Throttle } from './pace.ts';
import type { RuleOptions, RuleStatus } from './rules.ts';
import { type RuleInput, Transform } from './transform.ts';

/** What every rule may count; series are there from the start. */
const DROP_REASONS = [
  ...['filtered', 'error', 'not-json', 'missing-field', 'invalid-topic', 'loop', 'unchanged', 'throttled'],
  'refused',
];

/** Where messages come from and go to apart from the broker. */
export interface RuleTargets {
  /**
   * Sends through an NNG bridge; false when there is none of that name that sends. The bridge may hold the publication.
   */
  nng(name: string, output: Publication): boolean;
  /** Gives to the webhook; false when there is none. */
  webhook(output: Publication): boolean;
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
interface Kept {
  readonly chain: Chain;
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly properties: Properties | null;
}

/** What is published at the end of the turn, and the publisher that waits for it. */
interface Pending extends Kept {
  readonly hold: Hold | null;
}

const NOBODY: Origin = { kind: 'bridge', clientId: '', username: null, bridge: null };

export class RunningRule implements Flushable {
  dirty = false;
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
  /** What is published at the end of the turn: nobody sees a result before the message it was made of. */
  private pending: Pending[] = [];
  /** What goes elsewhere than to the broker. */
  private readonly output: Publication;

  constructor(rule: CompiledRule, parts: RuleParts) {
    const { options } = rule;
    this.options = options;
    this.rule = rule;
    this.parts = parts;
    const origin = { kind: 'api', clientId: `rule:${options.name}`, username: null, bridge: null } as const;
    this.output = new Publication(origin);
    this.transform = new Transform(rule, () => parts.clock.now());
    this.matched = parts.metrics.cell(RULE_METRICS.matched, { rule: options.name });
    this.passed = parts.metrics.cell(RULE_METRICS.passed, { rule: options.name });
    const elsewhere = [...(options.toNng === '' ? [] : ['no-bridge']), ...(options.toWebhook ? ['no-webhook'] : [])];
    for (const reason of [...DROP_REASONS, ...elsewhere])
      parts.metrics.cell(RULE_METRICS.dropped, { rule: options.name, reason });
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
    this.flush();
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

  /**
   * The chain that what comes out belongs to; null when this message has been through here, or through too many rules.
   */
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
    return { chain, topic, payload, qos, properties: this.propertiesOf(input) };
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
    const { toNng, toWebhook, retain, to } = this.options;
    if (toNng !== '' || toWebhook) {
      const { output } = this;
      output.reset();
      output.topic = topic;
      output.qos = qos;
      output.retain = retain;
      output.properties = properties;
      output.buffer = bytes;
      output.payloadStart = start;
      output.payloadEnd = end;
      if (!this.sendElsewhere(publication)) return;
      if (toNng !== '' || to === '') {
        this.passed.value++;
        return;
      }
    }
    if (qos === 0 && !retain && properties === null && this.pending.length === 0) {
      const outcome = chain.client.publishSoon(topic, bytes, start, end);
      if (outcome === 'accepted' || outcome === 'no-subscribers') this.passed.value++;
      else this.drop(outcome);
      return;
    }
    const hold = publication !== null && publication.qos > 0 ? publication.hold() : null;
    hold?.add();
    // The message that came is gone by then, and so is what `set` has built.
    const payload = Uint8Array.from(bytes.subarray(start, end));
    this.pending.push({ chain, topic, payload, qos, properties, hold });
    this.parts.turn.touch(this);
  }

  /** Publishes what is pending; called by the turn. */
  flush(): void {
    const { pending } = this;
    this.pending = [];
    for (const one of pending) this.publish(one);
  }

  private publish({ chain, topic, payload, qos, properties, hold }: Pending): void {
    const { client } = chain;
    const outcome = client.publish(topic, payload, 0, payload.length, qos, this.options.retain, properties);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      this.drop(outcome);
      // Who can send again is told: what the rule made of the message is not kept anywhere.
      hold?.done(outcome === 'refused' ? QUOTA_EXCEEDED : 0);
      return;
    }
    this.passed.value++;
    if (hold === null) return;
    const waits = qos > 0 ? client.lastHold() : null;
    if (waits === null) hold.done();
    else waits.whenDone((reasonCode) => hold.done(reasonCode));
  }

  /** Gives `output` to the bridge and the webhook; false when the bridge is not there. */
  private sendElsewhere(publication: Publication | null): boolean {
    const { toNng, toWebhook } = this.options;
    const { output } = this;
    const { targets } = this.parts;
    if (toWebhook && !targets.webhook(output)) this.drop('no-webhook');
    if (toNng === '') return true;
    if (!targets.nng(toNng, output)) {
      this.drop('no-bridge');
      return false;
    }
    // A spool that is written to disk, or a queue that is full: the publisher waits for it as for the bridge's own
    // rules.
    if (publication !== null && output.stored) publication.stored = true;
    this.waitFor(output.held, publication);
    return true;
  }

  private waitFor(hold: Hold | null, publication: Publication | null): void {
    if (hold === null || publication === null || publication.qos === 0) return;
    if (!hold.open && hold.outcome < 0x80) return;
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
