// From the checked tree to ProxyConfig and UpstreamConfig, with the checks that take more than one key: routes lead somewhere, pools have
// servers, variables of the environment are set. Called by build.ts. Pure: problems go to the sink.

import { compilePattern } from '../pattern.ts';
import type {
  DiscoveryConfig,
  MapEntry,
  ProxyConfig,
  ProxyFilterConfig,
  ProxyMapConfig,
  RouteConfig,
  ShareConfig,
  UpstreamConfig,
  UpstreamServer,
} from '../proxy.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { nearest } from '../values.ts';
import { tlsClient } from './bridges.ts';
import { address, checkHttpUrl, proxyProtocolFrom, tlsNames, tlsServer } from './values.ts';

type ProxyKeys = CheckedRoot['proxy'] extends ReadonlyMap<string, infer T> ? T : never;
type UpstreamKeys = CheckedRoot['upstreams'] extends ReadonlyMap<string, infer T> ? T : never;
export type HasEnv = (name: string) => boolean;

/** The built-in broker as the target of a route. */
const LOCAL = 'local';

export function buildProxies(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): ProxyConfig[] {
  return [...root.proxy].map(([name, block]) => buildProxy(name, block, [...root.upstreams.keys()], hasEnv, sink));
}

function buildProxy(name: string, block: ProxyKeys, pools: readonly string[], hasEnv: HasEnv, sink: Sink): ProxyConfig {
  checkTargets(block, pools, sink);
  if (!block.preread) checkPlain(block, sink);
  checkUdp(block, sink);
  checkFilter(block, sink);
  checkTemplates(block, hasEnv, sink);
  const { host, port } = address(block.bind);
  if (block.tls?.use_identity_as_username && !block.tls.verify_peer) {
    sink.refuse(block.tls, 'use_identity_as_username', 'needs verify_peer, else anybody could be anyone');
  }
  return {
    name,
    enable: block.enable,
    bind: block.bind,
    host,
    port,
    protocol: block.protocol,
    udpTimeoutMs: block.udp_timeout,
    tls: block.tls === null ? null : tlsServer(block.tls, sink),
    tlsNames: tlsNames(block.tls?.certificates ?? []),
    useIdentityAsUsername: block.tls?.use_identity_as_username ?? false,
    proxyProtocol: block.proxy_protocol,
    proxyProtocolFrom: proxyProtocolFrom(block, host, sink),
    preread: block.preread,
    nonMqtt: block.non_mqtt,
    prereadMaxBytes: block.preread_max_bytes,
    prereadTimeoutMs: block.preread_timeout,
    connectTimeoutMs: block.connect_timeout,
    idleTimeoutMs: block.idle_timeout,
    halfClose: block.half_close,
    nextUpstream: { tries: block.next_upstream.tries, timeoutMs: block.next_upstream.timeout },
    reject: block.reject,
    set: { clientId: block.set.clientid, username: block.set.username, password: block.set.password },
    routes: buildRoutes(block.routes, sink),
    map: block.map === null ? null : buildMap(block.map, sink),
    split: shares(block.split, sink),
    splitKey: block.split_key,
    default: block.default,
    maxConnections: block.max_connections,
    limitConn: {
      perIp: block.limit_conn.per_ip,
      perClientId: block.limit_conn.per_clientid,
      perUsername: block.limit_conn.per_username,
    },
    limitRate: { connectsPerSecond: block.limit_rate.connects },
    deny: block.deny.map((match) => match.conditions),
    allow: block.allow.map((match) => match.conditions),
    filter: block.inspect ? buildFilter(block.filter) : null,
    accessLog:
      block.access_log === null
        ? null
        : { file: block.access_log.file, format: block.access_log.format, rotation: block.access_log.rotation },
    source: sink.at(block),
  };
}

/** Everything that names an upstream names one that there is, and every client goes somewhere. */
function checkTargets(block: ProxyKeys, pools: readonly string[], sink: Sink): void {
  const target = (owner: object, key: string, value: string) => {
    if (value === LOCAL || pools.includes(value)) return;
    const close = nearest(value, pools);
    const hint = close === null ? '' : `; did you mean ${close}?`;
    sink.refuse(owner, key, `there is no upstreams.${value}${hint}`);
  };
  for (const route of block.routes) {
    if (route.upstream !== null) target(route, 'upstream', route.upstream);
    else if (route.split.length === 0) sink.refuse(route, 'upstream', 'is missing: upstream or split has to be given');
    if (route.upstream !== null && route.split.length > 0)
      sink.refuse(route, 'split', 'upstream is given already: one of both');
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
  for (const key of ['clientid', 'username', 'password'] as const)
    checkEnv(block.set, key, block.set[key], hasEnv, sink);
}

function buildRoutes(routes: ProxyKeys['routes'], sink: Sink): RouteConfig[] {
  return routes.map((route) => ({
    match: route.match.conditions,
    upstream: route.upstream,
    split: shares(route.split, sink),
    source: sink.at(route),
  }));
}

function buildFilter(filter: ProxyKeys['filter']): ProxyFilterConfig {
  return {
    prefix: filter.prefix,
    publish: filter.publish,
    subscribe: filter.subscribe,
    denied: filter.denied,
    messagesPerSecond: filter.messages,
    userProperties: filter.user_properties,
  };
}

function shares(split: ProxyKeys['split'], sink: Sink): ShareConfig[] {
  const sum = split.reduce((total, { percent }) => total + Math.max(0, percent), 0);
  if (sum > 10_000) sink.refuse(split[split.length - 1], 'percent', 'the shares are more than 100 percent');
  return split.map(({ percent, upstream }) => ({ percent, upstream }));
}

function buildMap(map: NonNullable<ProxyKeys['map']>, sink: Sink): ProxyMapConfig {
  const values: MapEntry[] = [];
  for (const [key, upstream] of map.values) {
    if (!key.startsWith('~')) {
      // A backslash takes a text that would be something else literally.
      values.push({ key: key.startsWith('\\') ? key.slice(1) : key, pattern: null, upstream });
      continue;
    }
    const ignoreCase = key.startsWith('~*');
    const pattern = compilePattern(key.slice(ignoreCase ? 2 : 1), ignoreCase);
    if (typeof pattern === 'string') sink.refuse(map, 'values', `${key}: ${pattern}`);
    else values.push({ key, pattern, upstream });
  }
  return {
    source: map.source,
    ignoreCase: map.ignore_case,
    hostnames: map.hostnames,
    values,
    default: map.default,
  };
}

function checkUdp(block: ProxyKeys, sink: Sink): void {
  if (block.protocol !== 'udp') return;
  if (block.preread) sink.refuse(block, 'protocol', 'udp carries no CONNECT: preread = false is needed');
  if (block.tls !== null) sink.refuse(block, 'tls', 'protocol = udp has no TLS');
  if (block.proxy_protocol) sink.refuse(block, 'proxy_protocol', 'protocol = udp has no PROXY protocol header');
  if (block.default === LOCAL) sink.refuse(block, 'default', 'the built-in broker does not speak udp');
}

function checkFilter(block: ProxyKeys, sink: Sink): void {
  if (!block.inspect) {
    if (sink.written(block, 'filter')) sink.refuse(block, 'filter', 'has no effect without inspect = true');
    return;
  }
  if (!block.preread) sink.refuse(block, 'inspect', 'preread = false reads no packets');
  if (block.non_mqtt === 'pass')
    sink.refuse(block, 'non_mqtt', 'bytes that are no MQTT cannot be inspected: close is needed with inspect = true');
  const { prefix } = block.filter;
  if (/[+#\0]/.test(prefix.replace(/\$\{[^}]*\}/g, '')))
    sink.refuse(block.filter, 'prefix', 'no wildcards in a prefix');
  // Variables hold no slash, so one a level, with an end, keeps the prefixes of two clients apart.
  else if (prefix !== '' && !prefix.endsWith('/')) sink.refuse(block.filter, 'prefix', 'has to end with /');
  else if (prefix.split('/').some((level) => level.split('${').length > 2))
    sink.refuse(block.filter, 'prefix', 'one variable a level: two could be put together in two ways');
}

/** Without preread nothing of CONNECT is known. */
function checkPlain(block: ProxyKeys, sink: Sink): void {
  const rewrites = Object.values(block.set).some((value) => value !== undefined);
  if (rewrites) sink.refuse(block, 'set', 'preread = false passes bytes as they are, so CONNECT cannot be rewritten');
  if (block.routes.length > 0) sink.refuse(block, 'routes', 'preread = false reads no CONNECT, so no route can fit');
  if (block.map !== null) sink.refuse(block, 'map', 'preread = false reads no CONNECT, only default is used');
  if (block.split.length > 0) sink.refuse(block, 'split', 'preread = false reads no CONNECT, only default is used');
  if (block.limit_conn.per_clientid > 0)
    sink.refuse(block.limit_conn, 'per_clientid', 'preread = false knows no client id');
  if (block.limit_conn.per_username > 0)
    sink.refuse(block.limit_conn, 'per_username', 'preread = false knows no username');
  if (block.allow.length + block.deny.length > 0)
    sink.refuse(block, block.deny.length > 0 ? 'deny' : 'allow', 'preread = false knows nothing that could fit');
}

function checkEnv(owner: object, key: string, template: string | null | undefined, hasEnv: HasEnv, sink: Sink): void {
  for (const [, name] of (template ?? '').matchAll(/\$\{env\.([A-Za-z0-9_]+)\}/g)) {
    if (!hasEnv(name)) sink.refuse(owner, key, `the environment has no ${name}`);
  }
}

export function buildUpstreams(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): UpstreamConfig[] {
  return [...root.upstreams].map(([name, block]) => buildUpstream(name, block, hasEnv, sink));
}

function buildUpstream(name: string, block: UpstreamKeys, hasEnv: HasEnv, sink: Sink): UpstreamConfig {
  if (name === LOCAL)
    sink.problem(sink.at(block), sink.path(block), `${LOCAL} is the built-in broker; another name is needed`);
  const hashes = block.balance === 'hash' || block.balance === 'consistent_hash';
  if (!hashes && sink.written(block, 'hash_key'))
    sink.doubt(block, 'hash_key', 'only balance = hash and consistent_hash use it');
  checkEnv(block, 'hash_key', block.hash_key, hasEnv, sink);
  if (block.health !== null && block.health.password !== null && block.health.username === null)
    sink.refuse(block.health, 'password', 'needs a username');
  if (block.servers.length === 0 && block.discover === null)
    sink.refuse(block, 'servers', 'at least one is needed, or discover');
  else if (block.servers.length > 0 && block.servers.every((server) => server.down) && block.discover === null)
    sink.doubt(block, 'servers', 'every server is down');
  return {
    name,
    balance: block.balance,
    hashKey: block.hash_key,
    servers: block.servers.map((server) => upstreamServer(server, sink)),
    discover: block.discover === null ? null : discovery(block.discover, sink),
    health:
      block.health === null
        ? null
        : {
            type: block.health.type,
            intervalMs: block.health.interval,
            timeoutMs: block.health.timeout,
            fails: block.health.fails,
            passes: block.health.passes,
            anyConnack: block.health.any_connack,
            username: block.health.username,
            password: block.health.password,
          },
    tls: block.tls === null ? null : tlsClient(block.tls),
    slowStartMs: block.slow_start,
    dnsRefreshMs: block.dns_refresh,
    sendProxyProtocol: block.send_proxy_protocol,
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

function discovery(block: NonNullable<UpstreamKeys['discover']>, sink: Sink): DiscoveryConfig {
  for (const key of REQUIRED[block.type])
    if (block[key] === '' || block[key] === 0) sink.refuse(block, key, `required with type = ${block.type}`);
  if (block.url !== '') checkHttpUrl(block, block.url, sink);
  const { type, name, port, resolver, path, url, token, tag, datacenter } = block;
  return {
    ...{ type, name, port, resolver, path, url, token, tag, datacenter },
    tls: block.tls === null ? null : tlsClient(block.tls),
    weightLabel: block.weight_label,
    refreshMs: block.refresh,
    timeoutMs: block.timeout,
  };
}

function upstreamServer(server: UpstreamKeys['servers'][number], sink: Sink): UpstreamServer {
  const isUnix = server.addr.startsWith('unix:');
  const { host, port } = isUnix ? { host: '', port: 0 } : address(server.addr);
  return {
    addr: server.addr,
    host,
    port,
    path: isUnix ? server.addr.slice('unix:'.length) : null,
    weight: server.weight,
    backup: server.backup,
    down: server.down,
    maxFails: server.max_fails,
    failTimeoutMs: server.fail_timeout,
    maxConns: server.max_conns,
    source: sink.at(server),
  };
}
