// One message through one rule: payload read, `where` asked, the new object built, the topic filled. Pure but for the
// clock it is given. Called by rule.ts for each message and by trial.ts for samples. What a message lacks is an outcome
// with its reason, never an exception.
import { isUtf8 } from 'node:buffer';
import { mayHoldLongInteger, parseJson, writeJson } from '../base/json.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { capturesOf, fillFromJson, fillTemplate } from '../mqtt/template.ts';
import { isTopicName } from '../mqtt/topic.ts';
import type { CompiledRule, RuleSource } from './compiler.ts';
import type { Expression, Scope } from './expression.ts';
import { FieldReader } from './fields.ts';

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
const QOS = [0n, 1n, 2n] as const;
/** Topics remembered with their results for each source; past it the memory starts again. */
const REMEMBERED = 4096;
/** Longer topics are not remembered: thousands of 64 KB each would fill memory. */
const LONG_CHARACTERS = 256;
/** Results up to this size are written into one buffer that is used again. */
const SCRATCH_BYTES = 16_384;
/** UTF-8 takes at most so many bytes for one UTF-16 unit. */
const MOST_BYTES_A_UNIT = 3;
/** Payloads up to this size are looked at byte by byte. */
const SHORT_BYTES = 1024;

export class Transform {
  /** Results of the last run() that passed: the payload is bytes[start, end), valid until the next run(). */
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
  /** Where fields of the payload are all that is read of it. */
  private readonly fields: FieldReader | null;
  /** Whether results may be used after the next run(): a bridge sends from their own bytes. */
  private readonly keeps: boolean;
  /** Made when the first object is built. */
  private scratch: Buffer | null = null;
  /** What topics became, for sources whose target needs no payload. */
  private readonly filled = new Map<RuleSource, Map<string, string>>();

  /** @param now wall-clock milliseconds */
  constructor(rule: CompiledRule, now: () => number) {
    this.rule = rule;
    this.now = now;
    this.keys = rule.set.map(([name]) => `${JSON.stringify(name)}:`);
    const { names, options } = rule;
    this.keeps = options.toNng !== '' || options.toWebhook;
    const payload = names.has('payload') || options.payload === 'json';
    const isJson = options.payload === 'auto' || options.payload === 'json';
    this.fields = isJson && rule.fields !== null ? FieldReader.of(rule.fields) : null;
    this.needs = { payload, properties: names.has('properties'), now: names.has('now') };
  }

  run(source: RuleSource, input: RuleInput, qos: Qos, clientId: string, username: string | null): TransformOutcome {
    const { scope, needs, rule } = this;
    scope.topic = input.topic;
    scope.qos = QOS[qos];
    scope.retain = input.retain;
    scope.clientId = clientId;
    scope.username = username ?? '';
    if (needs.payload) {
      scope.payload = this.readFields(input) ?? readPayload(rule.options.payload, input);
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

  /** Null where the payload is read as a whole. */
  private readFields({ buffer, payloadStart, payloadEnd }: RuleInput): unknown {
    return this.fields === null ? null : this.fields.read(buffer, payloadStart, payloadEnd);
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
    this.write(`${json}}`);
    return 'passed';
  }

  private write(json: string): void {
    this.start = 0;
    if (this.keeps || json.length * MOST_BYTES_A_UNIT > SCRATCH_BYTES) {
      this.bytes = Buffer.from(json);
      this.end = this.bytes.length;
      return;
    }
    this.scratch ??= Buffer.allocUnsafeSlow(SCRATCH_BYTES);
    this.bytes = this.scratch;
    this.end = this.scratch.write(json);
  }

  private fillTopic(source: RuleSource, topic: string): TransformOutcome {
    const { to } = source;
    if (to.json) return this.takeTopic(fillFromJson(to, topic, '', captured(source, topic), this.scope.payload));
    let filled = this.filled.get(source);
    if (filled === undefined) {
      filled = new Map();
      this.filled.set(source, filled);
    }
    const known = filled.get(topic);
    if (known !== undefined) {
      this.topic = known;
      return 'passed';
    }
    const outcome = this.takeTopic(
      to.parts.length === 0 ? topic : fillTemplate(to, topic, '', captured(source, topic)),
    );
    if (outcome !== 'passed' || topic.length > LONG_CHARACTERS) return outcome;
    if (filled.size >= REMEMBERED) filled.clear();
    filled.set(topic, this.topic);
    return outcome;
  }

  private takeTopic(filled: string | null): TransformOutcome {
    const topic = filled ?? this.rule.options.fallbackTopic;
    if (topic === '') return 'missing-field';
    if (!isTopicName(topic)) return 'invalid-topic';
    this.topic = topic;
    return 'passed';
  }
}

function captured(source: RuleSource, topic: string): readonly string[] {
  return source.captures > 0 ? capturesOf(source.filter, topic) : [];
}

/** undefined where it had to be JSON and is none. */
function readPayload(form: 'auto' | 'json' | 'text' | 'bytes', input: RuleInput): unknown {
  const { buffer, payloadStart: start, payloadEnd: end } = input;
  if (form === 'bytes') return Uint8Array.from(buffer.subarray(start, end));
  const bytes = Buffer.from(buffer.buffer, buffer.byteOffset + start, end - start);
  const short = end - start <= SHORT_BYTES;
  const ascii = short && isAscii(bytes);
  // A JSON text is UTF-8; checking costs less than reading a text with replacement characters as JSON.
  if (!ascii && !isUtf8(bytes))
    return form === 'json' ? undefined : form === 'text' ? bytes.toString() : Uint8Array.from(bytes);
  const text = ascii ? bytes.toString('latin1') : bytes.toString();
  if (form === 'text') return text;
  const value = parseJson(text, !short || mayHoldLongInteger(bytes));
  return value === undefined && form === 'auto' ? text : value;
}

function isAscii(bytes: Uint8Array): boolean {
  let all = 0;
  for (let i = 0; i < bytes.length; i++) all |= bytes[i];
  return all < 0x80;
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
