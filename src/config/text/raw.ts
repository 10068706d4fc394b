// HOCON values as they are written, before references are resolved, and how assignments to one key come together.
// Made by hocon.ts, consumed by resolve.ts. Blocks are Maps of all values a key was given that may still matter.

import type { Position } from '../problem.ts';
import type { Node, ScalarNode } from './node.ts';

/** A value as written, before substitutions: what is not yet known stays a reference. */
export type Raw = ScalarNode | RawList | RawBlock | RawReference | RawConcat;
export interface RawList {
  readonly kind: 'list';
  readonly items: Raw[];
  readonly at: Position;
}
/** All values a key was given that may still matter, oldest first. */
export interface RawField {
  readonly entries: Raw[];
  at: Position;
}
export interface RawBlock {
  readonly kind: 'block';
  readonly fields: Map<string, RawField>;
  readonly at: Position;
}
export interface RawReference {
  readonly kind: 'reference';
  readonly path: readonly string[];
  /** As written, for the environment. */
  readonly name: string;
  readonly optional: boolean;
  /** Where the file that holds it was included; looked up below that first. */
  readonly prefix: readonly string[];
  /** Key path of the value it stands in, for messages. */
  readonly key: string;
  readonly at: Position;
}
/** Values written side by side; blanks between them are scalars with quoted = false and only blanks in `text`. */
export interface RawConcat {
  readonly kind: 'concat';
  readonly parts: Raw[];
  /** Set for a += v: the list that is added, the last part. */
  readonly added?: RawList;
  readonly key: string;
  readonly at: Position;
}

/** Scalars side by side are one text, blanks between them kept; null when something else is among them. */
export function joinText(parts: readonly (Raw | Node)[], at: Position): ScalarNode | null {
  let text = '';
  for (const part of parts) {
    if (part.kind !== 'scalar') return null;
    text += part.text;
  }
  return { kind: 'scalar', value: text, text, quoted: true, at };
}

/** A scalar, or a list without references: nothing older can shine through. */
function definite(value: Raw): boolean {
  if (value.kind === 'list') return value.items.every(settled);
  return value.kind === 'scalar';
}

function settled(value: Raw): boolean {
  if (value.kind === 'block') {
    for (const field of value.fields.values()) if (!field.entries.every(settled)) return false;
    return true;
  }
  return definite(value);
}

/** block.path = value: blocks merge, a scalar or list hides what was there, a reference waits for resolve.ts. */
export function put(block: RawBlock, path: readonly string[], value: Raw, at: Position): void {
  for (let i = path.length - 1; i > 0; i--) {
    value = { kind: 'block', fields: new Map([[path[i], { entries: [value], at }]]), at };
  }
  const field = block.fields.get(path[0]);
  if (field === undefined) {
    block.fields.set(path[0], { entries: [value], at });
    return;
  }
  const last = field.entries[field.entries.length - 1];
  // Long runs of += become one list, not a chain: nothing in them looks at the values before.
  if (value.kind === 'concat' && value.added?.items.every(settled)) {
    const list = last.kind === 'concat' ? last.added : last;
    if (list?.kind === 'list') {
      list.items.push(...value.added.items);
      return;
    }
  }
  if (value.kind === 'block' && last.kind === 'block') {
    for (const [key, from] of value.fields) for (const entry of from.entries) put(last, [key], entry, from.at);
    return;
  }
  if (definite(value) || (value.kind === 'block' && definite(last))) field.entries.length = 0;
  if (definite(value)) field.at = at;
  field.entries.push(value);
}
