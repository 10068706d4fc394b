// Topics with placeholders in rules: {1} {2} ... for what a filter's wildcards matched, {topic}, {suffix}.
// Called by rules.ts when a rule or topic is new, never for each message. What is no known placeholder stays as it is written.
// Source: docs/nng-bridges.md.

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'capture'; readonly index: number }
  | { readonly kind: 'topic' | 'suffix' };

export interface Template {
  readonly parts: readonly Part[];
  /** True when there is no placeholder: the text is the result. */
  readonly plain: boolean;
}

const PLACEHOLDER = /\{(topic|suffix|[1-9][0-9]{0,2})\}/g;

/** @param captures how many {n} there are; @param names the named placeholders that mean something here */
export function parseTemplate(text: string, captures: number, names: readonly ('topic' | 'suffix')[]): Template {
  const parts: Part[] = [];
  let at = 0;
  const literal = (until: number): void => {
    if (until > at) parts.push({ kind: 'text', text: text.slice(at, until) });
  };
  for (const found of text.matchAll(PLACEHOLDER)) {
    const name = found[1];
    const named = names.find((known) => known === name);
    const index = Number(name);
    if (named === undefined && !(index >= 1 && index <= captures)) continue;
    literal(found.index);
    parts.push(named === undefined ? { kind: 'capture', index: index - 1 } : { kind: named });
    at = found.index + found[0].length;
  }
  literal(text.length);
  return { parts, plain: parts.every((part) => part.kind === 'text') };
}

export function fillTemplate(template: Template, topic: string, suffix: string, captures: readonly string[]): string {
  let out = '';
  for (const part of template.parts) {
    if (part.kind === 'text') out += part.text;
    else if (part.kind === 'capture') out += captures[part.index] ?? '';
    else out += part.kind === 'topic' ? topic : suffix;
  }
  return out;
}

/** How many wildcards a Topic Filter has. */
export function wildcardCount(filter: string): number {
  return filter.split('/').filter((level) => level === '+' || level === '#').length;
}

/** What each wildcard of `filter` stands for in `topic`, which matches it; # stands for the rest with its slashes, "" for the parent. */
export function capturesOf(filter: string, topic: string): string[] {
  const given = topic.split('/');
  const out: string[] = [];
  for (const [i, level] of filter.split('/').entries()) {
    if (level === '+') out.push(given[i] ?? '');
    else if (level === '#') out.push(given.slice(i).join('/'));
  }
  return out;
}
