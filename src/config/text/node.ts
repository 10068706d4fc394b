// The parsed form every dialect ends in: scalars, lists and blocks, each knowing where it was written. Made by
// hocon.ts, toml.ts and config/overrides.ts; read by config/schema/keys.ts. Blocks are Maps, so that no name can reach
// an object's prototype, and keep the order of the file.
import type { Position } from '../problem.ts';

export interface ScalarNode {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** The value as written, without quotes. */
  readonly text: string;
  /** From quotes, the environment or `--set`: a text that only looks like a number may still be one. */
  readonly quoted: boolean;
  readonly at: Position;
}
export interface ListNode {
  readonly kind: 'list';
  readonly items: readonly Node[];
  readonly at: Position;
}
export interface Member {
  /** Where the key stands. */
  readonly at: Position;
  readonly value: Node;
}
export interface BlockNode {
  readonly kind: 'block';
  readonly fields: Map<string, Member>;
  readonly at: Position;
}
export type Node = ScalarNode | ListNode | BlockNode;

/** Levels of blocks and lists; deeper text is refused, so that nothing that walks a tree can run out of stack. */
export const MAX_DEPTH = 64;
/** Nodes of a whole tree, references counted each time they are used. */
export const MAX_NODES = 500_000;
/** Characters of one name. */
export const MAX_KEY = 1000;
/** Bytes of a file with everything it includes. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** The one name no block may use: objects made from a tree would lose it. */
export const FORBIDDEN_KEY = '__proto__';

export function textNode(value: string, at: Position): ScalarNode {
  return { kind: 'scalar', value, text: value, quoted: true, at };
}

export function blockNode(at: Position): BlockNode {
  return { kind: 'block', fields: new Map(), at };
}

const PLAIN = /^[\p{L}\p{N}_-]+$/u;

/** `a` + `b.c` -> `a."b.c"`: key paths in messages read as they would be written. */
export function joinPath(path: string, key: string): string {
  const short = key.length > 80 ? `${key.slice(0, 77)}...` : key;
  const part = PLAIN.test(short) ? short : JSON.stringify(short);
  return path === '' ? part : `${path}.${part}`;
}

export function formatPath(keys: readonly string[]): string {
  return keys.reduce(joinPath, '');
}

export function isNull(node: Node): boolean {
  return node.kind === 'scalar' && node.value === null;
}
