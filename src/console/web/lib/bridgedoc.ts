// A bridge's document as a form holds it, and back; which field a problem belongs to. Pure; used by the bridge form and
// its tests.
import { firstByField, otherKeys } from './formdoc.ts';
import { waysOf } from './tracks.ts';
import type { Bridge, BridgeType, Problem, Rule } from './types.ts';

/** Of a rule: pub makes frames of messages, sub messages of frames. */
export type Direction = 'pub' | 'sub';

/** What an empty delimiter stands for. */
export const DEFAULT_DELIMITER = '/';

/** One rule while it is edited: everything is text. */
export interface RuleForm {
  readonly local_topic: string;
  readonly remote_topic: string;
  readonly nng_delimiter: string;
  readonly qos: string;
  /** pub: any, live, retained; sub: true, false. */
  readonly retain: string;
  readonly match: string;
  /** topic or payload; "" = as the preset of the bridge has it. */
  readonly frame: string;
  /** strip, keep or add; "" as for frame. */
  readonly trace: string;
  /** raw, base64 or json; "" as for frame. */
  readonly payload: string;
  readonly fallback_topic: string;
  readonly enable: boolean;
  /** Keys that the form has no field for. */
  readonly more: Readonly<Record<string, unknown>>;
}

/** A rule of a req bridge while it is edited; "" = the default. */
export interface RequestForm {
  readonly local_topic: string;
  readonly response_topic: string;
  readonly timeout: string;
  readonly qos: string;
  readonly enable: boolean;
  readonly more: Readonly<Record<string, unknown>>;
}

export interface BridgeForm {
  readonly type: BridgeType;
  readonly name: string;
  readonly enable: boolean;
  readonly mode: string;
  /** "" = none. */
  readonly preset: string;
  /** One URL a line. */
  readonly urls: string;
  /** Of a req bridge. */
  readonly requests: readonly RequestForm[];
  /** Of a rep bridge: one filter a line, and whether requests may publish. */
  readonly topics: string;
  readonly publish: boolean;
  readonly forwards: readonly RuleForm[];
  readonly subscription: readonly RuleForm[];
  /** JSON object with all other keys. */
  readonly more: string;
}

export function emptyRule(): RuleForm {
  return {
    local_topic: '',
    remote_topic: '',
    nng_delimiter: ':',
    qos: '',
    retain: '',
    match: 'prefix',
    frame: '',
    trace: '',
    payload: '',
    fallback_topic: '',
    enable: true,
    more: {},
  };
}

export function emptyRequest(): RequestForm {
  return { local_topic: '', response_topic: '', timeout: '', qos: '', enable: true, more: {} };
}

/** The presets that a bridge of this type may have. */
export function presetsOf(type: BridgeType): readonly string[] {
  if (type === 'pair') return ['ekuiper', 'neuron', 'nngproxy'];
  return type === 'pub' || type === 'sub' ? ['nngproxy'] : [];
}

/** The lists of rules that a bridge of this type has. */
export function listsOf(type: BridgeType): readonly RuleList[] {
  return waysOf(type).map((way) => (way === 'out' ? 'forwards' : 'subscription'));
}
export type RuleList = 'forwards' | 'subscription';

export function emptyBridge(type: BridgeType): BridgeForm {
  const lists = listsOf(type);
  return {
    ...{ type, name: '', enable: true, mode: 'listen', preset: '', urls: '', more: '', topics: '', publish: false },
    requests: type === 'req' ? [emptyRequest()] : [],
    forwards: lists.includes('forwards') ? [emptyRule()] : [],
    subscription: lists.includes('subscription') ? [emptyRule()] : [],
  };
}

const RULE_KEYS = [
  ...['local_topic', 'remote_topic', 'nng_delimiter', 'qos', 'retain', 'match', 'frame', 'trace', 'enable'],
  ...['payload', 'fallback_topic'],
];
/** Not in the JSON of other keys: they have fields, or tell only what the bridge is doing. */
const SHOWN_KEYS = [
  ...['type', 'name', 'enable', 'mode', 'pub_url', 'sub_url', 'push_url', 'pull_url', 'pair_url'],
  ...['req_url', 'rep_url', 'preset', 'requests', 'topics', 'publish'],
  ...['forwards', 'subscription', 'kind', 'state', 'last_error', 'clientId', 'endpoints', 'peers', 'rules', 'taking'],
  ...['waiting', 'remote', 'refused', 'unmatched', 'dropped', 'queuedBytes'],
];

function without(object: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([key, value]) => !keys.includes(key) && value !== null));
}

export function ruleForm(rule: Rule): RuleForm {
  return {
    local_topic: rule.local_topic ?? '',
    remote_topic: rule.remote_topic ?? '',
    nng_delimiter: rule.nng_delimiter ?? '',
    qos: String(rule.qos ?? 0),
    retain: String(rule.retain ?? ''),
    match: String(rule.match ?? 'prefix'),
    frame: String(rule.frame ?? ''),
    trace: String(rule.trace ?? ''),
    payload: String(rule.payload ?? ''),
    fallback_topic: String(rule.fallback_topic ?? ''),
    enable: rule.enable ?? true,
    more: without(rule, RULE_KEYS),
  };
}

const REQUEST_KEYS = ['local_topic', 'response_topic', 'timeout', 'qos', 'enable'];

function requestForm(rule: Rule): RequestForm {
  return {
    local_topic: rule.local_topic ?? '',
    response_topic: String(rule.response_topic ?? ''),
    timeout: String(rule.timeout ?? ''),
    qos: String(rule.qos ?? ''),
    enable: rule.enable ?? true,
    more: without(rule, REQUEST_KEYS),
  };
}

function linesOf(value: unknown): string {
  const list = (value ?? []) as string | readonly string[];
  return (typeof list === 'string' ? [list] : list).join('\n');
}

function listOf(lines: string): string[] {
  return lines
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

export function bridgeForm(bridge: Bridge): BridgeForm {
  const type = bridge.type ?? 'pub';
  const more = without(bridge, SHOWN_KEYS);
  return {
    type,
    name: bridge.name,
    enable: bridge.enable,
    mode: bridge.mode ?? 'listen',
    preset: bridge.preset === undefined || bridge.preset === 'none' ? '' : String(bridge.preset),
    urls: linesOf(bridge[`${type}_url`]),
    requests: ((bridge.requests ?? []) as readonly Rule[]).map(requestForm),
    topics: type === 'rep' ? linesOf(bridge.topics) : '',
    publish: bridge.publish === true,
    forwards: (bridge.forwards ?? []).map(ruleForm),
    subscription: (bridge.subscription ?? []).map(ruleForm),
    more: Object.keys(more).length === 0 ? '' : JSON.stringify(more, null, 2),
  };
}

function numeric(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function requestDocument(rule: RequestForm): Record<string, unknown> {
  const { more, enable, local_topic, response_topic, timeout, qos } = rule;
  return {
    ...more,
    enable,
    local_topic,
    ...(response_topic === '' ? {} : { response_topic }),
    ...(timeout === '' ? {} : { timeout }),
    ...(qos === '' ? {} : { qos: numeric(qos) }),
  };
}

/** What only bridges for requests have. */
function requestKeys({ type, requests, topics, publish }: BridgeForm): Record<string, unknown> {
  if (type === 'req') return { requests: requests.map(requestDocument) };
  return type === 'rep' ? { topics: listOf(topics), publish } : {};
}

/**
 * The rule as the gateway takes it. A field that makes no number is sent as it stands: the gateway says what is wrong
 * with it.
 */
export function ruleDocument(type: Direction, rule: RuleForm): Record<string, unknown> {
  const retain = rule.retain === 'true' ? true : rule.retain === 'false' ? false : rule.retain;
  return {
    ...rule.more,
    enable: rule.enable,
    local_topic: rule.local_topic,
    remote_topic: rule.remote_topic,
    nng_delimiter: rule.nng_delimiter,
    ...(rule.qos === '' ? {} : { qos: numeric(rule.qos) }),
    ...(rule.retain === '' ? {} : { retain }),
    ...(type === 'sub' ? { match: rule.match } : {}),
    ...(rule.frame === '' ? {} : { frame: rule.frame }),
    ...(rule.trace === '' ? {} : { trace: rule.trace }),
    ...(rule.payload === '' ? {} : { payload: rule.payload }),
    ...(type === 'pub' || rule.fallback_topic === '' ? {} : { fallback_topic: rule.fallback_topic }),
  };
}

/** The document to send, or what is wrong before it can be. */
export function bridgeDocument(form: BridgeForm): { document: Record<string, unknown> } | { problem: Problem } {
  const other = otherKeys(form.more);
  if ('problem' in other) return other;
  const urls = listOf(form.urls);
  const preset = presetsOf(form.type).includes(form.preset) ? form.preset : '';
  const lists = listsOf(form.type);
  const document = {
    ...other.more,
    type: form.type,
    name: form.name.trim(),
    enable: form.enable,
    ...(preset === '' ? {} : { preset }),
    ...(form.mode === '' ? {} : { mode: form.mode }),
    // A preset has an address.
    ...(preset !== '' && urls.length === 0 ? {} : { [`${form.type}_url`]: urls }),
    ...requestKeys(form),
    ...(lists.includes('forwards') ? { forwards: form.forwards.map((rule) => ruleDocument('pub', rule)) } : {}),
    ...(lists.includes('subscription')
      ? { subscription: form.subscription.map((rule) => ruleDocument('sub', rule)) }
      : {}),
  };
  return { document };
}

/**
 * Fields of the form by the JSON pointers that the gateway gives: "/forwards/0/nng_delimiter" is
 * forwards/0/nng_delimiter.
 */
export function fieldOf(pointer: string): string {
  const path = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const [first, index, key] = path;
  if (first === undefined || first === '') return '';
  if (/^(pub|sub|push|pull|pair|req|rep)_url$/.test(first)) return 'urls';
  if (first === 'forwards' || first === 'subscription') {
    if (index === undefined) return first;
    return key !== undefined && RULE_KEYS.includes(key) ? `${first}/${index}/${key}` : `${first}/${index}`;
  }
  if (first === 'requests') {
    if (index === undefined) return first;
    return key !== undefined && REQUEST_KEYS.includes(key) ? `requests/${index}/${key}` : `requests/${index}`;
  }
  if (['name', 'type', 'mode', 'preset', 'topics'].includes(first)) return first;
  return 'more';
}

/** Problems by field; the first of each field counts. */
export function byField(problems: readonly Problem[]): ReadonlyMap<string, string> {
  return firstByField(problems, fieldOf);
}
