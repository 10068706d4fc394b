// Small steps for building a tree: blocks on the way to a key, values as nodes. Used by the imports of mosquitto.conf
// and nanomq.conf.
import type { Position } from '../problem.ts';
import { type BlockNode, blockNode, type Node, textNode } from './node.ts';

export type Value = string | number | boolean | Node;

export function nodeOf(value: Value, at: Position): Node {
  if (typeof value === 'string') return textNode(value, at);
  if (typeof value === 'object') return value;
  return { kind: 'scalar', value, text: String(value), quoted: false, at };
}

/** The block of that name, made where it is not there. */
export function child(block: BlockNode, key: string, at: Position): BlockNode {
  const known = block.fields.get(key)?.value;
  if (known?.kind === 'block') return known;
  const made = blockNode(at);
  block.fields.set(key, { at, value: made });
  return made;
}

/** Sets `path` below `root`, blocks on the way included. */
export function put(root: BlockNode, path: string, value: Value, at: Position): void {
  const keys = path.split('.');
  const last = keys.pop() ?? path;
  let block = root;
  for (const key of keys) block = child(block, key, at);
  block.fields.set(last, { at, value: nodeOf(value, at) });
}

export function listOf(values: readonly Value[], at: Position): Node {
  return { kind: 'list', items: values.map((value) => nodeOf(value, at)), at };
}

/** Adds one to the list `key` of a block. */
export function append(block: BlockNode, key: string, value: Value, at: Position): void {
  const before = block.fields.get(key)?.value;
  const items = before?.kind === 'list' ? before.items : [];
  block.fields.set(key, { at, value: { kind: 'list', items: [...items, nodeOf(value, at)], at } });
}
