// What a key of the schema is: how its value is read, what it is when absent, how it is shown, what the reference says
// about it. The seam between the tables (schema*.ts), the words they are written in (keys.ts, blocks.ts) and who walks
// them (config/load.ts, docs).

import type { Position } from '../problem.ts';
import type { Sink } from '../sink.ts';
import type { Node } from '../text/node.ts';
import type { TreeValue } from '../tree.ts';

declare const COUNTED: unique symbol;
/** A number whose name in code ends in its unit. */
export type Quantity<U extends string> = number & { readonly [COUNTED]: U };
declare const IGNORED: unique symbol;
/** What a key without effect reads as. */
export type Ignored = { readonly [IGNORED]: true };

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
  /** What the value is a number of, where its name in code says so: reconnect_max is reconnectMaxMs there. */
  readonly counts?: 'Ms' | 'Seconds' | 'PerSecond';
  /** A change takes a restart. */
  readonly restart?: boolean;
  readonly secret?: boolean;
  /** Accepted from NanoMQ's files, without effect. */
  readonly ignored?: boolean;
  /** Nobody misses the effect. */
  readonly quiet?: boolean;
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
  /**
   * The default; undefined = a problem was reported, as the key has to be given. `at` is the block it is missing from.
   */
  missing(at: Position, path: string, sink: Sink): T | undefined;
  /** The value as `check --print` shows it; undefined = not shown. */
  show(value: T, mask: boolean): TreeValue | undefined;
}
export type Fields = Readonly<Record<string, Key<unknown>>>;
/** The checked form of a block. */
export type Checked<F extends Fields> = { readonly [K in keyof F]: F[K] extends Key<infer T> ? T : never };
/** The checked form of a key. */
export type ValueOf<K> = K extends Key<infer T> ? T : never;

/** How a node is called in messages. */
export function kindOf(node: Node): string {
  return node.kind === 'scalar' ? 'a single value' : node.kind === 'list' ? 'a list' : 'a block';
}

/** Reports a key that has to be given. */
export function required(at: Position, path: string, sink: Sink): undefined {
  return sink.problem(at, path, 'is missing');
}
