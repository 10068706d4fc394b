// tidegate.d/50-console.conf as a tree: what of a change has to be written so that files say it, and the text of the
// file. Called by gateway/kept.ts and gateway/bridges.ts at run time only. Reads that one file; writing it is
// gateway/kept.ts.
import { existsSync } from 'node:fs';
import type { Tree, TreeValue } from './config.ts';
import { treeOf } from './load.ts';
import { ConfigError } from './problem.ts';
import { type BlockNode, blockNode, type Member, type Node, type ScalarNode } from './text/node.ts';
import { writeHocon } from './text/write.ts';

const PLACE = { file: 'kept', line: 0, column: 0 };
const HEADER = `# Changes that were kept: by the console, the REST API or tidegate ctl. Read after the main configuration file.
# The gateway writes this file anew with each of them. Comments and references in it would be lost: write your own in another file
# of this folder.
`;

/** The file's text for a tree. */
export function keptText(tree: BlockNode): string {
  return HEADER + writeHocon(tree);
}

/**
 * What the file says, nothing where it is not there. Throws ConfigError and CFG-READ; and where writing it anew would
 * lose something.
 */
export function readKept(path: string): BlockNode {
  if (!existsSync(path)) return blockNode(PLACE);
  const files: string[] = [];
  let refers = false;
  const lookup = (): undefined => {
    refers = true;
  };
  const tree = treeOf(path, '/', lookup, files, []);
  if (files.length === 1 && !refers) return tree;
  // What they lead to, perhaps a secret, would be written in their place, or lost.
  const message = 'a file that the gateway writes can include nothing and refer to nothing outside of it';
  throw new ConfigError([{ at: { file: path, line: 1, column: 1 }, key: 'syntax', message }]);
}

export function flagNode(value: boolean): ScalarNode {
  return { kind: 'scalar', value, text: String(value), quoted: false, at: PLACE };
}

/** The tree with `node` at the path, whatever was there. */
export function withNode(block: BlockNode, path: readonly string[], node: Node): BlockNode {
  const [key, ...rest] = path;
  if (key === undefined) return node.kind === 'block' ? node : block;
  const below = block.fields.get(key)?.value;
  const inner = below?.kind === 'block' ? below : blockNode(PLACE);
  const value = rest.length === 0 ? node : withNode(inner, rest, node);
  return { ...block, fields: new Map([...block.fields, [key, { at: PLACE, value }]]) };
}

/** The tree without what is at the path, and without blocks that are empty then. */
export function withoutNode(block: BlockNode, path: readonly string[]): BlockNode {
  const [key, ...rest] = path;
  const below = key === undefined ? undefined : block.fields.get(key)?.value;
  if (key === undefined || below === undefined) return block;
  const fields = new Map(block.fields);
  const inner = below.kind === 'block' && rest.length > 0 ? withoutNode(below, rest) : null;
  if (rest.length > 0 && inner === null) return block;
  if (inner === null || inner.fields.size === 0) fields.delete(key);
  else fields.set(key, { at: PLACE, value: inner });
  return { ...block, fields };
}

/** The value of an effective tree at a path. */
export function valueAt(tree: Tree, path: readonly string[]): TreeValue | undefined {
  let at: TreeValue | undefined = tree;
  for (const key of path) at = isTree(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  return at;
}

export function isTree(value: TreeValue | undefined): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether two values of effective trees say the same. */
export function same(a: TreeValue | undefined, b: TreeValue | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (!isTree(a) || !isTree(b)) return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

/**
 * What has to be written over files that give `base`, so that they give `wanted`: members of the document that are not
 * as they are already, and null, which stands for the default, for what the document leaves out. A secret that stays
 * where it is is not copied.
 * @param document the block as written; `wanted` is what it comes to, defaults included
 */
export function difference(document: BlockNode, wanted: Tree, base: Tree): BlockNode {
  const fields = new Map<string, Member>();
  for (const [key, member] of document.fields) {
    const before = Object.hasOwn(base, key) ? base[key] : undefined;
    const after = Object.hasOwn(wanted, key) ? wanted[key] : undefined;
    if (before !== undefined && same(before, after)) continue;
    if (member.value.kind === 'block' && isTree(before) && isTree(after)) {
      fields.set(key, { at: PLACE, value: difference(member.value, after, before) });
    } else fields.set(key, member);
  }
  const none: ScalarNode = { kind: 'scalar', value: null, text: 'null', quoted: false, at: PLACE };
  for (const [key, before] of Object.entries(base)) {
    const after = Object.hasOwn(wanted, key) ? wanted[key] : undefined;
    if (!document.fields.has(key) && !same(before, after)) fields.set(key, { at: PLACE, value: none });
  }
  return { kind: 'block', fields, at: PLACE };
}
