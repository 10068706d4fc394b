// Which upstream a client goes to: the first route whose conditions all fit. Called by relay.ts once for each client. Pure.
// Patterns are compiled for the linear engine when the configuration is read: no input makes them slow.
import { type Facts, fact } from './facts.ts';
import type { ConditionOptions, ProxyOptions, RouteOptions } from './proxy.ts';

/** Name of an upstream, "local", or null: nothing fits and there is no default. Sets facts.captures. */
export function chooseRoute(options: Pick<ProxyOptions, 'routes' | 'default'>, facts: Facts): string | null {
  for (const route of options.routes) if (fits(route, facts)) return route.upstream;
  return options.default;
}

function fits(route: Pick<RouteOptions, 'match'>, facts: Facts): boolean {
  let captures: Map<string, string> | null = null;
  for (const condition of route.match) {
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
function conditionFits({ op, value: wanted, pattern }: ConditionOptions, value: string | null): boolean {
  if (pattern === null) return op === '==' ? value === wanted : value !== wanted;
  const found = value !== null && pattern.test(value);
  return op === '=~' || op === '=~*' ? found : !found;
}

function captured(found: RegExpExecArray, into: Map<string, string>): Map<string, string> {
  for (let i = 1; i < found.length; i++) into.set(String(i), found[i] ?? '');
  for (const [name, text] of Object.entries(found.groups ?? {})) into.set(name, text ?? '');
  return into;
}
