// What NanoMQ's files write differently from the schema is put into its form here, before the schema sees the tree.
// Called by config/load.ts for every file: a nanomq.conf starts unchanged. What cannot be taken over is warned about with its line;
// keys that simply have no effect are `ignored` rows of the schema. Sources: NanoMQ 0.25.6, its documentation and example.

import type { Problem } from '../problem.ts';
import { type BlockNode, joinPath, type Member, type Node } from '../text/node.ts';

/** The tree in this gateway's form; warnings for what is left out. */
export function adaptNanomq(tree: BlockNode, warnings: Problem[]): BlockNode {
  tree = change(tree, ['mqtt', 'max_awaiting_rel'], (member, key) => {
    if (!/^\s*\d+\s*(ms|s|m|h|d)\s*$/.test(scalarText(member.value))) return member;
    warnings.push({ at: member.value.at, key, message: 'a duration has no effect here; this is a number of messages' });
    return null;
  });
  tree = change(tree, ['bridges', 'mqtt', 'cache'], (member, key) => {
    const message = 'no effect; what waits for a remote broker is bounded by max_send_queue_len';
    warnings.push({ at: member.at, key, message });
    return null;
  });
  tree = dropValues(tree, ['bridges', 'mqtt'], warnings);
  return dropValues(tree, ['bridges', 'aws'], warnings);
}

function scalarText(node: Node): string {
  return node.kind === 'scalar' ? node.text : '';
}

/** Old files have keys directly in a block of named bridges: they cannot be bridges. */
function dropValues(tree: BlockNode, path: readonly string[], warnings: Problem[]): BlockNode {
  return change(tree, path, (member, key) => {
    if (member.value.kind !== 'block') return member;
    const fields = new Map<string, Member>();
    for (const [name, inner] of member.value.fields) {
      if (inner.value.kind === 'block') fields.set(name, inner);
      else warnings.push({ at: inner.at, key: joinPath(key, name), message: 'not a bridge block; it has no effect' });
    }
    return { at: member.at, value: { kind: 'block', fields, at: member.value.at } };
  });
}

/** The tree with one member changed or, for null, removed. Shared nodes stay as they are. */
function change(
  block: BlockNode,
  path: readonly string[],
  edit: (member: Member, key: string) => Member | null,
  key = '',
): BlockNode {
  const [name, ...rest] = path;
  const member = block.fields.get(name);
  if (member === undefined) return block;
  const here = joinPath(key, name);
  const inner = member.value;
  let changed: Member | null = member;
  if (rest.length === 0) changed = edit(member, here);
  else if (inner.kind === 'block') changed = { at: member.at, value: change(inner, rest, edit, here) };
  if (changed === member) return block;
  const fields = new Map(block.fields);
  if (changed === null) fields.delete(name);
  else fields.set(name, changed);
  return { kind: 'block', fields, at: block.at };
}
