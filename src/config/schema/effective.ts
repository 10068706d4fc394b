// From a checked block to its part of the effective configuration: the same values under the names that code uses, as
// the schema says. Called by config/build/*.ts; the types of config/bridges.ts, proxy.ts and config.ts are made from
// Effective. Pure. max_send_queue_len becomes maxSendQueueLen; a time has its unit at the end (reconnect_max:
// reconnectMaxMs); ignored keys are left out. Objects of a key that reads itself (a condition of a route) and names
// that users choose stay as they are.
import type { AddressTest } from '../../base/networks.ts';
import type { Checked, Fields, Ignored, Key, KeyDoc, Quantity } from './key.ts';

/** Words of the file that are more than one word, or misspelt, and how code spells them. */
const WORDS = {
  clientid: 'clientId',
  servername: 'serverName',
  nolocal: 'noLocal',
  infomation: 'information',
} as const;
type Words = typeof WORDS;

type Word<W extends string> = W extends keyof Words ? Words[W] : W;
type Camel<S extends string> = S extends `${infer Head}_${infer Rest}`
  ? `${Word<Head>}${Capitalize<Camel<Rest>>}`
  : Word<S>;

type Unit<V> = [Exclude<V, null>] extends [Quantity<infer U>] ? U : '';
type Leaf =
  | string
  | number
  | boolean
  | null
  | undefined
  | RegExp
  | AddressTest
  | readonly (readonly [string, string])[];

/** The effective form of a checked value: what a stage is given. */
export type Effective<T> =
  T extends Quantity<string>
    ? number
    : T extends Leaf
      ? T
      : T extends readonly (infer Item)[]
        ? readonly Effective<Item>[]
        : T extends ReadonlyMap<string, infer Value>
          ? ReadonlyMap<string, Effective<Value>>
          : { readonly [K in keyof T as NameOf<K, T[K]>]: Effective<T[K]> };

type NameOf<K, V> = [V] extends [Ignored | null] ? never : K extends string ? `${Camel<K>}${Unit<V>}` : never;

/** max_send_queue_len -> maxSendQueueLen, reconnect_max -> reconnectMaxMs. */
export function codeName(key: string, { counts }: Pick<KeyDoc, 'counts'>): string {
  const words = key.split('_').map((word) => (Object.hasOwn(WORDS, word) ? WORDS[word as keyof Words] : word));
  const [first, ...rest] = words;
  return first + rest.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('') + (counts ?? '');
}

/** The effective form of a block that `key` has read. */
export function effective<T, V extends T>(key: Key<T>, value: V): Effective<V> {
  return convert(key, value) as Effective<V>;
}

/** The effective form of those members of `block` that are in `fields`. */
export function effectiveFields<F extends Fields>(fields: F, block: Checked<F>): Effective<Checked<F>> {
  return convertFields(fields, block) as Effective<Checked<F>>;
}

function convert(key: Key<unknown>, value: unknown): unknown {
  const { inside } = key;
  if (inside === null || value === null || value === undefined) return value;
  if (inside.kind === 'list') return (value as readonly unknown[]).map((item) => convert(inside.item, item));
  if (inside.kind === 'fields') return convertFields(inside.fields, value as Readonly<Record<string, unknown>>);
  const named = value as ReadonlyMap<string, unknown>;
  return inside.group ? value : new Map([...named].map(([name, item]) => [name, convert(inside.item, item)]));
}

function convertFields(fields: Fields, block: Readonly<Record<string, unknown>>): object {
  const out: Record<string, unknown> = {};
  for (const [name, key] of Object.entries(fields)) {
    if (key.doc.ignored !== true) out[codeName(name, key.doc)] = convert(key, block[name]);
  }
  return out;
}
