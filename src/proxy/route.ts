// Which upstream a client goes to: the first route whose conditions all fit, then the map, then the split, then the
// default. Called by verdict.ts once for each client, also for the lists of who may come at all. Pure. Patterns are
// compiled for the linear engine when the configuration is read: no input makes them slow.
import { type Facts, fact } from './facts.ts';
import { chooseShare } from './map.ts';
import type { ConditionOptions } from './proxy.ts';
import type { Rules } from './rules.ts';

/** Name of an upstream, "local", or null: nothing takes the client. Sets facts.captures. */
export function chooseUpstream(rules: Rules, facts: Facts): string | null {
  const { options, map, splitKey } = rules;
  for (const { match, upstream, split } of options.routes) {
    if (!fits(match, facts)) continue;
    const target = upstream ?? chooseShare(split, splitKey.fill(facts));
    if (target !== null) return target;
  }
  const mapped = map === null ? null : map.table.find(map.source.fill(facts));
  if (mapped !== null) return mapped;
  return (options.split.length > 0 ? chooseShare(options.split, splitKey.fill(facts)) : null) ?? options.default;
}

/** Whether the lists let a client in: none of deny fits, and one of allow where there are some. */
export function isAllowed(rules: Rules, facts: Facts): boolean {
  const { deny, allow } = rules.options;
  if (deny.some((match) => fits(match, facts))) return false;
  return allow.length === 0 || allow.some((match) => fits(match, facts));
}

function fits(match: readonly ConditionOptions[], facts: Facts): boolean {
  let captures: Map<string, string> | null = null;
  for (const condition of match) {
    const value = fact(facts, condition.field);
    const { op, pattern } = condition;
    if (pattern !== null && (op === '=~' || op === '=~*')) {
      const found = value === null ? null : pattern.exec(value);
      if (found === null) return false;
      if (found.length > 1) captures = captured(found, captures ?? new Map());
    } else if (!conditionFits(condition, value)) return false;
  }
  if (captures !== null) facts.captures = captures;
  return true;
}

/** Whether one condition holds for a value; null = the client has none. */
function conditionFits({ op, value: wanted, pattern, network }: ConditionOptions, value: string | null): boolean {
  if (pattern === null) {
    const same = network ? value !== null && network(value) : value === wanted;
    return op === '==' ? same : !same;
  }
  const found = value !== null && pattern.test(value);
  return op === '=~' || op === '=~*' ? found : !found;
}

function captured(found: RegExpExecArray, into: Map<string, string>): Map<string, string> {
  for (let i = 1; i < found.length; i++) into.set(String(i), found[i] ?? '');
  for (const [name, text] of Object.entries(found.groups ?? {})) into.set(name, text ?? '');
  return into;
}
