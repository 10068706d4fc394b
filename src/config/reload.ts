// What is different between two configurations, and what it takes to get from one to the other.
// Called by gateway/running.ts for each change while the gateway runs. Pure. Where something was written does not count, only what it says.
import type { Config, HttpServerConfig, ListenerConfig } from './config.ts';

export type ChangeKind = 'added' | 'removed' | 'changed';

export interface Change {
  readonly part:
    | 'listeners'
    | 'mqtt'
    | 'auth'
    | 'persistence'
    | 'bridges.nng.pub'
    | 'bridges.nng.sub'
    | 'bridges.nng.push'
    | 'bridges.nng.pull'
    | 'bridges.nng.pair'
    | 'bridges.mqtt'
    | 'proxy'
    | 'upstreams'
    | 'http_server'
    | 'metrics'
    | 'webhook'
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

/** Sections as a whole: whether a change of them needs a restart. */
const SECTIONS = [
  ['mqtt', 'mqtt', false],
  ['auth', 'auth', false],
  ['persistence', 'persistence', true],
  ['http_server', 'httpServer', true],
  ['metrics', 'metrics', true],
  ['webhook', 'webhook', false],
  ['broker', 'broker', true],
  ['preset', 'presets', false],
] as const satisfies readonly (readonly [Change['part'], keyof Config, boolean])[];

/** Every difference, listeners first, then sections, bridges, proxies and upstreams. */
export function diffConfig(before: Config, after: Config): Change[] {
  const changes: Change[] = named('listeners', before.listeners, after.listeners, rebinds);
  for (const [part, key, restart] of SECTIONS) {
    const kind = kindOf(before[key], after[key]);
    const waits = restart && !(part === 'http_server' && onlyUsers(before.httpServer, after.httpServer));
    if (kind !== null) changes.push({ part, name: null, kind, restart: waits, rebind: false });
  }
  const onlyLevel = same({ ...before.log, level: '' }, { ...after.log, level: '' });
  if (!same(before.log, after.log)) {
    changes.push({ part: 'log', name: null, kind: 'changed', restart: !onlyLevel, rebind: false });
  }
  return [
    ...changes,
    ...named('bridges.nng.pub', before.bridges.nng.pub, after.bridges.nng.pub),
    ...named('bridges.nng.sub', before.bridges.nng.sub, after.bridges.nng.sub),
    ...named('bridges.nng.push', before.bridges.nng.push, after.bridges.nng.push),
    ...named('bridges.nng.pull', before.bridges.nng.pull, after.bridges.nng.pull),
    ...named('bridges.nng.pair', before.bridges.nng.pair, after.bridges.nng.pair),
    ...named('bridges.mqtt', before.bridges.mqtt, after.bridges.mqtt),
    ...named('proxy', before.proxy, after.proxy),
    ...named('upstreams', before.upstreams, after.upstreams),
  ];
}

/** What of http_server is looked at with every request. */
const WHO = ['username', 'password', 'users', 'jwtPublicKeyfile', 'jwtIssuer', 'jwtAudience', 'source'] as const;

/** Whether only who is let in has changed: that holds at once. */
function onlyUsers(before: HttpServerConfig | null, after: HttpServerConfig | null): boolean {
  if (before === null || after === null) return false;
  const rest = (http: HttpServerConfig): object =>
    Object.fromEntries(Object.entries(http).filter(([key]) => !(WHO as readonly string[]).includes(key)));
  return same(rest(before), rest(after));
}

/** What of a listener is asked for at every CONNECT and needs no new socket. */
const ACCESS: readonly string[] = [
  'allowAnonymous',
  'passwordFile',
  'aclFile',
  'identity',
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

/** Deep equality without `source`. O(size). */
function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof RegExp || b instanceof RegExp) return String(a) === String(b);
  const x = Object.entries(a).filter(([key]) => key !== 'source');
  const y = new Map(Object.entries(b).filter(([key]) => key !== 'source'));
  return x.length === y.size && x.every(([key, value]) => y.has(key) && same(value, y.get(key)));
}
