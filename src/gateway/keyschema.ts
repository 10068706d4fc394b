// The configuration's schema as JSON Schema: what a bridge's or a rule's document may hold, for the OpenAPI document.
// Made from the same keys that validate a file and a document, so that both always agree. Called by console.ts when
// somebody asks for the description. Pure.
import { BRIDGE_KEYS } from '../config/documents.ts';
import type { Fields, Key } from '../config/schema/key.ts';
import { RULE } from '../config/schema/rules.ts';
import type { Json, JsonObject } from '../console/console.ts';

const MASKED = 'secret: reads "***" and keeps its value when that is sent back';

/** By the type that the reference shows. */
function scalarOf(type: string): JsonObject {
  if (type === 'true | false') return { type: 'boolean' };
  if (type === 'whole number') return { type: 'integer' };
  if (type === 'number') return { type: 'number' };
  if (type === 'size') return { type: ['integer', 'string'] };
  if (type === 'duration') return { type: ['string', 'number'] };
  if (type === 'text') return { type: ['string', 'number', 'boolean'] };
  const words = type.split(' | ').map((word) => word.replaceAll('"', ''));
  const plain = words.length > 1 && words.every((word) => /^[\w.-]{1,40}$/.test(word));
  return plain ? { type: 'string', enum: words } : {};
}

/** The schema of one key. */
export function keySchema(key: Key<unknown>): JsonObject {
  const { inside, doc } = key;
  const about: Record<string, Json> = { description: doc.secret === true ? `${doc.text} (${MASKED})` : doc.text };
  if (inside === null) return nullIfOptional({ ...scalarOf(doc.type), ...about }, doc.default);
  if (inside.kind === 'list') {
    const items = keySchema(inside.item);
    // One that stands alone is taken as a list of one.
    const one = inside.item.inside === null ? [items] : [];
    return { anyOf: [{ type: 'array', items }, ...one, { type: 'null' }], ...about };
  }
  if (inside.kind === 'named')
    return { type: ['object', 'null'], additionalProperties: keySchema(inside.item), ...about };
  return { ...fieldsSchema(inside.fields), ...about };
}

function nullIfOptional(schema: JsonObject, fallback: unknown): JsonObject {
  if (fallback === undefined) return schema;
  if (schema.enum !== undefined)
    return { ...schema, type: ['string', 'null'], enum: [...(schema.enum as Json[]), null] };
  const { type } = schema;
  if (type === undefined) return schema;
  return { ...schema, type: [...(Array.isArray(type) ? type : [type]), 'null'] };
}

function fieldsSchema(fields: Fields): JsonObject {
  const properties: Record<string, Json> = Object.create(null);
  const required: string[] = [];
  for (const [name, key] of Object.entries(fields)) {
    if (key.doc.ignored === true) continue;
    properties[name] = keySchema(key);
    if (key.inside === null && key.doc.default === undefined) required.push(name);
  }
  return { type: ['object', 'null'], properties, ...(required.length === 0 ? {} : { required }) };
}

/** A document: the block of a key, with `name` and what tells its kind beside it. */
function documentSchema(key: Key<unknown>, more: JsonObject): JsonObject {
  const { properties, required = [], ...rest } = keySchema(key);
  return { ...rest, type: 'object', properties: { ...(properties as JsonObject), ...more }, required };
}

/** Schemas of documents by name, for the components of the description. */
export function documentSchemas(): Readonly<Record<string, JsonObject>> {
  const name: JsonObject = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$' };
  const { mqtt, ...nngKeys } = BRIDGE_KEYS;
  const nng = Object.entries(nngKeys).map(([type, key]): [string, JsonObject] => {
    const schema = documentSchema(key, { name, type: { type: 'string', const: type } });
    return [`NngBridge_${type}`, { ...schema, required: [...(schema.required as string[]), 'type'] }];
  });
  return {
    ...Object.fromEntries(nng),
    MqttBridge: documentSchema(mqtt, { name }),
    Rule: documentSchema(RULE, { name }),
  };
}
