// Rules on the broker: each one subscribes to its filters, so topics without rules never meet it; what comes out goes
// to its target. Loaded and made by gateway/ when the first rule is configured. One message through one rule is
// transform.ts; loops are ended by chain.ts.
import type { Clock } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { Broker } from '../broker/broker.ts';
import { Chains } from './chain.ts';
import { Compiler, type RuleProblem } from './compiler.ts';
import { type RuleTargets, RunningRule } from './rule.ts';
import type { RuleOptions, RuleSample, RuleStatus, RuleTrial } from './rules.ts';
import { tryRule, watchRule } from './trial.ts';

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

/** Reads rules without running any: for a configuration that is checked only. */
export class RuleChecker {
  private readonly compiler = new Compiler();

  check(rules: readonly RuleOptions[]): NamedProblem[] {
    return problemsIn(this.compiler, rules);
  }
}

function problemsIn(compiler: Compiler, rules: readonly RuleOptions[]): NamedProblem[] {
  return rules.flatMap((options) => {
    const compiled = compiler.compile(options);
    return 'sources' in compiled ? [] : compiled.map((problem) => ({ rule: options.name, ...problem }));
  });
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
    return problemsIn(this.compiler, rules);
  }

  /**
   * Brings these rules into force: those that are the same go on with what they remember. Wrong ones are left out; see
   * check().
   */
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

  /** The options of a rule that is known. */
  options(name: string): RuleOptions | undefined {
    return this.running.get(name)?.options;
  }

  /** What the rule makes of the messages that come within `ms`, of `most` of them; nothing is published. */
  watch(options: RuleOptions, ms: number, most: number): Promise<{ sample: RuleSample; result: RuleTrial }[]> {
    const compiled = this.compiler.compile(options);
    if (!('sources' in compiled)) return Promise.resolve([]);
    return watchRule(compiled, this.parts, ms, most);
  }

  stop(): void {
    for (const name of [...this.running.keys()]) this.remove(name);
  }
}
