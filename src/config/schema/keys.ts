// The words the schema is written in, for keys with one value: flags, numbers, sizes, durations, texts, words.
// A Key reads a node into a checked value, knows its default and shows a value, secrets masked. Used by schema*.ts.
// Problems are collected, never thrown, and never repeat a value that may be a secret.

import { isNull, type ScalarNode } from '../text/node.ts';
import type { TreeValue } from '../tree.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from '../values.ts';
import { type Key, type KeyDoc, kindOf, type Quantity, required } from './key.ts';

interface Common<T> {
  readonly text: string;
  readonly restart?: boolean;
  readonly secret?: boolean;
  readonly example?: TreeValue;
  /** What is wrong with a value that has the right type, or null. */
  readonly check?: (value: T) => string | null;
}

/** A key with one value; `parse` gives undefined where the text is not of the type `what`. */
function scalar<T, D>(
  what: string,
  parse: (node: ScalarNode) => T | undefined,
  options: Common<T> & { readonly fallback?: T | D; readonly written?: KeyDoc['default'] } & Pick<KeyDoc, 'unit'>,
): Key<T | D> {
  const { fallback, check, text, restart, secret, example, unit, written } = options;
  const shown = written !== undefined ? written : (fallback as KeyDoc['default']);
  return {
    doc: {
      type: what
        .replace(/^an? /, '')
        .replace(/ such as .*$| in quotes$/, '')
        .replace(' or ', ' | '),
      default: shown,
      text,
      restart,
      secret,
      example,
      unit,
    },
    inside: null,
    read(node, path, sink) {
      if (isNull(node)) return this.missing(node.at, path, sink);
      if (node.kind !== 'scalar') return sink.problem(node.at, path, `${what} expected, not ${kindOf(node)}`);
      const value = parse(node);
      if (value === undefined) return sink.problem(node.at, path, `${what} expected${given(node, secret)}`);
      const wrong = check?.(value) ?? null;
      return wrong === null ? value : sink.problem(node.at, path, wrong);
    },
    missing: (at, path, sink) => (fallback === undefined ? required(at, path, sink) : fallback),
    show: (value, mask) => (mask && secret && value !== null && value !== '' ? '***' : (value as TreeValue)),
  };
}

/** What was written, where that is harmless and short. */
function given(node: ScalarNode, secret: boolean | undefined): string {
  if (secret || node.text.length > 40 || !/^[\x20-\x7e]*$/.test(node.text)) return '';
  return `, not ${node.quoted ? JSON.stringify(node.text) : node.text}`;
}

const TRUE = new Set(['true', 'yes', 'on', '1']);
const FALSE = new Set(['false', 'no', 'off', '0']);

export function flag(options: Common<boolean> & { readonly default: boolean }): Key<boolean>;
export function flag(options: Common<boolean> & { readonly default: null }): Key<boolean | null>;
export function flag(options: Common<boolean> & { readonly default: boolean | null }): Key<boolean | null> {
  const parse = (node: ScalarNode) => {
    const text = node.text.toLowerCase();
    return TRUE.has(text) ? true : FALSE.has(text) ? false : undefined;
  };
  return scalar<boolean, null>('true or false', parse, { ...options, fallback: options.default });
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

function inRange(value: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Range): string | null {
  if (value >= min && value <= max) return null;
  return max === Number.MAX_SAFE_INTEGER ? `at least ${min} expected` : `${min} to ${max} expected`;
}

interface IntOptions extends Common<number>, Range {
  readonly unit?: string;
}
export function int(options: IntOptions & { readonly default: null }): Key<number | null>;
export function int(options: IntOptions & { readonly default?: number }): Key<number>;
export function int(options: IntOptions & { readonly default?: number | null }): Key<number | null> {
  const parse = (node: ScalarNode) => (/^[+-]?\d{1,16}$/.test(node.text) ? Number(node.text) : undefined);
  return scalar<number, null>('a whole number', parse, {
    ...options,
    fallback: options.default,
    check: (value) => inRange(value, options) ?? options.check?.(value) ?? null,
  });
}

/** One of some whole numbers that follow each other, the lowest first: a QoS, a protocol version. */
export function digit<const N extends number>(
  numbers: readonly [N, ...N[]],
  options: Common<number> & { readonly default: null },
): Key<N | null>;
export function digit<const N extends number>(
  numbers: readonly [N, ...N[]],
  options: Common<number> & { readonly default: NoInfer<N> },
): Key<N>;
export function digit<const N extends number>(
  numbers: readonly [N, ...N[]],
  options: Common<number> & { readonly default: NoInfer<N> | null },
): Key<N | null> {
  const parse = (node: ScalarNode) => (/^[+-]?\d{1,16}$/.test(node.text) ? Number(node.text) : undefined);
  const range = { min: numbers[0], max: numbers[numbers.length - 1] };
  const { default: fallback } = options;
  const key = scalar<number, null>('a whole number', parse, {
    ...options,
    fallback,
    check: (value) => inRange(value, range) ?? options.check?.(value) ?? null,
  });
  // The range lets nothing else through.
  return key as Key<N | null>;
}

/** Whole seconds, in MQTT's form: a bare number that is shown as it is written. */
export function seconds(options: Common<number> & Range & { readonly default: number }): Key<Quantity<'Seconds'>> {
  return counted(int({ ...options, unit: 's' }), 'Seconds');
}

/** `key` with the unit of its value, which its name in code ends in. */
function counted<U extends 'Ms' | 'Seconds'>(key: Key<number>, counts: U): Key<Quantity<U>> {
  return { ...key, doc: { ...key.doc, counts } } as Key<Quantity<U>>;
}

export function real(options: Common<number> & Range & { readonly default: number }): Key<number> {
  const parse = (node: ScalarNode) => (/^\d{1,9}(?:\.\d{1,9})?$/.test(node.text) ? Number(node.text) : undefined);
  const check = (value: number) => inRange(value, options);
  return scalar<number, never>('a number', parse, { ...options, fallback: options.default, check });
}

/** Bytes. */
export function size(options: Common<number> & Range & { readonly default: string }): Key<number> {
  const fallback = parseSize(options.default) ?? 0;
  return scalar<number, never>('a size such as 512B, 16KB, 8MB', (node) => parseSize(node.text) ?? undefined, {
    ...options,
    fallback,
    written: options.default,
    unit: 'bytes',
    check: (value) => {
      const { min = 0, max = Number.MAX_SAFE_INTEGER } = options;
      if (value < min || value > max) return `${formatSize(min)} to ${formatSize(max)} expected`;
      return options.check?.(value) ?? null;
    },
  });
}

/** Timers of Node.js take 31 bits of milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Milliseconds; `unit` is that of a bare number, seconds unless told. */
export function duration(
  options: Common<number> & Range & { readonly default: string; readonly unit?: 's' | 'ms' },
): Key<Quantity<'Ms'>> {
  const { unit = 's', min = 0, max = MAX_TIMER_MS } = options;
  const key = scalar<number, never>(
    'a duration such as 500ms, 5s, 10m',
    (node) => parseDuration(node.text, unit) ?? undefined,
    {
      ...options,
      fallback: parseDuration(options.default, unit) ?? 0,
      written: options.default,
      unit,
      check: (value) =>
        value >= min && value <= max ? null : `${formatDuration(min)} to ${formatDuration(max)} expected`,
    },
  );
  return counted(key, 'Ms');
}

/** A number that may have a fraction. */
export function decimal(options: Common<number> & { readonly default: number; readonly min: number }): Key<number> {
  const parse = (node: ScalarNode) =>
    /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/.test(node.text) ? Number(node.text) : undefined;
  const { default: fallback, min } = options;
  const check = (value: number) =>
    Number.isFinite(value) && value >= min ? (options.check?.(value) ?? null) : `at least ${min} expected`;
  return scalar<number, never>('a number', parse, { ...options, fallback, check });
}

/** A number written in a file is taken as the text it was written as, unless `strict`. */
interface TextOptions extends Common<string> {
  readonly strict?: boolean;
  /** Whether the text may hold U+0000: one that becomes bytes of a frame, never a path or a header. */
  readonly nul?: boolean;
}
export function text(options: TextOptions & { readonly default: null }): Key<string | null>;
export function text(options: TextOptions & { readonly default?: string }): Key<string>;
export function text(options: TextOptions & { readonly default?: string | null }): Key<string | null> {
  const parse = (node: ScalarNode) => (options.strict && typeof node.value !== 'string' ? undefined : node.text);
  return scalar<string, null>(options.strict ? 'a text in quotes' : 'a text', parse, {
    ...options,
    fallback: options.default,
    check: (value) =>
      value.includes('\0') && options.nul !== true
        ? 'NUL characters are not allowed here'
        : (options.check?.(value) ?? null),
  });
}

/** One of some words, upper or lower case. */
export function word<const W extends string>(
  words: readonly W[],
  options: Common<NoInfer<W>> & { readonly default?: NoInfer<W> },
): Key<W> {
  const parse = (node: ScalarNode) => words.find((w) => w === node.text.toLowerCase());
  const what = words.map((w) => (/^\d/.test(w) ? `"${w}"` : w)).join(' | ');
  return scalar<W, never>(what, parse, { ...options, fallback: options.default });
}

/** `key` with what is secret inside its value hidden by `mask`, as in a URL with a password. */
export function masked<T extends string | null>(mask: (value: string) => string, key: Key<T>): Key<T> {
  return { ...key, show: (value, hide) => (hide && typeof value === 'string' ? mask(value) : value) };
}

/** `one` or something else that `parse` knows; both are scalars. */
export function special<T, S>(
  what: string,
  one: Key<T>,
  parse: (node: ScalarNode) => S | undefined,
  fallback: T | S,
  show: (value: S) => TreeValue,
): Key<T | S> {
  return {
    doc: { ...one.doc, type: `${what} | ${one.doc.type}`, default: what },
    inside: null,
    read(node, path, sink) {
      const other = node.kind === 'scalar' ? parse(node) : undefined;
      return other !== undefined ? other : one.read(node, path, sink);
    },
    missing: () => fallback,
    show: (value, mask) => (typeof value === 'number' ? one.show(value as T, mask) : show(value as S)),
  };
}
