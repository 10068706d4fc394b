// Rules on the broker: each one subscribes to its filters, so topics without rules never meet it; what comes out goes to its target.
// Loaded when the first rule is configured. One message through one rule is transform.ts; loops are ended by chain.ts.
import type { Clock } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { Broker } from '../broker/broker.ts';
import { Chains } from './chain.ts';
import { type CompiledRule, Compiler, type RuleProblem } from './compiler.ts';
import { type RuleTargets, RunningRule } from './rule.ts';
import type { RuleOptions, RuleSample, RuleStatus, RuleTrial } from './rules.ts';
import { Transform } from './transform.ts';

const WARN_EVERY_MS = 1000;

export interface RulesParts {
  readonly broker: Pick<Broker, 'attach'>;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly targets: RuleTargets;
}

/** What is wrong with a rule. */
export interface NamedProblem extends RuleProblem {
  readonly rule: string;
}

export class Rules {
  private readonly parts: RulesParts;
  private readonly compiler = new Compiler();
  private readonly chains: Chains;
  private readonly warn: Log;
  private readonly running = new Map<string, RunningRule>();

  constructor(parts: RulesParts) {
    this.parts = parts;
    this.chains = new Chains(parts.broker);
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
  }

  /** Everything that is wrong with these rules; they need not be in force. */
  check(rules: readonly RuleOptions[]): NamedProblem[] {
    return rules.flatMap((options) => {
      const compiled = this.compiler.compile(options);
      return 'sources' in compiled ? [] : compiled.map((problem) => ({ rule: options.name, ...problem }));
    });
  }

  /** Brings these rules into force: those that are the same go on with what they remember. Wrong ones are left out; see check(). */
  apply(rules: readonly RuleOptions[]): void {
    const wanted = new Map(rules.map((options) => [options.name, options]));
    for (const [name, rule] of [...this.running]) {
      if (JSON.stringify(wanted.get(name)) !== JSON.stringify(rule.options)) this.remove(name);
    }
    for (const options of rules) if (!this.running.has(options.name)) this.put(options);
  }

  /** Adds a rule or takes another one's place. Gives what is wrong with it; then nothing has changed. */
  put(options: RuleOptions): readonly RuleProblem[] {
    const compiled = this.compiler.compile(options);
    if (!('sources' in compiled)) return compiled;
    this.remove(options.name);
    const rule = new RunningRule(compiled, { ...this.parts, chains: this.chains, warn: this.warn });
    this.running.set(options.name, rule);
    if (options.enable) rule.start();
    return [];
  }

  /** False when there is no such rule. */
  remove(name: string): boolean {
    const rule = this.running.get(name);
    if (rule === undefined) return false;
    this.running.delete(name);
    rule.stop();
    this.chains.forget(name);
    return true;
  }

  list(): RuleStatus[] {
    return [...this.running.values()].map((rule) => rule.status());
  }

  /** What the rule would make of a sample, by the code that runs; nothing is published. */
  test(options: RuleOptions, sample: RuleSample): RuleTrial | readonly RuleProblem[] {
    const compiled = this.compiler.compile(options);
    return 'sources' in compiled ? tryRule(compiled, sample, () => this.parts.clock.now()) : compiled;
  }

  stop(): void {
    for (const name of [...this.running.keys()]) this.remove(name);
  }
}

function tryRule(rule: CompiledRule, sample: RuleSample, now: () => number): RuleTrial {
  const { topic, payload, retain } = sample;
  const source = rule.sources.find((one) => one.takes(topic) || one.bridge !== null);
  if (source === undefined) return { outcome: 'filtered', reason: 'the topic matches nothing of from' };
  const transform = new Transform(rule, now);
  const input = { topic, buffer: payload, payloadStart: 0, payloadEnd: payload.length, retain, properties: null };
  const outcome = transform.run(source, input, sample.qos, sample.clientId, sample.username);
  if (outcome === 'filtered') return { outcome, reason: 'where is false' };
  if (outcome !== 'passed') return { outcome: 'error', reason: outcome === 'error' ? transform.error : outcome };
  if (rule.changed !== null && transform.changedValue() === null) return { outcome: 'error', reason: transform.error };
  const { options } = rule;
  return {
    outcome,
    topic: transform.topic,
    payload: Uint8Array.from(transform.bytes.subarray(transform.start, transform.end)),
    qos: options.qos ?? sample.qos,
    retain: options.retain,
  };
}
