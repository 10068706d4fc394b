// The words the schema is written in, for keys that hold others: lists, blocks, blocks with free names, map of texts.
// Used by schema*.ts. Checked blocks are objects without prototype, so that no name in a file can reach one.

import type { Sink } from '../sink.ts';
import { type BlockNode, isNull, joinPath, type Member, type Node } from '../text/node.ts';
import type { TreeValue } from '../tree.ts';
import { nearest } from '../values.ts';
import { type Checked, type Fields, type Ignored, type Key, kindOf, required } from './key.ts';

/** A list; one value stands for a list of one where `single` allows it. */
export function list<T>(
  item: Key<T>,
  options: {
    readonly text: string;
    readonly min?: number;
    readonly single?: boolean;
    readonly default?: readonly T[];
    readonly example?: TreeValue;
    readonly restart?: boolean;
  },
): Key<readonly T[]> {
  const { min = 0, single = false, default: fallback = [] } = options;
  return {
    doc: {
      type: `list of ${item.doc.type}`,
      default: min > 0 ? undefined : JSON.stringify(fallback),
      text: options.text,
      example: options.example,
      restart: options.restart,
    },
    inside: { kind: 'list', item },
    read(node, path, sink) {
      if (isNull(node)) return this.missing(node.at, path, sink);
      if (single && node.kind === 'scalar') {
        const one = item.read(node, path, sink);
        return one === undefined ? undefined : [one];
      }
      if (node.kind !== 'list') return sink.problem(node.at, path, `a list expected, not ${kindOf(node)}`);
      if (node.items.length < min) return sink.problem(node.at, path, 'at least one is required');
      return node.items.map((entry, i) => item.read(entry, `${path}[${i}]`, sink) as T);
    },
    missing: (at, path, sink) => (min > 0 ? required(at, path, sink) : fallback),
    show: (value, mask) => value.map((entry) => item.show(entry, mask) ?? null),
  };
}

/** The same keys where a change of them takes a restart. */
export function needRestart<F extends Fields>(fields: F): F {
  const marked = Object.entries(fields).map(([name, key]) => [name, { ...key, doc: { ...key.doc, restart: true } }]);
  return Object.fromEntries(marked) as F;
}

interface BlockOptions {
  readonly text: string;
  /** What a key that is not in the table is. */
  readonly unknown: Unknown;
}

/**
 * foreign: an error where the name is close to a known one, is no block, or sounds like security; a block of something
 * else warns.
 */
type Unknown = 'error' | 'warn' | 'foreign';

const GUARDS = /auth|acl|access|secur|user|passw|tls|ssl|cert/i;

function readFields<F extends Fields>(
  fields: F,
  node: BlockNode,
  path: string,
  sink: Sink,
  unknown: Unknown,
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
    reportUnknown(Object.keys(fields), key, member, path, sink, unknown);
  }
  return values as Checked<F>;
}

function reportUnknown(
  known: readonly string[],
  key: string,
  { at, value }: Member,
  path: string,
  sink: Sink,
  unknown: Unknown,
): void {
  const close = sink.full && unknown !== 'foreign' ? null : nearest(key, known);
  const stops =
    unknown === 'error' || (unknown === 'foreign' && (close !== null || value.kind !== 'block' || GUARDS.test(key)));
  const message = `unknown key${close === null ? '' : `; did you mean ${close}?`}`;
  if (stops) sink.problem(at, joinPath(path, key), message);
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

/** Blocks with free names; `item` is the key of one of them. */
export interface Named<T> extends Key<ReadonlyMap<string, T>> {
  readonly item: Key<T>;
}

/** Blocks with free names, in the order of the file. */
export function named<T>(item: Key<T>, options: { readonly text: string; readonly example: string }): Named<T> {
  return {
    item,
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

/** Free map of texts: headers, user properties, users with passwords. */
export function pairs(options: {
  readonly text: string;
  /** Which values are secret: all, none, or those whose name fits. */
  readonly secret?: boolean | RegExp;
  readonly example?: TreeValue;
}): Key<readonly (readonly [string, string])[]> {
  const { secret = false } = options;
  const isSecret = (name: string) => (typeof secret === 'boolean' ? secret : secret.test(name));
  return {
    doc: {
      type: 'map of texts',
      default: null,
      text: options.text,
      secret: secret === true,
      example: options.example,
    },
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
    show: (value, mask) => showMap(new Map(value), (entry, name) => (mask && isSecret(name) ? '***' : entry)),
  };
}

/** The same, where nothing is missed by it: all such keys of a file are told in one line. */
export function needless(what: string, type = 'anything'): Key<Ignored | null> {
  const key = ignored(what, type);
  return {
    ...key,
    doc: { ...key.doc, quiet: true },
    read(node, path, sink) {
      if (!isNull(node)) sink.needless(node.at, path);
      return null;
    },
  };
}

/** A key or block of NanoMQ that does nothing here: a warning where it stands. */
export function ignored(what: string, type = 'anything'): Key<Ignored | null> {
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

function showMap<T>(
  values: ReadonlyMap<string, T>,
  show: (value: T, name: string) => TreeValue | undefined,
): TreeValue {
  const out = Object.create(null) as Record<string, TreeValue>;
  for (const [key, value] of values) {
    const shown = show(value, key);
    if (shown !== undefined) out[key] = shown;
  }
  return out;
}
