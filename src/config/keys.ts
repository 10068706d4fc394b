// The words the schema is written in: one function for each type of key. A Key reads a node into a checked value, knows its default,
// shows a value (secrets masked) and carries the text the reference is made from. Used by schema*.ts, load.ts and scripts/docs.ts.
// Problems are collected, never thrown, and never repeat a value that may be a secret.
import type { TreeValue } from './config.ts';
import { type BlockNode, joinPath, type Node, type ScalarNode } from './node.ts';
import type { Position, Problem } from './problem.ts';
import { formatDuration, formatSize, nearest, parseDuration, parseSize } from './values.ts';

/** Where a reading puts what it finds. */
export class Sink {
  readonly problems: Problem[] = [];
  readonly warnings: Problem[] = [];
  private readonly places = new WeakMap<object, { node: BlockNode; path: string }>();

  problem(at: Position, key: string, message: string): undefined {
    this.problems.push({ at, key, message });
    return undefined;
  }

  warn(at: Position, key: string, message: string): void {
    this.warnings.push({ at, key, message });
  }

  /** Remembers where a checked block came from. */
  place(value: object, node: BlockNode, path: string): void {
    this.places.set(value, { node, path });
  }

  /** Position of a key of a checked block, of the block itself where the key is not written. */
  at(value: object, key?: string): Position {
    const node = this.places.get(value)?.node;
    const member = key === undefined ? undefined : node?.fields.get(key);
    return member?.value.at ?? node?.at ?? DEFAULTS;
  }

  /** Key path of a checked block or of a key in it. */
  path(value: object, key?: string): string {
    const path = this.places.get(value)?.path ?? '';
    return key === undefined ? path : joinPath(path, key);
  }

  written(value: object, key: string): boolean {
    const member = this.places.get(value)?.node.fields.get(key);
    return member !== undefined && !isNull(member.value);
  }

  /** A problem with a key of a checked block. */
  refuse(value: object, key: string, message: string): void {
    this.problem(this.at(value, key), this.path(value, key), message);
  }

  doubt(value: object, key: string, message: string): void {
    this.warn(this.at(value, key), this.path(value, key), message);
  }
}

/** The position of what nobody has written. */
export const DEFAULTS: Position = { file: 'defaults', line: 0, column: 0 };

export interface KeyDoc {
  /** What may be written: "true | false", "size", "text" ... */
  readonly type: string;
  /** As one would write it; null = none (off, absent); undefined = has to be given. */
  readonly default: string | number | boolean | null | undefined;
  readonly text: string;
  /** For the reference file, where there is no default. */
  readonly example?: TreeValue;
  /** Unit of a bare number. */
  readonly unit?: string;
  /** A change takes a restart. */
  readonly restart?: boolean;
  readonly secret?: boolean;
  /** Accepted from NanoMQ's files, without effect. */
  readonly ignored?: boolean;
}

/** What a key holds inside, for the reference. */
export type Inside =
  | { readonly kind: 'fields'; readonly fields: Fields; readonly optional: boolean }
  | { readonly kind: 'named'; readonly item: Key<unknown>; readonly example: string; readonly group: boolean }
  | { readonly kind: 'list'; readonly item: Key<unknown> };

export interface Key<T> {
  readonly doc: KeyDoc;
  readonly inside: Inside | null;
  /** undefined = a problem was reported. */
  read(node: Node, path: string, sink: Sink): T | undefined;
  /** The default; undefined = a problem was reported, as the key has to be given. `at` is the block it is missing from. */
  missing(at: Position, path: string, sink: Sink): T | undefined;
  /** The value as `check --print` shows it; undefined = not shown. */
  show(value: T, mask: boolean): TreeValue | undefined;
}
export type Fields = Readonly<Record<string, Key<unknown>>>;
/** The checked form of a block. */
export type Checked<F extends Fields> = { readonly [K in keyof F]: F[K] extends Key<infer T> ? T : never };
/** The checked form of a key. */
export type ValueOf<K> = K extends Key<infer T> ? T : never;

interface Common<T> {
  readonly text: string;
  readonly restart?: boolean;
  readonly secret?: boolean;
  readonly example?: TreeValue;
  /** What is wrong with a value that has the right type, or null. */
  readonly check?: (value: T) => string | null;
}

export function isNull(node: Node): boolean {
  return node.kind === 'scalar' && node.value === null;
}

function kindOf(node: Node): string {
  return node.kind === 'scalar' ? 'a single value' : node.kind === 'list' ? 'a list' : 'a block';
}

function required(at: Position, path: string, sink: Sink): undefined {
  return sink.problem(at, path, 'is missing');
}

/** A key with one value; `parse` gives undefined where the text is not of the type `what`. */
function scalar<T, D>(
  what: string,
  parse: (node: ScalarNode) => T | undefined,
  options: Common<T> & { readonly fallback?: T | D; readonly written?: KeyDoc['default']; readonly unit?: string },
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
): Key<number> {
  const { unit = 's', min = 0, max = MAX_TIMER_MS } = options;
  return scalar<number, never>(
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
}

/** A number written in a file is taken as the text it was written as, unless `strict`. */
interface TextOptions extends Common<string> {
  readonly strict?: boolean;
}
export function text(options: TextOptions & { readonly default: null }): Key<string | null>;
export function text(options: TextOptions & { readonly default?: string }): Key<string>;
export function text(options: TextOptions & { readonly default?: string | null }): Key<string | null> {
  const parse = (node: ScalarNode) => (options.strict && typeof node.value !== 'string' ? undefined : node.text);
  return scalar<string, null>(options.strict ? 'a text in quotes' : 'a text', parse, {
    ...options,
    fallback: options.default,
    check: (value) => (value.includes('\0') ? 'a NUL is not possible here' : (options.check?.(value) ?? null)),
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

/** A list; one value stands for a list of one where `single` allows it. */
export function list<T>(
  item: Key<T>,
  options: {
    readonly text: string;
    readonly min?: number;
    readonly single?: boolean;
    readonly default?: readonly T[];
    readonly example?: TreeValue;
  },
): Key<readonly T[]> {
  const { min = 0, single = false, default: fallback = [] } = options;
  return {
    doc: {
      type: `list of ${item.doc.type}`,
      default: min > 0 ? undefined : JSON.stringify(fallback),
      text: options.text,
      example: options.example,
    },
    inside: { kind: 'list', item },
    read(node, path, sink) {
      if (isNull(node)) return this.missing(node.at, path, sink);
      if (single && node.kind === 'scalar') {
        const one = item.read(node, path, sink);
        return one === undefined ? undefined : [one];
      }
      if (node.kind !== 'list') return sink.problem(node.at, path, `a list expected, not ${kindOf(node)}`);
      if (node.items.length < min) return sink.problem(node.at, path, 'at least one is needed');
      return node.items.map((entry, i) => item.read(entry, `${path}[${i}]`, sink) as T);
    },
    missing: (at, path, sink) => (min > 0 ? required(at, path, sink) : fallback),
    show: (value, mask) => value.map((entry) => item.show(entry, mask) ?? null),
  };
}

interface BlockOptions {
  readonly text: string;
  /** What a key that is not in the table is. */
  readonly unknown: 'error' | 'warn';
}

function readFields<F extends Fields>(
  fields: F,
  node: BlockNode,
  path: string,
  sink: Sink,
  unknown: BlockOptions['unknown'],
  skip?: (key: string, value: Node) => boolean,
): Checked<F> {
  const values = Object.create(null) as Record<string, unknown>;
  sink.place(values, node, path);
  for (const [key, spec] of Object.entries(fields)) {
    const member = node.fields.get(key);
    const inner = joinPath(path, key);
    values[key] = member === undefined ? spec.missing(node.at, inner, sink) : spec.read(member.value, inner, sink);
  }
  for (const [key, member] of node.fields) {
    if (Object.hasOwn(fields, key) || skip?.(key, member.value)) continue;
    reportUnknown(Object.keys(fields), key, member.at, path, sink, unknown);
  }
  return values as Checked<F>;
}

function reportUnknown(
  known: readonly string[],
  key: string,
  at: Position,
  path: string,
  sink: Sink,
  unknown: BlockOptions['unknown'],
): void {
  const close = nearest(key, known);
  const message = `unknown key${close === null ? '' : `; did you mean ${close}?`}`;
  if (unknown === 'error') sink.problem(at, joinPath(path, key), message);
  else sink.warn(at, joinPath(path, key), `${message}${close === null ? '; it has no effect' : ' It has no effect'}`);
}

function showFields(fields: Fields, value: Readonly<Record<string, unknown>>, mask: boolean): TreeValue {
  const out = Object.create(null) as Record<string, TreeValue>;
  for (const [key, spec] of Object.entries(fields)) {
    const shown = spec.show(value[key], mask);
    if (shown !== undefined) out[key] = shown;
  }
  return out;
}

/** A block that is always there: absent means all defaults. */
export function block<F extends Fields>(fields: F, options: BlockOptions): Key<Checked<F>> {
  return {
    doc: { type: 'block', default: null, text: options.text },
    inside: { kind: 'fields', fields, optional: false },
    read(node, path, sink) {
      if (isNull(node)) return this.missing(node.at, path, sink);
      if (node.kind !== 'block') return sink.problem(node.at, path, `a block { ... } expected, not ${kindOf(node)}`);
      return readFields(fields, node, path, sink, options.unknown);
    },
    missing: (at, path, sink) =>
      readFields(fields, { kind: 'block', fields: new Map(), at }, path, sink, options.unknown),
    show: (value, mask) => showFields(fields, value, mask),
  };
}

/** A block whose presence turns something on; null when it is absent. */
export function optional<F extends Fields>(fields: F, options: BlockOptions): Key<Checked<F> | null> {
  const inner = block(fields, options);
  return {
    doc: inner.doc,
    inside: { kind: 'fields', fields, optional: true },
    read: (node, path, sink) => (isNull(node) ? null : inner.read(node, path, sink)),
    missing: () => null,
    show: (value, mask) => (value === null ? null : inner.show(value, mask)),
  };
}

/** Blocks with free names, in the order of the file. */
export function named<T>(
  item: Key<T>,
  options: { readonly text: string; readonly example: string },
): Key<ReadonlyMap<string, T>> {
  return {
    doc: { type: 'named blocks', default: null, text: options.text },
    inside: { kind: 'named', item, example: options.example, group: false },
    read(node, path, sink) {
      if (isNull(node)) return new Map();
      if (node.kind !== 'block') return sink.problem(node.at, path, `named blocks expected, not ${kindOf(node)}`);
      const values = new Map<string, T>();
      for (const [key, member] of node.fields) {
        if (!isNull(member.value)) values.set(key, item.read(member.value, joinPath(path, key), sink) as T);
      }
      return values;
    },
    missing: () => new Map(),
    show: (value, mask) => showMap(value, (entry) => item.show(entry, mask)),
  };
}

/** `tcp { ... }`, `tcp.second { ... }` or both: one block without a name and any number with names. */
export interface Group<T> {
  readonly own: T | null;
  readonly named: ReadonlyMap<string, T>;
}
export function group<F extends Fields>(
  fields: F,
  options: BlockOptions & { readonly example: string },
): Key<Group<Checked<F>>> {
  const item = block(fields, options);
  const isName = (key: string, value: Node) => value.kind === 'block' && !Object.hasOwn(fields, key);
  return {
    doc: { type: 'block', default: null, text: options.text },
    inside: { kind: 'named', item, example: options.example, group: true },
    read(node, path, sink) {
      if (isNull(node)) return this.missing(node.at, path, sink);
      if (node.kind !== 'block') return sink.problem(node.at, path, `a block { ... } expected, not ${kindOf(node)}`);
      const values = new Map<string, Checked<F>>();
      for (const [key, member] of node.fields) {
        if (isName(key, member.value))
          values.set(key, item.read(member.value, joinPath(path, key), sink) as Checked<F>);
      }
      const hasOwn = node.fields.size === 0 || node.fields.size > values.size;
      const own = hasOwn ? readFields(fields, node, path, sink, options.unknown, isName) : null;
      return { own, named: values };
    },
    missing: () => ({ own: null, named: new Map() }),
    show: (value, mask) => {
      if (value.own === null && value.named.size === 0) return undefined;
      const own = value.own === null ? {} : (item.show(value.own, mask) as Record<string, TreeValue>);
      return Object.assign(
        Object.create(null),
        own,
        showMap(value.named, (entry) => item.show(entry, mask)),
      );
    },
  };
}

/** Free names with a text each: headers, user properties, users with passwords. */
export function pairs(options: {
  readonly text: string;
  readonly secret?: boolean;
  readonly example?: TreeValue;
}): Key<readonly (readonly [string, string])[]> {
  const { secret = false } = options;
  return {
    doc: { type: 'names with a text each', default: null, text: options.text, secret, example: options.example },
    inside: null,
    read(node, path, sink) {
      if (isNull(node)) return [];
      if (node.kind !== 'block') return sink.problem(node.at, path, `name = text expected, not ${kindOf(node)}`);
      const values: (readonly [string, string])[] = [];
      for (const [key, { value }] of node.fields) {
        if (isNull(value)) continue;
        if (value.kind === 'scalar') values.push([key, value.text]);
        else
          sink.problem(
            value.at,
            joinPath(path, key),
            `a text expected, not ${kindOf(value)}; a name with dots needs quotes`,
          );
      }
      return values;
    },
    missing: () => [],
    show: (value, mask) => showMap(new Map(value), (entry) => (mask && secret ? '***' : entry)),
  };
}

/** A key or block of NanoMQ that does nothing here: a warning where it stands. */
export function ignored(what: string, type = 'anything'): Key<null> {
  return {
    doc: { type, default: null, text: what, ignored: true },
    inside: null,
    read(node, path, sink) {
      if (!isNull(node)) sink.warn(node.at, path, what);
      return null;
    },
    missing: () => null,
    show: () => undefined,
  };
}

function showMap<T>(values: ReadonlyMap<string, T>, show: (value: T) => TreeValue | undefined): TreeValue {
  const out = Object.create(null) as Record<string, TreeValue>;
  for (const [key, value] of values) {
    const shown = show(value);
    if (shown !== undefined) out[key] = shown;
  }
  return out;
}
