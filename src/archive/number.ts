// The number that a payload holds: the payload itself, or one field of its JSON. Used for series of recorded messages
// (recordings.ts) and for small charts of last values. Pure; bounded in bytes.

/** Longer payloads are not read. */
const MOST_BYTES = 65_536;
const NUMBER = /^\s{0,8}[-+]?(?:\d{1,32}(?:\.\d{0,32})?|\.\d{1,32})(?:[eE][-+]?\d{1,3})?\s{0,8}$/;

/** @param field path into a JSON payload, "a.b.0"; "" = the whole payload. null: there is no finite number. */
export function numberIn(payload: Uint8Array, field: string): number | null {
  if (payload.length === 0 || payload.length > MOST_BYTES) return null;
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString();
  if (field === '') return NUMBER.test(text) ? finite(Number(text)) : null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  for (const key of field.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return null;
    value = (value as Record<string, unknown>)[key];
  }
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'number' ? finite(value) : null;
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
