// Checks how the folders of src/ depend on each other, in `make check`: values only from lower layers, types of other
// stages only from their seam file, no cycles, no barrels, no state and no effects at import time. Prints file:line for
// each breach and exits 1. The table is the architecture in one place; a new folder needs a row here.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { checkHeads } from './heads.ts';

interface Layer {
  /** Folders whose code may be used. */
  readonly values: readonly string[];
  /** Folders whose seam file (folder/folder.ts) may be used for its types. */
  readonly seams: readonly string[];
}

const STAGES = ['transport', 'store', 'auth', 'policy', 'delivery', 'router', 'sp', 'broker'];
const BELOW = ['base', 'mqtt', 'codec', 'config', ...STAGES, 'session', 'bridge', 'proxy', 'rules', 'archive'];

export const LAYERS: Readonly<Record<string, Layer>> = {
  base: { values: [], seams: [] },
  mqtt: { values: ['base'], seams: [] },
  codec: { values: ['base', 'mqtt'], seams: [] },
  config: { values: ['base'], seams: [] },
  transport: { values: ['base', 'mqtt'], seams: [] },
  store: { values: ['base', 'mqtt', 'codec'], seams: [] },
  auth: { values: ['base', 'mqtt'], seams: ['transport'] },
  policy: { values: ['base', 'mqtt', 'config'], seams: ['auth'] },
  delivery: { values: ['base', 'mqtt', 'codec'], seams: ['transport', 'store'] },
  sp: { values: ['base', 'mqtt', 'codec'], seams: ['transport', 'store'] },
  router: { values: ['base', 'mqtt'], seams: ['delivery', 'store'] },
  session: { values: ['base', 'mqtt', 'codec'], seams: STAGES },
  bridge: { values: ['base', 'mqtt', 'codec'], seams: STAGES },
  proxy: { values: ['base', 'mqtt', 'codec'], seams: STAGES },
  rules: { values: ['base', 'mqtt', 'config'], seams: STAGES },
  broker: { values: ['base', 'mqtt', 'codec', 'session', 'router', 'delivery'], seams: BELOW },
  archive: { values: ['base', 'mqtt', 'store'], seams: STAGES },
  webhook: { values: ['base', 'mqtt'], seams: BELOW },
  tracing: { values: ['base', 'mqtt'], seams: BELOW },
  console: { values: ['base', 'mqtt'], seams: [...BELOW, 'console'] },
  gateway: { values: [...BELOW, 'webhook', 'tracing', 'console'], seams: [] },
  cli: { values: [...BELOW, 'console', 'gateway'], seams: [] },
  /** src/*.ts: main, index and the version. */
  '': { values: [...BELOW, 'console', 'cli', 'gateway'], seams: [] },
};

/** Columns of a comment. */
const WIDTH = 120;

/** What runs at import time by design: the command, and worker threads. */
function isEntry(file: string): boolean {
  return file === 'main.ts' || path.posix.basename(file) === 'worker.ts';
}

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** The part of an ESTree node that is looked at here. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

interface Import {
  /** Path below src/. */
  readonly target: string;
  readonly at: number;
  readonly typeOnly: boolean;
  readonly lazy: boolean;
}

interface Module {
  readonly file: string;
  readonly source: string;
  readonly body: readonly Node[];
  readonly imports: readonly Import[];
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

function nodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function* walk(node: Node): Generator<Node> {
  yield node;
  for (const key of Object.keys(node)) {
    const value = node[key];
    if (Array.isArray(value)) for (const child of nodes(value)) yield* walk(child);
    else if (isNode(value)) yield* walk(value);
  }
}

function text(node: unknown): string {
  if (!isNode(node)) return '';
  if (node.type === 'Identifier') return String(node.name);
  if (node.type === 'Literal') return String(node.value);
  return '';
}

function importOf(file: string, node: Node): Import | null {
  const lazy = node.type === 'ImportExpression';
  const wanted = ['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration', 'TSImportType'];
  if (!lazy && !wanted.includes(node.type)) return null;
  const specifier = text(node.source ?? node.argument);
  if (!specifier.startsWith('.')) return null;
  const target = path.posix.join(path.posix.dirname(file), specifier);
  const named = nodes(node.specifiers);
  const typeOnly =
    node.type === 'TSImportType' ||
    node.importKind === 'type' ||
    node.exportKind === 'type' ||
    (named.length > 0 && named.every((s) => s.importKind === 'type' || s.exportKind === 'type'));
  return { target, at: node.start, typeOnly, lazy };
}

function read(file: string, source: string): Module {
  const program = parseAst(source, { lang: 'ts' }) as unknown as Node;
  const imports: Import[] = [];
  for (const node of walk(program)) {
    const found = importOf(file, node);
    if (found !== null) imports.push(found);
  }
  return { file, source, body: nodes(program.body), imports };
}

function folderOf(file: string): string {
  const cut = file.indexOf('/');
  return cut < 0 ? '' : file.slice(0, cut);
}

/** The wiring beside main.ts (gateway/gateway.ts and its like) is a layer of its own for those who start it. */
function layerOf(file: string): string {
  const folder = folderOf(file);
  return folder === '' && file !== 'main.ts' && file !== 'index.ts' ? 'gateway' : folder;
}

class Check {
  readonly found: Violation[] = [];
  private readonly modules: readonly Module[];

  constructor(modules: readonly Module[]) {
    this.modules = modules;
  }

  run(): void {
    for (const module of this.modules) {
      this.layers(module);
      this.barrels(module);
      this.width(module);
      if (!isEntry(module.file)) this.effects(module);
    }
    this.cycles();
  }

  /** Comments are not wrapped by the formatter, so that their width is checked here. */
  private width(module: Module): void {
    let at = 0;
    for (const line of module.source.split('\n')) {
      if (line.length > WIDTH && /^\s*(?:\/\/|\*|\/\*)/.test(line))
        this.add(module, at, `a comment of ${line.length} columns, ${WIDTH} is the most`);
      at += line.length + 1;
    }
  }

  private add(module: Module, at: number, message: string): void {
    const line = module.source.slice(0, at).split('\n').length;
    this.found.push({ file: module.file, line, text: message });
  }

  private layers(module: Module): void {
    const from = folderOf(module.file);
    const layer = LAYERS[from];
    if (layer === undefined) {
      this.add(module, 0, `folder ${from}/ has no row in the layer table`);
      return;
    }
    for (const { target, at, typeOnly } of module.imports) {
      if (target.startsWith('..')) {
        if (target !== '../package.json') this.add(module, at, `imports ${target}, outside src/`);
        continue;
      }
      const to = layerOf(target);
      if (to === from || layer.values.includes(to)) continue;
      const seam = `${to}/${to}.ts`;
      if (typeOnly && layer.seams.includes(to)) {
        if (target !== seam)
          this.add(module, at, `takes types from ${target}; only the seam ${seam} is open to ${from}/`);
      } else if (layer.seams.includes(to))
        this.add(module, at, `uses code of ${target}; ${from}/ may use types of ${seam} only`);
      else this.add(module, at, `${from || 'src'}/ may not depend on ${to}/ (${target})`);
    }
  }

  private barrels(module: Module): void {
    if (module.file === 'index.ts') return;
    const folder = folderOf(module.file);
    for (const node of module.body) {
      if (node.type === 'ExportDefaultDeclaration') this.add(module, node.start, 'has a default export');
      const from = importOf(module.file, node);
      if (from === null || node.type === 'ImportDeclaration') continue;
      // A seam may name what of its own folder others may use; nothing else is passed on.
      const seam = module.file === `${folder}/${folder}.ts` && folderOf(from.target) === folder;
      if (node.type === 'ExportAllDeclaration' || !seam) {
        this.add(module, node.start, 're-exports another file; import from where a thing is made');
      }
    }
  }

  private effects(module: Module): void {
    const fromNode = new Set<string>();
    for (const node of module.body) {
      if (node.type !== 'ImportDeclaration' || !text(node.source).startsWith('node:')) continue;
      for (const specifier of nodes(node.specifiers)) fromNode.add(text(specifier.local));
    }
    for (const outer of module.body) {
      const node = outer.type === 'ExportNamedDeclaration' && isNode(outer.declaration) ? outer.declaration : outer;
      if (node.type === 'ExpressionStatement' && !('directive' in node && node.directive)) {
        this.add(module, node.start, 'does something at import time');
      } else if (/^(If|For|While|DoWhile|Try|Switch|Block|ForOf|ForIn)/.test(node.type)) {
        this.add(module, node.start, 'does something at import time');
      } else if (node.type === 'VariableDeclaration') this.variable(module, node, fromNode);
      else if (node.type === 'ImportDeclaration' && nodes(node.specifiers).length === 0) {
        this.add(module, node.start, 'imports for a side effect');
      }
    }
  }

  private variable(module: Module, node: Node, fromNode: ReadonlySet<string>): void {
    if (node.kind !== 'const') this.add(module, node.start, `module state: ${String(node.kind)} at the top of a file`);
    for (const declarator of nodes(node.declarations)) {
      const init = declarator.init;
      if (!isNode(init)) continue;
      const declared = module.source.slice(declarator.start, init.start);
      if (isEmptyCollection(init) && !isReadonly(declared, module.source))
        this.add(module, node.start, 'module state: an empty collection at the top of a file');
      const culprit = effectIn(init, fromNode);
      if (culprit !== null) this.add(module, init.start, `calls ${culprit} at import time`);
    }
  }

  /** Cycles of values between files; lazy imports and types close none. */
  private cycles(): void {
    const byFile = new Map(this.modules.map((m) => [m.file, m]));
    const state = new Map<string, 'open' | 'done'>();
    const trail: string[] = [];
    const visit = (module: Module): void => {
      state.set(module.file, 'open');
      trail.push(module.file);
      for (const { target, at, typeOnly, lazy } of module.imports) {
        const next = byFile.get(target);
        if (typeOnly || lazy || next === undefined) continue;
        if (state.get(target) === 'open') {
          this.add(module, at, `cycle: ${[...trail.slice(trail.indexOf(target)), target].join(' -> ')}`);
        } else if (state.get(target) === undefined) visit(next);
      }
      trail.pop();
      state.set(module.file, 'done');
    };
    for (const module of this.modules) if (!state.has(module.file)) visit(module);
  }
}

/** Whether a declaration says Readonly... of its type, by itself or by the name of a type of the same file. */
function isReadonly(declared: string, source: string): boolean {
  const type = declared.slice(declared.indexOf(':') + 1).match(/\w+/)?.[0] ?? '';
  return type.startsWith('Readonly') || source.includes(`type ${type} = Readonly`);
}

function isEmptyCollection(init: Node): boolean {
  return (
    init.type === 'NewExpression' &&
    /^(Map|Set|WeakMap|WeakSet)$/.test(text(init.callee)) &&
    nodes(init.arguments).length === 0
  );
}

/** Functions of Node that only compute. */
const PURE = new Set([
  'promisify',
  'fileURLToPath',
  'join',
  'resolve',
  'dirname',
  'basename',
  'createRequire',
  'getSystemErrorName',
]);
const TIMERS = new Set(['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch']);

/**
 * The call with an effect that runs while `init` is computed, or null. Bodies of functions run later and do not count.
 */
function effectIn(init: Node, fromNode: ReadonlySet<string>): string | null {
  if (/Function|Class/.test(init.type)) return null;
  if (init.type === 'CallExpression' && isNode(init.callee)) {
    const callee = init.callee;
    const owner = callee.type === 'MemberExpression' ? text(callee.object) : '';
    const name = callee.type === 'MemberExpression' ? text(callee.property) : text(callee);
    if (!PURE.has(name) && (TIMERS.has(name) || owner === 'process' || fromNode.has(owner || name)))
      return owner === '' ? name : `${owner}.${name}`;
  }
  if (init.type === 'AwaitExpression') return 'await';
  for (const key of Object.keys(init)) {
    const value = init[key];
    for (const child of isNode(value) ? [value] : nodes(value)) {
      const found = effectIn(child, fromNode);
      if (found !== null) return found;
    }
  }
  return null;
}

/** All breaches in `files`: path below src/ to source text. `others` are files outside src/ that heads may name. */
export function checkLayers(files: ReadonlyMap<string, string>, others: ReadonlySet<string> = new Set()): Violation[] {
  const modules = [...files].map(([file, source]) => read(file, source));
  const check = new Check(modules);
  check.run();
  const headed = modules.map(({ file, source, imports }) => ({ file, source, targets: imports.map((i) => i.target) }));
  return [...check.found, ...checkHeads(headed, others)];
}

function sourceFiles(folder: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = name.split(path.sep).join('/');
    if (file.endsWith('.ts') && !file.endsWith('.d.ts') && !file.startsWith('console/web/')) {
      files.set(file, readFileSync(path.join(folder, name), 'utf8'));
    }
  }
  return files;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
  const others = new Set(
    ['test', 'scripts'].flatMap((folder) =>
      readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        path.posix.join(folder, name.split(path.sep).join('/')),
      ),
    ),
  );
  const found = checkLayers(sourceFiles(path.join(root, 'src')), others);
  for (const { file, line, text: message } of found) console.error(`src/${file}:${line}: ${message}`);
  if (found.length > 0) process.exitCode = 1;
}
