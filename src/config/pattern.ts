// Regular expressions that users write: compiled for V8's linear engine, whose time is bounded by the length of the
// text it reads, which is bounded as well (base/linearpattern.ts). Called by build code for routes. What that engine
// lacks (back references, look-around) is refused when the configuration is read; counts are written out (counts.ts).
// It lacks the flag i as well, so ignoring case is done by writing both cases into the pattern.
import { setFlagsFromString } from 'node:v8';
import { LinearPattern, statesOf } from '../base/linearpattern.ts';
import { writeOut } from './counts.ts';

const MAX_LENGTH = 1000;
const UNBOUNDED =
  'this pattern could take unbounded time: no back references, no look-around, no counts above 512 in all';

/** The compiled pattern, or what is wrong with it. */
export function compilePattern(source: string, ignoreCase: boolean): RegExp | string {
  if (source.length > MAX_LENGTH) return `the pattern is longer than ${MAX_LENGTH} characters`;
  try {
    new RegExp(source);
  } catch (error) {
    const text = error instanceof Error ? error.message : '';
    return `not a regular expression (pattern): ${text.slice(text.lastIndexOf(': ') + 2).toLowerCase()}`;
  }
  // Newer versions of V8 run it, older ones do not: a configuration is right or wrong everywhere.
  if (looksBehind(source)) return UNBOUNDED;
  setFlagsFromString('--enable-experimental-regexp-engine');
  const text = ignoreCase ? bothCases(source) : source;
  // Its counts written out say how much it can have to do, whether the engine runs them as they are or not.
  const written = writeOut(text);
  if (written === null) return UNBOUNDED;
  const states = statesOf(written);
  return linear(text, states) ?? linear(written, states) ?? UNBOUNDED;
}

/** Whether a valid pattern has (?<= or (?<! outside of escapes and classes. */
function looksBehind(source: string): boolean {
  let inClass = false;
  for (let i = 0; i < source.length; i++) {
    const c = source[i];
    if (c === '\\') i++;
    else if (c === '[') inClass = true;
    else if (c === ']') inClass = false;
    else if (!inClass && /^\(\?<[=!]/.test(source.slice(i, i + 4))) return true;
  }
  return false;
}

function linear(source: string, states: number): RegExp | null {
  try {
    return new LinearPattern(source, states);
  } catch {
    return null;
  }
}

const ESCAPE = /\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[\s\S])/y;

/** a -> [aA], [a-f] -> [a-fA-F]; escapes stay as they are. */
function bothCases(source: string): string {
  let out = '';
  let inClass = false;
  for (let i = 0; i < source.length; ) {
    ESCAPE.lastIndex = i;
    const escaped = ESCAPE.exec(source)?.[0];
    if (escaped !== undefined) {
      out += escaped;
      i += escaped.length;
      continue;
    }
    const c = source[i];
    const last = source[i + 2];
    if (inClass && source[i + 1] === '-' && last !== undefined && last !== ']' && last !== '\\') {
      const range = `${c}-${last}`;
      const [lower, upper] = [range.toLowerCase(), range.toUpperCase()];
      out += isLetter(c) && isLetter(last) && lower !== upper ? `${lower}${upper}` : range;
      i += 3;
      continue;
    }
    if (c === '[') inClass = true;
    else if (c === ']') inClass = false;
    const group = c === '(' && source[i + 1] === '?' ? /^\(\?(?::|<[^>]*>)?/.exec(source.slice(i))?.[0] : undefined;
    if (group !== undefined) {
      out += group;
      i += group.length;
      continue;
    }
    const pair = `${c.toLowerCase()}${c.toUpperCase()}`;
    out += !isLetter(c) ? c : inClass ? pair : `[${pair}]`;
    i++;
  }
  return out;
}

/** Letters with exactly one lower and one upper form. */
function isLetter(c: string): boolean {
  const [lower, upper] = [c.toLowerCase(), c.toUpperCase()];
  return lower !== upper && lower.length === 1 && upper.length === 1;
}
