// The document of a bridge to a remote broker as a form holds it, and back; which field a problem belongs to. Pure;
// used by the form.
import { firstByField, otherKeys } from './formdoc.ts';
import { emptyTls, isSecure, TLS_FIELDS, type TlsForm, tlsBlock, tlsForm } from './tlsdoc.ts';
import type { Bridge, Problem, Rule } from './types.ts';

/** One rule while it is edited: everything is text; "" = as it comes. */
export interface RemoteRule {
  readonly local_topic: string;
  readonly remote_topic: string;
  readonly qos: string;
  readonly retain: string;
  /** strip, keep or add. */
  readonly trace: string;
  readonly fallback_topic: string;
  /** Keys that the form has no field for. */
  readonly more: Readonly<Record<string, unknown>>;
}

export type RemoteList = 'forwards' | 'subscription';

export interface RemoteForm {
  readonly name: string;
  readonly enable: boolean;
  readonly server: string;
  readonly proto_ver: string;
  readonly clientid: string;
  readonly username: string;
  /** "" = as it is, where there is one. */
  readonly password: string;
  readonly hasPassword: boolean;
  readonly keepalive: string;
  /** The remote broker keeps the session while the link is down: clean_start = false. */
  readonly durable: boolean;
  /** Seconds that it keeps it, MQTT 5. */
  readonly expiry: string;
  readonly tls: TlsForm;
  readonly forwards: readonly RemoteRule[];
  readonly subscription: readonly RemoteRule[];
  /** JSON object with all other keys. */
  readonly more: string;
}

export function emptyRemoteRule(list: RemoteList): RemoteRule {
  const qos = list === 'forwards' ? '' : '1';
  return { local_topic: '', remote_topic: '', qos, retain: '', trace: '', fallback_topic: '', more: {} };
}

/** Seconds. */
const DAY = '86400';

export function emptyRemote(): RemoteForm {
  return {
    ...{ name: '', enable: true, server: '', proto_ver: '5', clientid: '', username: '', password: '' },
    ...{ hasPassword: false, keepalive: '60s', durable: true, expiry: DAY, more: '', subscription: [] },
    tls: emptyTls(),
    forwards: [emptyRemoteRule('forwards')],
  };
}

const RULE_KEYS = ['local_topic', 'remote_topic', 'qos', 'retain', 'trace', 'fallback_topic'];
const FIELDS = ['name', 'server', 'proto_ver', 'clientid', 'username', 'password', 'keepalive'];
/** Not in the JSON of other keys: they have fields, or tell only what the bridge is doing. */
const SHOWN_KEYS = [
  ...[
    ...FIELDS,
    'enable',
    'clean_start',
    'ssl',
    'conn_properties',
    'forwards',
    'subscription',
    'kind',
    'type',
    'state',
    'last_error',
  ],
  ...['clientId', 'endpoints', 'peers', 'rules', 'taking', 'waiting', 'remote', 'refused', 'unmatched', 'dropped'],
  ...['queuedBytes'],
];

function without(object: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([key, value]) => !keys.includes(key) && value !== null));
}

function word(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}

function ruleForm(rule: Rule): RemoteRule {
  const { local_topic, remote_topic, qos, retain, trace, fallback_topic } = rule;
  return {
    local_topic: word(local_topic),
    remote_topic: word(remote_topic),
    qos: word(qos),
    retain: word(retain),
    trace: word(trace),
    fallback_topic: word(fallback_topic),
    more: without(rule, RULE_KEYS),
  };
}

function propertiesOf(bridge: Bridge): Readonly<Record<string, unknown>> {
  const found: unknown = bridge.conn_properties;
  return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {};
}

export function remoteForm(bridge: Bridge): RemoteForm {
  const { session_expiry_interval: expiry, ...connect } = propertiesOf(bridge);
  const properties = without(connect, []);
  const connects = Object.keys(properties).length === 0 ? {} : { conn_properties: properties };
  const more = { ...without(bridge, SHOWN_KEYS), ...connects };
  return {
    name: bridge.name,
    enable: bridge.enable,
    server: word(bridge.server),
    proto_ver: word(bridge.proto_ver),
    clientid: word(bridge.clientid),
    username: word(bridge.username),
    password: '',
    hasPassword: word(bridge.password) !== '',
    keepalive: word(bridge.keepalive),
    durable: bridge.clean_start === false,
    expiry: word(expiry),
    tls: tlsForm(bridge.ssl),
    forwards: (bridge.forwards ?? []).map(ruleForm),
    subscription: (bridge.subscription ?? []).map(ruleForm),
    more: Object.keys(more).length === 0 ? '' : JSON.stringify(more, null, 2),
  };
}

/** A field that makes no number is sent as it stands: the gateway says what is wrong with it. */
function number(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function ruleDocument(rule: RemoteRule): Record<string, unknown> {
  const { local_topic, remote_topic, qos, retain, trace, fallback_topic, more } = rule;
  return {
    ...more,
    local_topic,
    remote_topic,
    ...(qos === '' ? {} : { qos: number(qos) }),
    ...(retain === '' ? {} : { retain: retain === 'true' }),
    ...(trace === '' ? {} : { trace }),
    ...(fallback_topic === '' ? {} : { fallback_topic }),
  };
}

/** What stands for the password: a new one, the one there is, or none where there is no user. */
function passwordOf({ username, password, hasPassword }: RemoteForm): string | null {
  if (password !== '') return password;
  return hasPassword && username !== '' ? '***' : null;
}

/** A session is kept under a name: a random one would leave it behind. */
export function durableId({ name }: Pick<RemoteForm, 'name'>): string {
  return `tidegate-${name.trim()}`;
}

function connectBlock({ durable, expiry, proto_ver }: RemoteForm, other: unknown): Record<string, unknown> {
  const more = typeof other === 'object' && other !== null ? (other as Record<string, unknown>) : {};
  const seconds = durable && proto_ver === '5' && expiry.trim() !== '' ? number(expiry.trim()) : undefined;
  const block = { ...more, ...(seconds === undefined ? {} : { session_expiry_interval: seconds }) };
  return Object.keys(block).length === 0 ? {} : { conn_properties: block };
}

function sslBlock({ tls }: RemoteForm): Record<string, unknown> {
  const block = tlsBlock(tls);
  return block === undefined ? {} : { ssl: block };
}

/** The document to send, or what is wrong before it can be. */
export function remoteDocument(form: RemoteForm): { document: Record<string, unknown> } | { problem: Problem } {
  const other = otherKeys(form.more);
  if ('problem' in other) return other;
  const clientid = form.clientid.trim() || (form.durable ? durableId(form) : '');
  const optional = { clientid, username: form.username, password: passwordOf(form) };
  const document = {
    ...other.more,
    name: form.name.trim(),
    enable: form.enable,
    server: form.server.trim(),
    proto_ver: number(form.proto_ver),
    keepalive: form.keepalive.trim(),
    clean_start: !form.durable,
    ...connectBlock(form, other.more.conn_properties),
    ...(isSecure(form.server) ? sslBlock(form) : {}),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== '' && value !== null)),
    forwards: form.forwards.map(ruleDocument),
    subscription: form.subscription.map(ruleDocument),
  };
  return { document };
}

/** Fields of the form by the JSON pointers that the gateway gives. */
function fieldOf(pointer: string): string {
  const [first, index, key] = pointer.split('/').slice(1);
  if (first === undefined || first === '') return '';
  if (first === 'forwards' || first === 'subscription') {
    if (index === undefined) return first;
    return key !== undefined && RULE_KEYS.includes(key) ? `${first}/${index}/${key}` : `${first}/${index}`;
  }
  if (first === 'ssl') return index === undefined ? 'ssl' : (TLS_FIELDS[index] ?? 'ssl');
  if (first === 'conn_properties' && index === 'session_expiry_interval') return 'expiry';
  return FIELDS.includes(first) ? first : 'more';
}

/** Problems by field; the first of each field counts. */
export function problemsByField(problems: readonly Problem[]): ReadonlyMap<string, string> {
  return firstByField(problems, fieldOf);
}
