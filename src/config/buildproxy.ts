// From the checked tree to ProxyConfig and UpstreamConfig, with the checks that take more than one key: routes lead somewhere, pools have
// servers, variables of the environment are set. Called by build.ts. Pure: problems go to the sink.
import { tlsClient } from './buildbridges.ts';
import { address, tlsServer } from './buildvalues.ts';
import type { ProxyConfig, UpstreamConfig, UpstreamServer } from './config.ts';
import type { CheckedRoot } from './schema.ts';
import type { Sink } from './sink.ts';
import { nearest } from './values.ts';

type ProxyKeys = CheckedRoot['proxy'] extends ReadonlyMap<string, infer T> ? T : never;
type UpstreamKeys = CheckedRoot['upstreams'] extends ReadonlyMap<string, infer T> ? T : never;
export type HasEnv = (name: string) => boolean;

/** The built-in broker as the target of a route. */
const LOCAL = 'local';

export function buildProxies(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): ProxyConfig[] {
  return [...root.proxy].map(([name, block]) => buildProxy(name, block, [...root.upstreams.keys()], hasEnv, sink));
}

function buildProxy(name: string, block: ProxyKeys, pools: readonly string[], hasEnv: HasEnv, sink: Sink): ProxyConfig {
  const target = (owner: object, key: string, value: string) => {
    if (value === LOCAL || pools.includes(value)) return;
    const close = nearest(value, pools);
    const hint = close === null ? '' : `; did you mean ${close}?`;
    sink.refuse(owner, key, `there is no upstreams.${value}${hint}`);
  };
  for (const route of block.routes) target(route, 'upstream', route.upstream);
  if (block.default !== null) target(block, 'default', block.default);
  else if (block.routes.length === 0 || !block.preread)
    sink.refuse(block, 'default', 'is missing: where do clients go?');
  if (!block.preread) checkPlain(block, sink);
  for (const key of ['clientid', 'username', 'password'] as const)
    checkEnv(block.set, key, block.set[key], hasEnv, sink);
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
    tls: block.tls === null ? null : tlsServer(block.tls, sink),
    useIdentityAsUsername: block.tls?.use_identity_as_username ?? false,
    proxyProtocol: block.proxy_protocol,
    preread: block.preread,
    prereadMaxBytes: block.preread_max_bytes,
    prereadTimeoutMs: block.preread_timeout,
    connectTimeoutMs: block.connect_timeout,
    idleTimeoutMs: block.idle_timeout,
    reject: block.reject,
    set: { clientId: block.set.clientid, username: block.set.username, password: block.set.password },
    routes: block.routes.map((route) => ({
      match: route.match.conditions,
      upstream: route.upstream,
      source: sink.at(route),
    })),
    default: block.default,
    maxConnections: block.max_connections,
    limitConn: { perIp: block.limit_conn.per_ip, perClientId: block.limit_conn.per_clientid },
    limitRate: { connectsPerSecond: block.limit_rate.connects },
    accessLog: block.access_log === null ? null : { file: block.access_log.file, format: block.access_log.format },
    source: sink.at(block),
  };
}

/** Without preread nothing of CONNECT is known. */
function checkPlain(block: ProxyKeys, sink: Sink): void {
  const rewrites = Object.values(block.set).some((value) => value !== undefined);
  if (rewrites) sink.refuse(block, 'set', 'preread = false passes bytes as they are, so CONNECT cannot be rewritten');
  if (block.routes.length > 0) sink.refuse(block, 'routes', 'preread = false reads no CONNECT, so no route can fit');
  if (block.limit_conn.per_clientid > 0)
    sink.refuse(block.limit_conn, 'per_clientid', 'preread = false knows no client id');
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
  if (block.servers.every((server) => server.down)) sink.doubt(block, 'servers', 'every server is down');
  return {
    name,
    balance: block.balance,
    hashKey: block.hash_key,
    servers: block.servers.map((server) => upstreamServer(server, sink)),
    health:
      block.health === null
        ? null
        : {
            type: block.health.type,
            intervalMs: block.health.interval,
            timeoutMs: block.health.timeout,
            fails: block.health.fails,
            passes: block.health.passes,
          },
    tls: block.tls === null ? null : tlsClient(block.tls),
    slowStartMs: block.slow_start,
    dnsRefreshMs: block.dns_refresh,
    sendProxyProtocol: block.send_proxy_protocol,
    source: sink.at(block),
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
