// Puts the sections together to a frozen Config and makes the checks between sections: addresses used twice, who may be
// anonymous. Called by config/load.ts with a tree that the schema has accepted. Pure: problems go to the sink.

import { isIP } from 'node:net';
import type { Config } from '../config.ts';
import { checkEngine } from '../engine.ts';
import type { ListenerConfig } from '../listeners.ts';
import { warnLoops } from '../loops.ts';
import { nngBridges } from '../nngbridges.ts';
import type { Position } from '../problem.ts';
import type { ProxyConfig } from '../proxy.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { isLoopback } from '../values.ts';
import { buildAuth } from './auth.ts';
import { buildMqttBridges, buildNng, meetingPoint } from './bridges.ts';
import {
  buildBroker,
  buildHttpServer,
  buildLog,
  buildMetrics,
  buildMqtt,
  buildPersistence,
  buildPresets,
  buildRecord,
  buildTracing,
  buildWebhook,
} from './core.ts';
import { buildListeners, type OpenListener } from './listeners.ts';
import { buildProxies, buildUpstreams, type HasEnv } from './proxy.ts';
import { buildRules } from './rules.ts';
import { buildQuotas, buildTopics, buildValidation } from './topics.ts';

export function buildConfig(root: CheckedRoot, hasEnv: HasEnv, sink: Sink): Config {
  const open = buildListeners(root, sink);
  const proxy = buildProxies(root, hasEnv, sink);
  const auth = buildAuth(root, open, isReachable(open, proxy), sink);
  const persistence = buildPersistence(root, sink);
  const config: Config = {
    listeners: open.map((listener) => closeListener(listener, auth.allowAnonymous)),
    mqtt: buildMqtt(root),
    auth,
    persistence,
    record: buildRecord(root, persistence, sink),
    bridges: { nng: buildNng(root, sink), mqtt: buildMqttBridges(root, sink) },
    plugins: root.plugins,
    topics: buildTopics(root, sink),
    validation: buildValidation(root, sink),
    quotas: buildQuotas(root, sink),
    rules: buildRules(root, sink),
    proxy,
    upstreams: buildUpstreams(root, hasEnv, sink),
    httpServer: buildHttpServer(root, sink),
    metrics: buildMetrics(root, sink),
    webhook: buildWebhook(root, sink),
    tracing: buildTracing(root, sink),
    log: buildLog(root, sink),
    broker: buildBroker(root, sink),
    presets: buildPresets(root, sink),
  };
  checkAddresses(config, sink);
  checkEngine(root, config.persistence.enable, sink);
  warnLoops(config.bridges.nng, sink);
  return freeze(config);
}

function bindsOf({ host, port, otherBinds }: ProxyConfig): readonly { readonly host: string; readonly port: number }[] {
  return [{ host, port }, ...otherBinds];
}

/** Whether another machine can get to the broker. */
function isReachable(listeners: readonly OpenListener[], proxies: readonly ProxyConfig[]): boolean {
  const open = listeners.some((listener) => listener.kind !== 'unix' && !isLoopback(listener.host));
  return (
    open ||
    proxies.some((proxy) => proxy.enable && leadsHere(proxy) && !bindsOf(proxy).every(({ host }) => isLoopback(host)))
  );
}

/** Whether clients of the proxy can end in the built-in broker. */
export function leadsHere(proxy: Pick<ProxyConfig, 'default' | 'routes' | 'map' | 'split'>): boolean {
  const targets = [
    proxy.default,
    proxy.map?.default,
    ...(proxy.map?.values ?? []).map((entry) => entry.upstream),
    ...[...proxy.split, ...proxy.routes, ...proxy.routes.flatMap((route) => route.split)].map((one) => one.upstream),
  ];
  return targets.includes('local');
}

function closeListener({ anonymous, ...listener }: OpenListener, fallback: boolean): ListenerConfig {
  // A listener with users of its own is not open because others have none.
  const byDefault = listener.passwordFile === null && fallback;
  return { ...listener, allowAnonymous: anonymous ?? byDefault };
}

interface Claim {
  readonly key: string;
  readonly host: string;
  readonly port: number;
  readonly ipv6Only?: boolean;
  readonly at: Position;
}

/** Two servers on one address: only the first could ever listen. */
function checkAddresses(config: Config, sink: Sink): void {
  const claims: Claim[] = [];
  for (const l of config.listeners)
    claims.push({ key: `listeners.${l.name}.bind`, host: l.host, port: l.port, ipv6Only: l.ipv6Only, at: l.source });
  for (const p of config.proxy)
    if (p.enable)
      for (const { host, port } of bindsOf(p)) claims.push({ key: `proxy.${p.name}.bind`, host, port, at: p.source });
  const { httpServer: http, metrics } = config;
  if (http !== null) claims.push({ key: 'http_server.port', host: http.ipAddr, port: http.port, at: http.source });
  if (metrics !== null)
    claims.push({ key: 'metrics.bind', host: metrics.host, port: metrics.port, at: metrics.source });
  for (const [i, claim] of claims.entries()) {
    const other = claims.slice(0, i).find((earlier) => collide(earlier, claim));
    if (other !== undefined) sink.problem(claim.at, claim.key, `${other.key} has this address already`);
  }
  const paths = config.listeners.filter((l) => l.kind === 'unix');
  for (const [i, l] of paths.entries()) {
    const other = paths.slice(0, i).find((earlier) => earlier.path === l.path);
    if (other !== undefined)
      sink.problem(l.source, `listeners.${l.name}.path`, `listeners.${other.name} has this path already`);
  }
  warnBridgeAddresses(config, claims, sink);
}

/** The families a host takes all of the port in; a name may be either. */
function families({ host, ipv6Only }: Claim): { v4: boolean; v6: boolean; any: boolean } {
  if (host === '0.0.0.0') return { v4: true, v6: false, any: true };
  if (host === '*' || host === '::') return { v4: !ipv6Only, v6: true, any: true };
  const version = isIP(host);
  return { v4: version !== 6, v6: version !== 4, any: false };
}

function collide(a: Claim, b: Claim): boolean {
  if (a.port === 0 || a.port !== b.port) return false;
  if (a.host === b.host) return true;
  const [x, y] = [families(a), families(b)];
  return (x.any || y.any) && ((x.v4 && y.v4) || (x.v6 && y.v6));
}

/** A bridge that cannot bind is in state error and tries again, so this only warns. */
function warnBridgeAddresses(config: Config, claims: readonly Claim[], sink: Sink): void {
  const taken = new Map(
    claims.filter((c) => c.port !== 0 && isLoopback(c.host)).map((c) => [`tcp://here:${c.port}`, c.key]),
  );
  for (const bridge of nngBridges(config.bridges.nng)) {
    if (!bridge.enable || bridge.mode !== 'listen') continue;
    const name = `bridges.nng.${bridge.type}.${bridge.name}`;
    for (const url of bridge.urls) {
      const point = meetingPoint(url);
      if (/^(?:tcp|tls\+tcp|wss?):.*:0$/.test(point)) continue;
      const other = taken.get(point);
      if (other !== undefined)
        sink.warn(bridge.source, `${name}.${bridge.type}_url`, `${other} has this address already`);
      taken.set(point, name);
    }
  }
}

/** Freezes all the way down. Patterns are left alone: they hold no state without the flags g and y. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || value instanceof RegExp) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
