// Rules on messages: src/rules/transform.ts by the vectors of test/vectors/rules.json, each with its exact result, and what no rule may say.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readSql } from '../../src/config/text/rulesql.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import { type CompiledRule, Compiler } from '../../src/rules/compiler.ts';
import type { RuleOptions } from '../../src/rules/rules.ts';
import { Transform } from '../../src/rules/transform.ts';

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const RULE: RuleOptions = {
  name: 'r',
  enable: true,
  from: ['#'],
  where: '',
  set: [],
  payload: 'auto',
  to: 'out',
  fallbackTopic: '',
  toNng: '',
  toWebhook: false,
  qos: null,
  retain: false,
  changed: '',
  by: 0,
  throttleMs: 0,
  lenient: false,
};

interface Vector {
  readonly name: string;
  readonly rule: Partial<Omit<RuleOptions, 'set'>> & { readonly set?: Record<string, string>; readonly sql?: string };
  readonly from?: string;
  readonly topic: string;
  readonly payload: string | null;
  readonly base64?: string;
  /** Opening, how often, closing: nested that deep. */
  readonly repeat?: [string, number, string];
  /** Before, filling, how often, after. */
  readonly fill?: [string, string, number, string];
  readonly properties?: Properties;
  readonly expect: { payload?: string; base64?: string; topic?: string; outcome?: string; error?: string };
}
const text = readFileSync(new URL('../vectors/rules.json', import.meta.url), 'utf8');
const vectors = JSON.parse(text) as Vector[];
const compiler = new Compiler();

function payloadOf({ payload, base64, repeat, fill }: Vector): Buffer {
  if (base64 !== undefined) return Buffer.from(base64, 'base64');
  if (repeat !== undefined) return Buffer.from(repeat[0].repeat(repeat[1]) + repeat[2].repeat(repeat[1]));
  if (fill !== undefined) return Buffer.from(fill[0] + fill[1].repeat(fill[2]) + fill[3]);
  return Buffer.from(payload ?? '');
}
/** The fields of an object in the order of its text, which an object with __proto__ would not have. */
function compiled({ rule, from }: Vector): CompiledRule {
  const { set = {}, sql, ...rest } = rule;
  const read = sql === undefined ? {} : readSql(sql);
  if (typeof read === 'string') throw new Error(read);
  const lenient = sql !== undefined;
  const options = { ...RULE, lenient, ...rest, set: Object.entries(set), ...read, from: [from ?? '#'] };
  const result = compiler.compile(options);
  if (!('sources' in result)) throw new Error(JSON.stringify(result));
  return result;
}

describe('rule vectors', () => {
  test.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_name, vector) => {
    const rule = compiled(vector);
    const transform = new Transform(rule, () => NOW_MS);
    const buffer = Buffer.concat([Buffer.from('head'), payloadOf(vector), Buffer.from('tail')]);
    const input = {
      topic: vector.topic,
      buffer,
      payloadStart: 4,
      payloadEnd: buffer.length - 4,
      retain: false,
      properties: vector.properties ?? null,
    };
    const before = process.cpuUsage();
    const outcome = transform.run(rule.sources[0], input, 1, 'dev-1', 'ann');
    // Whatever a message is, it takes a moment at most.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(500);
    const { payload, base64, topic, outcome: wanted = 'passed', error } = vector.expect;
    expect([outcome, error === undefined ? '' : transform.error]).toEqual([wanted, error ?? '']);
    if (wanted !== 'passed') return;
    const made = Buffer.from(transform.bytes.subarray(transform.start, transform.end));
    expect(transform.topic).toBe(topic);
    expect(base64 === undefined ? made.toString() : made.toString('base64')).toBe(base64 ?? payload);
  });
  test('there are sixty of them at least', () => expect(vectors.length).toBeGreaterThanOrEqual(60));
  test('no vector leaves a mark on objects', () => expect(Object.keys(Object.prototype)).toEqual([]));
});

describe('what no rule may say', () => {
  test.each([
    [{ where: 'payload.' }, 'where: Expected IDENTIFIER, got EOF'],
    [{ where: 'unknown > 1' }, 'where: Unknown variable: unknown'],
    [{ where: 'process.exit(1)' }, 'where: Unknown variable: process'],
    [{ where: 'payload.constructor("return 1")()' }, "where: Unexpected character: '('"],
    [{ where: 'topic + 1 == ""' }, 'where: no such overload: string + int'],
    [{ where: 'payload.s.matches(payload.p)' }, 'where: matches() takes one pattern that is written out'],
    [
      { where: 'payload.s.matches("(a)\\\\1")' },
      expect.stringContaining('where: this pattern could take unbounded time'),
    ],
    [{ where: 'cel.bind(a, payload + payload, a == a)' }, 'where: cel.bind is not supported'],
    [{ where: 'x'.repeat(5000) }, 'where: longer than 4096 characters'],
    [{ where: `${'('.repeat(60)}true${')'.repeat(60)}` }, 'where: Exceeded maxDepth (48)'],
    [{ set: [['a', '{"__proto__": payload}']] }, 'set.a: __proto__ is no key of an object that is written out'],
    [{ changed: '1 +' }, 'changed: Unexpected token: EOF'],
    [{ from: [] }, 'from: names no topic filter'],
    [{ from: ['a/#/b'] }, 'from: "a/#/b" is not a topic filter'],
    [{ from: ['$share/g/a'] }, 'from: "$share/g/a" is not a topic filter'],
    [{ to: 'a/+' }, 'to: "a/+" is not a topic name'],
    [{ to: '' }, 'to: a topic is required: a rule cannot publish to its own input topic'],
    [{ fallbackTopic: '#' }, 'fallback_topic: "#" is not a topic name'],
  ] as [Partial<RuleOptions>, unknown][])('%j', (options, problem) => {
    const result = compiler.compile({ ...RULE, ...options });
    expect('sources' in result ? [] : result.map(({ key, text: why }) => `${key}: ${why}`)).toEqual([problem]);
  });
});
