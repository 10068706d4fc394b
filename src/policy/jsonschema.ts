// JSON Schema (2020-12, 2019-09 and draft-07) for payload.ts: compiled once by ajv, which makes code of a schema. A
// schema is part of the configuration; payloads never become code. Loaded only where a rule names a schema. Bounded in
// time by the size of the payload: patterns run on the linear engine, uniqueItems by hashing. What ajv does not know is
// an error: a keyword or format that is ignored would be a check that is never made.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { errorText } from '../base/errors.ts';
import { compilePattern } from '../config/pattern.ts';
import type { SchemaCheck } from './payload.ts';

/** Bytes of a schema. */
export const MAX_SCHEMA_BYTES = 1024 * 1024;

const DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:Z|z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const HOST = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Whether the day is one of its month. */
function isDate(text: string): boolean {
  const ms = DATE.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => HOST.test(label));
}

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: (text) => TIME.test(text),
  'date-time': (text) => /^.{10}[Tt ]/.test(text) && isDate(text.slice(0, 10)) && TIME.test(text.slice(11)),
  email: (text) => /^[^\s@]{1,64}@[^\s@]{1,253}$/.test(text) && isHostname(text.slice(text.indexOf('@') + 1)),
  hostname: (text) => isIP(text) === 0 && isHostname(text),
  ipv4: isIPv4,
  ipv6: isIPv6,
  uri: (text) => URL.canParse(text),
  uuid: (text) => UUID.test(text),
};

/** For ajv: throws for a pattern that the linear engine does not run. */
function linear(pattern: string): RegExp {
  const compiled = compilePattern(pattern, false);
  if (typeof compiled === 'string') throw new Error(`pattern ${JSON.stringify(pattern)}: ${compiled}`);
  return compiled;
}
const OPTIONS: Options = {
  strictSchema: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allErrors: false,
  ownProperties: true,
  logger: false,
  formats: FORMATS,
  code: { regExp: Object.assign((pattern: string) => linear(pattern), { code: 'linear' }) },
};

/** One text for all forms of the same value: keys in one order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`;
}

function allDifferent(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of items) seen.add(canonical(item));
  return seen.size === items.length;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function engineFor(schema: Readonly<Record<string, unknown>>): Ajv {
  const { $schema: dialect } = schema;
  if (typeof dialect === 'string' && dialect.includes('draft-07')) return new Ajv(OPTIONS);
  return typeof dialect === 'string' && dialect.includes('2019-09') ? new Ajv2019(OPTIONS) : new Ajv2020(OPTIONS);
}

/** The check of a schema, or what is wrong with it. */
export function compileSchema(text: string): SchemaCheck | string {
  if (Buffer.byteLength(text) > MAX_SCHEMA_BYTES) return 'the schema is larger than 1 MB';
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    return `the schema is not JSON: ${errorText(error)}`;
  }
  if (typeof schema === 'boolean') return () => schema === true;
  if (!isObject(schema)) return 'a schema is a JSON object';
  if ('$async' in schema) return 'asynchronous schemas are not supported';
  try {
    const engine = engineFor(schema);
    engine.removeKeyword('uniqueItems');
    engine.addKeyword({
      keyword: 'uniqueItems',
      type: 'array',
      schemaType: 'boolean',
      validate: (unique: boolean, items: readonly unknown[]) => !unique || allDifferent(items),
    });
    const validate = engine.compile(schema);
    return (value) => {
      try {
        return validate(value) === true;
      } catch {
        // Nested deeper than a schema that refers to itself can follow.
        return false;
      }
    };
  } catch (error) {
    return `the schema cannot be used: ${errorText(error)}`;
  }
}
