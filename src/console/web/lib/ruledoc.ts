// The document of a rule as a form holds it, and back; which field a problem belongs to. Pure; used by the rule form
// and its tests.
import { firstByField } from './formdoc.ts';
import type { Problem, RuleRow } from './types.ts';

/** One key of the new object. */
export interface SetRow {
  readonly key: string;
  readonly expression: string;
}

/** A rule while it is edited: everything is text; "" = the default. */
export interface RuleDraft {
  readonly name: string;
  readonly enable: boolean;
  /** One filter a line. */
  readonly from: string;
  readonly where: string;
  readonly set: readonly SetRow[];
  readonly payload: string;
  readonly to: string;
  readonly fallback_topic: string;
  readonly to_nng: string;
  readonly to_webhook: boolean;
  readonly qos: string;
  readonly retain: boolean;
  readonly changed: string;
  readonly by: string;
  readonly throttle: string;
}

export function emptyDraft(): RuleDraft {
  return {
    ...{ name: '', enable: true, from: '', where: '', set: [], payload: 'auto', to: '', fallback_topic: '' },
    ...{ to_nng: '', to_webhook: false, qos: '', retain: false, changed: '', by: '', throttle: '' },
  };
}

function word(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}

/** Words for what is off anyway are left out of the form. */
function number(value: unknown): string {
  const text = word(value);
  return /^0(?:ms|s)?$/.test(text) ? '' : text;
}

export function draftOf(rule: RuleRow): RuleDraft {
  const from = rule.from ?? [];
  return {
    name: rule.name,
    enable: rule.enable,
    from: (typeof from === 'string' ? [from] : from).join('\n'),
    where: word(rule.where),
    set: Object.entries(rule.set ?? {}).map(([key, expression]) => ({ key, expression: word(expression) })),
    payload: word(rule.payload) || 'auto',
    to: word(rule.to),
    fallback_topic: word(rule.fallback_topic),
    to_nng: word(rule.to_nng),
    to_webhook: rule.to_webhook === true,
    qos: word(rule.qos),
    retain: rule.retain === true,
    changed: word(rule.changed),
    by: number(rule.by),
    throttle: number(rule.throttle),
  };
}

/** A field that makes no number is sent as it stands: the gateway says what is wrong with it. */
function numeric(text: string): number | string {
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

/** The document to send. Only what is given: everything else is a default. */
export function draftDocument(draft: RuleDraft): Record<string, unknown> {
  const { where, to, fallback_topic, to_nng, changed } = draft;
  const texts = Object.entries({ where, to, fallback_topic, to_nng, changed }).filter(([, text]) => text !== '');
  const set = draft.set.filter(({ key, expression }) => key !== '' || expression !== '');
  return {
    enable: draft.enable,
    from: draft.from
      .split('\n')
      .map((filter) => filter.trim())
      .filter((filter) => filter !== ''),
    ...Object.fromEntries(texts),
    ...(set.length === 0 ? {} : { set: Object.fromEntries(set.map(({ key, expression }) => [key, expression])) }),
    ...(draft.payload === 'auto' ? {} : { payload: draft.payload }),
    ...(draft.to_webhook ? { to_webhook: true } : {}),
    ...(draft.qos === '' ? {} : { qos: numeric(draft.qos) }),
    ...(draft.retain ? { retain: true } : {}),
    ...(draft.by === '' ? {} : { by: numeric(draft.by) }),
    ...(draft.throttle === '' ? {} : { throttle: draft.throttle }),
  };
}

const FIELDS: ReadonlySet<string> = new Set(Object.keys(emptyDraft()));

/** "/set/temp" is set/temp, "/from/0" is from, what is no field is "". */
function fieldOf(pointer: string): string {
  const [first, second] = pointer
    .replace(/^\/rule(?=\/|$)/, '')
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (first === undefined || !FIELDS.has(first)) return '';
  return first === 'set' && second !== undefined ? `set/${second}` : first;
}

/** Problems by field; the first of each field counts. */
export function ruleProblems(problems: readonly Problem[]): ReadonlyMap<string, string> {
  return firstByField(problems, fieldOf);
}

/** A topic that one of the filters takes, to begin with. */
export function sampleTopic(from: string): string {
  const filter = from.split('\n').find((one) => one !== '' && !one.startsWith('nng:')) ?? '';
  return filter.replaceAll('+', 'a').replace(/#$/, 'a') || 'a/b';
}
