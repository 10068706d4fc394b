// Rules as the gateway has them: the engine, loaded when the first rule is configured, between the broker, NNG bridges
// and the webhook. Made by gateway.ts; running.ts has it check a configuration before it is taken, REST and console ask
// it for what runs and for trials.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { Taps } from '../bridge/nng/taps.ts';
import type { Supervisor } from '../bridge/supervisor.ts';
import type { Broker } from '../broker/broker.ts';
import type { Config } from '../config/config.ts';
import { type DocumentProblem, readRule, ruleDocument } from '../config/documents.ts';
import { same, valueAt, withNode, withoutNode } from '../config/keep.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import type { RuleConfig } from '../config/rules.ts';
import type { Tree } from '../config/tree.ts';
import type { ChangeResult, JsonObject, RuleControl, RuleSampleTrial, RuleView } from '../console/console.ts';
import type { RuleProblem } from '../rules/compiler.ts';
import type { Rules } from '../rules/engine.ts';
import type { RuleOptions } from '../rules/rules.ts';
import type { Webhook } from '../webhook/webhook.ts';
import type { Keeper } from './bridges.ts';

export interface RulesParts {
  readonly broker: Broker;
  /** Those of now: they start after the rules. */
  readonly bridges: () => Supervisor | null;
  readonly taps: Taps;
  readonly webhook: () => Webhook | null;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly keeper: Keeper;
}

/** A rule without what says where it was written. */
function optionsOf({ places: _places, source: _source, ...rule }: RuleConfig): RuleOptions {
  return rule;
}

/** Problems of expressions, where they were written. `engine` may be one that runs. */
export function problemsOf(engine: Pick<Rules, 'check'>, rules: readonly RuleConfig[]): Problem[] {
  return engine.check(rules.map(optionsOf)).map(({ rule, key, text }) => {
    const found = rules.find((one) => one.name === rule);
    const at = found?.places[key.split('.', 1)[0]] ?? found?.source ?? { file: 'rules', line: 0, column: 0 };
    return { at, key: `rules.${rule}.${key}`, message: text };
  });
}

/**
 * Throws ConfigError with everything that is wrong with the expressions of a configuration. For `check`, before
 * anything runs.
 */
export async function checkRules(config: Config): Promise<void> {
  if (config.rules.length === 0) return;
  const { RuleChecker } = await import('../rules/engine.ts');
  const problems = problemsOf(new RuleChecker(), config.rules);
  if (problems.length > 0) throw new ConfigError(problems);
}

export class RulesControl implements RuleControl {
  private readonly parts: RulesParts;
  private engine: Rules | null = null;
  /** Documents of the rules that run, as they were written. */
  private readonly documents = new Map<string, JsonObject>();

  constructor(parts: RulesParts) {
    this.parts = parts;
  }

  /** Brings the rules of a configuration that checkRules() has passed into force. */
  async apply(rules: readonly RuleConfig[], tree: Tree): Promise<void> {
    if (rules.length === 0 && this.engine === null) return;
    const engine = await this.load();
    engine.apply(rules.map(optionsOf));
    this.documents.clear();
    for (const { name } of rules) {
      const document = valueAt(tree, ['rules', name]);
      if (typeof document === 'object' && document !== null)
        this.documents.set(name, ruleDocument(document as Tree) as JsonObject);
    }
  }

  /** What is wrong with the rules of a configuration, as far as the engine is loaded. */
  problems(rules: readonly RuleConfig[]): Problem[] {
    return this.engine === null ? [] : problemsOf(this.engine, rules);
  }

  stop(): void {
    this.engine?.stop();
    this.engine = null;
  }

  list(): RuleView[] {
    return (this.engine?.list() ?? []).map((status) => ({ ...status, config: this.documents.get(status.name) ?? {} }));
  }

  async put(name: string, document: JsonObject, keep = false): Promise<ChangeResult> {
    const read = readRule(name, document as Tree);
    if (!read.ok) return { ok: false, why: 'invalid', problems: read.problems };
    const options = optionsOf(read.value);
    const engine = await this.load();
    const problems = engine.check([options]);
    if (problems.length > 0) return { ...wrong(problems), why: 'invalid' };
    const apply = async (): Promise<ChangeResult> => {
      engine.put(options);
      this.documents.set(name, ruleDocument(read.tree) as JsonObject);
      return { ok: true };
    };
    if (!keep) return apply();
    const path = ['rules', name];
    return this.parts.keeper.keep(`rule ${name} changed`, (kept) => ({
      tree: withNode(kept, path, read.node),
      holds: (next) => same(valueAt(next.tree, path), read.tree),
      apply,
    }));
  }

  async remove(name: string, keep = false): Promise<ChangeResult> {
    if (this.engine?.list().some((rule) => rule.name === name) !== true) return { ok: false, why: 'missing' };
    const apply = async (): Promise<ChangeResult> => {
      this.engine?.remove(name);
      this.documents.delete(name);
      return { ok: true };
    };
    if (!keep) return apply();
    const path = ['rules', name];
    return this.parts.keeper.keep(`rule ${name} removed`, (kept) => ({
      tree: withoutNode(kept, path),
      holds: (next) => valueAt(next.tree, path) === undefined,
      apply,
    }));
  }

  /** What a rule makes of a message, by the code that runs; nothing is published. */
  async test({ rule, sample }: RuleSampleTrial): ReturnType<RuleControl['test']> {
    const read = this.readTrial(rule);
    if (!read.ok) return read;
    const result = (await this.load()).test(read.options, sample);
    return 'outcome' in result ? { ok: true, result } : wrong(result);
  }

  async watch(rule: string | JsonObject, ms: number, most: number): ReturnType<RuleControl['watch']> {
    const read = this.readTrial(rule);
    if (!read.ok) return read;
    const engine = await this.load();
    const problems = engine.check([read.options]);
    if (problems.length > 0) return wrong(problems);
    return { ok: true, results: await engine.watch(read.options, ms, most) };
  }

  private readTrial(
    rule: string | JsonObject,
  ):
    | { readonly ok: true; readonly options: RuleOptions }
    | { readonly ok: false; readonly problems: DocumentProblem[] } {
    const running = typeof rule === 'string' ? this.engine?.options(rule) : undefined;
    if (running !== undefined) return { ok: true, options: running };
    if (typeof rule === 'string') return { ok: false, problems: [{ pointer: '', message: 'there is no such rule' }] };
    const read = readRule('trial', rule as Tree);
    return read.ok ? { ok: true, options: optionsOf(read.value) } : { ok: false, problems: [...read.problems] };
  }

  private async load(): Promise<Rules> {
    if (this.engine !== null) return this.engine;
    const { Rules: Engine } = await import('../rules/engine.ts');
    const { broker, clock, turn, log, metrics, bridges, taps, webhook } = this.parts;
    const targets: ConstructorParameters<typeof Engine>[0]['targets'] = {
      nng: (name, output) => bridges()?.inject(name, output, output.qos) ?? false,
      webhook: (output) => {
        const hook = webhook();
        hook?.receive(output);
        return hook !== null;
      },
      tap: (name, taker) => taps.add(name, taker),
    };
    this.engine ??= new Engine({ broker, clock, turn, log, metrics, targets });
    return this.engine;
  }
}

function wrong(found: readonly RuleProblem[]): { readonly ok: false; readonly problems: DocumentProblem[] } {
  return {
    ok: false,
    problems: found.map(({ key, text }) => ({ pointer: pointerOf(key), message: `${key}: ${text}` })),
  };
}

/** set.temp -> /set/temp */
function pointerOf(key: string): string {
  const [first, ...rest] = key.split('.');
  return rest.length === 0 ? `/${first}` : `/${first}/${rest.join('.').replace(/~/g, '~0').replace(/\//g, '~1')}`;
}
