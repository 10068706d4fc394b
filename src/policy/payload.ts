// Checks of payloads by topic: size, UTF-8, JSON, a JSON Schema; what happens to a message that fails, and how often
// each said what. Built by gateway/; topics.ts finds the checks of a topic. A payload is bounded in bytes before it is
// looked at. Schemas are compiled by jsonschema.ts, which is loaded only where there are some.
import { isUtf8 } from 'node:buffer';
import type { Cell, Metrics } from '../base/metrics.ts';
import { matches } from '../mqtt/topic.ts';
import type { PayloadChecks, PayloadVerdict } from './policy.ts';

/** True when a value is as a schema wants it; never throws. */
export type SchemaCheck = (value: unknown) => boolean;

export interface PayloadRuleOptions {
  readonly name: string;
  /** Topic Filters. */
  readonly topics: readonly string[];
  readonly content: 'any' | 'utf8' | 'json';
  /** Only with content json. */
  readonly schema: SchemaCheck | null;
  /** Bytes; 0 = no limit. */
  readonly maxSize: number;
  readonly action: 'refuse' | 'drop' | 'tag';
  /** Name of the User Property that a tag is. */
  readonly tag: string;
}

const CHECKS = {
  name: 'tidegate_payload_checks_total',
  text: 'Messages checked by a rule of validation, by what was done with them',
  type: 'counter',
  unit: 'messages',
} as const;

const PASS: PayloadVerdict = { kind: 'pass' };
const REFUSE: PayloadVerdict = { kind: 'refuse' };
const DROP: PayloadVerdict = { kind: 'drop' };
const OUTCOMES = { refuse: 'refused', drop: 'dropped', tag: 'tagged' } as const;

class Rule {
  readonly options: PayloadRuleOptions;
  private readonly passed: Cell;
  private readonly failed: Cell;

  constructor(options: PayloadRuleOptions, metrics: Metrics) {
    this.options = options;
    const cell = (outcome: string): Cell => metrics.cell(CHECKS, { check: options.name, outcome });
    this.passed = cell('passed');
    this.failed = cell(OUTCOMES[options.action]);
  }

  passes(payload: Uint8Array): boolean {
    const passes = this.fits(payload);
    (passes ? this.passed : this.failed).value++;
    return passes;
  }

  private fits(payload: Uint8Array): boolean {
    const { content, schema, maxSize } = this.options;
    if (maxSize > 0 && payload.length > maxSize) return false;
    if (content === 'any') return true;
    if (!isUtf8(payload)) return false;
    if (content === 'utf8') return true;
    try {
      const text = Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString();
      const value: unknown = JSON.parse(text);
      return schema === null || schema(value);
    } catch {
      return false;
    }
  }
}

class Checks implements PayloadChecks {
  private readonly rules: readonly Rule[];

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
  }

  judge(payload: Uint8Array): PayloadVerdict {
    let tags: (readonly [string, string])[] | null = null;
    for (const rule of this.rules) {
      if (rule.passes(payload)) continue;
      const { action, tag, name } = rule.options;
      if (action === 'refuse') return REFUSE;
      if (action === 'drop') return DROP;
      tags ??= [];
      tags.push([tag, name]);
    }
    return tags === null ? PASS : { kind: 'tag', tags };
  }
}

export class PayloadRules {
  private readonly rules: readonly Rule[];

  constructor(options: readonly PayloadRuleOptions[], metrics: Metrics) {
    this.rules = options.map((one) => new Rule(one, metrics));
  }

  /** The checks of a topic, in the order of the configuration; null = none. O(filters). */
  of(topic: string): PayloadChecks | null {
    const rules = this.rules.filter(({ options }) => options.topics.some((filter) => matches(filter, topic)));
    return rules.length === 0 ? null : new Checks(rules);
  }
}
