// From the checked tree to ListenerConfig, MqttConfig, AuthConfig, PersistenceConfig, HttpServerConfig, MetricsConfig, WebhookConfig,
// LogConfig and BrokerConfig, with the checks that take more than one key. Called by build.ts. Pure: problems go to the sink.
import type {
  AclRule,
  AclWho,
  AuthConfig,
  AuthLimitsConfig,
  BrokerConfig,
  HttpAuthConfig,
  HttpAuthRequest,
  HttpServerConfig,
  JwtConfig,
  ListenerConfig,
  ListenerKind,
  LogConfig,
  MetricsConfig,
  MqttConfig,
  PersistenceConfig,
  QosLevel,
  TlsServerConfig,
  WebhookConfig,
} from './config.ts';
import type { Checked, Sink, ValueOf } from './keys.ts';
import type { CheckedRoot } from './schema.ts';
import type { ACL_RULE, HTTP_REQUEST, SSL, TCP, TLS_SERVER, UNIX } from './schemacore.ts';
import { type Address, checkSocketPath, isLoopback, parseAddress } from './values.ts';

/** The address of a value the schema has checked already. */
export function address(text: string): Address {
  const parsed = parseAddress(text);
  return typeof parsed === 'string' ? { host: '', port: 0, path: '' } : parsed;
}

export function qos(value: number): QosLevel {
  return value === 2 ? 2 : value === 1 ? 1 : 0;
}

type TlsKeys = Checked<typeof TLS_SERVER>;

/** The server side of TLS; null after a problem. `block` is where the keys stand. */
export function tlsServer(block: TlsKeys, sink: Sink): TlsServerConfig | null {
  const { keyfile, certfile } = block;
  if (keyfile === null) sink.refuse(block, 'keyfile', 'TLS needs a private key');
  if (certfile === null) sink.refuse(block, 'certfile', 'TLS needs a certificate');
  if (block.verify_peer && block.cacertfile === null)
    sink.refuse(block, 'cacertfile', 'verify_peer needs the authorities to trust');
  if (block.fail_if_no_peer_cert && !block.verify_peer) {
    sink.doubt(
      block,
      'fail_if_no_peer_cert',
      'without verify_peer clients are not asked for a certificate; it has no effect',
    );
  }
  if (keyfile === null || certfile === null) return null;
  return {
    keyfile,
    certfile,
    cacertfile: block.cacertfile,
    crlfile: block.crlfile,
    keyPassword: block.key_password,
    verifyPeer: block.verify_peer,
    failIfNoPeerCert: block.fail_if_no_peer_cert,
    alpn: block.alpn,
  };
}

// --- listeners --------------------------------------------------------------------------------------------------------------

type TcpKeys = Checked<typeof TCP>;
type SslKeys = Checked<typeof SSL>;
type UnixKeys = Checked<typeof UNIX>;
type ListenerBlock = TcpKeys | SslKeys | UnixKeys;
interface Candidate {
  readonly name: string;
  readonly kind: ListenerKind;
  readonly block: ListenerBlock;
}

/** A listener whose allowAnonymous is not decided yet. */
export type OpenListener = Omit<ListenerConfig, 'allowAnonymous'> & { readonly anonymous: boolean | null };

export function buildListeners(root: CheckedRoot, sink: Sink): OpenListener[] {
  const candidates: Candidate[] = [];
  for (const kind of ['tcp', 'ssl', 'ws', 'wss', 'unix'] as const) {
    const group = root.listeners[kind];
    if (group.own !== null) candidates.push({ name: kind, kind, block: group.own });
    for (const [name, block] of group.named) {
      if (kind !== 'unix' && !sink.written(block, 'bind')) sink.refuse(block, 'bind', 'is missing');
      candidates.push({ name: `${kind}.${name}`, kind, block });
    }
  }
  const listeners: OpenListener[] = [];
  for (const candidate of candidates) {
    if (!candidate.block.enable) continue;
    const listener = buildListener(candidate, root, sink);
    if (listener !== null) listeners.push(listener);
  }
  return listeners;
}

function buildListener({ name, kind, block }: Candidate, root: CheckedRoot, sink: Sink): OpenListener | null {
  const common = {
    name,
    kind,
    maxConnections: block.max_connections,
    connectTimeoutMs: block.connect_timeout,
    proxyProtocol: block.proxy_protocol,
    anonymous: block.allow_anonymous,
    passwordFile: block.password_file,
    aclFile: block.acl_file,
    source: sink.at(block),
  };
  if (!('bind' in block)) {
    const wrong = block.path === null ? 'is missing' : checkSocketPath(block.path);
    if (wrong !== null) sink.refuse(block, 'path', wrong);
    const path = block.path ?? '';
    const unix = { bind: path, host: '', port: 0, path, mode: block.mode, group: block.group };
    return { ...common, ...unix, tls: null, useIdentityAsUsername: false };
  }
  const { host, port, path } = address(block.bind);
  const isWs = kind === 'ws' || kind === 'wss';
  let tls: TlsServerConfig | null = null;
  if ('keyfile' in block) {
    const shared = kind === 'wss' && block.keyfile === null && block.certfile === null ? root.listeners.ssl.own : null;
    tls = tlsServer(shared ?? block, sink);
    if (block.use_identity_as_username && !(shared ?? block).verify_peer) {
      sink.refuse(block, 'use_identity_as_username', 'needs verify_peer, else anybody could be anyone');
    }
  }
  return {
    ...common,
    bind: block.bind,
    host,
    port,
    path: isWs ? path || '/mqtt' : '',
    mode: null,
    group: null,
    tls,
    useIdentityAsUsername: 'keyfile' in block && block.use_identity_as_username,
  };
}

// --- mqtt -------------------------------------------------------------------------------------------------------------------

export function buildMqtt({ mqtt }: CheckedRoot): MqttConfig {
  return {
    maxPacketSize: mqtt.max_packet_size,
    maxTopicAlias: mqtt.max_topic_alias,
    keepaliveMultiplier: mqtt.keepalive_multiplier,
    maxKeepaliveSeconds: mqtt.max_keepalive,
    maxInflightWindow: mqtt.max_inflight_window,
    maxMqueueLen: mqtt.max_mqueue_len,
    maxMqueueBytes: mqtt.max_mqueue_bytes,
    queueQos0: mqtt.queue_qos0,
    maxAwaitingRel: mqtt.max_awaiting_rel,
    maxSessionExpiryMs: mqtt.max_session_expiry,
    maxQos: qos(mqtt.max_qos),
    retainAvailable: mqtt.retain_available,
    wildcardAvailable: mqtt.wildcard_available,
    sharedAvailable: mqtt.shared_available,
    maxTopicLevels: mqtt.max_topic_levels,
    maxClientWriteBuffer: mqtt.max_client_write_buffer,
    sendTimeoutMs: mqtt.send_timeout,
  };
}

// --- auth -------------------------------------------------------------------------------------------------------------------

/** `reachable`: whether anything that leads to the broker can be reached from another machine. */
export function buildAuth(
  root: CheckedRoot,
  listeners: readonly OpenListener[],
  reachable: boolean,
  sink: Sink,
): AuthConfig {
  const { auth } = root;
  const httpAuth = buildHttpAuth(root, sink);
  const jwt = buildJwt(root, sink);
  const hasUsers =
    auth.password_file !== null ||
    auth.password.length > 0 ||
    auth.scram_file !== null ||
    jwt !== null ||
    httpAuth?.authReq != null ||
    listeners.some((l) => l.passwordFile !== null);
  const allowAnonymous = auth.allow_anonymous ?? (!reachable && !hasUsers);
  if (allowAnonymous && auth.allow_anonymous !== null && reachable) {
    sink.doubt(auth, 'allow_anonymous', 'anybody who reaches a listener that is not on loopback gets in');
  }
  const identity = listeners.some((l) => l.useIdentityAsUsername || l.anonymous === true);
  if (!allowAnonymous && !hasUsers && !identity && listeners.length > 0) {
    const why =
      auth.allow_anonymous === null ? 'is not given and a listener can be reached from other machines' : 'is false';
    sink.doubt(auth, 'allow_anonymous', `${why}, and there is no source of users: nobody can connect`);
  }
  const acl = auth.acl?.enable ? auth.acl.rules.map((rule) => aclRule(rule, sink)) : null;
  if (acl?.length === 0 && auth.no_match === 'allow' && auth.acl !== null) {
    sink.doubt(auth.acl, 'rules', 'there are no rules and auth.no_match is allow: everything is allowed');
  }
  return {
    allowAnonymous,
    passwordFile: auth.password_file,
    aclFile: auth.acl_file,
    users: auth.password.map(([username, password]) => ({ username, password })),
    acl,
    noMatch: auth.no_match,
    denyAction: auth.deny_action,
    aclSubscribe: auth.acl_subscribe,
    checkRetainSource: auth.check_retain_source,
    scramFile: auth.scram_file,
    jwt,
    limits: buildLimits(root),
    httpAuth,
  };
}

function buildJwt(root: CheckedRoot, sink: Sink): JwtConfig | null {
  const { jwt } = root.auth;
  if (jwt === null || !jwt.enable) return null;
  if ((jwt.secret === null) === (jwt.keyfile === null)) {
    sink.problem(sink.at(jwt), sink.path(jwt), 'either secret or keyfile is needed');
  }
  return {
    secret: jwt.secret,
    keyFile: jwt.keyfile,
    algorithms: jwt.algorithms,
    issuer: jwt.issuer,
    audience: jwt.audience,
    clockToleranceSeconds: Math.floor(jwt.clock_tolerance / 1000),
    usernameClaims: jwt.username_claims,
    clientIdClaim: jwt.clientid_claim,
    aclClaim: jwt.acl_claim,
  };
}

function buildLimits(root: CheckedRoot): AuthLimitsConfig {
  const { limits } = root.auth;
  return {
    perPair: limits.per_user_and_address,
    perAddress: limits.per_address,
    perUser: limits.per_user,
    windowMs: limits.window,
    lockMs: limits.lock,
    longestLockMs: Math.max(limits.max_lock, limits.lock),
    exempt: limits.exempt,
  };
}

type AclKeys = ValueOf<typeof ACL_RULE>;

function aclWho(block: Pick<AclKeys, 'username' | 'clientid' | 'ipaddr' | 'ipaddrs'>): AclWho {
  const ipaddrs = block.ipaddr === null ? block.ipaddrs : [block.ipaddr, ...block.ipaddrs];
  return { username: block.username, clientId: block.clientid, ipaddrs };
}

function aclRule(block: AclKeys, sink: Sink): AclRule {
  const { permit, action, topics } = block;
  const [and, or] = [block.and.map(aclWho), block.or.map(aclWho)];
  for (const who of [...block.and, ...block.or]) {
    const { username, clientId, ipaddrs } = aclWho(who);
    if (username === null && clientId === null && ipaddrs.length === 0) {
      sink.problem(sink.at(who), sink.path(who), 'a condition needs username, clientid, ipaddr or ipaddrs');
    }
  }
  return { permit, action, topics, ...aclWho(block), and, or, source: sink.at(block) };
}

function buildHttpAuth(root: CheckedRoot, sink: Sink): HttpAuthConfig | null {
  const http = root.auth.http_auth;
  if (http === null || !http.enable) return null;
  if (http.auth_req === null && http.acl_req === null && http.super_req === null) {
    sink.problem(sink.at(http), sink.path(http), 'auth_req, acl_req or super_req is needed');
  }
  return {
    timeoutMs: http.timeout,
    connectTimeoutMs: http.connect_timeout,
    poolSize: http.pool_size,
    cacheTtlMs: http.cache_ttl,
    authReq: httpRequest(http.auth_req, sink),
    superReq: httpRequest(http.super_req, sink),
    aclReq: httpRequest(http.acl_req, sink),
  };
}

function httpRequest(block: Checked<typeof HTTP_REQUEST> | null, sink: Sink): HttpAuthRequest | null {
  if (block === null) return null;
  checkHttpUrl(block, block.url, sink);
  const method = block.method === 'get' ? 'GET' : 'POST';
  return { url: block.url, method, headers: block.headers, params: block.params, source: sink.at(block) };
}

function checkHttpUrl(block: object, url: string, sink: Sink): void {
  if (!/^https?:\/\/[^\s/]+/.test(url) || !URL.canParse(url))
    sink.refuse(block, 'url', 'an http:// or https:// URL expected');
}

// --- persistence, http_server, metrics, webhook, log, broker ----------------------------------------------------------------

export function buildPersistence(root: CheckedRoot, sink: Sink): PersistenceConfig {
  const { persistence, sqlite } = root;
  const settings = { sync: persistence.sync, intervalMs: persistence.interval, maxSize: persistence.max_size };
  const given = persistence.path !== '' || persistence.enable !== null;
  if (!given && sqlite?.enable) {
    const path = `${sqlite.mounted_file_path.replace(/\/+$/, '')}/tidegate.db`;
    return { ...settings, enable: true, path, origin: 'sqlite', source: sink.at(sqlite) };
  }
  if (given && sqlite?.enable) sink.warn(sink.at(sqlite), sink.path(sqlite), 'no effect beside the block persistence');
  const enable = persistence.enable ?? persistence.path !== '';
  if (enable && persistence.path === '') sink.refuse(persistence, 'path', 'is missing: where is the database to be?');
  const origin = given ? 'persistence' : 'default';
  return { ...settings, enable, path: persistence.path, origin, source: sink.at(persistence) };
}

export function buildHttpServer(root: CheckedRoot, sink: Sink): HttpServerConfig | null {
  const http = root.http_server;
  if (http === null || !http.enable) return null;
  const hasCredentials = http.username !== null && http.password !== null && http.password !== '';
  if ((http.username === null) !== (http.password === null)) {
    const missing = http.username === null ? 'username' : 'password';
    sink.refuse(http, missing, 'username and password belong together');
  }
  const jwtPublicKeyfile = http.jwt?.public?.keyfile ?? null;
  if (http.auth_type === 'jwt' && jwtPublicKeyfile === null)
    sink.refuse(http, 'jwt', 'auth_type = jwt needs jwt.public.keyfile');
  const guarded = http.auth_type === 'jwt' || (http.auth_type === 'basic' && hasCredentials);
  const local = isLoopback(http.ip_addr);
  if (!guarded && !local) {
    sink.doubt(http, 'ip_addr', 'without username and password the server listens on 127.0.0.1 only');
  }
  if (guarded && !local && http.tls === null) {
    sink.doubt(http, 'ip_addr', 'passwords cross the network in clear; a tls block or loopback is safer');
  }
  return {
    ipAddr: guarded || local ? http.ip_addr : '127.0.0.1',
    port: http.port,
    username: http.username,
    password: http.password,
    authType: http.auth_type,
    jwtPublicKeyfile,
    limitConn: http.limit_conn,
    maxBody: http.max_body,
    tls: http.tls === null ? null : tlsServer(http.tls, sink),
    source: sink.at(http),
  };
}

export function buildMetrics(root: CheckedRoot, sink: Sink): MetricsConfig | null {
  const { metrics } = root;
  if (metrics === null) return null;
  const { host, port } = address(metrics.bind);
  if (metrics.auth === 'basic' && (root.http_server?.username ?? null) === null) {
    sink.refuse(metrics, 'auth', 'basic needs username and password of http_server');
  }
  if (metrics.auth === 'none' && !isLoopback(host)) {
    sink.doubt(metrics, 'bind', 'everybody who reaches this address can read the metrics');
  }
  return { bind: metrics.bind, host, port, auth: metrics.auth, source: sink.at(metrics) };
}

export function buildWebhook(root: CheckedRoot, sink: Sink): WebhookConfig | null {
  const { webhook } = root;
  if (webhook === null || !webhook.enable) return null;
  checkHttpUrl(webhook, webhook.url, sink);
  return {
    url: webhook.url,
    headers: webhook.headers,
    encoding: webhook.body.encoding,
    poolSize: webhook.pool_size,
    cancelTimeoutMs: webhook.cancel_timeout,
    events: webhook.events.map(({ event, topic }) => ({ event, topic })),
    source: sink.at(webhook),
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
  const { level, dir, file, format } = log;
  return { level, to, dir, file, rotation: { size: log.rotation.size, count: log.rotation.count }, format };
}

export function buildBroker(root: CheckedRoot, sink: Sink): BrokerConfig {
  const { broker } = root;
  if (broker.redis !== null) {
    if (broker.engine !== 'aedes') sink.refuse(broker, 'redis', 'only engine = aedes can share a broker through Redis');
    else if (!/^rediss?:\/\/[^\s/]+/.test(broker.redis))
      sink.refuse(broker, 'redis', 'a redis:// or rediss:// URL expected');
  }
  return { engine: broker.engine, redis: broker.redis, source: sink.at(broker) };
}
