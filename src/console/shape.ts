// The words that the shapes of REST bodies are written in: JSON Schema 2020-12, which OpenAPI 3.1 takes as it is. Used
// by shapes.ts and routeshapes.ts. Pure.
import type { Json, JsonObject } from './console.ts';

export const TEXT: JsonObject = { type: 'string' };
export const INT: JsonObject = { type: 'integer' };
export const NUMBER: JsonObject = { type: 'number' };
export const FLAG: JsonObject = { type: 'boolean' };
/** Anything that JSON has. */
export const ANY: JsonObject = {};
export const ANY_OBJECT: JsonObject = { type: 'object', additionalProperties: true };

export function ref(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}

export function list(items: JsonObject): JsonObject {
  return { type: 'array', items };
}

export function words(...values: readonly string[]): JsonObject {
  return { type: 'string', enum: [...values] };
}

/** The same, or null. */
export function nullable(schema: JsonObject): JsonObject {
  const { type } = schema;
  if (typeof type === 'string' && schema.enum === undefined) return { ...schema, type: [type, 'null'] };
  return { anyOf: [schema, { type: 'null' }] };
}

/** A map from names to values of one shape. */
export function mapOf(values: JsonObject): JsonObject {
  return { type: 'object', additionalProperties: values };
}

/** An object; names that end in ? may be absent. */
export function object(fields: Readonly<Record<string, JsonObject>>, more: JsonObject = {}): JsonObject {
  const properties: Record<string, Json> = Object.create(null);
  const required: string[] = [];
  for (const [name, schema] of Object.entries(fields)) {
    const optional = name.endsWith('?');
    properties[optional ? name.slice(0, -1) : name] = schema;
    if (!optional) required.push(name);
  }
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }), ...more };
}
