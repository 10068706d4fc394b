// Topics with placeholders: {1} {2} ... for what a filter's wildcards matched, {topic}, {suffix}, {json:a.b} for a
// field of the payload. Called by bridge/nng/ and rules/; without {json:} only when a rule or topic is new. What is no
// known placeholder stays as it is written. A field never becomes more than one level and never a wildcard. Source:
// docs/nng-bridges.md, docs/local-analytics.md.
import { jsonAt } from '../base/json.ts';
import { captures } from './topic.ts';

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'capture'; readonly index: number }
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'topic' | 'suffix' };

export interface Template {
  readonly parts: readonly Part[];
  /** True when there is no placeholder: the text is the result. */
  readonly plain: boolean;
  /** Whether it reads the payload. */
  readonly json: boolean;
}

const PLACEHOLDER = /\{(topic|suffix|[1-9][0-9]{0,2}|json:[^{}]{1,200})\}/g;

/** @param captures how many {n} there are; @param names the named placeholders that mean something here */
export function parseTemplate(
  text: string,
  captures: number,
  names: readonly ('topic' | 'suffix' | 'json')[],
): Template {
  const parts: Part[] = [];
  let at = 0;
  const literal = (until: number): void => {
    if (until > at) parts.push({ kind: 'text', text: text.slice(at, until) });
  };
  for (const found of text.matchAll(PLACEHOLDER)) {
    const part = partOf(found[1], captures, names);
    if (part === null) continue;
    literal(found.index);
    parts.push(part);
    at = found.index + found[0].length;
  }
  literal(text.length);
  const plain = parts.every((part) => part.kind === 'text');
  return { parts, plain, json: parts.some((part) => part.kind === 'json') };
}

function partOf(name: string, captures: number, names: readonly string[]): Part | null {
  if (name.startsWith('json:'))
    return names.includes('json') ? { kind: 'json', path: name.slice('json:'.length).split('.') } : null;
  if (name === 'topic' || name === 'suffix') return names.includes(name) ? { kind: name } : null;
  const index = Number(name);
  return index >= 1 && index <= captures ? { kind: 'capture', index: index - 1 } : null;
}

export function fillTemplate(template: Template, topic: string, suffix: string, captures: readonly string[]): string {
  return fill(template, topic, suffix, captures, undefined) ?? '';
}

/** As fillTemplate(), with the fields of `value`; null where one is missing, empty, or no text, number or boolean. */
export function fillFromJson(
  template: Template,
  topic: string,
  suffix: string,
  captures: readonly string[],
  value: unknown,
): string | null {
  return fill(template, topic, suffix, captures, value);
}

function fill(
  template: Template,
  topic: string,
  suffix: string,
  captures: readonly string[],
  value: unknown,
): string | null {
  let out = '';
  for (const part of template.parts) {
    if (part.kind === 'text') out += part.text;
    else if (part.kind === 'capture') out += captures[part.index] ?? '';
    else if (part.kind === 'json') {
      const level = levelOf(jsonAt(value, part.path), out === '');
      if (level === null) return null;
      out += level;
    } else out += part.kind === 'topic' ? topic : suffix;
  }
  return out;
}

/** A field as one topic level: what would make more of it becomes "_". */
function levelOf(value: unknown, first: boolean): string | null {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint' && typeof value !== 'boolean')
    return null;
  const level = String(value).replaceAll('\0', '_').replace(/[/+#]/g, '_');
  if (level === '') return null;
  return first && level.startsWith('$') ? `_${level.slice(1)}` : level;
}

/** How many wildcards a Topic Filter has. */
export function wildcardCount(filter: string): number {
  return filter.split('/').filter((level) => level === '+' || level === '#').length;
}

/**
 * What each wildcard of `filter` stands for in `topic`, which matches it; # stands for the rest with its slashes, ""
 * for the parent.
 */
export function capturesOf(filter: string, topic: string): string[] {
  return captures(filter, topic).map((level) => level ?? '');
}
