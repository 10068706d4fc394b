// Where the checks of a configuration put what they find, and how they know where a checked block was written.
// Made by load.ts and documents.ts; filled by config/schema/keys.ts, config/schema/blocks.ts and build*.ts.

import type { Position, Problem } from './problem.ts';
import { type BlockNode, isNull, joinPath } from './text/node.ts';

/** The position of what nobody has written. */
export const DEFAULTS: Position = { file: 'defaults', line: 0, column: 0 };

/** More would help nobody, and a file may hold half a million mistakes. */
const MAX_TOLD = 200;
/** Names in the line of needless keys. */
const MAX_NAMED = 20;

/** Where a reading puts what it finds. */
export class Sink {
  readonly problems: Problem[] = [];
  readonly warnings: Problem[] = [];
  /** Problems and warnings that were not kept. */
  private more = 0;
  private readonly needlessKeys: { at: Position; key: string }[] = [];
  private readonly places = new WeakMap<object, { node: BlockNode; path: string }>();

  problem(at: Position, key: string, message: string): undefined {
    if (this.problems.length < MAX_TOLD) this.problems.push({ at, key, message });
    else this.more++;
    return undefined;
  }

  warn(at: Position, key: string, message: string): void {
    if (this.warnings.length < MAX_TOLD) this.warnings.push({ at, key, message });
    else this.more++;
  }

  /** A key without effect that nobody misses: all of them make one line. */
  needless(at: Position, key: string): void {
    this.needlessKeys.push({ at, key });
  }

  /** That line, or nothing. */
  needlessLine(): Problem[] {
    const [first] = this.needlessKeys;
    if (first === undefined) return [];
    const names = this.needlessKeys.map(({ at, key }) => `${key} (line ${at.line})`);
    const shown = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), `${names.length - MAX_NAMED} more`] : names;
    return [{ at: first.at, key: 'needless here', message: `no effect, and nothing is missed: ${shown.join(', ')}` }];
  }

  /** Whether more would not be kept: what is only looked up to be told may be left out. */
  get full(): boolean {
    return this.problems.length >= MAX_TOLD || this.warnings.length >= MAX_TOLD;
  }

  /** A last line that tells how many are missing, or nothing. */
  rest(): Problem[] {
    if (this.more === 0) return [];
    return [{ at: { file: 'configuration', line: 0, column: 0 }, key: 'and', message: `${this.more} more` }];
  }

  /** Remembers where a checked block came from. */
  place(value: object, node: BlockNode, path: string): void {
    this.places.set(value, { node, path });
  }

  /** Position of a key of a checked block, of the block itself where the key is not written. */
  at(value: object, key?: string): Position {
    const node = this.places.get(value)?.node;
    const member = key === undefined ? undefined : node?.fields.get(key);
    return member?.value.at ?? node?.at ?? DEFAULTS;
  }

  /** Key path of a checked block or of a key in it. */
  path(value: object, key?: string): string {
    const path = this.places.get(value)?.path ?? '';
    return key === undefined ? path : joinPath(path, key);
  }

  written(value: object, key: string): boolean {
    const member = this.places.get(value)?.node.fields.get(key);
    return member !== undefined && !isNull(member.value);
  }

  /** A problem with a key of a checked block. */
  refuse(value: object, key: string, message: string): void {
    this.problem(this.at(value, key), this.path(value, key), message);
  }

  doubt(value: object, key: string, message: string): void {
    this.warn(this.at(value, key), this.path(value, key), message);
  }
}
