// A tree with its durations written with their unit. A tree has milliseconds, while a bare number in a file has the
// unit of its key, often seconds: what people copy has to read back as the same time. Called by documents.ts (bridges,
// rules) and `check --print`. Pure.
import type { TreeValue } from '../tree.ts';
import { formatDuration } from '../values.ts';
import type { Key } from './key.ts';

function isList(value: TreeValue | undefined): value is readonly TreeValue[] {
  return Array.isArray(value);
}

function isTree(value: TreeValue): value is { readonly [key: string]: TreeValue } {
  return typeof value === 'object' && value !== null && !isList(value);
}

/**
 * @param every also durations whose bare number is milliseconds; otherwise those stay numbers
 * @param write a duration as text
 */
export function withUnits(
  key: Key<unknown>,
  value: TreeValue,
  every = false,
  write: (ms: number) => string = formatDuration,
): TreeValue {
  const { inside, doc } = key;
  if (typeof value === 'number') {
    const isTime = doc.counts === 'Ms' && (every || doc.unit !== 'ms');
    return isTime ? write(value) : value;
  }
  if (inside === null) return value;
  if (isList(value))
    return inside.kind === 'list' ? value.map((one) => withUnits(inside.item, one, every, write)) : value;
  if (!isTree(value) || inside.kind === 'list') return value;
  const keyOf = (name: string): Key<unknown> | undefined => {
    if (inside.kind === 'fields') return Object.hasOwn(inside.fields, name) ? inside.fields[name] : undefined;
    // A group has the keys of its nameless block beside the named ones.
    const own = inside.item.inside?.kind === 'fields' ? inside.item.inside.fields : {};
    return inside.group && Object.hasOwn(own, name) ? own[name] : inside.item;
  };
  const entries = Object.entries(value).map(([name, member]): [string, TreeValue] => {
    const spec = keyOf(name);
    return [name, spec === undefined ? member : withUnits(spec, member, every, write)];
  });
  return Object.fromEntries(entries);
}
