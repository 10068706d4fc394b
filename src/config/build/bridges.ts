// From the checked tree to NngConfig and MqttBridgeConfig, with the checks that take more than one key. Called by
// build.ts, and by the REST API through config/documents.ts. Pure: problems go to the sink; loops are found by
// config/loops.ts. Sources: the documented rules of NNG bridges (what matches, what frames look like); NanoMQ's MQTT
// bridge keys.
import { type BrokerUrl, parseBrokerUrl } from '../../base/brokerurl.ts';
import type {
  ForwardRule,
  MqttBridgeConfig,
  NngCompat,
  NngConfig,
  NngPairConfig,
  NngPubConfig,
  NngRepConfig,
  NngReqConfig,
  NngSubConfig,
  SubscriptionRule,
} from '../bridges.ts';
import type { TlsClientConfig } from '../listeners.ts';
import { type Effective, effective } from '../schema/effective.ts';
import type { ValueOf } from '../schema/key.ts';
import {
  FORWARD,
  NNG_PAIR,
  NNG_PUB,
  NNG_PULL,
  NNG_PUSH,
  NNG_REP,
  NNG_REQ,
  NNG_SUB,
  REQUEST,
  SUBSCRIPTION,
} from '../schema/nng.ts';
import { MQTT_BRIDGE } from '../schema/remote.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { maskUrl, nngScheme } from '../values.ts';
import { address, tlsClient, tlsServer, tlsVersion } from './values.ts';

type PubKeys = ValueOf<typeof NNG_PUB>;
type SubKeys = ValueOf<typeof NNG_SUB>;
type PushKeys = ValueOf<typeof NNG_PUSH>;
type PullKeys = ValueOf<typeof NNG_PULL>;
type PairKeys = ValueOf<typeof NNG_PAIR>;
type ReqKeys = ValueOf<typeof NNG_REQ>;
type RepKeys = ValueOf<typeof NNG_REP>;
type NngKeys = PubKeys | SubKeys | PushKeys | PullKeys | PairKeys | ReqKeys | RepKeys;
type MqttKeys = ValueOf<typeof MQTT_BRIDGE>;
type WillKeys = NonNullable<Effective<MqttKeys>['will']>;

/** Where nothing is written: the authorities of the system. */
const SYSTEM_TLS: TlsClientConfig = {
  ca: null,
  cert: null,
  key: null,
  keyPassword: null,
  verify: true,
  verifyName: true,
  serverName: null,
  minVersion: 'TLSv1.2',
  ciphers: null,
};

export function buildNng(root: CheckedRoot, sink: Sink): NngConfig {
  const { compat, pub, sub, push, pull, pair, req, rep } = root.bridges.nng;
  return {
    compat,
    pub: [...pub].map(([name, block]) => buildPub(name, block, compat, sink)),
    sub: [...sub].map(([name, block]) => buildSub(name, block, compat, sink)),
    push: [...push].map(([name, block]) => buildPush(name, block, compat, sink)),
    pull: [...pull].map(([name, block]) => buildPull(name, block, compat, sink)),
    pair: [...pair].map(([name, block]) => buildPair(name, block, compat, sink)),
    req: [...req].map(([name, block]) => buildReq(name, block, compat, sink)),
    rep: [...rep].map(([name, block]) => buildRep(name, block, compat, sink)),
  };
}

/** What schemes the C library has. */
const NANOMSG_SCHEMES = ['tcp', 'ipc', 'inproc', 'ws'];

/** What several keys of a bridge say together. */
function buildCommon(
  block: NngKeys,
  key: `${'pub' | 'sub' | 'push' | 'pull' | 'pair' | 'req' | 'rep'}_url`,
  urls: readonly string[],
  compat: NngCompat,
  sink: Sink,
) {
  if (block.enable === null) {
    const state = compat === 'documented' ? 'off' : 'on';
    sink.warn(sink.at(block), sink.path(block, 'enable'), `is not set, so this bridge is ${state}`);
  }
  const schemes = urls.map(nngScheme);
  const secure = schemes.some((scheme) => scheme === 'tls+tcp' || scheme === 'wss');
  const { mode, tls } = block;
  if (mode === 'listen' && secure && tls === null)
    sink.refuse(block, 'tls', `${key} needs TLS, so a tls block with keyfile and certfile`);
  if (mode === 'dial') {
    const open = urls.some(
      (url) =>
        /:\/\/(?:\*|0\.0\.0\.0|\[::\])?:\d|:0(?:\/|$)/.test(url) && !/^(?:ipc|abstract|inproc|program)/.test(url),
    );
    if (open) sink.refuse(block, key, 'mode = dial requires a host and a port to connect to');
  }
  const missing = block.driver === 'nanomsg' ? schemes.find((scheme) => !NANOMSG_SCHEMES.includes(scheme)) : undefined;
  if (missing !== undefined) sink.refuse(block, key, `driver = nanomsg has no ${missing}://`);
  return {
    enable: block.enable ?? compat !== 'documented',
    urls,
    compat,
    tlsServer: mode === 'listen' && tls !== null ? tlsServer(tls, sink) : null,
    tlsClient: mode === 'dial' && (secure || tls !== null) ? nngTlsClient(block) : null,
    source: sink.at(block),
  };
}

/** Either set of names is taken: ca or cacertfile, cert or certfile, key or keyfile. */
function nngTlsClient({ tls }: NngKeys): TlsClientConfig {
  if (tls === null) return SYSTEM_TLS;
  const { ca, cert, key, ...others } = tlsClient(tls);
  return { ca: ca ?? tls.cacertfile, cert: cert ?? tls.certfile, key: key ?? tls.keyfile, ...others };
}

export function buildPub(name: string, block: PubKeys, compat: NngCompat, sink: Sink): NngPubConfig {
  const { pubUrl: urls, tls: _, ...own } = effective(NNG_PUB, block);
  const common = buildCommon(block, 'pub_url', urls, compat, sink);
  return { ...own, type: 'pub', name, ...common, forwards: sending(block, common.enable, sink) };
}

export function buildPush(name: string, block: PushKeys, compat: NngCompat, sink: Sink): NngPubConfig {
  const { pushUrl: urls, tls: _, ...own } = effective(NNG_PUSH, block);
  const common = buildCommon(block, 'push_url', urls, compat, sink);
  return { ...own, type: 'push', name, ...common, forwards: sending(block, common.enable, sink) };
}

export function buildSub(name: string, block: SubKeys, compat: NngCompat, sink: Sink): NngSubConfig {
  const { subUrl: urls, tls: _, ...own } = effective(NNG_SUB, block);
  const common = buildCommon(block, 'sub_url', urls, compat, sink);
  return { ...own, type: 'sub', name, ...common, subscription: receiving(block, common.enable, compat, sink) };
}

export function buildPull(name: string, block: PullKeys, compat: NngCompat, sink: Sink): NngSubConfig {
  const { pullUrl: urls, tls: _, ...own } = effective(NNG_PULL, block);
  const common = buildCommon(block, 'pull_url', urls, compat, sink);
  return { ...own, type: 'pull', name, ...common, subscription: receiving(block, common.enable, compat, sink) };
}

export function buildPair(name: string, block: PairKeys, compat: NngCompat, sink: Sink): NngPairConfig {
  const { pairUrl: urls, tls: _, ...own } = effective(NNG_PAIR, block);
  const common = buildCommon(block, 'pair_url', urls, compat, sink);
  if (own.driver === 'nanomsg' && own.protocol === 'pair1')
    sink.refuse(block, 'protocol', 'driver = nanomsg has no pair1');
  // Either direction may be left out, but not both.
  const forwards = sending(block, common.enable && block.subscription.length === 0, sink);
  const subscription = receiving(block, common.enable && block.forwards.length === 0, compat, sink);
  return { ...own, type: 'pair', name, ...common, forwards, subscription };
}

export function buildReq(name: string, block: ReqKeys, compat: NngCompat, sink: Sink): NngReqConfig {
  const { reqUrl: urls, ...own } = effective(NNG_REQ, block);
  const common = buildCommon(block, 'req_url', urls, compat, sink);
  if (common.enable && block.requests.length === 0)
    sink.doubt(block, 'requests', 'there are no rules, so nothing is asked');
  needsNative(block, sink);
  const requests = block.requests.map((rule) => ({
    ...effective(REQUEST, rule),
    nngDelimiter: rule.nng_delimiter || '/',
    source: sink.at(rule),
  }));
  return { ...own, type: 'req', name, ...common, requests };
}

export function buildRep(name: string, block: RepKeys, compat: NngCompat, sink: Sink): NngRepConfig {
  const { repUrl: urls, ...own } = effective(NNG_REP, block);
  needsNative(block, sink);
  return { ...own, type: 'rep', name, ...buildCommon(block, 'rep_url', urls, compat, sink) };
}

function needsNative(block: ReqKeys | RepKeys, sink: Sink): void {
  if (block.driver === 'nanomsg') sink.refuse(block, 'driver', 'driver = nanomsg has no requests');
}

function sending(block: PubKeys | PushKeys | PairKeys, needed: boolean, sink: Sink): ForwardRule[] {
  if (needed && block.forwards.length === 0) sink.doubt(block, 'forwards', 'there are no rules, so nothing is sent');
  const { spool, driver } = block;
  if (spool > 0 && driver === 'nanomsg')
    sink.refuse(
      block,
      'spool',
      'driver = nanomsg does not report whether a peer is connected, so nothing can be kept for it',
    );
  const holds = block.forwards.some((rule) => rule.enable && rule.qos > 0);
  if (spool > 0 && !holds && block.forwards.length > 0)
    sink.doubt(block, 'spool', 'no rule has qos 1 or 2, so nothing is kept');
  if (block.overflow === 'block' && spool === 0 && holds && 'enable' in block && block.enable !== false)
    sink.doubt(
      block,
      'overflow',
      'block holds publishers of QoS 1 and 2 for as long as no peer takes the frames; a spool or drop_oldest bounds it',
    );
  for (const rule of block.forwards)
    if (rule.frame === 'payload' && rule.remote_topic !== '')
      sink.doubt(rule, 'remote_topic', 'no effect with frame = payload');
  return block.forwards.map((rule) => ({
    ...effective(FORWARD, rule),
    nngDelimiter: rule.nng_delimiter || '/',
    source: sink.at(rule),
  }));
}

function receiving(
  block: SubKeys | PullKeys | PairKeys,
  needed: boolean,
  compat: NngCompat,
  sink: Sink,
): SubscriptionRule[] {
  if (needed && block.subscription.length === 0)
    sink.doubt(block, 'subscription', 'there are no rules, so nothing is published');
  const seen = new Set<string>();
  for (const rule of block.subscription) {
    const { prefix, delimiter } = ruleStart(startOf(rule), rule.nng_delimiter);
    const start = `${prefix}\0${delimiter}`;
    if (seen.has(start))
      sink.doubt(rule, 'remote_topic', 'an earlier rule takes the same frames, so this one never publishes');
    if (rule.enable) seen.add(start);
  }
  return block.subscription.map((rule) => subscriptionRule(rule, compat, sink));
}

/** remote_topic without one trailing delimiter, and the delimiter in force. */
export function ruleStart(remoteTopic: string, nngDelimiter: string): { prefix: string; delimiter: string } {
  const delimiter = nngDelimiter || '/';
  const prefix = remoteTopic.endsWith(delimiter) ? remoteTopic.slice(0, -delimiter.length) : remoteTopic;
  return { prefix, delimiter };
}

type SubscriptionKeys = SubKeys['subscription'][number];

/** What frames of the rule begin with. */
function startOf(rule: SubscriptionKeys): string {
  return rule.frame === 'payload' ? '' : rule.remote_topic;
}

/** fallback_topic means something only where fields of the payload make the topic. */
function needsFields(rule: { readonly fallback_topic: string }, key: string, topic: string, sink: Sink): void {
  if (rule.fallback_topic !== '' && !topic.includes('{json:'))
    sink.doubt(rule, 'fallback_topic', `no effect without {json:} in ${key}`);
}

function subscriptionRule(rule: SubscriptionKeys, compat: NngCompat, sink: Sink): SubscriptionRule {
  const { prefix, delimiter } = ruleStart(startOf(rule), rule.nng_delimiter);
  needsFields(rule, 'local_topic', rule.local_topic, sink);
  if (rule.frame === 'payload') {
    if (rule.local_topic === '') sink.refuse(rule, 'local_topic', 'is required with frame = payload');
    if (rule.remote_topic !== '') sink.doubt(rule, 'remote_topic', 'no effect with frame = payload');
    if (/\{(?:topic|suffix)\}/.test(rule.local_topic))
      sink.doubt(rule, 'local_topic', '{topic} and {suffix} are empty with frame = payload');
  } else if (prefix === '') {
    if (compat === '0.25.6')
      sink.doubt(rule, 'remote_topic', 'with compat 0.25.6 a rule without remote_topic never matches');
    else if (delimiter === '/' && rule.local_topic === '') {
      sink.refuse(rule, 'local_topic', 'is required when remote_topic is empty and the delimiter is "/"');
    }
  } else if (rule.local_topic === '' && /[#+\0]/.test(prefix)) {
    sink.doubt(rule, 'remote_topic', 'without local_topic this becomes a topic, which cannot contain "#" or "+"');
  }
  if (delimiter === '/' && rule.match !== 'prefix') sink.doubt(rule, 'match', 'no effect with the delimiter "/"');
  return { ...effective(SUBSCRIPTION, rule), nngDelimiter: delimiter, source: sink.at(rule) };
}

// --- MQTT bridges
// -----------------------------------------------------------------------------------------------------------

export function buildMqttBridges(root: CheckedRoot, sink: Sink): MqttBridgeConfig[] {
  return [...root.bridges.mqtt].map(([name, block]) => buildMqttBridge(name, block, sink));
}

/** One bridges.mqtt.<name>; what REST gets passes here too. */
export function buildMqttBridge(name: string, block: MqttKeys, sink: Sink): MqttBridgeConfig {
  const server = parseBrokerUrl(block.server);
  if (typeof server === 'string') sink.refuse(block, 'server', server);
  const kind = typeof server === 'string' ? null : server.kind;
  const isQuic = kind === 'quic';
  if (isQuic) sink.doubt(block, 'server', 'QUIC is not supported, so this bridge does not run');
  for (const other of block.hybrid_servers) {
    const parsed = parseBrokerUrl(other);
    if (typeof parsed === 'string') sink.refuse(block, 'hybrid_servers', `${maskUrl(other)}: ${parsed}`);
    else if (parsed.kind === 'quic') sink.doubt(block, 'hybrid_servers', `${maskUrl(other)}: QUIC is not supported`);
  }
  for (const rule of block.forwards) needsFields(rule, 'remote_topic', rule.remote_topic, sink);
  for (const rule of block.subscription) needsFields(rule, 'local_topic', rule.local_topic, sink);
  if (!block.tcp.nodelay || !block.tcp.keepalive) sink.doubt(block, 'tcp', 'nodelay and keepalive are always on');
  const { will, ssl: _, forwards, subscription, ...own } = effective(MQTT_BRIDGE, block);
  return {
    ...own,
    name,
    enable: own.enable && !isQuic,
    will: will === null ? null : mqttWill(will),
    tls: mqttTls(block, kind, sink),
    alpn: block.ssl?.enable ? block.ssl.alpn : [],
    forwards: forwards.map((rule, i) => ({ ...rule, source: sink.at(block.forwards[i]) })),
    subscription: subscription.map((rule, i) => ({ ...rule, source: sink.at(block.subscription[i]) })),
    hybridServers: own.hybridBridging ? own.hybridServers : [],
    source: sink.at(block),
  };
}

function mqttWill({ properties, ...will }: WillKeys): NonNullable<MqttBridgeConfig['will']> {
  return { ...will, ...properties };
}

function mqttTls(block: MqttKeys, kind: BrokerUrl['kind'] | null, sink: Sink): TlsClientConfig | null {
  const { ssl } = block;
  if (kind !== 'tls' && kind !== 'wss') {
    if (ssl?.enable && kind !== 'quic')
      sink.doubt(block, 'ssl', 'no effect with this server; tls+mqtt-tcp:// speaks TLS');
    return null;
  }
  if (ssl === null || !ssl.enable) return SYSTEM_TLS;
  const { psk, psk_identity: pskIdentity } = ssl;
  if ((psk === null) !== (pskIdentity === null))
    sink.refuse(ssl, psk === null ? 'psk' : 'psk_identity', 'psk and psk_identity need each other');
  for (const key of ['cacertfile', 'certfile', 'keyfile'] as const)
    if (psk !== null && ssl[key] !== null) sink.refuse(ssl, key, 'cannot be combined with psk');
  return {
    psk,
    pskIdentity,
    ca: ssl.cacertfile,
    cert: ssl.certfile,
    key: ssl.keyfile,
    keyPassword: ssl.key_password,
    verify: ssl.verify_peer,
    verifyName: ssl.verify_name,
    serverName: ssl.servername,
    minVersion: tlsVersion(ssl.min_version),
    ciphers: ssl.ciphers,
  };
}

/** The address part of a URL, for finding two sockets that meet. */
export function meetingPoint(url: string): string {
  const scheme = nngScheme(url);
  if (scheme === 'ipc' || scheme === 'abstract' || scheme === 'inproc' || scheme === 'program') return url;
  const { host, port, path } = address(url.slice(scheme.length + 3));
  const any = host === '0.0.0.0' || host === '::' || host === 'localhost' || host === '127.0.0.1' || host === '::1';
  return `${scheme}://${any ? 'here' : host}:${port}${path}`;
}
