// tidegate.d: files beside the main configuration file that are read after it, in the order of their names. Called by
// load.ts and, for the name of the file that the gateway itself writes, by gateway/kept.ts. Reads names only, no
// contents. Bounds: MAX_FILES; the bytes of all of them count with those of the main file.
import { readdirSync } from 'node:fs';
import { GatewayError } from '../base/errors.ts';
import { fileError } from './problem.ts';
import type { BlockNode, Node } from './text/node.ts';
import { put, type Raw, type RawBlock } from './text/raw.ts';

/** Beside the main file. */
export const FOLDER = 'tidegate.d';
/** Written by the gateway for changes that are to stay; files of higher names win over it. */
export const KEPT_NAME = '50-console.conf';
/** More is a folder that was meant for something else. */
const MAX_FILES = 100;

/**
 * Names of the files to read, ascending; none when there is no such folder. With `kept`, KEPT_NAME is among them
 * whether it is there or not. Throws CFG-READ when the folder cannot be read: what it says must not be left out unseen.
 */
export function dropInNames(folder: string, kept: string | undefined): string[] {
  const names = new Set(listed(folder).filter((name) => name.endsWith('.conf') && !name.startsWith('.')));
  if (kept !== undefined) names.add(KEPT_NAME);
  if (names.size > MAX_FILES) throw new GatewayError('CFG-READ', `${folder}: more than ${MAX_FILES} files`);
  return [...names].sort();
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new GatewayError('CFG-READ', `${folder}: ${fileError(error)}`, error);
  }
}

/** Puts everything of `over` on top of `root`: blocks come together, values hide what was there. */
export function layOver(root: RawBlock, over: RawBlock): void {
  for (const [key, field] of over.fields) for (const entry of field.entries) put(root, [key], entry, field.at);
}

/** A tree without references in the form in which files are laid over each other. */
export function rawOf(block: BlockNode): RawBlock {
  const fields: RawBlock['fields'] = new Map();
  for (const [key, { at, value }] of block.fields) fields.set(key, { at, entries: [rawValue(value)] });
  return { kind: 'block', fields, at: block.at };
}

function rawValue(node: Node): Raw {
  if (node.kind === 'block') return rawOf(node);
  if (node.kind === 'list') return { kind: 'list', items: node.items.map(rawValue), at: node.at };
  return node;
}
