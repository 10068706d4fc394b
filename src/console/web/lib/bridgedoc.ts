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

export interface BridgeForm {
  readonly type: BridgeType;
  readonly name: string;
  readonly enable: boolean;
  readonly mode: string;
  /** One URL a line. */
  readonly urls: string;
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
    qos: '0',
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

/** The lists of rules that a bridge of this type has. */
export function listsOf(type: BridgeType): readonly RuleList[] {
  return waysOf(type).map((way) => (way === 'out' ? 'forwards' : 'subscription'));
}
export type RuleList = 'forwards' | 'subscription';

export function emptyBridge(type: BridgeType): BridgeForm {
  const lists = listsOf(type);
  return {
    ...{ type, name: '', enable: true, mode: 'listen', urls: '', more: '' },
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
  ...['req_url', 'rep_url'],
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

export function bridgeForm(bridge: Bridge): BridgeForm {
  const type = bridge.type ?? 'pub';
  const urls = (bridge[`${type}_url`] ?? []) as string | readonly string[];
  const more = without(bridge, SHOWN_KEYS);
  return {
    type,
    name: bridge.name,
    enable: bridge.enable,
    mode: bridge.mode ?? 'listen',
    urls: (typeof urls === 'string' ? [urls] : urls).join('\n'),
    forwards: (bridge.forwards ?? []).map(ruleForm),
    subscription: (bridge.subscription ?? []).map(ruleForm),
    more: Object.keys(more).length === 0 ? '' : JSON.stringify(more, null, 2),
  };
}

/**
 * The rule as the gateway takes it. A field that makes no number is sent as it stands: the gateway says what is wrong
 * with it.
 */
export function ruleDocument(type: Direction, rule: RuleForm): Record<string, unknown> {
  const qos = /^\d+$/.test(rule.qos) ? Number(rule.qos) : rule.qos;
  const retain = rule.retain === 'true' ? true : rule.retain === 'false' ? false : rule.retain;
  return {
    ...rule.more,
    enable: rule.enable,
    local_topic: rule.local_topic,
    remote_topic: rule.remote_topic,
    nng_delimiter: rule.nng_delimiter,
    qos,
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
  const urls = form.urls
    .split('\n')
    .map((url) => url.trim())
    .filter((url) => url !== '');
  const lists = listsOf(form.type);
  const document = {
    ...other.more,
    type: form.type,
    name: form.name.trim(),
    enable: form.enable,
    mode: form.mode,
    [`${form.type}_url`]: urls,
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
  if (first === 'name' || first === 'type' || first === 'mode') return first;
  return 'more';
}

/** Problems by field; the first of each field counts. */
export function byField(problems: readonly Problem[]): ReadonlyMap<string, string> {
  return firstByField(problems, fieldOf);
}
