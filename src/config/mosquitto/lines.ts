// The grammar of mosquitto.conf: a text as lines of key and value, with what is odd about them. Called by read.ts and
// mosquitto.ts. Pure. mosquitto splits at blanks alone and knows a comment only by its first byte; what it refuses and
// what is plain to read all the same (a tab, an indented comment, a byte order mark) is taken and told. Sources:
// mosquitto.conf(5), mosquitto 2.0.11 on the wire.
import type { Position } from '../problem.ts';

/** One setting. */
export interface Line {
  readonly at: Position;
  readonly key: string;
  /** Trimmed; '' where there is none. */
  readonly value: string;
}

/** Something mosquitto itself refuses. */
export interface Oddity {
  readonly at: Position;
  readonly message: string;
}

const SETTING = /^([ \t]*)([^ \t]+)([ \t]*)(.*)$/;

/** O(length). A carriage return at the end of a line is no part of it. */
export function linesOf(text: string, file: string): { lines: Line[]; odd: Oddity[] } {
  const lines: Line[] = [];
  const odd: Oddity[] = [];
  const rows = text.split('\n');
  let comments = 0;
  let firstComment: Position | null = null;
  for (const [i, raw] of rows.entries()) {
    const at = { file, line: i + 1, column: 1 };
    const marked = i === 0 && raw.startsWith('\ufeff');
    if (marked)
      odd.push({ at, message: 'begins with a byte order mark, with which mosquitto does not start; left out' });
    const row = (marked ? raw.slice(1) : raw).replace(/\r+$/, '');
    if (row.startsWith('#')) continue;
    const found = SETTING.exec(row);
    if (found === null) continue;
    const [, indent, key, gap, rest] = found;
    if (key.startsWith('#')) {
      comments++;
      firstComment ??= { ...at, column: indent.length + 1 };
      continue;
    }
    const column = (marked ? 1 : 0) + indent.length + 1;
    lines.push({ at: { ...at, column }, key, value: rest.replace(/[ \t]+$/, '') });
    if (`${indent}${gap}`.includes('\t'))
      odd.push({ at, message: 'has a tab where mosquitto takes blanks only and does not start; read as a blank' });
  }
  if (firstComment !== null) {
    const many = comments === 1 ? 'is an indented comment' : `is the first of ${comments} indented comments`;
    odd.push({ at: firstComment, message: `${many}, with which mosquitto does not start; taken as comments` });
  }
  return { lines, odd };
}

/** First words of a line that say more than its whole text: `a b c` -> a, b, c. */
export function words(value: string): string[] {
  return value === '' ? [] : value.split(/[ \t]+/);
}

/** A number as mosquitto 2.0 reads it: what follows its digits does not count. Null when there are none. */
export function numberOf(value: string): { value: number; exact: boolean } | null {
  const [word = ''] = words(value);
  const found = /^([+-]?)(0[xX][0-9a-fA-F]{1,12}|0[0-7]{0,15}|[1-9]\d{0,14})(.*)$/.exec(word);
  if (found === null) return null;
  const [, sign, digits, rest] = found;
  const size = /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits);
  return { value: sign === '-' ? -size : size, exact: rest === '' };
}

export function flagOf(value: string): boolean | null {
  const [word = ''] = words(value);
  return word === 'true' || word === '1' ? true : word === 'false' || word === '0' ? false : null;
}
