// The bridges of a mosquitto.conf as bridges.mqtt. Called by mosquitto.ts with a draft; fills the tree and the report.
// TLS stays TLS, the session stays the same one at every start, the QoS of a topic line is a ceiling.
// Sources: mosquitto.conf(5), mosquitto 2.0.11 on the wire.
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { append, child, listOf, put } from '../text/grow.ts';
import { type BlockNode, blockNode } from '../text/node.ts';
import { checkTopicFilter } from '../values.ts';
import type { BridgeDraft, Draft, Settings } from './draft.ts';
import { type Line, words } from './lines.ts';
import { placeVersion, seconds } from './place.ts';

export function placeBridges(draft: Draft, root: BlockNode, hostname: string, report: Report): void {
  for (const bridge of draft.bridges) {
    const block = child(child(child(root, 'bridges', bridge.at), 'mqtt', bridge.at), bridge.name, bridge.at);
    placeServers(bridge, block, report);
    placeClient(bridge, block, hostname, report);
    placeSession(bridge, block, draft.global, report);
    placeTopics(bridge, block, report);
    placeNotices(bridge, block);
    placeStart(bridge.settings, report);
    tellMissing(bridge, report);
  }
}

/** What mosquitto's bridges do unless told otherwise, and these do not. */
function tellMissing({ settings, at }: BridgeDraft, report: Report): void {
  const several = words(settings.text('address') ?? '').length > 1;
  if (!several || settings.flag('round_robin') === true) return;
  const message = 'it stays with an address that works, and does not go back to the first one (round_robin false)';
  report.change(at, 'connection', message);
}

// ---- where to, and how

const TLS_KEYS = ['bridge_cafile', 'bridge_capath', 'bridge_certfile', 'bridge_keyfile', 'bridge_tls_use_os_certs'];

function placeServers({ settings, at, name }: BridgeDraft, block: BlockNode, report: Report): void {
  const line = settings.line('address');
  const psk = settings.has('bridge_psk') || settings.has('bridge_identity');
  const tls = psk || TLS_KEYS.some((key) => settings.has(key) && settings.flag(key) !== false);
  const scheme = tls ? 'tls+mqtt-tcp' : 'mqtt-tcp';
  const urls: string[] = [];
  for (const address of line === undefined ? [] : words(line.value)) {
    if (address.startsWith('#')) break;
    const found = /^(.*?)(?::(\d{1,5}))?$/.exec(address);
    const host = found?.[1] ?? address;
    urls.push(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${found?.[2] ?? '1883'}`);
  }
  if (line === undefined || urls.length === 0) {
    report.invalid(at, 'connection', `${name} has no address`);
    return;
  }
  put(block, 'server', urls[0], line.at);
  if (urls.length > 1) {
    put(block, 'hybrid_bridging', true, line.at);
    put(block, 'hybrid_servers', listOf(urls.slice(1), line.at), line.at);
  }
  if (tls && !placePsk(settings, block, report)) placeTls(settings, block, report);
}

/** TLS by a key; mosquitto starts with both parts of it and without certificates only. */
function placePsk(settings: Settings, block: BlockNode, report: Report): boolean {
  const psk = settings.line('bridge_psk');
  const identity = settings.line('bridge_identity');
  const line = psk ?? identity;
  if (line === undefined) return false;
  const other = TLS_KEYS.find((key) => settings.has(key) && settings.flag(key) !== false);
  if (psk === undefined || identity === undefined)
    report.invalid(line.at, line.key, 'bridge_psk and bridge_identity need each other');
  else if (other !== undefined) report.invalid(line.at, line.key, `cannot be combined with ${other}`);
  else if (!/^(?:[0-9a-f]{2}){1,256}$/i.test(psk.value))
    report.invalid(psk.at, psk.key, 'an even number of hexadecimal digits expected');
  else {
    put(block, 'ssl.psk', psk.value, psk.at);
    put(block, 'ssl.psk_identity', identity.value, identity.at);
    placeVersion(settings.line('bridge_tls_version'), 'ssl.min_version', block, report);
  }
  return true;
}

function placeTls(settings: Settings, block: BlockNode, report: Report): void {
  const copy = (from: string, to: string): Line | undefined => {
    const line = settings.line(from);
    if (line !== undefined) put(block, `ssl.${to}`, line.value, line.at);
    return line;
  };
  if (copy('bridge_cafile', 'cacertfile') === undefined && copy('bridge_capath', 'cacertfile') === undefined) {
    const line = TLS_KEYS.flatMap((key) => settings.line(key) ?? [])[0];
    put(block, 'ssl.enable', true, line.at);
    if (line.key !== 'bridge_tls_use_os_certs' && !settings.has('bridge_tls_use_os_certs'))
      report.change(
        line.at,
        line.key,
        'TLS with the authorities of the system; with this alone mosquitto 2.0 speaks clear text',
      );
  }
  copy('bridge_certfile', 'certfile');
  copy('bridge_keyfile', 'keyfile');
  const ciphers = ['bridge_ciphers_tls1.3', 'bridge_ciphers'].flatMap((key) => settings.line(key) ?? []);
  if (ciphers.length > 0) put(block, 'ssl.ciphers', ciphers.map((line) => line.value).join(':'), ciphers[0].at);
  const alpn = settings.line('bridge_alpn');
  if (alpn !== undefined) put(block, 'ssl.alpn', listOf([alpn.value], alpn.at), alpn.at);
  const insecure = settings.line('bridge_insecure');
  if (insecure !== undefined && settings.flag('bridge_insecure') === true)
    put(block, 'ssl.verify_name', false, insecure.at);
  placeVersion(settings.line('bridge_tls_version'), 'ssl.min_version', block, report);
}

// ---- who it is there

const VERSIONS: ReadonlyMap<string, number> = new Map([
  ['mqttv31', 3],
  ['mqttv311', 4],
  ['mqttv50', 5],
]);

function placeClient({ settings, at, name }: BridgeDraft, block: BlockNode, hostname: string, report: Report): void {
  const version = settings.line('bridge_protocol_version');
  if (version !== undefined) {
    const number = VERSIONS.get(words(version.value)[0]);
    if (number === undefined) report.invalid(version.at, version.key, 'mqttv31, mqttv311 or mqttv50 expected');
    else put(block, 'proto_ver', number, version.at);
  }
  const id = settings.line('remote_clientid');
  put(block, 'clientid', id?.value ?? `${hostname}.${name}`, id?.at ?? at);
  if (id === undefined)
    report.change(
      at,
      'connection',
      `has no remote_clientid: ${hostname}.${name}, with the name of this machine, is written down`,
    );
  for (const [from, to] of [
    ['remote_username', 'username'],
    ['remote_password', 'password'],
  ]) {
    const line = settings.line(from);
    if (line !== undefined) put(block, to, line.value, line.at);
  }
  const bind = settings.line('bridge_bind_address');
  if (bind !== undefined) put(block, 'tcp.bind_interface', bind.value, bind.at);
  const marked = settings.line('try_private');
  if (marked !== undefined) put(block, 'no_local_v4', settings.flag('try_private') === true, marked.at);
}

/** The state of the bridge as a retained message, which mosquitto publishes unless it is told not to. */
function placeNotices({ settings, at }: BridgeDraft, block: BlockNode): void {
  if (settings.flag('notifications') === false) return;
  put(block, 'notifications', blockNode(at), settings.line('notifications')?.at ?? at);
  const topic = settings.line('notification_topic');
  if (topic !== undefined) put(block, 'notifications.topic', topic.value, topic.at);
  const retain = settings.line('bridge_outgoing_retain');
  if (retain !== undefined && settings.flag('bridge_outgoing_retain') === false)
    put(block, 'notifications.remote_retain', false, retain.at);
  const local = settings.line('notifications_local_only');
  if (local !== undefined && settings.flag('notifications_local_only') === true)
    put(block, 'notifications.local_only', true, local.at);
}

/** When it connects: here always, and again after every end. */
function placeStart(settings: Settings, report: Report): void {
  const line = settings.line('start_type');
  if (line === undefined) return;
  const [word] = words(line.value);
  if (word === 'lazy' || word === 'once')
    report.change(line.at, line.key, `${word} is automatic: the bridge stays connected, and connects again`);
  else if (word !== 'automatic') report.invalid(line.at, line.key, 'automatic, lazy or once expected');
}

const RESTART_SECONDS = 30;
const QUEUED = 1000;

function placeSession({ settings, at }: BridgeDraft, block: BlockNode, global: Settings, report: Report): void {
  const clean = settings.line('cleansession');
  put(block, 'clean_start', settings.flag('cleansession') === true, clean?.at ?? at);
  const keepalive = settings.line('keepalive_interval');
  if (keepalive !== undefined)
    put(block, 'keepalive', `${Math.max(5, settings.number('keepalive_interval') ?? 60)}s`, keepalive.at);
  const packet = settings.line('bridge_max_packet_size');
  if (packet !== undefined)
    put(block, 'max_packet_size', Math.max(0, settings.number('bridge_max_packet_size') ?? 0), packet.at);
  const restart = settings.line('restart_timeout');
  const [base, cap] = restart === undefined ? [] : words(restart.value).map(Number);
  const longest = restart === undefined ? RESTART_SECONDS : Number.isFinite(cap) ? cap : base;
  const text = Number.isFinite(longest) ? seconds(Math.max(1, Math.floor(longest))) : null;
  if (text === null && restart !== undefined) report.invalid(restart.at, restart.key, 'seconds expected');
  else put(block, 'backoff_max', text ?? `${RESTART_SECONDS}s`, restart?.at ?? at);
  if (restart !== undefined)
    report.change(restart.at, restart.key, `is backoff_max: pauses begin short and grow to ${text ?? restart.value}`);
  put(block, 'max_send_queue_len', Math.max(0, global.number('max_queued_messages') ?? QUEUED), at);
  for (const [from, to] of [
    ['bridge_receive_maximum', 'conn_properties.receive_maximum'],
    ['bridge_session_expiry_interval', 'conn_properties.session_expiry_interval'],
  ]) {
    const line = settings.line(from);
    if (line !== undefined) put(block, to, settings.number(from) ?? 0, line.at);
  }
}

// ---- topics

interface BridgeTopic {
  readonly at: Position;
  readonly pattern: string;
  readonly direction: string;
  readonly qos: number;
  readonly local: string;
  readonly remote: string;
}

function placeTopics({ settings, at, name, topics }: BridgeDraft, block: BlockNode, report: Report): void {
  if (topics.length === 0) report.invalid(at, 'connection', `${name} has no topic`);
  for (const line of topics) {
    const topic = parseTopic(line, report);
    if (topic === null) continue;
    if (topic.direction !== 'in') append(block, 'forwards', forwardOf(topic, settings), line.at);
    if (topic.direction !== 'out') append(block, 'subscription', subscriptionOf(topic), line.at);
  }
}

/** `"a b"` is one word, `""` an empty one; what follows a # that stands alone is a comment. */
function topicWords(value: string): string[] {
  const quoted = /^"([^"]+)"(.*)$/.exec(value);
  const found = quoted === null ? words(value) : [quoted[1], ...words(quoted[2].trim())];
  const end = found.findIndex((word, i) => i > 0 && word.startsWith('#'));
  return (end < 0 ? found : found.slice(0, end)).map((word) => (word === '""' ? '' : word));
}

/** Null after a problem. */
function parseTopic({ at, key, value }: Line, report: Report): BridgeTopic | null {
  const wrong = (message: string): null => {
    report.invalid(at, key, message);
    return null;
  };
  const [pattern, way = 'out', level = '0', local = '', remote = ''] = topicWords(value);
  const direction = way.toLowerCase();
  if (!['out', 'in', 'both'].includes(direction)) return wrong(`${way} is no direction: out, in or both`);
  const qos = Number.parseInt(level, 10) || 0;
  if (qos < 0 || qos > 2) return wrong('QoS 0, 1 or 2 expected');
  if (pattern === '' && (local === '' || remote === '')) return wrong('an empty topic needs both prefixes');
  for (const prefix of [local, remote]) if (/[#+]/.test(prefix)) return wrong('a prefix holds no wildcards');
  for (const prefix of [local, remote]) {
    const bad = checkTopicFilter(prefix + pattern);
    if (bad !== null) return wrong(bad);
  }
  return { at, pattern, direction, qos, local, remote };
}

function ruleOf(topic: BridgeTopic, from: 'local' | 'remote'): BlockNode {
  const rule = blockNode(topic.at);
  const { pattern } = topic;
  const [here, there] = [topic.local + pattern, topic.remote + pattern];
  const isSame = here === there;
  put(rule, 'local_topic', from === 'remote' && isSame ? '' : here, topic.at);
  put(rule, 'remote_topic', from === 'local' && isSame ? '' : there, topic.at);
  return rule;
}

function forwardOf(topic: BridgeTopic, settings: Settings): BlockNode {
  const rule = ruleOf(topic, 'local');
  put(rule, 'max_qos', topic.qos, topic.at);
  put(rule, 'stored', true, topic.at);
  const retain = settings.line('bridge_outgoing_retain');
  if (retain !== undefined && settings.flag('bridge_outgoing_retain') === false) put(rule, 'retain', false, retain.at);
  return rule;
}

function subscriptionOf(topic: BridgeTopic): BlockNode {
  const rule = ruleOf(topic, 'remote');
  put(rule, 'qos', topic.qos, topic.at);
  return rule;
}
