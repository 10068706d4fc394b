// Takes a mosquitto.conf over: its lines become a tree of this gateway, what has no counterpart is reported with its line.
// Called by config/converting.ts. Sources: mosquitto.conf(5). A comment is a line whose first byte is #; key and value are parted by blanks.

import type { Position, Problem } from '../problem.ts';
import { parseDuration } from '../values.ts';
import { type BlockNode, blockNode, type Node, textNode } from './node.ts';

type Edit = (value: string, at: Position, state: State) => string | null;

/** What lines so far have led to. */
class State {
  readonly root: BlockNode;
  readonly defaults: { port: string | null; host: string | null } = { port: null, host: null };
  /** The listener that keys go to; null before the first one. */
  listener: { readonly name: string; readonly values: BlockNode; kind: 'tcp' | 'ws' | 'unix' } | null = null;
  readonly listeners: NonNullable<State['listener']>[] = [];
  bridge: BlockNode | null = null;
  perListener = false;

  constructor(at: Position) {
    this.root = blockNode(at);
  }

  put(path: readonly string[], value: Node): void {
    let block = this.root;
    for (const key of path.slice(0, -1)) block = child(block, key, value.at);
    block.fields.set(path[path.length - 1], { at: value.at, value });
  }

  /** Security keys stand for one listener once per_listener_settings is on. */
  scoped(key: string, value: Node): void {
    if (this.perListener && this.listener !== null) this.onListener(key, value);
    else this.put(['auth', key], value);
  }

  onListener(key: string, value: Node): void {
    this.listener ??= this.first(value.at);
    this.listener.values.fields.set(key, { at: value.at, value });
  }

  /** Keys of a listener before any `listener` line are those of the one on port 1883. */
  first(at: Position): NonNullable<State['listener']> {
    const made = { name: 'default', values: blockNode(at), kind: 'tcp' as const };
    this.listeners.push(made);
    return made;
  }
}

function child(block: BlockNode, key: string, at: Position): BlockNode {
  const known = block.fields.get(key)?.value;
  if (known?.kind === 'block') return known;
  const made = blockNode(at);
  block.fields.set(key, { at, value: made });
  return made;
}

function flag(value: string): boolean | null {
  return value === 'true' || value === '1' ? true : value === 'false' || value === '0' ? false : null;
}

function bool(value: boolean, at: Position): Node {
  return { kind: 'scalar', value, text: String(value), quoted: false, at };
}

function number(text: string, at: Position): Node {
  return { kind: 'scalar', value: Number(text), text: String(Number(text)), quoted: false, at };
}

const toNumber =
  (...path: string[]): Edit =>
  (value, at, state) => {
    if (!/^\d{1,12}$/.test(value)) return 'not a number';
    state.put(path, number(value, at));
    return null;
  };
const toFlag =
  (...path: string[]): Edit =>
  (value, at, state) => {
    const on = flag(value);
    if (on === null) return 'neither true nor false';
    state.put(path, bool(on, at));
    return null;
  };
const onListener =
  (key: string, read: (value: string, at: Position) => Node | null): Edit =>
  (value, at, state) => {
    const node = read(value, at);
    if (node === null) return 'wrong value';
    state.onListener(key, node);
    return null;
  };
const asText = (value: string, at: Position): Node => textNode(value, at);
const asFlag = (value: string, at: Position): Node | null => {
  const on = flag(value);
  return on === null ? null : bool(on, at);
};
const toSecurity =
  (key: string, read: (value: string, at: Position) => Node | null): Edit =>
  (value, at, state) => {
    const node = read(value, at);
    if (node === null) return 'wrong value';
    state.scoped(key, node);
    return null;
  };
const nothing: Edit = () => null;

/** Filters of one bridge; local and remote prefixes cannot both be kept behind a wildcard. */
const bridgeTopic: Edit = (value, at, state) => {
  if (state.bridge === null) return 'no connection before it';
  const [pattern, direction = 'out', level = '0', local = '', remote = ''] = value
    .split(/ +/)
    .map((w) => (w === '""' ? '' : w));
  const fixed = !/[#+]/.test(pattern);
  const make = (keys: Record<string, string>) => {
    const rule = blockNode(at);
    for (const [key, text] of Object.entries(keys)) rule.fields.set(key, { at, value: textNode(text, at) });
    rule.fields.set('qos', { at, value: number(level, at) });
    return rule;
  };
  const add = (list: 'forwards' | 'subscription', rule: BlockNode) => {
    const block = state.bridge?.fields;
    const before = block?.get(list)?.value;
    const items = before?.kind === 'list' ? [...before.items, rule] : [rule];
    block?.set(list, { at, value: { kind: 'list', items, at } });
  };
  if (direction === 'out' || direction === 'both') {
    if (!fixed && local !== '') return 'a local prefix cannot be taken away behind a wildcard';
    const to: Record<string, string> = fixed
      ? { remote_topic: remote + pattern }
      : { remote_topic: '', prefix: remote };
    add('forwards', make({ local_topic: local + pattern, ...to }));
  }
  if (direction === 'in' || direction === 'both') {
    if (!fixed && remote !== '') return 'a remote prefix cannot be taken away behind a wildcard';
    const to: Record<string, string> = fixed ? { local_topic: local + pattern } : { local_topic: '', prefix: local };
    add('subscription', make({ remote_topic: remote + pattern, ...to }));
  }
  return null;
};

const onBridge =
  (path: readonly string[], read: (value: string, at: Position) => Node | null): Edit =>
  (value, at, state) => {
    if (state.bridge === null) return 'no connection before it';
    const node = read(value, at);
    if (node === null) return 'wrong value';
    let block = state.bridge;
    for (const key of path.slice(0, -1)) block = child(block, key, at);
    block.fields.set(path[path.length - 1], { at, value: node });
    return null;
  };

const VERSIONS: ReadonlyMap<string, string> = new Map([
  ['mqttv31', '3'],
  ['mqttv311', '4'],
  ['mqttv50', '5'],
]);
const LEVELS: ReadonlyMap<string, string> = new Map([
  ['error', 'error'],
  ['warning', 'warn'],
  ['notice', 'info'],
  ['information', 'info'],
  ['debug', 'debug'],
  ['all', 'debug'],
  ['none', 'fatal'],
]);
const SEVERITY = ['debug', 'info', 'warn', 'error', 'fatal'];

const KEYS: ReadonlyMap<string, Edit> = new Map<string, Edit>([
  [
    'listener',
    (value, at, state) => {
      const [port, host = ''] = value.split(/ +/);
      if (!/^\d{1,5}$/.test(port)) return 'a port expected';
      const isUnix = port === '0' && host.startsWith('/');
      const name = isUnix ? `unix${state.listeners.length}` : `port${port}`;
      const made = { name, values: blockNode(at), kind: isUnix ? ('unix' as const) : ('tcp' as const) };
      const where = isUnix ? host : `${address(host)}:${port}`;
      made.values.fields.set(isUnix ? 'path' : 'bind', { at, value: textNode(where, at) });
      state.listener = made;
      state.listeners.push(made);
      return null;
    },
  ],
  [
    'port',
    (value, _at, state) => {
      state.defaults.port = value;
      return null;
    },
  ],
  [
    'bind_address',
    (value, _at, state) => {
      state.defaults.host = value;
      return null;
    },
  ],
  [
    'protocol',
    (value, at, state) => {
      state.listener ??= state.first(at);
      if (value === 'websockets') state.listener.kind = 'ws';
      return value === 'mqtt' || value === 'websockets' ? null : 'only mqtt and websockets are there';
    },
  ],
  [
    'per_listener_settings',
    (value, _at, state) => {
      state.perListener = flag(value) === true;
      return null;
    },
  ],
  ['allow_anonymous', toSecurity('allow_anonymous', asFlag)],
  ['listener_allow_anonymous', onListener('allow_anonymous', asFlag)],
  ['password_file', toSecurity('password_file', asText)],
  ['acl_file', toSecurity('acl_file', asText)],
  ['check_retain_source', toFlag('auth', 'check_retain_source')],
  ['certfile', onListener('certfile', asText)],
  ['keyfile', onListener('keyfile', asText)],
  ['cafile', onListener('cacertfile', asText)],
  ['crlfile', onListener('crlfile', asText)],
  [
    'require_certificate',
    (value, at, state) => {
      const on = flag(value);
      if (on === null) return 'neither true nor false';
      state.onListener('verify_peer', bool(on, at));
      state.onListener('fail_if_no_peer_cert', bool(on, at));
      return null;
    },
  ],
  ['use_identity_as_username', onListener('use_identity_as_username', asFlag)],
  ['use_subject_as_username', onListener('use_subject_as_username', asFlag)],
  ['websockets_origin', origin],
  ['max_connections', onListener('max_connections', (value, at) => number(value === '-1' ? '0' : value, at))],
  ['enable_proxy_protocol', onListener('proxy_protocol', (_value, at) => bool(true, at))],
  ['max_inflight_messages', toNumber('mqtt', 'max_inflight_window')],
  ['max_queued_messages', toNumber('mqtt', 'max_mqueue_len')],
  ['max_queued_bytes', toNumber('mqtt', 'max_mqueue_bytes')],
  ['queue_qos0_messages', toFlag('mqtt', 'queue_qos0')],
  ['max_packet_size', toNumber('mqtt', 'max_packet_size')],
  ['max_keepalive', toNumber('mqtt', 'max_keepalive')],
  ['max_qos', toNumber('mqtt', 'max_qos')],
  ['max_topic_alias', toNumber('mqtt', 'max_topic_alias')],
  ['retain_available', toFlag('mqtt', 'retain_available')],
  ['sys_interval', toNumber('mqtt', 'sys_interval')],
  ['persistent_client_expiration', expiry],
  ['persistence', toFlag('persistence', 'enable')],
  [
    'persistence_location',
    (value, at, state) => {
      state.put(['persistence', 'path'], textNode(`${value.replace(/\/+$/, '')}/tidegate.db`, at));
      return null;
    },
  ],
  ['persistence_file', () => 'the database has another format and name'],
  ['log_dest', logDest],
  [
    'log_type',
    (value, at, state) => {
      const level = LEVELS.get(value);
      if (level === undefined) return 'no such level here';
      const log = child(state.root, 'log', at).fields;
      const before = log.get('level')?.value;
      const now = before?.kind === 'scalar' ? SEVERITY.indexOf(before.text) : SEVERITY.length;
      if (SEVERITY.indexOf(level) < now) log.set('level', { at, value: textNode(level, at) });
      return null;
    },
  ],
  ['set_tcp_nodelay', nothing],
  ['allow_zero_length_clientid', (value) => (flag(value) === true ? null : 'client ids may always be empty')],
  [
    'connection',
    (value, at, state) => {
      state.bridge = child(child(child(state.root, 'bridges', at), 'mqtt', at), value, at);
      return null;
    },
  ],
  [
    'address',
    onBridge(['server'], (value, at) => {
      const [first] = value.split(/ +/);
      return textNode(`mqtt-tcp://${/:\d+$/.test(first) ? first : `${first}:1883`}`, at);
    }),
  ],
  ['topic', bridgeTopic],
  ['remote_username', onBridge(['username'], asText)],
  ['remote_password', onBridge(['password'], asText)],
  ['remote_clientid', onBridge(['clientid'], asText)],
  ['clientid', onBridge(['clientid'], asText)],
  ['cleansession', onBridge(['clean_start'], asFlag)],
  ['try_private', onBridge(['no_local_v4'], asFlag)],
  ['keepalive_interval', onBridge(['keepalive'], (value, at) => textNode(`${value}s`, at))],
  [
    'bridge_protocol_version',
    onBridge(['proto_ver'], (value, at) => (VERSIONS.has(value) ? number(VERSIONS.get(value) ?? '4', at) : null)),
  ],
  ['bridge_cafile', onBridge(['ssl', 'cacertfile'], asText)],
  ['bridge_certfile', onBridge(['ssl', 'certfile'], asText)],
  ['bridge_keyfile', onBridge(['ssl', 'keyfile'], asText)],
]);

function address(host: string): string {
  if (host === '') return '0.0.0.0';
  return host.includes(':') ? `[${host}]` : host;
}

/** May stand several times. */
function origin(value: string, at: Position, state: State): string | null {
  state.listener ??= state.first(at);
  const before = state.listener.values.fields.get('origins')?.value;
  const items = before?.kind === 'list' ? before.items : [];
  state.onListener('origins', { kind: 'list', items: [...items, textNode(value, at)], at });
  return null;
}

function expiry(value: string, at: Position, state: State): string | null {
  const found = /^(\d{1,9})([smhdwy])$/.exec(value);
  if (found === null) return 'a number with h, d, w, m or y expected';
  // Here m is a month and y a year, both counted in days.
  const days = { w: 7, m: 30, y: 365 }[found[2]];
  const text = days === undefined ? value : `${Number(found[1]) * days}d`;
  if (parseDuration(text, 's') === null) return 'too long';
  state.put(['mqtt', 'max_session_expiry'], textNode(text, at));
  return null;
}

function logDest(value: string, at: Position, state: State): string | null {
  const log = child(state.root, 'log', at).fields;
  const [kind, path = ''] = value.split(/ +/);
  const target = kind === 'stdout' || kind === 'stderr' ? 'console' : kind === 'file' ? 'file' : null;
  if (target === null) return 'only console and file are there';
  const before = log.get('to')?.value;
  const items = before?.kind === 'list' ? before.items : [];
  if (!items.some((item) => item.kind === 'scalar' && item.text === target)) {
    log.set('to', { at, value: { kind: 'list', items: [...items, textNode(target, at)], at } });
  }
  if (target === 'file') {
    const slash = path.lastIndexOf('/');
    log.set('dir', { at, value: textNode(path.slice(0, Math.max(slash, 0)) || '/', at) });
    log.set('file', { at, value: textNode(path.slice(slash + 1), at) });
  }
  return null;
}

/** Whether a text is a mosquitto.conf rather than HOCON: its first line of substance is one of its keys and a value, without a sign between. */
export function looksLikeMosquitto(text: string): boolean {
  const first = text.split('\n').find((line) => line.trim() !== '' && !line.startsWith('#'));
  const found = /^\s*([a-z_]+) +[^\s=:{]/.exec(first ?? '');
  return (
    found !== null &&
    (KEYS.has(found[1]) ||
      /^(?:bridge_|log_|max_|autosave_|plugin|include_dir|sys_interval|user|pid_file)/.test(found[1]))
  );
}

/** The tree, and every line that could not be taken over. */
export function readMosquitto(text: string, file: string): { tree: BlockNode; dropped: Problem[] } {
  const state = new State({ file, line: 1, column: 1 });
  const dropped: Problem[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    const found = line.startsWith('#') ? null : /^ *(\S+) *(.*?)\s*$/.exec(line);
    if (found === null) continue;
    const [, key, value] = found;
    const at = { file, line: i + 1, column: line.indexOf(key) + 1 };
    const edit = KEYS.get(key);
    const wrong = edit === undefined ? 'there is no such setting here' : edit(value, at, state);
    if (wrong !== null) dropped.push({ at, key, message: `not carried over: ${wrong}` });
  }
  placeListeners(state);
  return { tree: state.root, dropped };
}

/** Listeners become tcp, ssl, ws, wss or unix blocks; without any, mosquitto listens on loopback and lets anybody in. */
function placeListeners(state: State): void {
  const { port, host } = state.defaults;
  const { at } = state.root;
  const own = state.listeners.find((listener) => listener.name === 'default');
  if (port !== null || host !== null || own !== undefined) {
    const listener = own ?? state.first(at);
    const where = `${host === null && port === null ? '127.0.0.1' : address(host ?? '')}:${port ?? '1883'}`;
    if (!listener.values.fields.has('bind')) listener.values.fields.set('bind', { at, value: textNode(where, at) });
  }
  for (const { name, kind, values } of state.listeners) {
    const secure = values.fields.has('certfile');
    const block = kind === 'unix' ? 'unix' : kind === 'ws' ? (secure ? 'wss' : 'ws') : secure ? 'ssl' : 'tcp';
    child(child(state.root, 'listeners', at), block, at).fields.set(name, { at, value: values });
  }
  const auth = child(state.root, 'auth', at).fields;
  if (!auth.has('allow_anonymous')) auth.set('allow_anonymous', { at, value: bool(state.listeners.length === 0, at) });
}
