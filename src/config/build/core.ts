// From the checked tree to MqttConfig, PersistenceConfig, HttpServerConfig, MetricsConfig, WebhookConfig, LogConfig and
// BrokerConfig, with the checks that take more than one key. Called by build.ts. Pure: problems go to the sink.

import type {
  BrokerConfig,
  HttpServerConfig,
  LogConfig,
  MetricsConfig,
  MqttConfig,
  PersistenceConfig,
  PresetSession,
  RecordConfig,
  TracingConfig,
  WebhookConfig,
} from '../config.ts';
import { BROKER } from '../schema/broker.ts';
import { effective } from '../schema/effective.ts';
import { HTTP_SERVER } from '../schema/httpserver.ts';
import { LOG } from '../schema/log.ts';
import { MQTT } from '../schema/mqtt.ts';
import { PERSISTENCE } from '../schema/persistence.ts';
import { RECORD } from '../schema/record.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import { WEBHOOK } from '../schema/webhook.ts';
import type { Sink } from '../sink.ts';
import { isLoopback } from '../values.ts';
import { buildWebUsers } from '../webusers.ts';
import { address, checkHttpUrl, qos, tlsClient, tlsServer } from './values.ts';

export function buildMqtt({ mqtt }: CheckedRoot): MqttConfig {
  return effective(MQTT, mqtt);
}

export function buildPersistence(root: CheckedRoot, sink: Sink): PersistenceConfig {
  const { persistence, sqlite } = root;
  const settings = effective(PERSISTENCE, persistence);
  const given = persistence.path !== '' || persistence.enable !== null;
  if (!given && sqlite?.enable) {
    const path = `${sqlite.mounted_file_path.replace(/\/+$/, '')}/tidegate.db`;
    return { ...settings, enable: true, path, origin: 'sqlite', source: sink.at(sqlite) };
  }
  if (given && sqlite?.enable) sink.warn(sink.at(sqlite), sink.path(sqlite), 'no effect beside the block persistence');
  const enable = persistence.enable ?? persistence.path !== '';
  if (enable && persistence.path === '') sink.refuse(persistence, 'path', 'is missing: where is the database to be?');
  const origin = given ? 'persistence' : 'default';
  return { ...settings, enable, origin, source: sink.at(persistence) };
}

export function buildRecord(root: CheckedRoot, persistence: PersistenceConfig, sink: Sink): RecordConfig {
  const { topics, path } = root.record;
  if (topics.length > 0 && path === '' && !persistence.enable)
    sink.refuse(root.record, 'path', 'is missing: without persistence.path there is no folder for the recording');
  if (path !== '' && path === persistence.path) sink.refuse(root.record, 'path', 'is the database of persistence');
  return effective(RECORD, root.record);
}

export function buildPresets({ preset }: CheckedRoot, sink: Sink): PresetSession[] {
  const presets: PresetSession[] = [];
  const known = new Set<string>();
  for (const [name, session] of preset?.session ?? []) {
    if (known.has(session.clientid)) sink.refuse(session, 'clientid', 'another preset session has this client id');
    known.add(session.clientid);
    const subscriptions = session.topic.map((topic) => ({
      topicFilter: topic.remote_topic,
      qos: qos(topic.qos),
      retainAsPublished: topic.retain_as_published,
      retainHandling: qos(topic.retain_handling),
    }));
    presets.push({ name, clientId: session.clientid, subscriptions, source: sink.at(session) });
  }
  return presets;
}

export function buildHttpServer(root: CheckedRoot, sink: Sink): HttpServerConfig | null {
  const http = root.http_server;
  if (http === null || !http.enable) return null;
  const users = buildWebUsers(http, sink);
  const hasCredentials = users.some((user) => user.password !== '');
  if ((http.username === null) !== (http.password === null)) {
    const missing = http.username === null ? 'username' : 'password';
    sink.refuse(http, missing, 'username and password belong together');
  }
  const jwtPublicKeyfile = http.jwt?.public?.keyfile ?? null;
  if (http.auth_type === 'jwt' && jwtPublicKeyfile === null)
    sink.refuse(http, 'jwt', 'auth_type = jwt needs jwt.public.keyfile');
  if (http.auth_type !== 'basic' && users.length > 0) {
    const why = http.auth_type === 'jwt' ? 'accepts only tokens' : 'requires no login';
    sink.doubt(http, 'auth_type', `with ${http.auth_type} ${why}: the users have no effect on console and API`);
  }
  const guarded = http.auth_type === 'jwt' || (http.auth_type === 'basic' && hasCredentials);
  const local = isLoopback(http.ip_addr);
  if (!guarded && !local) {
    sink.doubt(http, 'ip_addr', 'without username and password the server listens on 127.0.0.1 only');
  }
  if (guarded && !local && http.tls === null) {
    sink.doubt(http, 'ip_addr', 'passwords cross the network in clear; a tls block or loopback is safer');
  }
  const { jwt, ...own } = effective(HTTP_SERVER, http);
  return {
    ...own,
    ipAddr: guarded || local ? http.ip_addr : '127.0.0.1',
    users,
    jwtPublicKeyfile,
    jwtIssuer: jwt?.issuer ?? null,
    jwtAudience: jwt?.audience ?? null,
    tls: http.tls === null ? null : tlsServer(http.tls, sink),
    source: sink.at(http),
  };
}

export function buildMetrics(root: CheckedRoot, sink: Sink): MetricsConfig | null {
  const { metrics } = root;
  if (metrics === null) return null;
  const { host, port } = address(metrics.bind);
  const http = root.http_server;
  const hasUsers = http !== null && (http.username !== null || [...http.users.values()].some((user) => user?.enable));
  if (metrics.auth === 'basic' && !hasUsers) {
    sink.refuse(metrics, 'auth', 'basic needs username and password of http_server, or its users');
  }
  if (metrics.auth === 'none' && !isLoopback(host)) {
    sink.doubt(metrics, 'bind', 'anyone who can reach this address can read the metrics');
  }
  return { bind: metrics.bind, auth: metrics.auth, host, port, source: sink.at(metrics) };
}

export function buildWebhook(root: CheckedRoot, sink: Sink): WebhookConfig | null {
  const { webhook } = root;
  if (webhook === null || !webhook.enable) return null;
  checkService(webhook, sink);
  const own = effective(WEBHOOK, webhook);
  return { ...own, tls: webhook.tls === null ? null : tlsClient(webhook.tls), source: sink.at(webhook) };
}

/** An HTTP service that is told something. */
function checkService(
  block: { readonly url: string; readonly tls: Parameters<typeof tlsClient>[0] | null },
  sink: Sink,
): void {
  const { url, tls } = block;
  checkHttpUrl(block, url, sink);
  if (tls !== null && !url.startsWith('https:'))
    sink.doubt(block, 'tls', 'no effect with this url; https:// speaks TLS');
  if (tls !== null && tls.cert !== null && tls.key === null) sink.refuse(tls, 'key', 'is required together with cert');
}

export function buildTracing(root: CheckedRoot, sink: Sink): TracingConfig | null {
  const { tracing } = root;
  if (tracing === null || !tracing.enable) return null;
  checkService(tracing, sink);
  if (tracing.headers.length > 0 && tracing.url.startsWith('http:') && !isLoopback(new URL(tracing.url).hostname))
    sink.doubt(tracing, 'headers', 'headers cross the network in clear; https:// is safer');
  return {
    url: tracing.url,
    headers: tracing.headers,
    tls: tracing.tls === null ? null : tlsClient(tracing.tls),
    timeoutMs: tracing.timeout,
    serviceName: tracing.service_name,
    ratio: tracing.ratio,
    parents: tracing.parents,
    maxRate: tracing.max_rate,
    queueLength: tracing.queue,
    batchSize: tracing.batch,
    intervalMs: tracing.interval,
    metricsIntervalMs: tracing.metrics_interval,
    source: sink.at(tracing),
  };
}

export function buildLog(root: CheckedRoot, sink: Sink): LogConfig {
  const { log } = root;
  const to: ('console' | 'file')[] = [];
  for (const target of log.to) {
    if (target === 'console' || target === 'file') {
      if (!to.includes(target)) to.push(target);
    } else sink.doubt(log, 'to', `${target} is not supported; console and file are`);
  }
  if (to.length === 0) to.push('console');
  return { ...effective(LOG, log), to };
}

export function buildBroker(root: CheckedRoot, sink: Sink): BrokerConfig {
  const { broker } = root;
  if (broker.redis !== null) {
    if (broker.engine !== 'aedes') sink.refuse(broker, 'redis', 'only engine = aedes can share a broker through Redis');
    else if (!/^rediss?:\/\/[^\s/]+/.test(broker.redis))
      sink.refuse(broker, 'redis', 'a redis:// or rediss:// URL expected');
  }
  return { ...effective(BROKER, broker), source: sink.at(broker) };
}
