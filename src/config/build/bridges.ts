// From the checked tree to NngConfig and MqttBridgeConfig, with the checks that take more than one key.
// Called by build.ts, and by the REST API through config/documents.ts. Pure: problems go to the sink; loops are found by config/loops.ts.
// Sources: the documented rules of NNG bridges (what matches, what frames look like); NanoMQ's MQTT bridge keys.
import type {
  ForwardRule,
  MqttBridgeConfig,
  MqttBridgeWill,
  NngCompat,
  NngConfig,
  NngPairConfig,
  NngPubConfig,
  NngSubConfig,
  SubscriptionRule,
} from '../bridges.ts';
import type { TlsClientConfig } from '../config.ts';
import type { MQTT_BRIDGE, NNG_PAIR, NNG_PUB, NNG_PULL, NNG_PUSH, NNG_SUB } from '../schema/bridges.ts';
import type { Checked, ValueOf } from '../schema/key.ts';
import type { TLS_CLIENT } from '../schema/listeners.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { nngScheme, parseAddress } from '../values.ts';
import { address, qos, tlsServer } from './values.ts';

type PubKeys = ValueOf<typeof NNG_PUB>;
type SubKeys = ValueOf<typeof NNG_SUB>;
type PushKeys = ValueOf<typeof NNG_PUSH>;
type PullKeys = ValueOf<typeof NNG_PULL>;
type PairKeys = ValueOf<typeof NNG_PAIR>;
type NngKeys = PubKeys | SubKeys | PushKeys | PullKeys | PairKeys;
type MqttKeys = ValueOf<typeof MQTT_BRIDGE>;

export function tlsClient(block: Checked<typeof TLS_CLIENT>): TlsClientConfig {
  return {
    ca: block.ca,
    cert: block.cert,
    key: block.key,
    keyPassword: block.key_password,
    verify: block.verify,
    serverName: block.servername,
  };
}

export function buildNng(root: CheckedRoot, sink: Sink): NngConfig {
  const { compat, pub, sub, push, pull, pair } = root.bridges.nng;
  return {
    compat,
    pub: [...pub].map(([name, block]) => buildPub(name, block, compat, sink)),
    sub: [...sub].map(([name, block]) => buildSub(name, block, compat, sink)),
    push: [...push].map(([name, block]) => buildPush(name, block, compat, sink)),
    pull: [...pull].map(([name, block]) => buildPull(name, block, compat, sink)),
    pair: [...pair].map(([name, block]) => buildPair(name, block, compat, sink)),
  };
}

/** What schemes the C library has. */
const NANOMSG_SCHEMES = ['tcp', 'ipc', 'inproc', 'ws'];

function buildCommon(
  block: NngKeys,
  key: `${'pub' | 'sub' | 'push' | 'pull' | 'pair'}_url`,
  urls: readonly string[],
  compat: NngCompat,
  sink: Sink,
) {
  if (block.enable === null) {
    const state = compat === 'documented' ? 'off' : 'on';
    sink.warn(sink.at(block), sink.path(block, 'enable'), `is not given, so this bridge is ${state}`);
  }
  const schemes = urls.map(nngScheme);
  const secure = schemes.some((scheme) => scheme === 'tls+tcp' || scheme === 'wss');
  const { mode, tls } = block;
  if (mode === 'listen' && secure && tls === null)
    sink.refuse(block, 'tls', `${key} needs TLS, so a tls block with keyfile and certfile`);
  if (mode === 'dial') {
    const open = urls.some(
      (url) => /:\/\/(?:\*|0\.0\.0\.0|\[::\])?:\d|:0(?:\/|$)/.test(url) && !/^(?:ipc|abstract|inproc)/.test(url),
    );
    if (open) sink.refuse(block, key, 'mode = dial needs a host and a port to connect to');
  }
  const missing = block.driver === 'nanomsg' ? schemes.find((scheme) => !NANOMSG_SCHEMES.includes(scheme)) : undefined;
  if (missing !== undefined) sink.refuse(block, key, `driver = nanomsg has no ${missing}://`);
  return {
    enable: block.enable ?? compat !== 'documented',
    urls,
    mode,
    clientId: block.clientid,
    driver: block.driver,
    compat,
    recvMaxSize: block.recv_max_size,
    reconnectMaxMs: block.reconnect_max,
    ipcMode: block.ipc_mode,
    ipcGroup: block.ipc_group,
    tlsServer: mode === 'listen' && tls !== null ? tlsServer(tls, sink) : null,
    tlsClient: mode === 'dial' && (secure || tls !== null) ? nngTlsClient(block) : null,
    source: sink.at(block),
  };
}

/** Either set of names is taken: ca or cacertfile, cert or certfile, key or keyfile. */
function nngTlsClient({ tls }: NngKeys): TlsClientConfig {
  if (tls === null) return { ca: null, cert: null, key: null, keyPassword: null, verify: true, serverName: null };
  const { ca, cert, key, ...others } = tlsClient(tls);
  return { ca: ca ?? tls.cacertfile, cert: cert ?? tls.certfile, key: key ?? tls.keyfile, ...others };
}

export function buildPub(name: string, block: PubKeys, compat: NngCompat, sink: Sink): NngPubConfig {
  const common = buildCommon(block, 'pub_url', block.pub_url, compat, sink);
  return { type: 'pub', name, ...common, ...sending(block, common.enable, sink) };
}

export function buildPush(name: string, block: PushKeys, compat: NngCompat, sink: Sink): NngPubConfig {
  const common = buildCommon(block, 'push_url', block.push_url, compat, sink);
  return { type: 'push', name, ...common, ...sending(block, common.enable, sink) };
}

export function buildSub(name: string, block: SubKeys, compat: NngCompat, sink: Sink): NngSubConfig {
  const common = buildCommon(block, 'sub_url', block.sub_url, compat, sink);
  return { type: 'sub', name, ...common, ...receiving(block, common.enable, compat, sink) };
}

export function buildPull(name: string, block: PullKeys, compat: NngCompat, sink: Sink): NngSubConfig {
  const common = buildCommon(block, 'pull_url', block.pull_url, compat, sink);
  return { type: 'pull', name, ...common, ...receiving(block, common.enable, compat, sink) };
}

export function buildPair(name: string, block: PairKeys, compat: NngCompat, sink: Sink): NngPairConfig {
  const common = buildCommon(block, 'pair_url', block.pair_url, compat, sink);
  const { protocol, driver } = block;
  if (driver === 'nanomsg' && protocol === 'pair1') sink.refuse(block, 'protocol', 'driver = nanomsg has no pair1');
  // Either direction may be left out, but not both.
  const outward = sending(block, common.enable && block.subscription.length === 0, sink);
  const inward = receiving(block, common.enable && block.forwards.length === 0, compat, sink);
  return { type: 'pair', name, ...common, protocol, ...outward, ...inward };
}

function sending(
  block: PubKeys | PushKeys | PairKeys,
  needed: boolean,
  sink: Sink,
): Pick<NngPubConfig, 'sendBuffer' | 'overflow' | 'spool' | 'forwards'> {
  if (needed && block.forwards.length === 0) sink.doubt(block, 'forwards', 'there are no rules, so nothing is sent');
  const { send_buffer: sendBuffer, overflow, spool, driver } = block;
  if (spool > 0 && driver === 'nanomsg')
    sink.refuse(
      block,
      'spool',
      'driver = nanomsg does not tell whether a peer is there, so nothing can be kept for one',
    );
  if (spool > 0 && !block.forwards.some((rule) => rule.enable && rule.qos > 0))
    sink.doubt(block, 'spool', 'no rule has qos 1 or 2, so nothing is kept');
  return { sendBuffer, overflow, spool, forwards: block.forwards.map((rule) => forwardRule(rule, sink)) };
}

function receiving(
  block: SubKeys | PullKeys | PairKeys,
  needed: boolean,
  compat: NngCompat,
  sink: Sink,
): Pick<NngSubConfig, 'subscription'> {
  if (needed && block.subscription.length === 0)
    sink.doubt(block, 'subscription', 'there are no rules, so nothing is published');
  const seen = new Set<string>();
  for (const rule of block.subscription) {
    const { prefix, delimiter } = ruleStart(rule.remote_topic, rule.nng_delimiter);
    const start = `${prefix}\0${delimiter}`;
    if (seen.has(start))
      sink.doubt(rule, 'remote_topic', 'an earlier rule takes the same frames, so this one never publishes');
    if (rule.enable) seen.add(start);
  }
  return { subscription: block.subscription.map((rule) => subscriptionRule(rule, compat, sink)) };
}

function forwardRule(rule: PubKeys['forwards'][number], sink: Sink): ForwardRule {
  return {
    enable: rule.enable,
    localTopic: rule.local_topic,
    remoteTopic: rule.remote_topic,
    nngDelimiter: rule.nng_delimiter || '/',
    qos: qos(rule.qos),
    retain: rule.retain,
    from: rule.from,
    payload: rule.payload,
    rateLimit: rule.rate_limit,
    source: sink.at(rule),
  };
}

/** remote_topic without one trailing delimiter, and the delimiter in force. */
export function ruleStart(remoteTopic: string, nngDelimiter: string): { prefix: string; delimiter: string } {
  const delimiter = nngDelimiter || '/';
  const prefix = remoteTopic.endsWith(delimiter) ? remoteTopic.slice(0, -delimiter.length) : remoteTopic;
  return { prefix, delimiter };
}

function subscriptionRule(rule: SubKeys['subscription'][number], compat: NngCompat, sink: Sink): SubscriptionRule {
  const { prefix, delimiter } = ruleStart(rule.remote_topic, rule.nng_delimiter);
  if (prefix === '') {
    if (compat === '0.25.6')
      sink.doubt(rule, 'remote_topic', 'with compat 0.25.6 a rule without remote_topic never matches');
    else if (delimiter === '/' && rule.local_topic === '') {
      sink.refuse(rule, 'local_topic', 'is needed when remote_topic is empty and the delimiter is "/"');
    }
  } else if (rule.local_topic === '' && /[#+\0]/.test(prefix)) {
    sink.doubt(rule, 'remote_topic', 'without local_topic this becomes a topic, and "#" and "+" cannot stand in one');
  }
  if (delimiter === '/' && rule.match !== 'prefix') sink.doubt(rule, 'match', 'no effect with the delimiter "/"');
  return {
    enable: rule.enable,
    remoteTopic: rule.remote_topic,
    nngDelimiter: delimiter,
    localTopic: rule.local_topic,
    qos: qos(rule.qos),
    retain: rule.retain,
    match: rule.match,
    payload: rule.payload,
    rateLimit: rule.rate_limit,
    source: sink.at(rule),
  };
}

// --- MQTT bridges -----------------------------------------------------------------------------------------------------------

/** Schemes of `server` under all their names, with the port used when none is written. */
const MQTT_SCHEMES: ReadonlyMap<string, readonly [MqttBridgeConfig['scheme'], number]> = new Map([
  ['mqtt-tcp', ['mqtt-tcp', 1883]],
  ['mqtt', ['mqtt-tcp', 1883]],
  ['tls+mqtt-tcp', ['tls+mqtt-tcp', 8883]],
  ['mqtts', ['tls+mqtt-tcp', 8883]],
  ['mqtt-quic', ['mqtt-quic', 14567]],
  ['ws', ['ws', 80]],
  ['wss', ['wss', 443]],
]);

function parseServer(server: string): Pick<MqttBridgeConfig, 'scheme' | 'host' | 'port'> | string {
  const found = /^([a-z+-]{1,20}):\/\/(.+)$/.exec(server);
  const scheme = found === null ? undefined : MQTT_SCHEMES.get(found[1]);
  if (found === null || scheme === undefined) return 'mqtt-tcp://host:port or tls+mqtt-tcp://host:port expected';
  const bare = found[2];
  const hasPort = /:\d+(?:\/.*)?$/.test(bare);
  const parsed = parseAddress(hasPort ? bare : bare.replace(/(?=\/|$)/, `:${scheme[1]}`));
  if (typeof parsed === 'string') return parsed;
  return { scheme: scheme[0], host: parsed.host, port: parsed.port };
}

export function buildMqttBridges(root: CheckedRoot, sink: Sink): MqttBridgeConfig[] {
  return [...root.bridges.mqtt].map(([name, block]) => buildMqttBridge(name, block, sink));
}

/** One bridges.mqtt.<name>; what REST gets passes here too. */
export function buildMqttBridge(name: string, block: MqttKeys, sink: Sink): MqttBridgeConfig {
  let server = parseServer(block.server);
  if (typeof server === 'string') {
    sink.refuse(block, 'server', server);
    server = { scheme: 'mqtt-tcp', host: '', port: 0 };
  }
  const isQuic = server.scheme === 'mqtt-quic';
  if (isQuic) sink.doubt(block, 'server', 'QUIC is not supported, so this bridge does not run');
  for (const other of block.hybrid_servers) {
    const parsed = parseServer(other);
    if (typeof parsed === 'string') sink.refuse(block, 'hybrid_servers', `${other}: ${parsed}`);
    else if (parsed.scheme === 'mqtt-quic') sink.doubt(block, 'hybrid_servers', `${other}: QUIC is not supported`);
  }
  if (!block.tcp.nodelay || !block.tcp.keepalive) sink.doubt(block, 'tcp', 'nodelay and keepalive are always on');
  const { conn_properties: conn } = block;
  return {
    name,
    enable: block.enable && !isQuic,
    server: block.server,
    ...server,
    protoVer: block.proto_ver === 5 ? 5 : block.proto_ver === 3 ? 3 : 4,
    clientId: block.clientid,
    username: block.username,
    password: block.password,
    keepaliveMs: block.keepalive,
    backoffMaxMs: block.backoff_max,
    cleanStart: block.clean_start,
    transparent: block.transparent,
    retryQos0: block.retry_qos_0,
    noLocalV4: block.no_local_v4,
    loopGuard: block.loop_guard,
    connProperties: {
      sessionExpiryIntervalSeconds: conn.session_expiry_interval,
      receiveMaximum: conn.receive_maximum,
      topicAliasMaximum: conn.topic_alias_maximum,
      maximumPacketSize: conn.maximum_packet_size,
      requestProblemInformation: conn.request_problem_infomation,
      requestResponseInformation: conn.request_response_infomation,
      userProperty: conn.user_property,
    },
    will: block.will === null ? null : mqttWill(block.will),
    tls: mqttTls(block, server.scheme, sink),
    tcp: { nodelay: block.tcp.nodelay, keepalive: block.tcp.keepalive, bindInterface: block.tcp.bind_interface },
    ...mqttRules(block, sink),
    maxSendQueueLen: block.max_send_queue_len,
    maxRecvQueueLen: block.max_recv_queue_len,
    resendIntervalMs: block.resend_interval,
    cancelTimeoutMs: block.cancel_timeout,
    hybridServers: block.hybrid_bridging ? block.hybrid_servers : [],
    source: sink.at(block),
  };
}

function mqttRules(block: MqttKeys, sink: Sink): Pick<MqttBridgeConfig, 'forwards' | 'subscription' | 'subProperties'> {
  return {
    forwards: block.forwards.map((rule) => ({
      localTopic: rule.local_topic,
      remoteTopic: rule.remote_topic,
      qos: rule.qos === null ? null : qos(rule.qos),
      retain: rule.retain,
      prefix: rule.prefix,
      suffix: rule.suffix,
      source: sink.at(rule),
    })),
    subscription: block.subscription.map((rule) => ({
      remoteTopic: rule.remote_topic,
      localTopic: rule.local_topic,
      qos: qos(rule.qos),
      retain: rule.retain,
      retainAsPublished: rule.retain_as_published,
      retainHandling: qos(rule.retain_handling),
      noLocal: rule.nolocal,
      prefix: rule.prefix,
      suffix: rule.suffix,
      source: sink.at(rule),
    })),
    subProperties: { identifier: block.sub_properties.identifier, userProperty: block.sub_properties.user_property },
  };
}

function mqttWill(will: NonNullable<MqttKeys['will']>): MqttBridgeWill {
  const { properties } = will;
  return {
    topic: will.topic,
    payload: will.payload,
    qos: qos(will.qos),
    retain: will.retain,
    payloadFormatIndicator: properties.payload_format_indicator,
    messageExpiryIntervalSeconds: properties.message_expiry_interval,
    willDelayIntervalSeconds: properties.will_delay_interval,
    contentType: properties.content_type,
    responseTopic: properties.response_topic,
    correlationData: properties.correlation_data,
    userProperty: properties.user_property,
  };
}

function mqttTls(block: MqttKeys, scheme: MqttBridgeConfig['scheme'], sink: Sink): TlsClientConfig | null {
  const { ssl } = block;
  const isTls = scheme === 'tls+mqtt-tcp' || scheme === 'wss';
  if (!isTls) {
    if (ssl?.enable && scheme !== 'mqtt-quic')
      sink.doubt(block, 'ssl', 'no effect with this server; tls+mqtt-tcp:// speaks TLS');
    return null;
  }
  if (ssl === null || !ssl.enable)
    return { ca: null, cert: null, key: null, keyPassword: null, verify: true, serverName: null };
  return {
    ca: ssl.cacertfile,
    cert: ssl.certfile,
    key: ssl.keyfile,
    keyPassword: ssl.key_password,
    verify: ssl.verify_peer,
    serverName: ssl.servername,
  };
}

/** The address part of a URL, for finding two sockets that meet. */
export function meetingPoint(url: string): string {
  const scheme = nngScheme(url);
  if (scheme === 'ipc' || scheme === 'abstract' || scheme === 'inproc') return url;
  const { host, port, path } = address(url.slice(scheme.length + 3));
  const any = host === '0.0.0.0' || host === '::' || host === 'localhost' || host === '127.0.0.1' || host === '::1';
  return `${scheme}://${any ? 'here' : host}:${port}${path}`;
}
