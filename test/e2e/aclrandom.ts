// Random ACL files and questions about them, for the comparison with mosquitto. Made so that both versions of mosquitto agree on them:
// %c and %u stand for whole levels only, and no client id or user name holds a slash.

/** A small generator with a seed, so that a failure can be repeated (Mulberry32). */
export class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  below(limit: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }
}

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

function filter(dice: Dice, pattern: boolean): string {
  const levels: string[] = [];
  const count = 1 + dice.below(4);
  for (let i = 0; i < count; i++) {
    const roll = dice.below(10);
    if (roll === 0 && i === count - 1) levels.push('#');
    else if (roll < 3) levels.push('+');
    else levels.push(dice.one(pattern ? PATTERN_LEVELS : LEVELS));
  }
  return levels.join('/');
}

/** A topic, most often one that a filter of the file matches or nearly so. */
export function randomTopic(dice: Dice, filters: readonly string[]): string {
  if (dice.below(4) === 0 || filters.length === 0) {
    return Array.from({ length: 1 + dice.below(4) }, () => dice.one(LEVELS)).join('/') || 'a';
  }
  const levels = dice.one(filters).split('/');
  const topic = levels.flatMap((level, i) => {
    if (dice.below(12) === 0) return [dice.one(LEVELS)];
    if (level === '+') return [dice.one(LEVELS)];
    if (level === '#') return dice.below(4) === 0 && i > 0 ? [] : [dice.one(LEVELS)];
    if (level === '%c') return [dice.one(['c1', 'c2', 'u2', 'a', 'b', '%c'])];
    return level === '%u' ? [dice.one(['u1', 'u2', '%u'])] : [level];
  });
  return topic.join('/') || 'a';
}

function rule(dice: Dice, filters: string[]): string {
  const pattern = dice.below(3) === 0;
  const what = filter(dice, pattern) || 'a';
  filters.push(what);
  const access = dice.one(['read', 'write', 'readwrite', 'deny', '']);
  // A filter with a blank needs its access spelt out.
  const word = access === '' && what.includes(' ') ? 'readwrite' : access;
  const indent = ' '.repeat(dice.below(8) === 0 ? 2 : 0);
  return `${indent}${pattern ? 'pattern' : 'topic'} ${word === '' ? '' : `${word} `}${what}`;
}

/** A file of up to `most` rules with sections, comments, blank lines and both line ends. */
export function randomAcl(dice: Dice, most: number): { readonly text: string; readonly filters: readonly string[] } {
  const filters: string[] = [];
  const lines: string[] = [];
  const count = 1 + dice.below(most);
  for (let i = 0; i < count; i++) {
    const roll = dice.below(10);
    if (roll === 0) lines.push(dice.one(['# comment', '', '#', '   ']));
    if (roll > 6) lines.push(`user ${dice.one(['u1', 'u2', 'a+b', 'sp user', 'nobody'])}`);
    lines.push(rule(dice, filters));
  }
  const text = lines.map((line) => line + (dice.below(10) === 0 ? '\r' : '')).join('\n') + dice.one(['\n', '']);
  return { text, filters };
}
