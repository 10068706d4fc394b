// Rule options into what runs: expressions compiled, templates read, and every problem said with the key it is about.
// Used by engine.ts, for what runs, for what is tried and before a configuration is taken. Pure.

import { parseTemplate, type Template, wildcardCount } from '../mqtt/template.ts';
import { isTopicFilter, isTopicName, matches } from '../mqtt/topic.ts';
import { type Expression, Expressions } from './expression.ts';
import type { RuleOptions } from './rules.ts';

/** Where messages come from: a filter with its wildcards, or a bridge. */
export interface RuleSource {
  readonly filter: string;
  /** Name of the NNG bridge, or null for a Topic Filter. */
  readonly bridge: string | null;
  readonly captures: number;
  readonly to: Template;
  /** Whether a message of the broker on this topic comes in here. */
  takes(topic: string): boolean;
}

export interface CompiledRule {
  readonly options: RuleOptions;
  readonly sources: readonly RuleSource[];
  readonly where: Expression | null;
  readonly set: readonly (readonly [string, Expression])[];
  readonly changed: Expression | null;
  /** What the expressions and templates read of a message. */
  readonly names: ReadonlySet<string>;
  /** Fields of the payload that they read; null: the payload as a whole. */
  readonly fields: ReadonlySet<string> | null;
}

export interface RuleProblem {
  /** The key below the rule: "where", "set.temp", "from" ... */
  readonly key: string;
  readonly text: string;
}

export const NNG_SOURCE = 'nng:';

export class Compiler {
  private readonly expressions = new Expressions();

  /** The rule, or everything that is wrong with it. */
  compile(options: RuleOptions): CompiledRule | readonly RuleProblem[] {
    const problems: RuleProblem[] = [];
    const expression = (key: string, source: string): Expression | null => {
      const compiled = this.expressions.compile(source);
      if (typeof compiled !== 'string') return compiled;
      problems.push({ key, text: compiled });
      return null;
    };
    const where = options.where === '' ? null : expression('where', options.where);
    const changed = options.changed === '' ? null : expression('changed', options.changed);
    const set = options.set.flatMap(([name, source]) => {
      const compiled = expression(`set.${name}`, source);
      return compiled === null ? [] : [[name, compiled] as const];
    });
    const sources = sourcesOf(options, problems);
    if (problems.length > 0) return problems;
    const expressions = [where, changed, ...set.map(([, one]) => one)].filter((one) => one !== null);
    const names = new Set(expressions.flatMap((one) => [...one.names]));
    if (sources.some(({ to }) => to.json)) names.add('payload');
    return { options, sources, where, set, changed, names, fields: fieldsOf(expressions, sources) };
  }
}

function fieldsOf(expressions: readonly Expression[], sources: readonly RuleSource[]): Set<string> | null {
  const fields = new Set<string>();
  for (const one of expressions) {
    if (one.fields === null) return null;
    for (const field of one.fields) fields.add(field);
  }
  for (const { to } of sources) for (const part of to.parts) if (part.kind === 'json') fields.add(part.path[0]);
  return fields;
}

function sourcesOf(options: RuleOptions, problems: RuleProblem[]): RuleSource[] {
  const { from, to, fallbackTopic, toNng, toWebhook } = options;
  if (from.length === 0) problems.push({ key: 'from', text: 'names no topic filter' });
  if (fallbackTopic !== '' && !isTopicName(fallbackTopic))
    problems.push({ key: 'fallback_topic', text: `"${fallbackTopic}" is not a topic name` });
  return from.map((filter) => {
    const bridge = filter.startsWith(NNG_SOURCE) ? filter.slice(NNG_SOURCE.length) : null;
    if (bridge === null && (!isTopicFilter(filter) || filter.startsWith('$share/')))
      problems.push({ key: 'from', text: `"${filter}" is not a topic filter` });
    const captures = bridge === null ? wildcardCount(filter) : 0;
    const template = parseTemplate(to, captures, ['topic', 'json']);
    if (template.plain && to !== '' && !isTopicName(to))
      problems.push({ key: 'to', text: `"${to}" is not a topic name` });
    if (to === '' && toNng === '' && !toWebhook)
      problems.push({ key: 'to', text: 'a topic is required: a rule cannot publish to its own input topic' });
    const takes = (topic: string): boolean => bridge === null && matches(filter, topic);
    return { filter, bridge, captures, to: template, takes };
  });
}
