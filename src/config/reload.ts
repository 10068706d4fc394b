// What is different between two configurations, and what it takes to get from one to the other. Called by
// gateway/running.ts for each change while the gateway runs. Pure. Where something was written does not count, only
// what it says.
import type { Config, Loaded } from './config.ts';
import type { ListenerConfig } from './listeners.ts';
import type { Key } from './schema/key.ts';
import { ROOT_FIELDS } from './schema/schema.ts';
import type { Tree, TreeValue } from './tree.ts';

export type ChangeKind = 'added' | 'removed' | 'changed';

export interface Change {
  readonly part:
    | 'listeners'
    | 'mqtt'
    | 'auth'
    | 'persistence'
    | 'record'
    | 'bridges.nng.pub'
    | 'bridges.nng.sub'
    | 'bridges.nng.push'
    | 'bridges.nng.pull'
    | 'bridges.nng.pair'
    | 'bridges.nng.req'
    | 'bridges.nng.rep'
    | 'bridges.mqtt'
    | 'plugins'
    | 'topics'
    | 'validation'
    | 'quotas'
    | 'rules'
    | 'proxy'
    | 'upstreams'
    | 'http_server'
    | 'metrics'
    | 'webhook'
    | 'tracing'
    | 'log'
    | 'broker'
    | 'preset';
  /** Of a listener, bridge, proxy or upstream; null for whole sections. */
  readonly name: string | null;
  readonly kind: ChangeKind;
  /** Takes effect at the next start only. */
  readonly restart: boolean;
  /** Only for listeners: the socket has to be opened again; false = only who may use it has changed. */
  readonly rebind: boolean;
}

/** Sections as a whole, as the file and as the configuration name them. */
const WHOLE = [
  ['mqtt', 'mqtt'],
  ['auth', 'auth'],
  ['plugins', 'plugins'],
  ['topics', 'topics'],
  ['persistence', 'persistence'],
  ['record', 'record'],
  ['http_server', 'httpServer'],
  ['metrics', 'metrics'],
  ['webhook', 'webhook'],
  ['tracing', 'tracing'],
  ['broker', 'broker'],
  ['preset', 'presets'],
  ['log', 'log'],
] as const satisfies readonly (readonly [Change['part'], keyof Config])[];

/** A configuration and the tree it was made of. */
type Side = Pick<Loaded, 'config' | 'tree'>;

/** Every difference, listeners first, then sections, bridges, proxies and upstreams. */
export function diffConfig({ config: before, tree: was }: Side, { config: after, tree: is }: Side): Change[] {
  const changes: Change[] = named('listeners', before.listeners, after.listeners, rebinds);
  for (const [part, key] of WHOLE) {
    const kind = kindOf(before[key], after[key]);
    if (kind === null) continue;
    const restart = needsRestart(ROOT_FIELDS[part], was[part], is[part]);
    changes.push({ part, name: null, kind, restart, rebind: false });
  }
  return [
    ...changes,
    ...named('bridges.nng.pub', before.bridges.nng.pub, after.bridges.nng.pub),
    ...named('bridges.nng.sub', before.bridges.nng.sub, after.bridges.nng.sub),
    ...named('bridges.nng.push', before.bridges.nng.push, after.bridges.nng.push),
    ...named('bridges.nng.pull', before.bridges.nng.pull, after.bridges.nng.pull),
    ...named('bridges.nng.pair', before.bridges.nng.pair, after.bridges.nng.pair),
    ...named('bridges.nng.req', before.bridges.nng.req, after.bridges.nng.req),
    ...named('bridges.nng.rep', before.bridges.nng.rep, after.bridges.nng.rep),
    ...named('bridges.mqtt', before.bridges.mqtt, after.bridges.mqtt),
    ...named('validation', before.validation, after.validation),
    ...named('quotas', before.quotas, after.quotas),
    ...named('rules', before.rules, after.rules),
    ...named('proxy', before.proxy, after.proxy),
    ...named('upstreams', before.upstreams, after.upstreams),
  ];
}

/** Whether a section that has changed holds a key whose change takes a restart, and that key is not as it was. */
function needsRestart(section: Key<unknown>, before: TreeValue | undefined, after: TreeValue | undefined): boolean {
  const keys = [...changedKeys(section, before, after)];
  // What no key of the section says comes from another one (sqlite for persistence): any key may be meant.
  const meant = keys.length > 0 ? keys : [...changedKeys(section, undefined, null)];
  return meant.some((key) => key.doc.restart === true);
}

/** What says where something was written. */
const PLACES: ReadonlySet<string> = new Set(['source', 'places']);

/**
 * The keys that hold a value, inside of `key`, whose values differ; where a block is on one side only, all of its keys.
 */
function* changedKeys(
  key: Key<unknown>,
  before: TreeValue | undefined,
  after: TreeValue | undefined,
): Generator<Key<unknown>> {
  if (same(before, after)) return;
  if (key.inside?.kind !== 'fields') yield key;
  else {
    const both = isTree(before) && isTree(after);
    for (const [name, inner] of Object.entries(key.inside.fields))
      if (both) yield* changedKeys(inner, before[name], after[name]);
      else yield* changedKeys(inner, undefined, null);
  }
}

function isTree(value: TreeValue | undefined): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What of a listener is asked for at every CONNECT and needs no new socket. */
const ACCESS: readonly string[] = [
  'allowAnonymous',
  'passwordFile',
  'aclFile',
  'identity',
  'mountPoint',
  'source',
] satisfies (keyof ListenerConfig)[];

function rebinds(before: object, after: object): boolean {
  const socket = (value: object) => Object.fromEntries(Object.entries(value).filter(([key]) => !ACCESS.includes(key)));
  return !same(socket(before), socket(after));
}

function kindOf(before: unknown, after: unknown): ChangeKind | null {
  if (same(before, after)) return null;
  return before === null ? 'added' : after === null ? 'removed' : 'changed';
}

function named<T extends { readonly name: string }>(
  part: Change['part'],
  before: readonly T[],
  after: readonly T[],
  rebind: (before: T, after: T) => boolean = () => false,
): Change[] {
  const old = new Map(before.map((item) => [item.name, item]));
  const changes: Change[] = [];
  for (const item of after) {
    const was = old.get(item.name);
    old.delete(item.name);
    if (was === undefined) changes.push({ part, name: item.name, kind: 'added', restart: false, rebind: false });
    else if (!same(was, item)) {
      changes.push({ part, name: item.name, kind: 'changed', restart: false, rebind: rebind(was, item) });
    }
  }
  const removed = [...old.keys()].map((name) => ({
    part,
    name,
    kind: 'removed' as const,
    restart: false,
    rebind: false,
  }));
  return [...removed, ...changes];
}

/** Deep equality without what says where something was written. O(size). */
function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof RegExp || b instanceof RegExp) return String(a) === String(b);
  const x = Object.entries(a).filter(([key]) => !PLACES.has(key));
  const y = new Map(Object.entries(b).filter(([key]) => !PLACES.has(key)));
  return x.length === y.size && x.every(([key, value]) => y.has(key) && same(value, y.get(key)));
}
