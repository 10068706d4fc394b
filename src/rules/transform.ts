// One message through one rule: payload read, `where` asked, the new object built, the topic filled. Pure but for the
// clock it is given. Called by rule.ts for each message and by trial.ts for samples. What a message lacks is an outcome
// with its reason, never an exception.
import { isUtf8 } from 'node:buffer';
import { parseJson, writeJson } from '../base/json.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { capturesOf, fillFromJson } from '../mqtt/template.ts';
import { isTopicName } from '../mqtt/topic.ts';
import type { CompiledRule, RuleSource } from './compiler.ts';
import type { Expression, Scope } from './expression.ts';

/** A message as a rule looks at it. */
export interface RuleInput {
  readonly topic: string;
  /** buffer[payloadStart, payloadEnd). */
  readonly buffer: Uint8Array;
  readonly payloadStart: number;
  readonly payloadEnd: number;
  readonly retain: boolean;
  readonly properties: Properties | null;
}

/** Why nothing came out. `filtered`: by `where`; `error`: see `error`. */
export type TransformOutcome = 'passed' | 'filtered' | 'not-json' | 'invalid-topic' | 'missing-field' | 'error';

const EPOCH = new Date(0);
const NOTHING = new Uint8Array(0);

export class Transform {
  /** Results of the last run() that passed: the payload is bytes[start, end). */
  topic = '';
  bytes: Uint8Array = NOTHING;
  start = 0;
  end = 0;
  /** What is wrong, of the last run() that gave `error`. */
  error = '';
  private readonly rule: CompiledRule;
  private readonly now: () => number;
  private readonly scope: Scope = {
    topic: '',
    payload: null,
    qos: 0n,
    retain: false,
    clientId: '',
    username: '',
    properties: {},
    now: EPOCH,
  };
  private readonly keys: readonly string[];
  private readonly needs: { readonly payload: boolean; readonly properties: boolean; readonly now: boolean };
  private lastSource: RuleSource | null = null;
  private lastFrom = '';
  private lastTo = '';

  /** @param now wall-clock milliseconds */
  constructor(rule: CompiledRule, now: () => number) {
    this.rule = rule;
    this.now = now;
    this.keys = rule.set.map(([name]) => `${JSON.stringify(name)}:`);
    const { names } = rule;
    const payload = names.has('payload') || rule.options.payload === 'json';
    this.needs = { payload, properties: names.has('properties'), now: names.has('now') };
  }

  run(source: RuleSource, input: RuleInput, qos: Qos, clientId: string, username: string | null): TransformOutcome {
    const { scope, needs, rule } = this;
    scope.topic = input.topic;
    scope.qos = BigInt(qos);
    scope.retain = input.retain;
    scope.clientId = clientId;
    scope.username = username ?? '';
    if (needs.payload) {
      scope.payload = readPayload(rule.options.payload, input);
      if (scope.payload === undefined) return 'not-json';
    }
    if (needs.properties) scope.properties = propertiesOf(input.properties);
    if (needs.now) scope.now = new Date(this.now());
    if (rule.where !== null) {
      const passed = this.filter(rule.where);
      if (passed !== 'passed') return passed;
    }
    const built = this.build(input);
    return built === 'passed' ? this.fillTopic(source, input.topic) : built;
  }

  /**
   * The value of `changed` for the message of the last run(), as text and, where it is one, as a number; null: see
   * `error`.
   */
  changedValue(): { readonly text: string; readonly number: number } | null {
    const { changed } = this.rule;
    if (changed === null) return null;
    try {
      const value = changed.evaluate(this.scope);
      const number = typeof value === 'number' || typeof value === 'bigint' ? Number(value) : Number.NaN;
      return { text: writeJson(value), number };
    } catch (error) {
      this.error = `changed: ${textOf(error)}`;
      return null;
    }
  }

  private filter(where: Expression): TransformOutcome {
    try {
      const value = where.evaluate(this.scope);
      if (value === true) return 'passed';
      if (value === false) return 'filtered';
      this.error = `where: the value is no bool but ${kindOf(value)}`;
    } catch (error) {
      if (this.rule.options.lenient) return 'filtered';
      this.error = `where: ${textOf(error)}`;
    }
    return 'error';
  }

  private build(input: RuleInput): TransformOutcome {
    const { rule, keys } = this;
    this.bytes = input.buffer;
    this.start = input.payloadStart;
    this.end = input.payloadEnd;
    if (rule.set.length === 0) return 'passed';
    let json = '{';
    let spread: Map<string, string> | null = null;
    for (let i = 0; i < rule.set.length; i++) {
      const [name, expression] = rule.set[i];
      try {
        const value = expression.evaluate(this.scope);
        if (name === '*') spread = spreadOf(value, spread);
        else if (spread !== null) spread.set(name, writeJson(value));
        else json += (json.length > 1 ? ',' : '') + keys[i] + writeJson(value);
      } catch (error) {
        if (rule.options.lenient) continue;
        this.error = `set.${name}: ${textOf(error)}`;
        return 'error';
      }
    }
    if (spread !== null) json = joinSpread(json, spread);
    this.bytes = Buffer.from(`${json}}`);
    this.start = 0;
    this.end = this.bytes.length;
    return 'passed';
  }

  private fillTopic(source: RuleSource, topic: string): TransformOutcome {
    const { to } = source;
    if (!to.json && this.lastSource === source && this.lastFrom === topic) {
      this.topic = this.lastTo;
      return 'passed';
    }
    const captures = source.captures > 0 ? capturesOf(source.filter, topic) : [];
    let filled = to.parts.length === 0 ? topic : fillFromJson(to, topic, '', captures, this.scope.payload);
    if (filled === null) filled = this.rule.options.fallbackTopic;
    if (filled === '') return 'missing-field';
    if (!isTopicName(filled)) return 'invalid-topic';
    this.topic = filled;
    if (!to.json) {
      this.lastSource = source;
      this.lastFrom = topic;
      this.lastTo = filled;
    }
    return 'passed';
  }
}

/** undefined where it had to be JSON and is none. */
function readPayload(form: 'auto' | 'json' | 'text' | 'bytes', input: RuleInput): unknown {
  const bytes = input.buffer.subarray(input.payloadStart, input.payloadEnd);
  if (form === 'bytes') return Uint8Array.from(bytes);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  // A JSON text is UTF-8; checking costs less than reading a text with replacement characters as JSON.
  if (!isUtf8(text)) return form === 'json' ? undefined : form === 'text' ? text.toString() : Uint8Array.from(bytes);
  const read = text.toString();
  if (form === 'text') return read;
  const value = parseJson(read);
  return value === undefined && form === 'auto' ? read : value;
}

function propertiesOf(properties: Properties | null): unknown {
  if (properties === null) return {};
  const { userProperties, ...rest } = properties;
  const all: Record<string, unknown> = { ...rest };
  // Of properties with one name the last one counts.
  if (userProperties !== undefined) all.userProperties = new Map(userProperties.map(([key, value]) => [key, value]));
  return all;
}

/** The fields of an object as JSON texts, after those that are there already. */
function spreadOf(value: unknown, before: Map<string, string> | null): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array)
    throw new Error(`the value is no object but ${kindOf(value)}`);
  const fields = before ?? new Map<string, string>();
  const entries: Iterable<readonly [unknown, unknown]> = value instanceof Map ? value : Object.entries(value);
  for (const [key, item] of entries) fields.set(String(key), writeJson(item));
  return fields;
}

/** `json` has the fields before the first "*". */
function joinSpread(json: string, fields: ReadonlyMap<string, string>): string {
  let all = json;
  for (const [key, text] of fields) all += `${all.length > 1 ? ',' : ''}${JSON.stringify(key)}:${text}`;
  return all;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'bigint') return 'an int';
  if (typeof value === 'number') return 'a double';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
