// What `tidegate convert` needs of config/: a file as a tree that holds only what has an effect, what there is to tell
// about it, and a way to compare two trees. Called by cli/convert.ts. What it gives has passed every check of `tidegate
// check`: nothing else is converted.
import { readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { foreignForm } from './foreign.ts';
import { checkTree, readText, treeOf } from './load.ts';
import { MOSQUITTO_CHOICES } from './mosquitto/choices.ts';
import { importDynsec, isDynsec } from './mosquitto/dynsec.ts';
import { importMosquitto } from './mosquitto/mosquitto.ts';
import type { Files } from './mosquitto/read.ts';
import type { PluginImport } from './mosquitto/security.ts';
import { NANOMQ_CHOICES } from './nanomq/choices.ts';
import { readKeyValue } from './nanomq/keyvalue.ts';
import { adaptNanomq } from './nanomq/nanomq.ts';
import { ConfigError, fileError, type Position, type Problem } from './problem.ts';
import { Report } from './report.ts';
import type { Inside, Key } from './schema/key.ts';
import { ROOT } from './schema/schema.ts';
import { Sink } from './sink.ts';
import type { BlockNode, Member, Node } from './text/node.ts';
import { MAX_FILE_BYTES } from './text/node.ts';

export type SourceForm = 'hocon' | 'toml' | 'mosquitto' | 'keyvalue';

export interface ConvertedTree {
  readonly tree: BlockNode;
  readonly form: SourceForm;
  /** What the tree does not hold any more or holds with another meaning, with its place. */
  readonly dropped: readonly Problem[];
  /** What would make it weaker; it has been left out of the tree. */
  readonly refused: readonly Problem[];
  /** The same, where nobody may ask for it. */
  readonly impossible: readonly Problem[];
  /** Differences that stay by choice; lines for the top of what is written. */
  readonly choices: readonly string[];
  /** Files that belong to it, by path: users. */
  readonly files: ReadonlyMap<string, string>;
}

export interface ConvertFrom {
  readonly file: string;
  readonly cwd: string;
  readonly env: Env;
  /** Where the text will be written; null = standard output. */
  readonly output: string | null;
  readonly nanomqDefaults: boolean;
}

type Env = Readonly<Record<string, string | undefined>>;

const NO_FILES: ReadonlyMap<string, string> = new Map();

/** Throws ConfigError and CFG-READ like loadConfig. References to the environment are resolved, and reported. */
export function readForConvert(options: ConvertFrom): ConvertedTree {
  const { file, cwd, env, output, nanomqDefaults } = options;
  const text = readText(file, cwd);
  const isToml = /\.toml$/i.test(file);
  const form = isToml ? null : foreignForm(text);
  if (form === 'mosquitto') return fromMosquitto(text, file, cwd, output);
  if (form === 'keyvalue') return fromKeyValue(text, file, nanomqDefaults);
  const dropped: Problem[] = [];
  const lookup = (name: string) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    const at = { file, line: 0, column: 0 };
    if (value !== undefined) dropped.push({ at, key: `\${${name}}`, message: 'written as the value it has now' });
    return value;
  };
  const sink = new Sink();
  const tree = adaptNanomq(treeOf(file, cwd, lookup, [], dropped), sink, nanomqDefaults);
  dropped.push(...checked(tree, sink));
  if (/(?:^|\s)(?:#|\/\/)/m.test(text)) {
    dropped.push({ at: { file, line: 0, column: 0 }, key: 'comments', message: 'not carried over' });
  }
  const plain = { refused: [], impossible: [], choices: [], files: NO_FILES };
  return { tree: prune(tree, ROOT), form: isToml ? 'toml' : 'hocon', dropped, ...plain };
}

function fromMosquitto(text: string, file: string, cwd: string, output: string | null): ConvertedTree {
  const files = new ImportedFiles(cwd, text.length);
  const own = output === null ? null : `${resolve(cwd, output)}.dynamic-security.json`;
  const written = new Map<string, string>();
  const importPlugin: PluginImport = (plugin, root, report) => {
    if (!isDynsec(plugin)) return 'unknown';
    const users = importDynsec(plugin, root, report, { read: (path) => files.read(path), file: own });
    if (users === null || own === null) return 'reported';
    written.set(own, users);
    return 'taken';
  };
  const { tree, report } = importMosquitto(text, file, { files, hostname: hostname(), importPlugin });
  return { ...imported(tree, 'mosquitto', report, MOSQUITTO_CHOICES), files: written };
}

function fromKeyValue(text: string, file: string, nanomqDefaults: boolean): ConvertedTree {
  const report = new Report();
  const sink = new Sink();
  const written = readKeyValue(text, file, report);
  const tree = adaptNanomq(written, sink, nanomqDefaults);
  if (report.wrong.length > 0) throw new ConfigError(report.wrong);
  const told = [...report.lines(), ...checked(tree, sink)];
  return {
    tree: prune(tree, ROOT),
    form: 'keyvalue',
    dropped: told,
    refused: [],
    impossible: [],
    choices: NANOMQ_CHOICES,
    files: NO_FILES,
  };
}

/** Throws ConfigError for what neither side starts with. */
function imported(tree: BlockNode, form: SourceForm, report: Report, choices: readonly string[]): ConvertedTree {
  if (report.wrong.length > 0) throw new ConfigError(report.wrong);
  const { refused, impossible } = report;
  if (impossible.length === 0) checked(tree, new Sink());
  return { tree, form, dropped: report.lines(), refused, impossible, choices, files: NO_FILES };
}

/** Files that a mosquitto.conf includes, all together within MAX_FILE_BYTES. */
class ImportedFiles implements Files {
  private readonly cwd: string;
  private bytesLeft: number;

  constructor(cwd: string, bytes: number) {
    this.cwd = cwd;
    this.bytesLeft = MAX_FILE_BYTES - bytes;
  }

  read(file: string): string {
    const text = readText(file, this.cwd);
    this.bytesLeft -= text.length;
    const at: Position = { file, line: 1, column: 1 };
    if (this.bytesLeft < 0)
      throw new ConfigError([{ at, key: 'include_dir', message: 'more than 16 MB with this file' }]);
    return text;
  }

  names(folder: string): string[] | string {
    try {
      return readdirSync(resolve(this.cwd, folder));
    } catch (error) {
      return fileError(error);
    }
  }
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

/** All that `tidegate check` checks; gives the warnings. Throws ConfigError. */
function checked(tree: BlockNode, sink: Sink): Problem[] {
  checkTree(tree, {}, sink);
  return [...sink.warnings, ...sink.needlessLine()];
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
