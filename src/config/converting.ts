// What `tidegate convert` needs of config/: a file as a tree that holds only what has an effect, and a way to compare two trees.
// Called by cli/convert.ts. Validates what it reads: a wrong configuration is not converted.

import { readText, treeOf } from './load.ts';
import { ConfigError, type Problem } from './problem.ts';
import type { Inside, Key } from './schema/key.ts';
import { ROOT } from './schema/schema.ts';
import { Sink } from './sink.ts';
import { looksLikeMosquitto, readMosquitto } from './text/mosquitto.ts';
import { adaptNanomq } from './text/nanomq.ts';
import type { BlockNode, Member, Node } from './text/node.ts';

export interface ConvertedTree {
  readonly tree: BlockNode;
  readonly dialect: 'hocon' | 'toml' | 'mosquitto';
  /** What the tree does not hold any more, with its place. */
  readonly dropped: readonly Problem[];
}

/** Throws ConfigError and CFG-READ like loadConfig. References to the environment are resolved, and reported. */
export function readForConvert(
  file: string,
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): ConvertedTree {
  const text = readText(file, cwd);
  if (!/\.toml$/i.test(file) && looksLikeMosquitto(text)) {
    const { tree, dropped } = readMosquitto(text, file);
    validate(tree, []);
    return { tree, dialect: 'mosquitto', dropped };
  }
  const dialect = /\.toml$/i.test(file) ? 'toml' : 'hocon';
  const dropped: Problem[] = [];
  const lookup = (name: string) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    const at = { file, line: 0, column: 0 };
    if (value !== undefined) dropped.push({ at, key: `\${${name}}`, message: 'written as the value it has now' });
    return value;
  };
  const tree = adaptNanomq(treeOf(file, cwd, lookup, [], dropped), dropped);
  validate(tree, dropped);
  if (/(?:^|\s)(?:#|\/\/)/m.test(text)) {
    dropped.push({ at: { file, line: 0, column: 0 }, key: 'comments', message: 'not carried over' });
  }
  return { tree: prune(tree, ROOT), dialect, dropped };
}

/** A text that was written just now. */
export function parseText(text: string, dialect: 'hocon' | 'toml'): BlockNode {
  return treeOf({ text, dialect }, '', () => undefined, [], []);
}

/** A text that is the same for two trees exactly when their configurations are. */
export function effective(tree: BlockNode): string {
  const sink = new Sink();
  const root = ROOT.read(tree, '', sink);
  return root === undefined || sink.problems.length > 0 ? '' : JSON.stringify(ROOT.show(root, false));
}

function validate(tree: BlockNode, warnings: Problem[]): void {
  const sink = new Sink();
  ROOT.read(tree, '', sink);
  if (sink.problems.length > 0) throw new ConfigError(sink.problems);
  warnings.push(...sink.warnings);
}

/** Without keys that the schema ignores or does not know: they have been reported. */
function prune(node: BlockNode, key: Key<unknown>): BlockNode {
  const { inside } = key;
  if (inside === null || inside.kind === 'list') return node;
  const fields = new Map<string, Member>();
  for (const [name, member] of node.fields) {
    const spec = specOf(inside, name, member.value);
    if (spec === undefined || spec.doc.ignored) continue;
    fields.set(name, { at: member.at, value: pruneValue(member.value, spec) });
  }
  return { kind: 'block', fields, at: node.at };
}

function pruneValue(node: Node, key: Key<unknown>): Node {
  if (node.kind === 'block') return prune(node, key);
  if (node.kind !== 'list' || key.inside?.kind !== 'list') return node;
  const { item } = key.inside;
  return { kind: 'list', items: node.items.map((entry) => pruneValue(entry, item)), at: node.at };
}

function specOf(inside: Exclude<Inside, { kind: 'list' }>, name: string, value: Node): Key<unknown> | undefined {
  if (inside.kind === 'fields') return Object.hasOwn(inside.fields, name) ? inside.fields[name] : undefined;
  if (!inside.group) return inside.item;
  const own = inside.item.inside;
  if (own?.kind === 'fields' && Object.hasOwn(own.fields, name)) return own.fields[name];
  return value.kind === 'block' ? inside.item : undefined;
}
