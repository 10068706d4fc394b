// Puts values in the place of references (${a.b}, ${?a.b}), joins what stands side by side and merges blocks: HOCON.md,
// "Substitutions". Called by config/load.ts with what hocon.ts has parsed. A reference that finds nothing in the file
// is looked up in the environment, taken literally. Work is bounded: a tree of more than MAX_NODES nodes or MAX_TEXT
// characters of joined text is refused, not built.

import { ConfigError, type Position, type Problem } from '../problem.ts';
import { type BlockNode, MAX_NODES, type Member, type Node, textNode } from './node.ts';
import { joinText, type Raw, type RawBlock, type RawConcat, type RawField, type RawReference } from './raw.ts';

/** Characters of all joined texts together: as much as a file may hold. */
const MAX_TEXT = 16 * 1024 * 1024;
/** References that lead to references; deeper ones would use up the stack. */
const MAX_CHAIN = 500;
/** Values looked at, each time counted: what may be asked for twice at every step doubles. */
const MAX_STEPS = 2_000_000;

export type Lookup = (name: string) => string | undefined;

/**
 * The tree without references. Throws ConfigError with every reference that finds nothing, or when the tree grows too
 * large.
 */
export function resolveTree(root: RawBlock, env: Lookup): BlockNode {
  const resolver = new Resolver(root, env);
  const tree = resolver.block(root);
  if (resolver.problems.length > 0) throw new ConfigError(resolver.problems);
  return tree;
}

class Resolver {
  readonly problems: Problem[] = [];
  private readonly root: RawBlock;
  private readonly env: Lookup;
  /** Fields being resolved and the entry they are at: a reference back to one means its older values. */
  private readonly active = new Map<RawField, number>();
  private readonly done = new Map<RawField, Node | null>();
  private readonly sizes = new WeakMap<Node, number>();
  private readonly reported = new Set<RawReference>();
  /** Rises when a reference met a field that is being resolved: such results hold in that place only. */
  private loops = 0;
  private textLength = 0;
  private chain = 0;
  private steps = 0;

  constructor(root: RawBlock, env: Lookup) {
    this.root = root;
    this.env = env;
  }

  block(raw: RawBlock): BlockNode {
    const fields = new Map<string, Member>();
    let size = 1;
    for (const [key, field] of raw.fields) {
      const value = this.field(field);
      if (value === null) continue;
      fields.set(key, { at: field.at, value });
      size += this.size(value);
    }
    return this.sized({ kind: 'block', fields, at: raw.at }, size);
  }

  /** The value of a key, null when it has none. */
  private field(field: RawField): Node | null {
    const known = this.done.get(field);
    if (known !== undefined) return known;
    const running = this.active.get(field);
    if (running !== undefined) this.loops++;
    const loops = this.loops;
    const value = this.fold(field, (running ?? field.entries.length) - 1);
    if (running === undefined && loops === this.loops) this.done.set(field, value);
    return value;
  }

  /** Entries from `index` down to the oldest: blocks merge, anything else hides what is older. */
  private fold(field: RawField, index: number): Node | null {
    let result: BlockNode | null = null;
    for (let i = index; i >= 0; i--) {
      const value = this.entry(field, i);
      if (value === null) continue;
      if (value.kind !== 'block') return result ?? value;
      result = result === null ? value : this.merge(value, result);
    }
    return result;
  }

  private entry(field: RawField, index: number): Node | null {
    const raw = field.entries[index];
    const before = this.active.get(field);
    this.active.set(field, index);
    if (++this.chain > MAX_CHAIN) this.tooLarge(raw.at);
    try {
      return this.value(raw);
    } finally {
      this.chain--;
      if (before === undefined) this.active.delete(field);
      else this.active.set(field, before);
    }
  }

  private value(raw: Raw): Node | null {
    this.step(1, raw.at);
    switch (raw.kind) {
      case 'scalar':
        return raw;
      case 'block':
        return this.block(raw);
      case 'list':
        return this.list(raw.items, raw.at);
      case 'reference':
        return this.reference(raw);
      case 'concat':
        return this.concat(raw);
    }
  }

  private list(items: readonly Raw[], at: Position): Node {
    const values: Node[] = [];
    let size = 1;
    for (const item of items) {
      const value = this.value(item);
      if (value === null) continue;
      values.push(value);
      size += this.size(value);
    }
    return this.sized({ kind: 'list', items: values, at }, size);
  }

  private reference(raw: RawReference): Node | null {
    let value: Node | null = null;
    if (raw.prefix.length > 0) value = this.find(this.root, [...raw.prefix, ...raw.path], 0);
    value ??= this.find(this.root, raw.path, 0);
    if (value !== null) return value;
    const text = raw.name === '' ? undefined : this.env(raw.path.join('.'));
    if (text !== undefined) return textNode(text, raw.at);
    if (!raw.optional && !this.reported.has(raw)) {
      this.reported.add(raw);
      const message = `\${${raw.name}} is neither in the file nor in the environment, or refers to itself; \${?${raw.name}} may be absent`;
      this.problems.push({ at: raw.at, key: raw.key, message });
    }
    return null;
  }

  /** path[k...] below a block, without resolving what is beside it. */
  private find(block: RawBlock, path: readonly string[], k: number): Node | null {
    const field = block.fields.get(path[k]);
    if (field === undefined) return null;
    if (k === path.length - 1) return this.field(field);
    let result: BlockNode | null = null;
    const running = this.active.get(field);
    for (let i = field.entries.length - 1; i >= 0; i--) {
      const raw = field.entries[i];
      if (raw.kind === 'scalar' || raw.kind === 'list') break;
      if (raw.kind !== 'block' && running !== undefined && i >= running) {
        this.loops++;
        continue;
      }
      const value = raw.kind === 'block' ? this.find(raw, path, k + 1) : below(this.entry(field, i), path, k + 1);
      if (value === null) continue;
      if (value.kind !== 'block') return result ?? value;
      result = result === null ? value : this.merge(value, result);
    }
    return result;
  }

  private concat(raw: RawConcat): Node | null {
    const parts: Node[] = [];
    let blanks: Node[] = [];
    for (const part of raw.parts) {
      const value = this.value(part);
      if (value === null) continue;
      if (part.kind === 'scalar' && !part.quoted && part.text.trim() === '') {
        blanks.push(value);
        continue;
      }
      if (parts.length > 0 && value.kind === 'scalar') parts.push(...blanks);
      blanks = [];
      parts.push(value);
    }
    if (parts.length === 0) return null;
    if (parts.length === 1) return parts[0];
    const text = joinText(parts, raw.at);
    if (text !== null) {
      this.textLength += text.text.length;
      if (this.textLength > MAX_TEXT) this.tooLarge(raw.at);
      return text;
    }
    return this.concatTrees(
      parts.filter((part) => part.kind !== 'scalar' || part.text.trim() !== ''),
      raw,
    );
  }

  private concatTrees(parts: readonly Node[], raw: RawConcat): Node {
    let result = parts[0];
    for (const part of parts.slice(1)) {
      if (result.kind === 'block' && part.kind === 'block') result = this.merge(result, part);
      else if (result.kind === 'list' && part.kind === 'list') {
        this.step(result.items.length + part.items.length, part.at);
        const size = this.size(result) + this.size(part);
        result = this.sized({ kind: 'list', items: [...result.items, ...part.items], at: result.at }, size);
      } else {
        const message = 'texts, lists and blocks cannot be joined with each other';
        throw new ConfigError([{ at: part.at, key: raw.key, message }]);
      }
    }
    return result;
  }

  /** `over` on top of `under`. */
  private merge(under: BlockNode, over: BlockNode): BlockNode {
    this.step(under.fields.size + over.fields.size, over.at);
    const fields = new Map(under.fields);
    for (const [key, member] of over.fields) {
      const below = fields.get(key)?.value;
      const both = below?.kind === 'block' && member.value.kind === 'block';
      fields.set(key, both ? { at: member.at, value: this.merge(below, member.value) } : member);
    }
    let size = 1;
    for (const member of fields.values()) size += this.size(member.value);
    return this.sized({ kind: 'block', fields, at: over.at }, size);
  }

  private step(count: number, at: Position): void {
    this.steps += count;
    if (this.steps > MAX_STEPS) this.tooLarge(at);
  }

  private size(node: Node): number {
    return this.sizes.get(node) ?? 1;
  }

  private sized<T extends Node>(node: T, size: number): T {
    if (size > MAX_NODES) this.tooLarge(node.at);
    this.sizes.set(node, size);
    return node;
  }

  private tooLarge(at: Position): never {
    throw new ConfigError([{ at, key: 'syntax', message: 'references make this configuration too large' }]);
  }
}

function below(node: Node | null, path: readonly string[], from: number): Node | null {
  for (let i = from; i < path.length; i++) {
    if (node?.kind !== 'block') return null;
    node = node.fields.get(path[i])?.value ?? null;
  }
  return node;
}
