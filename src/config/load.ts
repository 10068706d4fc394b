// Reads a configuration: finds the file, parses it and its tidegate.d, lays the environment and --set over it, checks
// it, builds the frozen Config. Called by cli/, index.ts and tests. Touches nothing but the configuration file,
// tidegate.d beside it, what they include and files named by TIDEGATE__..._FILE. Bounds: MAX_FILE_BYTES for the file
// and all it includes; includes only from below the folder of the main file.
import { closeSync, openSync, readSync, realpathSync } from 'node:fs';
import { dirname, extname, isAbsolute, join, resolve, sep } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { buildConfig } from './build/build.ts';
import type { Config, Loaded, LoadOptions, Tree } from './config.ts';
import { dropInNames, FOLDER, KEPT_NAME, layOver, rawOf } from './dropins.ts';
import { refuseForeign } from './foreign.ts';
import { adaptNanomq } from './nanomq/nanomq.ts';
import { applyOverrides } from './overrides.ts';
import { ConfigError, fileError, type Position, type Problem } from './problem.ts';
import { type CheckedRoot, ROOT } from './schema/schema.ts';
import { DEFAULTS, Sink } from './sink.ts';
import { parseHocon, type Source } from './text/hocon.ts';
import { type BlockNode, blockNode, MAX_FILE_BYTES } from './text/node.ts';
import { type Lookup, resolveTree } from './text/resolve.ts';
import { parseToml } from './text/toml.ts';

/** Tried in this order when no file is named. */
const PLACES = ['./tidegate.conf', './tidegate.toml', '/etc/tidegate/tidegate.conf', '/etc/tidegate/tidegate.toml'];

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Reads defaults, file, environment and `--set`, in this order. Throws ConfigError (problem.ts; a GatewayError
 * CFG-INVALID) with every problem found, CFG-READ when the file cannot be read.
 */
export function loadConfig(options: LoadOptions): Loaded {
  const { env = {}, set = [], cwd = process.cwd() } = options;
  const files: string[] = [];
  const sink = new Sink();
  const source = options.text ?? options.file ?? findFile(cwd);
  const main = typeof source === 'string' ? source : null;
  const written =
    source === null ? blockNode(DEFAULTS) : readMain(source, cwd, env, files, sink.warnings, options.kept);
  const tree = adaptNanomq(applyOverrides(written, env, set, cwd, sink.problems), sink, options.nanomqDefaults);
  const { root, config } = checkTree(tree, env, sink);
  return {
    config,
    warnings: [...sorted([...sink.warnings, ...sink.needlessLine()]), ...sink.rest()],
    file: main,
    files,
    tree: ROOT.show(root, false) as Tree,
    masked: ROOT.show(root, true) as Tree,
  };
}

/**
 * Reads a tree that is in this gateway's form into a Config, with every check there is; warnings go to the sink.
 * Throws ConfigError with every problem found.
 */
export function checkTree(tree: BlockNode, env: Env, sink: Sink): { root: CheckedRoot; config: Config } {
  const root = ROOT.read(withListeners(tree), '', sink);
  if (sink.problems.length > 0 || root === undefined) throw new ConfigError([...sorted(sink.problems), ...sink.rest()]);
  const config = buildConfig(root, (name) => own(env, name) !== undefined, sink);
  if (sink.problems.length > 0) throw new ConfigError([...sorted(sink.problems), ...sink.rest()]);
  return { root, config };
}

/** What was odd before the first mistake is told with it: a value that a comment has cut often is the cause. */
function readMain(
  main: Parameters<typeof treeOf>[0],
  cwd: string,
  env: Env,
  files: string[],
  warnings: Problem[],
  kept: string | undefined,
): BlockNode {
  const lookup: Lookup = (name) => own(env, name);
  try {
    return typeof main === 'string'
      ? wholeTree(main, cwd, lookup, files, warnings, kept)
      : treeOf(main, cwd, lookup, files, warnings);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError([...error.problems, ...warnings]);
    throw error;
  }
}

/**
 * The tree of a file, or of a text that includes nothing, with references resolved: no defaults, no environment on top.
 * `files` gets the paths that were read. Throws ConfigError, and CFG-READ when the file cannot be read.
 */
export function treeOf(
  source: string | { readonly text: string; readonly dialect: 'hocon' | 'toml' },
  cwd: string,
  env: Lookup,
  files: string[],
  warnings: Problem[],
): BlockNode {
  const file = typeof source === 'string' ? source : 'text';
  const path = resolve(cwd, file);
  const reader = new Reader(path, file, files);
  const text = typeof source === 'string' ? reader.main() : source.text;
  const dialect = typeof source === 'string' ? extname(path).toLowerCase().slice(1) : source.dialect;
  if (dialect === 'toml') return parseToml(text, file);
  return resolveTree(parseHocon(text, path, reader, warnings), env);
}

/**
 * The tree of the main file with every tidegate.d/*.conf beside it, in the order of their names, as if it included them
 * at its end.
 * @param kept stands in the place of tidegate.d/50-console.conf; "" = as if that was not there
 */
function wholeTree(
  file: string,
  cwd: string,
  env: Lookup,
  files: string[],
  warnings: Problem[],
  kept: string | undefined,
): BlockNode {
  const path = resolve(cwd, file);
  const reader = new Reader(path, file, files);
  const text = reader.main();
  const isToml = extname(path).toLowerCase() === '.toml';
  if (!isToml) refuseForeign(text, file);
  const folder = join(dirname(path), FOLDER);
  const names = dropInNames(folder, kept);
  if (isToml && names.length === 0) return parseToml(text, file);
  const root = isToml ? rawOf(parseToml(text, file)) : parseHocon(text, path, reader, warnings);
  for (const name of names) {
    const dropIn = join(folder, name);
    const written = name === KEPT_NAME && kept !== undefined ? reader.given(dropIn, kept) : reader.dropIn(dropIn);
    layOver(root, parseHocon(written, dropIn, reader, warnings));
  }
  return resolveTree(root, env);
}

/** The text of a file, UTF-8 and within bounds. Throws like treeOf(). */
export function readText(file: string, cwd: string): string {
  return new Reader(resolve(cwd, file), file, []).main();
}

function own(env: Env, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}

function findFile(cwd: string): string | null {
  for (const place of PLACES) {
    const file = isAbsolute(place) ? place : join(cwd, place);
    try {
      closeSync(openSync(file, 'r'));
      return place;
    } catch (error) {
      // Only a file that is not there is passed over: one that cannot be read must not be replaced by another.
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'ENOENT' && code !== 'ENOTDIR')
        throw new GatewayError('CFG-READ', `${file}: ${fileError(error)}`, error);
    }
  }
  return null;
}

/** Without a listeners block MQTT is on 127.0.0.1:1883, unless this is a proxy that never leads to the broker here. */
function withListeners(tree: BlockNode): BlockNode {
  if (tree.fields.has('listeners') || (tree.fields.has('proxy') && !mentionsLocal(tree))) return tree;
  const listeners = blockNode(DEFAULTS);
  listeners.fields.set('tcp', { at: DEFAULTS, value: blockNode(DEFAULTS) });
  return { ...tree, fields: new Map([...tree.fields, ['listeners', { at: DEFAULTS, value: listeners }]]) };
}

function mentionsLocal(tree: BlockNode): boolean {
  const proxies = tree.fields.get('proxy')?.value;
  if (proxies?.kind !== 'block') return false;
  return [...proxies.fields.values()].some(({ value: proxy }) => {
    if (proxy.kind !== 'block') return false;
    const routes = proxy.fields.get('routes')?.value;
    const targets = [proxy.fields.get('default')?.value];
    if (routes?.kind === 'list') {
      for (const route of routes.items) if (route.kind === 'block') targets.push(route.fields.get('upstream')?.value);
    }
    return targets.some((target) => target?.kind === 'scalar' && target.text === 'local');
  });
}

function sorted(problems: readonly Problem[]): Problem[] {
  const order = (a: Position, b: Position) => a.line - b.line || a.column - b.column;
  return [...problems].sort((a, b) => (a.at.file === b.at.file ? order(a.at, b.at) : 0));
}

/** Opens the main file and what it includes. */
class Reader implements Source {
  private readonly path: string;
  private readonly name: string;
  private readonly files: string[];
  private folder = '';
  private bytesLeft = MAX_FILE_BYTES;

  constructor(path: string, name: string, files: string[]) {
    this.path = path;
    this.name = name;
    this.files = files;
  }

  main(): string {
    try {
      this.folder = realpathSync(dirname(this.path));
      return this.read(this.path);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      throw new GatewayError('CFG-READ', `${this.name}: ${fileError(error)}`, error);
    }
  }

  open(path: string, at: Position, key: string): string | null {
    try {
      const real = realpathSync(path);
      if (!this.isBelow(real)) throw this.outside(at, key);
      return this.read(path);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw new ConfigError([{ at, key, message: fileError(error) }]);
      if (!this.isBelow(path) && !path.startsWith(dirname(this.path) + sep)) throw this.outside(at, key);
      return null;
    }
  }

  /** The text of a file of tidegate.d. */
  dropIn(path: string): string {
    const at = { file: path, line: 1, column: 1 };
    const text = this.open(path, at, 'syntax');
    // It was there when the folder was listed: a configuration without it must not come into force.
    if (text === null) throw new ConfigError([{ at, key: 'syntax', message: 'the file is gone' }]);
    return text;
  }

  /** A text in the place of a file: it counts as if it had been read. */
  given(path: string, text: string): string {
    this.bytesLeft -= Buffer.byteLength(text);
    if (this.bytesLeft < 0) throw tooLarge(path);
    return text;
  }

  show(path: string): string {
    return path === this.path ? this.name : path;
  }

  private isBelow(path: string): boolean {
    return path.startsWith(this.folder.endsWith(sep) ? this.folder : this.folder + sep);
  }

  private outside(at: Position, key: string): ConfigError {
    const message = `only files below ${this.folder}, the folder of the main file, can be included: move the file there, or write its content in its place`;
    return new ConfigError([{ at, key, message }]);
  }

  private read(path: string): string {
    const bytes = readBounded(path, this.bytesLeft);
    const file = this.show(path);
    if (bytes === null) throw tooLarge(file);
    this.bytesLeft -= bytes.length;
    this.files.push(path);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new ConfigError([{ at: firstBadByte(bytes, file), key: 'syntax', message: 'this is not UTF-8' }]);
    }
  }
}

function tooLarge(file: string): ConfigError {
  const message = `larger than ${MAX_FILE_BYTES / 1024 / 1024} MB, with what it includes`;
  return new ConfigError([{ at: { file, line: 1, column: 1 }, key: 'syntax', message }]);
}

/** The file, or null when it is longer than `limit`; never more than that is read. */
function readBounded(path: string, limit: number): Buffer | null {
  const fd = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const chunk = Buffer.allocUnsafe(65536);
      const n = readSync(fd, chunk, 0, chunk.length, null);
      if (n === 0) return Buffer.concat(chunks);
      length += n;
      if (length > limit) return null;
      chunks.push(chunk.subarray(0, n));
    }
  } finally {
    closeSync(fd);
  }
}

function firstBadByte(bytes: Buffer, file: string): Position {
  let line = 1;
  for (let from = 0; ; line++) {
    const end = bytes.indexOf(10, from);
    const row = bytes.subarray(from, end < 0 ? undefined : end);
    const text = row.toString('utf8');
    if (end < 0 || !Buffer.from(text).equals(row))
      return { file, line, column: Math.max(0, text.indexOf('\ufffd')) + 1 };
    from = end + 1;
  }
}
