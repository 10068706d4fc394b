// What the forms of both kinds of bridges have in common on the way to a document and back: other keys as JSON, and
// problems by field. Used by bridgedoc.ts and remotedoc.ts.
import type { Problem } from './types.ts';

/** Keys that have no field of their own, or what is wrong with their text. */
export function otherKeys(text: string): { more: Record<string, unknown> } | { problem: Problem } {
  let more: unknown = {};
  if (text.trim() !== '') {
    try {
      more = JSON.parse(text);
    } catch (error) {
      return { problem: { pointer: '/more', message: error instanceof Error ? error.message : String(error) } };
    }
    if (typeof more !== 'object' || more === null || Array.isArray(more)) {
      return { problem: { pointer: '/more', message: 'JSON object' } };
    }
  }
  return { more: more as Record<string, unknown> };
}

/** Problems by the field that their pointer means; the first of each field counts. */
export function firstByField(
  problems: readonly Problem[],
  fieldOf: (pointer: string) => string,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { pointer, message } of problems) {
    const field = fieldOf(pointer);
    if (!found.has(field)) found.set(field, message);
  }
  return found;
}
