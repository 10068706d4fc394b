// From the configuration to what each stage is built from: the only place that knows both. Called by gateway.ts at
// start, by running.ts at reload, by bridges.ts and console.ts for what they own. Pure: opens nothing. Secrets pass
// through and are never shown.
import { totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import type { AuthOptions, ListenerAuthOptions } from '../auth/options.ts';
import { GatewayError } from '../base/errors.ts';
import { looksHashed } from '../base/passwordhash.ts';
import type { BridgeOptions, MqttBridgeOptions } from '../bridge/bridge.ts';
import type { Preset } from '../broker/broker.ts';
import type { MqttBridgeConfig } from '../config/bridges.ts';
import type { Config, HttpServerConfig, MetricsConfig } from '../config/config.ts';
import type { ListenerConfig } from '../config/listeners.ts';
import { nngBridges } from '../config/nngbridges.ts';
import type { HttpSettings, MetricsSettings, WebUser } from '../console/console.ts';
import type { ProxiesOptions } from '../proxy/proxies.ts';
import type { SessionLimits } from '../session/session.ts';

/**
 * Bytes of a CONNECT: it is held in memory before anybody knows who sends it. One field may be as long as MQTT lets it
 * be (65,535 bytes), with room for the others; client id, will, user and password of 64 KB each are no client's.
 */
const MAX_CONNECT_BYTES = 131_072;

const MB = 1024 * 1024;
/** broker.profile = small: bytes of one client's unsent messages and of one queue. */
const SMALL_WRITE_BUFFER = MB / 2;
const SMALL_QUEUE_BYTES = 2 * MB;

/** A limit that may be 0 (none) and is no larger than `most` on a small machine. */
function bounded(limit: number, most: number, small: boolean): number {
  return small ? Math.min(limit === 0 ? most : limit, most) : limit;
}

/**
 * 0 chooses: a quarter of the memory of the machine or of its control group, at least 64 MB and at most 1 GB; and no
 * more than a quarter of the heap that V8 takes, since the worst of it lies there. On a small machine an eighth, 16 MB
 * to 64 MB.
 */
function memoryBudget(configured: number, small: boolean): number {
  if (configured > 0) return configured;
  const constrained = process.constrainedMemory?.() ?? 0;
  const memory = constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
  if (small) return Math.min(64 * MB, Math.max(16 * MB, Math.floor(memory / 8)));
  const quarter = Math.min(1024 * 1024 * 1024, Math.max(64 * 1024 * 1024, Math.floor(memory / 4)));
  return Math.min(quarter, Math.floor(getHeapStatistics().heap_size_limit / 4));
}

/**
 * Publishers are slowed down at one memory budget; at so many of them, which only sessions that are away can reach,
 * queues count as full.
 */
const FULL_BUDGETS = 1.5;

export function sessionLimits(config: Config): SessionLimits {
  const { mqtt } = config;
  const small = config.broker.profile === 'small';
  const budget = memoryBudget(mqtt.memoryBudget, small);
  return {
    ...mqtt,
    maxConnectSize: MAX_CONNECT_BYTES,
    retained: { messages: mqtt.maxRetainedMessages, bytes: mqtt.maxRetainedBytes },
    checkRetainSource: config.auth.checkRetainSource,
    sessionOwner: config.auth.sessionOwner,
    memoryBudget: budget,
    keptBudget: mqtt.keptBudget > 0 ? mqtt.keptBudget : budget,
    maxMatching: mqtt.maxMatchingFilters,
    outbox: {
      inflight: mqtt.maxInflightWindow,
      queueLength: mqtt.maxMqueueLen,
      queueBytes: bounded(mqtt.maxMqueueBytes, SMALL_QUEUE_BYTES, small),
      totalBytes: FULL_BUDGETS * budget,
      queueQos0: mqtt.queueQos0,
      writeBuffer: bounded(mqtt.maxClientWriteBuffer, SMALL_WRITE_BUFFER, small),
      topicAliases: mqtt.maxTopicAliasOut,
    },
  };
}

/** @param folder of drop-in files, for what has no place beside a database; null: there is none */
export function authOptions(config: Config, folder: string | null = null): AuthOptions {
  const { auth } = config;
  return {
    ...auth,
    passwords: auth.users.length === 0 ? null : new Map(auth.users.map((user) => [user.username, user.password])),
    rules: auth.acl === null ? null : { rules: auth.acl, noMatch: auth.noMatch },
    accountsFile: auth.dynamicSecurity === null ? null : accountsPath(config, folder),
    accountsControl: auth.dynamicSecurity?.controlTopic ?? false,
    http: auth.httpAuth === null ? null : { ...auth.httpAuth, portOf: (name) => portOf(config, name) },
    listeners: new Map(config.listeners.map((listener) => [listener.name, listenerAuth(listener)])),
  };
}

const ACCOUNTS_FILE = 'dynamic-security.json';

/** Where users of the control topic and the REST API are kept. Throws CFG-INVALID where there is no place. */
function accountsPath({ auth, persistence }: Config, folder: string | null): string {
  const file = auth.dynamicSecurity?.file ?? null;
  if (file !== null) return resolve(file);
  if (persistence.enable) return resolve(dirname(persistence.path), ACCOUNTS_FILE);
  if (folder !== null) return join(folder, ACCOUNTS_FILE);
  throw new GatewayError('CFG-INVALID', 'auth.dynamic_security.file: required where nothing is persisted');
}

/** Where logins of the console are kept; null = nowhere. */
export function loginsPath({ persistence }: Config): string | null {
  return persistence.enable ? persistence.path.replace(/(?:\.[A-Za-z0-9]{1,8})?$/, '-logins.json') : null;
}

/** Where recordings and history are kept; "" = nowhere. */
export function archivePath({ record, persistence }: Config): string {
  if (record.path !== '' || !persistence.enable) return record.path;
  return persistence.path.replace(/(?:\.[A-Za-z0-9]{1,8})?$/, '-archive.db');
}

/** Where a secret of this gateway may be kept: beside its store. */
export function secretPath({ persistence }: Config): string | null {
  return persistence.enable ? join(dirname(persistence.path), 'scram.secret') : null;
}

function portOf(config: Config, name: string): number {
  return config.listeners.find((listener) => listener.name === name)?.port ?? 0;
}

function listenerAuth(listener: ListenerConfig): ListenerAuthOptions {
  return { ...listener, authority: listener.tls?.psk?.file ?? listener.tls?.cacertfile ?? null };
}

/** NNG bridges in file order, publishers first, then those to remote brokers. */
export function bridgeOptions(config: Config): BridgeOptions[] {
  const { nng, mqtt } = config.bridges;
  return [...nngBridges(nng), ...mqtt.map(mqttBridgeOptions)];
}

export function mqttBridgeOptions(bridge: MqttBridgeConfig): MqttBridgeOptions {
  return { type: 'mqtt', ...bridge };
}

export function proxiesOptions(config: Config): ProxiesOptions {
  return { proxies: config.proxy, upstreams: config.upstreams };
}

function webUsers(http: HttpServerConfig | null): WebUser[] {
  return (http?.users ?? []).map((user) => ({ ...user, hashed: looksHashed(user.password) }));
}

/**
 * @param started what the server was started with: where it listens and how it asks who comes in does not change while
 * it runs
 */
export function httpSettings(started: HttpServerConfig, now: HttpServerConfig): HttpSettings {
  const key = now.jwtPublicKeyfile;
  return {
    host: started.ipAddr,
    port: started.port,
    tls: started.tls,
    maxBodyBytes: started.maxBody,
    maxRequests: started.limitConn,
    authType: started.authType,
    users: webUsers(now),
    jwt: key === null ? null : { publicKeyFile: key, issuer: now.jwtIssuer, audience: now.jwtAudience },
  };
}

export function metricsSettings(metrics: MetricsConfig, http: HttpServerConfig | null): MetricsSettings {
  return { host: metrics.host, port: metrics.port, auth: metrics.auth, users: webUsers(http) };
}

export function presets({ presets: sessions }: Config): Preset[] {
  return sessions.map(({ clientId, subscriptions }) => ({
    clientId,
    subscriptions: subscriptions.map((s) => ({ ...s, noLocal: false })),
  }));
}
