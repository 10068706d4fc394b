// From the checked tree to ProxyConfig and UpstreamConfig, with the checks that take more than one key: routes lead
// somewhere, pools have servers, variables of the environment are set. Called by build.ts. Pure: problems go to the
// sink.

import { networkTest } from '../../base/networks.ts';
import type { TlsServerConfig } from '../listeners.ts';
import { compilePattern } from '../pattern.ts';
import type { Position } from '../problem.ts';
import type { MapEntry, ProxyConfig, UpstreamConfig, UpstreamServer } from '../proxy.ts';
import { type Effective, effective, effectiveFields } from '../schema/effective.ts';
import type { ValueOf } from '../schema/key.ts';
import { TLS_SESSIONS } from '../schema/listeners.ts';
import { PROXY } from '../schema/proxy.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import { needsCertificate } from '../schema/template.ts';
import { UPSTREAMS } from '../schema/upstreams.ts';
import type { Sink } from '../sink.ts';
import { nearest } from '../values.ts';
import { address, checkHttpUrl, proxyProtocolFrom, tlsClient, tlsNames, tlsServer } from './values.ts';

type ProxyKeys = ValueOf<typeof PROXY.item>;
type UpstreamKeys = ValueOf<typeof UPSTREAMS.item>;
export type HasEnv = (name: string) => boolean;

/** A map of addresses: its keys may be networks. */
const ADDRESS = '$' + '{remote_addr}';
/** The built-in broker as the target of a route. */
const LOCAL = 'local';

export function buildProxies(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): ProxyConfig[] {
  return [...root.proxy].map(([name, block]) => buildProxy(name, block, [...root.upstreams.keys()], hasEnv, sink));
}

function buildProxy(name: string, block: ProxyKeys, pools: readonly string[], hasEnv: HasEnv, sink: Sink): ProxyConfig {
  checkTargets(block, pools, sink);
  if (!block.preread) checkPlain(block, sink);
  checkUdp(block, sink);
  checkWeb(block, sink);
  checkFilter(block, sink);
  checkTopics(block, pools, sink);
  checkTemplates(block, hasEnv, sink);
  const [{ host, port }, ...others] = block.bind.map(address);
  if (block.tls?.use_identity_as_username && !block.tls.verify_peer) {
    sink.refuse(
      block.tls,
      'use_identity_as_username',
      'requires verify_peer: without it, a client could claim any name',
    );
  }
  const { tls, websocket, routes, map, split, deny, allow, filter, inspect, ...own } = effective(PROXY.item, block);
  checkShares(block.split, sink);
  for (const route of block.routes) checkShares(route.split, sink);
  return {
    ...own,
    name,
    host,
    port,
    otherBinds: others.map((other) => ({ host: other.host, port: other.port })),
    tls: block.tls === null ? null : withSessions(tlsServer(block.tls, sink), block.tls, sink),
    tlsNames: tlsNames(block.tls?.certificates ?? []),
    web: isWeb(block) ? webOf(websocket) : null,
    useIdentityAsUsername: tls?.useIdentityAsUsername ?? false,
    proxyProtocolFrom: proxyProtocolFrom(
      block,
      block.bind.map((bind) => address(bind).host),
      sink,
    ),
    routes: routes.map((route, i) => ({
      ...route,
      match: route.match.conditions,
      source: sink.at(block.routes[i]),
    })),
    map: block.map === null || map === null ? null : { ...map, values: mapEntries(block.map, sink) },
    split,
    deny: deny.map((match) => match.conditions),
    allow: allow.map((match) => match.conditions),
    filter: inspect ? filter : null,
    source: sink.at(block),
  };
}

function withSessions(
  made: TlsServerConfig | null,
  block: NonNullable<ProxyKeys['tls']>,
  sink: Sink,
): ProxyConfig['tls'] {
  if (!block.session_tickets && block.ticket_keys !== null)
    sink.refuse(block, 'ticket_keys', 'has no effect with session_tickets = false');
  return made === null ? null : { ...made, ...effectiveFields(TLS_SESSIONS, block) };
}

/** Everything that names an upstream names one that there is, and every client goes somewhere. */
function checkTargets(block: ProxyKeys, pools: readonly string[], sink: Sink): void {
  const target = (owner: object, key: string, value: string) => {
    if (value === LOCAL || pools.includes(value)) return;
    const close = nearest(value, pools);
    const hint = close === null ? '' : `; did you mean ${close}?`;
    sink.refuse(owner, key, `upstreams.${value} does not exist${hint}`);
  };
  for (const route of block.routes) {
    if (route.upstream !== null) target(route, 'upstream', route.upstream);
    else if (route.split.length === 0)
      sink.refuse(route, 'upstream', 'is missing: either upstream or split is required');
    if (route.upstream !== null && route.split.length > 0)
      sink.refuse(route, 'split', 'cannot be combined with upstream');
    for (const share of route.split) target(share, 'upstream', share.upstream);
  }
  for (const share of block.split) target(share, 'upstream', share.upstream);
  if (block.map?.default) target(block.map, 'default', block.map.default);
  for (const [, upstream] of block.map?.values ?? []) if (block.map !== null) target(block.map, 'values', upstream);
  if (block.default !== null) target(block, 'default', block.default);
  else if ((block.routes.length === 0 && block.map === null && block.split.length === 0) || !block.preread)
    sink.refuse(block, 'default', 'is missing: where do clients go?');
}

/** Templates name no variable of the environment that is not set. */
function checkTemplates(block: ProxyKeys, hasEnv: HasEnv, sink: Sink): void {
  checkEnv(block, 'split_key', block.split_key, hasEnv, sink);
  if (block.map !== null) checkEnv(block.map, 'source', block.map.source, hasEnv, sink);
  checkEnv(block.filter, 'prefix', block.filter.prefix, hasEnv, sink);
  for (const rule of block.topics) checkEnv(rule, 'clientid', rule.clientid, hasEnv, sink);
  for (const key of ['clientid', 'username', 'password'] as const) {
    const template = block.set[key];
    checkEnv(block.set, key, template, hasEnv, sink);
    // A PROXY header tells the common name of a client without TLS of its own.
    const told = block.proxy_protocol && block.tls === null;
    if (typeof template === 'string' && needsCertificate(template, told) && !block.tls?.verify_peer)
      sink.doubt(block.set, key, 'is made of client certificates, but tls.verify_peer asks for none: nobody is let in');
  }
}

function checkShares(split: ProxyKeys['split'], sink: Sink): void {
  const sum = split.reduce((total, { percent }) => total + Math.max(0, percent), 0);
  if (sum > 10_000) sink.refuse(split[split.length - 1], 'percent', 'the shares are more than 100 percent');
}

function mapEntries(map: NonNullable<ProxyKeys['map']>, sink: Sink): MapEntry[] {
  const values: MapEntry[] = [];
  for (const [key, upstream] of map.values) {
    if (map.source === ADDRESS && key.includes('/') && !key.startsWith('~')) {
      const has = networkTest([key]);
      if (has === null) sink.refuse(map, 'values', `${key}: an address or network expected, such as 10.0.0.0/8`);
      else values.push({ key, pattern: null, network: { bits: Number(key.split('/')[1]), has }, upstream });
      continue;
    }
    if (!key.startsWith('~')) {
      // A backslash takes a text that would be something else literally.
      values.push({ key: key.startsWith('\\') ? key.slice(1) : key, pattern: null, network: null, upstream });
      continue;
    }
    const ignoreCase = key.startsWith('~*');
    const pattern = compilePattern(key.slice(ignoreCase ? 2 : 1), ignoreCase);
    if (typeof pattern === 'string') sink.refuse(map, 'values', `${key}: ${pattern}`);
    else values.push({ key, pattern, network: null, upstream });
  }
  return values;
}

function checkUdp(block: ProxyKeys, sink: Sink): void {
  if (block.protocol !== 'udp') return;
  if (block.bind.length > 1) sink.refuse(block, 'bind', 'protocol = udp takes one address: use another proxy for each');
  if (block.preread) sink.refuse(block, 'protocol', 'protocol = udp requires preread = false: it carries no CONNECT');
  if (block.tls !== null) sink.refuse(block, 'tls', 'protocol = udp has no TLS');
  if (block.proxy_protocol) sink.refuse(block, 'proxy_protocol', 'protocol = udp has no PROXY protocol header');
  if (block.default === LOCAL) sink.refuse(block, 'default', 'the built-in broker does not speak udp');
}

function isWeb({ protocol }: ProxyKeys): boolean {
  return protocol === 'ws' || protocol === 'wss';
}

function checkWeb(block: ProxyKeys, sink: Sink): void {
  if (!isWeb(block)) {
    if (sink.written(block, 'websocket')) sink.refuse(block, 'websocket', 'has no effect without protocol = ws or wss');
    return;
  }
  if (block.protocol === 'wss' && block.tls === null) sink.refuse(block, 'protocol', 'wss needs tls');
  if (block.protocol === 'ws' && block.tls !== null) sink.refuse(block, 'protocol', 'with tls it is wss');
  if (block.half_close) sink.refuse(block, 'half_close', 'WebSocket connections cannot be half-closed');
  if (block.non_mqtt === 'pass') sink.refuse(block, 'non_mqtt', 'only MQTT is carried over WebSocket here');
}

type WebKeys = Effective<ProxyKeys>['websocket'];

/** Where the path is not said /mqtt and / are served, as listeners do. */
function webOf({ path, origins, maxMessageSize }: WebKeys): NonNullable<ProxyConfig['web']> {
  return {
    paths: path === null ? ['/mqtt', '/'] : path === 'any' ? null : [path],
    origins: origins.length > 0 ? origins : null,
    maxMessageBytes: maxMessageSize,
  };
}

function checkFilter(block: ProxyKeys, sink: Sink): void {
  if (!block.inspect) {
    if (sink.written(block, 'filter')) sink.refuse(block, 'filter', 'has no effect without inspect = true');
    return;
  }
  if (!block.preread) sink.refuse(block, 'inspect', 'preread = false reads no packets');
  if (block.non_mqtt === 'pass')
    sink.refuse(block, 'non_mqtt', 'inspect = true requires non_mqtt = close: only MQTT can be inspected');
  const { prefix } = block.filter;
  if (/[+#\0]/.test(prefix.replace(/\$\{[^}]*\}/g, '')))
    sink.refuse(block.filter, 'prefix', 'no wildcards in a prefix');
  // Variables hold no slash, so one a level, with an end, keeps the prefixes of two clients apart.
  else if (prefix !== '' && !prefix.endsWith('/')) sink.refuse(block.filter, 'prefix', 'must end with /');
  else if (prefix.split('/').some((level) => level.split('${').length > 2))
    sink.refuse(
      block.filter,
      'prefix',
      'only one variable per level: with two, different values could give the same prefix',
    );
}

/** Topics lead to pools, of which each knows a client by one id. */
function checkTopics(block: ProxyKeys, pools: readonly string[], sink: Sink): void {
  const { topics, topic_routing: routing } = block;
  if (topics.length === 0) {
    if (sink.written(block, 'topic_routing')) sink.refuse(block, 'topic_routing', 'has no effect without topics');
    return;
  }
  const ids = new Map<string, string | null>();
  for (const rule of topics) {
    const { filter, upstream, clientid } = rule;
    if (upstream === LOCAL || !pools.includes(upstream)) sink.refuse(rule, 'upstream', noPool(upstream, pools));
    if (filter.startsWith('$share/')) sink.refuse(rule, 'filter', 'a shared subscription has no topics of its own');
    if ((ids.get(upstream) ?? clientid) !== clientid)
      sink.refuse(rule, 'clientid', `another rule has another client id for upstreams.${upstream}`);
    ids.set(upstream, clientid);
  }
  if (!block.preread) sink.refuse(block, 'topics', 'preread = false reads no packets');
  if (block.non_mqtt === 'pass')
    sink.refuse(block, 'non_mqtt', 'bytes that are no MQTT have no topics: close is needed with topics');
  if (leadsTo(block).includes(LOCAL))
    sink.refuse(
      block,
      'topics',
      'routes to local are not possible with topics: give a listener of this gateway an upstream',
    );
  if (routing.max_held_bytes < routing.max_packet_bytes)
    sink.refuse(routing, 'max_held_bytes', 'is less than max_packet_bytes');
  if (ids.size + 1 > routing.max_sessions)
    sink.doubt(routing, 'max_sessions', `fewer than there are upstreams: some topics will be refused`);
}

function leadsTo(block: ProxyKeys): readonly (string | null)[] {
  const shares = [...block.split, ...block.routes.flatMap((route) => route.split)];
  const mapped =
    block.map === null ? [] : [block.map.default, ...[...block.map.values].map(([, upstream]) => upstream)];
  return [block.default, ...mapped, ...[...shares, ...block.routes].map((one) => one.upstream)];
}

function noPool(name: string, pools: readonly string[]): string {
  if (name === LOCAL) return 'local is not possible here: give a listener of this gateway an upstream';
  const close = nearest(name, pools);
  return `there is no upstreams.${name}${close === null ? '' : `; did you mean ${close}?`}`;
}

/** Without preread nothing of CONNECT is known. */
function checkPlain(block: ProxyKeys, sink: Sink): void {
  const rewrites = Object.values(block.set).some((value) => value !== undefined);
  if (rewrites) sink.refuse(block, 'set', 'preread = false forwards bytes unread, so CONNECT cannot be rewritten');
  if (block.routes.length > 0) sink.refuse(block, 'routes', 'preread = false reads no CONNECT, so no route can match');
  if (block.map !== null) sink.refuse(block, 'map', 'preread = false reads no CONNECT, only default is used');
  if (block.split.length > 0) sink.refuse(block, 'split', 'preread = false reads no CONNECT, only default is used');
  if (block.limit_conn.per_clientid > 0)
    sink.refuse(block.limit_conn, 'per_clientid', 'preread = false knows no client id');
  if (block.limit_conn.per_username > 0)
    sink.refuse(block.limit_conn, 'per_username', 'preread = false knows no username');
  if (block.allow.length + block.deny.length > 0)
    sink.refuse(block, block.deny.length > 0 ? 'deny' : 'allow', 'with preread = false, nothing can be matched');
}

function checkEnv(owner: object, key: string, template: string | null | undefined, hasEnv: HasEnv, sink: Sink): void {
  for (const [, name] of (template ?? '').matchAll(/\$\{env\.([A-Za-z0-9_]+)\}/g)) {
    if (!hasEnv(name)) sink.refuse(owner, key, `environment variable ${name} is not set`);
  }
}

export function buildUpstreams(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): UpstreamConfig[] {
  return [...root.upstreams].map(([name, block]) => buildUpstream(name, block, hasEnv, sink));
}

function buildUpstream(name: string, block: UpstreamKeys, hasEnv: HasEnv, sink: Sink): UpstreamConfig {
  if (name === LOCAL)
    sink.problem(sink.at(block), sink.path(block), `${LOCAL} is the built-in broker; use another name`);
  const hashes = block.balance === 'hash' || block.balance === 'consistent_hash';
  if (!hashes && sink.written(block, 'hash_key'))
    sink.doubt(block, 'hash_key', 'only balance = hash and consistent_hash use it');
  if (block.protocol === 'ws' && block.servers.some((server) => server.addr.startsWith('unix:')))
    sink.refuse(block, 'protocol', 'ws needs servers with host and port');
  if (block.protocol === 'tcp' && sink.written(block, 'path'))
    sink.refuse(block, 'path', 'has no effect without protocol = ws');
  checkEnv(block, 'hash_key', block.hash_key, hasEnv, sink);
  if (block.sticky !== null) checkEnv(block.sticky, 'key', block.sticky.key, hasEnv, sink);
  if (block.health !== null && block.health.password !== null && block.health.username === null)
    sink.refuse(block.health, 'password', 'requires a username');
  if (block.servers.length === 0 && block.discover === null)
    sink.refuse(block, 'servers', 'at least one is required, or discover');
  else if (block.servers.length > 0 && block.servers.every((server) => server.down) && block.discover === null)
    sink.doubt(block, 'servers', 'every server is down');
  const own = effective(UPSTREAMS.item, block);
  const servers = own.servers.map((server, i) => upstreamServer(server, sink.at(block.servers[i])));
  const tls = block.tls === null ? null : tlsClient(block.tls);
  return {
    ...own,
    name,
    servers,
    tls,
    discover: discovery(block.discover, own.discover, sink),
    source: sink.at(block),
  };
}

/** Keys that a type of discovery cannot do without. */
const REQUIRED = {
  dns: ['name', 'port'],
  srv: ['name'],
  file: ['path'],
  http: ['url'],
  consul: ['name', 'url'],
} as const;

type Discover = UpstreamKeys['discover'];

function discovery(block: Discover, own: Effective<Discover>, sink: Sink): UpstreamConfig['discover'] {
  if (block === null || own === null) return null;
  for (const key of REQUIRED[block.type])
    if (block[key] === '' || block[key] === 0) sink.refuse(block, key, `required with type = ${block.type}`);
  if (block.url !== '') checkHttpUrl(block, block.url, sink);
  return { ...own, tls: block.tls === null ? null : tlsClient(block.tls) };
}

function upstreamServer(server: Effective<UpstreamKeys>['servers'][number], source: Position): UpstreamServer {
  const isUnix = server.addr.startsWith('unix:');
  const { host, port } = isUnix ? { host: '', port: 0 } : address(server.addr);
  return { ...server, host, port, path: isUnix ? server.addr.slice('unix:'.length) : null, source };
}
