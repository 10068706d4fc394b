// Text from outside where it is only remembered or shown: cut to a length, and never a view into the long text it came
// from. Used by tables of failures, contests, the log tail and the event stream, so that names of 64 KB cost what short
// ones do.
import { createHash } from 'node:crypto';

/** Longest text that stands for itself as a key. */
const KEY_CHARACTERS = 64;

/**
 * A copy with memory of its own. V8 keeps the whole parent alive for a slice of 13 characters or more, so a slice that
 * outlives its parent needs this. O(n).
 */
export function ownText(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}

/** The text, or its first `most` characters and its length. */
export function brief(text: string, most: number): string {
  return text.length <= most ? text : `${ownText(text.slice(0, most))}... (${text.length} characters)`;
}

/**
 * A key of bounded length for text of any: long text is hashed. No name holds U+0000, so a hash never equals a short
 * key.
 */
export function boundedKey(text: string): string {
  return text.length <= KEY_CHARACTERS ? text : `\0${createHash('sha256').update(text).digest('base64')}`;
}
