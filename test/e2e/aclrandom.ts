// Random ACL files and questions about them, for the comparison with mosquitto. Made so that both versions of mosquitto agree on them:
// %c and %u stand for whole levels only, and no client id or user name holds a slash.

import type { Random } from '../harness/random.ts';

export interface Who {
  readonly clientId: string;
  readonly username: string | null;
}

/** Few and related names, so that rules and questions meet. */
export const CLIENTS: readonly Who[] = [
  { clientId: 'c1', username: null },
  { clientId: 'c2', username: 'u1' },
  { clientId: 'u2', username: 'u2' },
  { clientId: 'c+', username: 'u1' },
  { clientId: '#', username: null },
  { clientId: 'a', username: 'a+b' },
  { clientId: 'b', username: 'sp user' },
];
const LEVELS = ['a', 'b', 'c1', 'c2', 'u1', 'u2', '', 'A', '$x', '%c', '%u', 'x y'];
const PATTERN_LEVELS = [...LEVELS, '%c', '%u', '%c', '%u'];

function filter(random: Random, pattern: boolean): string {
  const levels: string[] = [];
  const count = 1 + random.below(4);
  for (let i = 0; i < count; i++) {
    const roll = random.below(10);
    if (roll === 0 && i === count - 1) levels.push('#');
    else if (roll < 3) levels.push('+');
    else levels.push(random.pick(pattern ? PATTERN_LEVELS : LEVELS));
  }
  return levels.join('/');
}

/** A topic, most often one that a filter of the file matches or nearly so. */
export function randomTopic(random: Random, filters: readonly string[]): string {
  if (random.below(4) === 0 || filters.length === 0) {
    return Array.from({ length: 1 + random.below(4) }, () => random.pick(LEVELS)).join('/') || 'a';
  }
  const levels = random.pick(filters).split('/');
  const topic = levels.flatMap((level, i) => {
    if (random.below(12) === 0) return [random.pick(LEVELS)];
    if (level === '+') return [random.pick(LEVELS)];
    if (level === '#') return random.below(4) === 0 && i > 0 ? [] : [random.pick(LEVELS)];
    if (level === '%c') return [random.pick(['c1', 'c2', 'u2', 'a', 'b', '%c'])];
    return level === '%u' ? [random.pick(['u1', 'u2', '%u'])] : [level];
  });
  return topic.join('/') || 'a';
}

function rule(random: Random, filters: string[]): string {
  const pattern = random.below(3) === 0;
  const what = filter(random, pattern) || 'a';
  filters.push(what);
  const access = random.pick(['read', 'write', 'readwrite', 'deny', '']);
  // A filter with a blank needs its access spelt out.
  const word = access === '' && what.includes(' ') ? 'readwrite' : access;
  const indent = ' '.repeat(random.below(8) === 0 ? 2 : 0);
  return `${indent}${pattern ? 'pattern' : 'topic'} ${word === '' ? '' : `${word} `}${what}`;
}

/** A file of up to `most` rules with sections, comments, blank lines and both line ends. */
export function randomAcl(
  random: Random,
  most: number,
): { readonly text: string; readonly filters: readonly string[] } {
  const filters: string[] = [];
  const lines: string[] = [];
  const count = 1 + random.below(most);
  for (let i = 0; i < count; i++) {
    const roll = random.below(10);
    if (roll === 0) lines.push(random.pick(['# comment', '', '#', '   ']));
    if (roll > 6) lines.push(`user ${random.pick(['u1', 'u2', 'a+b', 'sp user', 'nobody'])}`);
    lines.push(rule(random, filters));
  }
  const text = lines.map((line) => line + (random.below(10) === 0 ? '\r' : '')).join('\n') + random.pick(['\n', '']);
  return { text, filters };
}
