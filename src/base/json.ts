// JSON with exact integers: numbers that a double cannot hold become bigint when they fit 64 bits, and are written as
// they were. Used by rules/ and mqtt/template.ts. Bounded by the length of its input (JSON.parse does the work).
// Source: RFC 8259 (6. Numbers: interoperability ends at 2^53).
import { randomUUID } from 'node:crypto';

/** Integers of this many digits may be past 2^53. */
const LONG = /[0-9]{16}/;
const LONG_INTEGER = /^-?[0-9]{16,}$/;
/** Strings and numbers of a text that is known to be JSON: tokens end where they should, so this is linear. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/g;
const MOST = 2n ** 64n;
const LEAST = -(2n ** 63n);

/** Digits of an integer that may be past 2^53. */
const LONG_DIGITS = 16;

/** Whether so many digits stand in a row in a JSON text's UTF-8 bytes: for short texts quicker than a pattern. */
export function mayHoldLongInteger(bytes: Uint8Array): boolean {
  let run = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    run = byte >= 0x30 && byte <= 0x39 ? run + 1 : 0;
    if (run === LONG_DIGITS) return true;
  }
  return false;
}

/**
 * The value of a JSON text, or undefined where it is none. Duplicate keys: the last one, as in JSON.parse.
 * @param long false where it is known that no long integer is in it
 */
export function parseJson(text: string, long = true): unknown {
  try {
    return long && LONG.test(text) ? parseExact(text) : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

/**
 * Long integers go through JSON.parse as strings with a mark that nobody can have written. Throws where the text is no
 * JSON.
 */
function parseExact(text: string): unknown {
  const plain = JSON.parse(text) as unknown;
  const mark = randomUUID();
  let found = false;
  const marked = text.replace(TOKEN, (token) => {
    if (!LONG_INTEGER.test(token) || Number.isSafeInteger(Number(token))) return token;
    found = true;
    return `"${mark}${token}"`;
  });
  if (!found) return plain;
  return JSON.parse(marked, (_key, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(mark)) return value;
    const exact = BigInt(value.slice(mark.length));
    return exact >= LEAST && exact < MOST ? exact : Number(value.slice(mark.length));
  }) as unknown;
}

/** The JSON text of a value that parseJson() gave or that is made of such; throws for what has no JSON form. */
export function writeJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'number':
      if (!Number.isFinite(value)) throw new Error(`${value} has no JSON form`);
      return Object.is(value, -0) ? '0' : String(value);
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? 'null' : writeObject(value);
    default:
      throw new Error(`a ${typeof value} has no JSON form`);
  }
}

/** Texts up to this length are looked at character by character. */
const SHORT_TEXT = 64;

/** A text in quotes: short plain ones without the detour through JSON.stringify. */
function quote(text: string): string {
  if (text.length > SHORT_TEXT) return JSON.stringify(text);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x22 || code === 0x5c || code >= 0xd800) return JSON.stringify(text);
  }
  return `"${text}"`;
}

function writeObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`;
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'));
  if (value instanceof Date) return JSON.stringify(value.toISOString());
  if (value instanceof Map)
    return `{${[...value].map(([key, item]) => `${JSON.stringify(String(key))}:${writeJson(item)}`).join(',')}}`;
  // Numbers and durations of an expression language bring a value of their own; a field of that name is no function.
  if (typeof value.valueOf === 'function' && value.valueOf !== Object.prototype.valueOf) {
    const plain: unknown = value.valueOf();
    return typeof plain === 'bigint' ? String(plain) : JSON.stringify(String(value));
  }
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}:${writeJson(item)}`)
    .join(',')}}`;
}

/** The value below `path`, which names own fields and array positions; undefined where there is none. */
export function jsonAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}
