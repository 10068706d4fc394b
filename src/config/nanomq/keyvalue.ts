// NanoMQ's configuration before 0.14: one key=value each line, a value to the end of its line, # before a comment. Its
// lines become a tree in the form of today, which nanomq.ts takes on. Called by foreign.ts and converting.ts. Sources:
// NanoMQ's documentation of 0.13.
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { append, child, listOf, put, type Value } from '../text/grow.ts';
import { type BlockNode, blockNode, FORBIDDEN_KEY, type Node, textNode } from '../text/node.ts';

const SETTING = /^[ \t]*([a-z][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*?)[ \t\r]*$/;
/** Keys that only this form has at the root. */
const OWN =
  /^(?:url|daemon|num_taskq_thread|max_taskq_thread|parallel|property_size|msq_len|qos_duration|keepalive_backoff|allow_anonymous|client_max_packet_size|acl_[a-z_]+|acl\.rule\.\d+|enable_acl_cache|tls\.[a-z_]+|websocket\.[a-z_]+|web\.hook\..+|bridge\.mqtt\..+|aws\.bridge\..+|auth\.\d+\..+|auth\.http\..+|rule_option.*)$/;

const LOOK_LINES = 600;

/**
 * Whether a text is in that form: nothing but assignments, and among them a key that HOCON files of NanoMQ do not have.
 */
export function looksLikeKeyValue(text: string): boolean {
  let own = false;
  for (const row of text.split('\n', LOOK_LINES)) {
    if (/^[ \t]*(?:#|\/\/|\r?$)/.test(row)) continue;
    const found = SETTING.exec(row);
    if (found === null || found[2] === '{') return false;
    own ||= OWN.test(found[1]);
  }
  return own;
}

interface Line {
  readonly at: Position;
  readonly value: string;
}
type Lines = Map<string, Line>;
type Place = (line: Line, root: BlockNode, key: string, report: Report) => void;

/** The tree, in the form of HOCON files. */
export function readKeyValue(text: string, file: string, report: Report): BlockNode {
  const lines: Lines = new Map();
  for (const [i, row] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    const found = SETTING.exec(row);
    if (found === null) continue;
    const at = { file, line: i + 1, column: row.indexOf(found[1]) + 1 };
    if (found[2] !== '') lines.set(found[1], { at, value: found[2] });
  }
  const root = blockNode({ file, line: 1, column: 1 });
  const off = switchedOff(lines);
  for (const [key, line] of lines) {
    if (off.some((prefix) => key.startsWith(prefix))) continue;
    placeLine(key, line, root, report);
  }
  placeUsers(lines, root, report);
  switchBridges(lines, root, report);
  return root;
}

/** Parts that are there and not enabled. */
function switchedOff(lines: Lines): string[] {
  const parts = ['tls.', 'websocket.', 'http_server.', 'sqlite.', 'auth.http.', 'web.hook.', 'bridge.sqlite.'];
  const off = parts.filter((part) => !isTrue(lines.get(`${part}enable`)?.value));
  if (off.includes('tls.')) off.push('websocket.tls_url');
  return off;
}

function isTrue(value: string | undefined): boolean {
  return value === 'true' || value === 'on' || value === 'yes';
}

/** Numbers and flags as such, the rest as text. */
function typed(value: string): Value {
  if (/^(?:true|false)$/.test(value)) return value === 'true';
  return /^(?:0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value;
}

const to =
  (path: string, read: (value: string) => Value = typed): Place =>
  ({ at, value }, root) =>
    put(root, path, read(value), at);
const needless: Place = ({ at }, _root, key, report) => report.cosmetic(at, key);
const lost =
  (what: string): Place =>
  ({ at }, _root, key, report) =>
    report.change(at, key, `not carried over: ${what}`);
const done: Place = () => {};
const address = (value: string): string => value.replace(/^[a-z+-]+:\/\//, '');
const kilobytes = (value: string): Value => (/^\d+$/.test(value) ? `${value}KB` : value);
const multiplier = (value: string): Value => (Number(value) > 100 ? Number(value) / 1000 : Number(value));

const PLACES: readonly (readonly [RegExp, Place])[] = [
  [/^url$/, placeUrl],
  [
    /^(?:daemon|num_taskq_thread|max_taskq_thread|parallel|property_size|client_max_packet_size|qos_duration|enable_ipc_internal)$/,
    needless,
  ],
  [/^(?:enable_acl_cache|acl_cache_.*|hook_ipc_url|cmd_ipc_url)$/, needless],
  [/^max_packet_size$/, to('mqtt.max_packet_size', kilobytes)],
  [/^msq_len$/, to('mqtt.max_mqueue_len')],
  [/^keepalive_backoff$/, to('mqtt.keepalive_multiplier', multiplier)],
  [/^allow_anonymous$/, to('auth.allow_anonymous')],
  [/^acl_enable$/, ({ at, value }, root) => put(root, 'auth.acl.enable', isTrue(value), at)],
  [/^acl_nomatch$/, to('auth.no_match')],
  [/^acl_deny_action$/, to('auth.deny_action')],
  [/^acl\.rule\.\d+$/, placeRule],
  [/^(?:tls|websocket|http_server|sqlite|auth\.http|web\.hook|bridge\.sqlite)\.enable$/, done],
  [/^tls\.url$/, to('listeners.ssl.bind', address)],
  [
    /^tls\.(?:key_password|keyfile|certfile|cacertfile|verify_peer|fail_if_no_peer_cert)$/,
    ({ at, value }, root, key) => put(root, `listeners.ssl.${key.slice(4)}`, typed(value), at),
  ],
  [/^websocket\.url$/, to('listeners.ws.bind', address)],
  [/^websocket\.tls_url$/, to('listeners.wss.bind', address)],
  [/^http_server\.parallel$/, to('http_server.limit_conn')],
  [/^http_server\.jwt\.private\.keyfile$/, needless],
  [/^(?:http_server|sqlite)\./, ({ at, value }, root, key) => put(root, key, typed(value), at)],
  [/^log\.to$/, ({ at, value }, root) => put(root, 'log.to', listOf(value.split(/[ \t]*,[ \t]*/), at), at)],
  [/^log\./, ({ at, value }, root, key) => put(root, key, typed(value), at)],
  [/^auth\.\d+\.(?:login|password)$/, done],
  [/^auth\.http\.\w+_req\.params$/, placeParams],
  [
    /^auth\.http\.\w+_req\.headers\./,
    ({ at, value }, root, key) => pair(root, key.replace('auth.http.', 'auth.http_auth.'), 'headers', value, at),
  ],
  [
    /^auth\.http\./,
    ({ at, value }, root, key) => put(root, key.replace('auth.http.', 'auth.http_auth.'), typed(value), at),
  ],
  [
    /^web\.hook\.headers\./,
    ({ at, value }, root, key) => pair(root, key.replace('web.hook.', 'webhook.'), 'headers', value, at),
  ],
  [/^web\.hook\.body\.encoding_of_payload_field$/, to('webhook.body.encoding')],
  [/^web\.hook\.rule\./, placeHook],
  [
    /^web\.hook\.(?:url|pool_size)$/,
    ({ at, value }, root, key) => put(root, key.replace('web.hook.', 'webhook.'), typed(value), at),
  ],
  [/^bridge\.mqtt\./, placeBridge],
  [/^aws\./, lost('bridges to AWS are not supported; use bridges.mqtt with TLS')],
  [/^rule/, lost('the rule engine is not supported')],
];

function placeLine(key: string, line: Line, root: BlockNode, report: Report): void {
  const place = PLACES.find(([pattern]) => pattern.test(key))?.[1];
  if (place === undefined) report.change(line.at, key, 'not carried over: no key of NanoMQ that is known here');
  else if (key.includes(FORBIDDEN_KEY)) report.invalid(line.at, key, 'this name cannot be used');
  else place(line, root, key, report);
}

/** Names and passwords have lines of their own, with one number. */
function placeUsers(lines: Lines, root: BlockNode, report: Report): void {
  for (const [key, { at, value }] of lines) {
    const number = /^auth\.(\d+)\.login$/.exec(key)?.[1];
    if (number === undefined) continue;
    const password = lines.get(`auth.${number}.password`);
    if (password === undefined) report.invalid(at, key, `auth.${number}.password is missing`);
    else if (value === FORBIDDEN_KEY) report.invalid(at, key, 'this name cannot be used');
    else
      child(child(root, 'auth', at), 'password', at).fields.set(value, {
        at,
        value: textNode(password.value, password.at),
      });
  }
}

/** A bridge runs with bridge_mode = true only. */
function switchBridges(lines: Lines, root: BlockNode, report: Report): void {
  const bridges = root.fields.get('bridges')?.value;
  const mqtt = bridges?.kind === 'block' ? bridges.fields.get('mqtt')?.value : undefined;
  if (mqtt?.kind !== 'block') return;
  for (const [name, { at, value }] of mqtt.fields) {
    const mode = lines.get(`bridge.mqtt.${name}.bridge_mode`);
    if (isTrue(mode?.value) || value.kind !== 'block') continue;
    put(value, 'enable', false, mode?.at ?? at);
    report.change(
      mode?.at ?? at,
      `bridge.mqtt.${name}`,
      'does not run without bridge_mode=true: written with enable = false',
    );
  }
}

function placeUrl({ at, value }: Line, root: BlockNode, key: string, report: Report): void {
  if (/^(?:nmq-tcp|broker\+tcp|tcp|mqtt-tcp):\/\//.test(value)) put(root, 'listeners.tcp.bind', address(value), at);
  else report.invalid(at, key, 'nmq-tcp://host:port expected');
}

/** `headers.a.b = c`: the name is everything behind. */
function pair(root: BlockNode, path: string, block: string, value: string, at: Position): void {
  const cut = path.indexOf(`.${block}.`) + block.length + 1;
  let inner = root;
  for (const name of path.slice(0, cut).split('.')) inner = child(inner, name, at);
  inner.fields.set(path.slice(cut + 1), { at, value: textNode(value, at) });
}

/** `clientid=%c,username=%u` */
function placeParams({ at, value }: Line, root: BlockNode, key: string): void {
  for (const part of value.split(',')) {
    const cut = part.indexOf('=');
    if (cut > 0)
      put(
        root,
        `${key.replace('auth.http.', 'auth.http_auth.')}.${part.slice(0, cut).trim()}`,
        part.slice(cut + 1).trim(),
        at,
      );
  }
}

// ---- JSON in values

/** Null for what is no JSON. */
function jsonNode(text: string, at: Position): Node | null {
  try {
    return fromJson(JSON.parse(text) as unknown, at);
  } catch {
    return null;
  }
}

function fromJson(value: unknown, at: Position): Node {
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => fromJson(item, at)), at };
  if (typeof value === 'object' && value !== null) {
    const block = blockNode(at);
    for (const [key, inner] of Object.entries(value)) block.fields.set(key, { at, value: fromJson(inner, at) });
    return block;
  }
  const plain = typeof value === 'number' || typeof value === 'boolean' || value === null ? value : String(value);
  return { kind: 'scalar', value: plain, text: String(plain), quoted: typeof value === 'string', at };
}

function placeRule({ at, value }: Line, root: BlockNode, key: string, report: Report): void {
  const rule = jsonNode(value, at);
  if (rule?.kind === 'block') append(child(child(root, 'auth', at), 'acl', at), 'rules', rule, at);
  else report.invalid(at, key, 'a rule in JSON expected');
}

function placeHook({ at, value }: Line, root: BlockNode, key: string, report: Report): void {
  const hook = jsonNode(value, at);
  const action = hook?.kind === 'block' ? hook.fields.get('action')?.value : undefined;
  if (hook?.kind !== 'block' || action === undefined) {
    report.invalid(at, key, 'a rule in JSON with an action expected');
    return;
  }
  const event = blockNode(at);
  event.fields.set('event', { at, value: action });
  const topic = hook.fields.get('topic');
  if (topic !== undefined) event.fields.set('topic', topic);
  append(child(root, 'webhook', at), 'events', event, at);
}

// ---- bridges

const BRIDGE_NEEDLESS = /^(?:quic_.*|parallel)$/;
const BRIDGE_SECONDS = /^(?:keepalive|backoff_max)$/;

function placeBridge(line: Line, root: BlockNode, key: string, report: Report): void {
  const found = /^bridge\.mqtt\.([^.]{1,200})\.(.+)$/.exec(key);
  if (found === null) return;
  const [, name, item] = found;
  const { at, value } = line;
  const bridge = child(child(child(root, 'bridges', at), 'mqtt', at), name, at);
  const rule = /^(forwards|subscription)\.(\d+)\.(\w+)$/.exec(item);
  if (rule !== null)
    ruleAt(bridge, rule[1], Number(rule[2]), at).fields.set(rule[3], { at, value: textAsNode(value, at) });
  else if (item === 'bridge_mode') return;
  else if (BRIDGE_NEEDLESS.test(item)) report.cosmetic(at, key);
  else if (item === 'address') put(bridge, 'server', value, at);
  else if (BRIDGE_SECONDS.test(item) && /^\d+$/.test(value)) put(bridge, item, `${value}s`, at);
  else if (item.endsWith('.user_property')) {
    const node = jsonNode(value, at);
    if (node?.kind === 'block') put(bridge, bridgePath(item), node, at);
    else report.invalid(at, key, 'names and values in JSON expected');
  } else put(bridge, bridgePath(item), typed(value), at);
}

function bridgePath(item: string): string {
  return item
    .replace(/^tls\./, 'ssl.')
    .replace(/^connect\.properties\./, 'conn_properties.')
    .replace(/^subscription\.properties\./, 'sub_properties.');
}

function textAsNode(value: string, at: Position): Node {
  const number = typed(value);
  return typeof number === 'object'
    ? number
    : { kind: 'scalar', value: number, text: value, quoted: typeof number === 'string', at };
}

/** Rules are numbered from 1 on, in any order. */
function ruleAt(bridge: BlockNode, list: string, index: number, at: Position): BlockNode {
  const before = bridge.fields.get(list)?.value;
  const items = before?.kind === 'list' ? [...before.items] : [];
  const position = Math.min(Math.max(index, 1) - 1, items.length);
  const known = items[position];
  if (known?.kind === 'block') return known;
  const made = blockNode(at);
  items[position] = made;
  bridge.fields.set(list, { at, value: { kind: 'list', items, at } });
  return made;
}
