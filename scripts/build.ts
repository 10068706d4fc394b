// Bundles src/ into dist/: main.js (the command), index.js (the library), one file for each worker, and chunks for what
// is imported on demand. Run by `make build`. Writes beside the old files first, so that a running gateway never sees
// half a build. Sources: esbuild's documentation of code splitting; package.json `bin` and `exports`.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { lazyBuiltins } from './builtins.ts';
import { CORE, coreApart, oneCore } from './core.ts';
import { bundledPackages, writeNotices } from './notices.ts';
import { buildSite } from './site.ts';
import { buildPages } from './web.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const out = path.join(root, 'dist');
const fresh = path.join(root, `dist.${process.pid}`);
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };

/** Native, optional or replaceable by the user: found in node_modules at run time, and only when asked for. */
const EXTERNAL = [
  'nanomsg',
  'koffi',
  'libsql',
  '@node-rs/argon2',
  'aedes',
  'aedes-*',
  'mqemitter*',
  'bufferutil',
  'utf-8-validate',
];

/** CommonJS packages inside an ES module bundle call require() for Node's own modules. */
const BANNER =
  "import { createRequire as tidegateRequire } from 'node:module';\nconst require = tidegateRequire(import.meta.url);";

function sourcesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name));
}

/**
 * Names of the bundles: src/store/worker.ts is dist/worker.js, beside the chunk that starts it; of other folders
 * <folder>-worker.js.
 */
function entryPoints(): Record<string, string> {
  const entries: Record<string, string> = { main: path.join(root, 'src/main.ts') };
  if (existsSync(path.join(root, 'src/index.ts'))) entries.index = path.join(root, 'src/index.ts');
  if (existsSync(path.join(root, 'src/aedes.ts'))) entries.aedes = path.join(root, 'src/aedes.ts');
  for (const file of sourcesOf(path.join(root, 'src'))) {
    if (path.basename(file) !== 'worker.ts') continue;
    const folder = path.basename(path.dirname(file));
    entries[folder === 'store' ? 'worker' : `${folder}-worker`] = file;
  }
  return entries;
}

/** Gives the files that went into the bundles. */
async function bundle(): Promise<string[]> {
  const { main, index, ...workers } = entryPoints();
  // A worker is one file, which shares nothing with the others: it must not load what only the gateway needs.
  const inputs: string[] = [];
  for (const [name, file] of Object.entries(workers)) inputs.push(...(await bundled({ [name]: file }, [lazyBuiltins])));
  inputs.push(...(await bundled({ run: CORE }, [lazyBuiltins, oneCore])));
  inputs.push(...(await bundled({ main, index }, [lazyBuiltins, coreApart('./run.js')])));
  return [...new Set(inputs)];
}

async function bundled(entryPoints: Record<string, string>, plugins: Plugin[]): Promise<string[]> {
  const { metafile } = await build({
    entryPoints,
    outdir: fresh,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    chunkNames: '[name]-[hash]',
    external: EXTERNAL,
    plugins,
    banner: { js: BANNER },
    // Names stay readable in stack traces; white space and syntax do not help anybody at run time.
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: false,
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    absWorkingDir: root,
  });
  return Object.keys(metafile.inputs);
}

/** Type declarations of the library entry, with the extensions a user of dist/ needs. */
function declarations(): void {
  if (!existsSync(path.join(root, 'src/index.ts'))) return;
  const types = path.join(fresh, 'types');
  const tsc = path.join(root, 'node_modules/.bin/tsc');
  const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', types], { cwd: root, stdio: 'inherit' });
  // They are written all the same; types are what `make check` fails for.
  if (status !== 0) console.error('build: the types have errors');
  for (const file of sourcesOf(types)) {
    if (!file.endsWith('.d.ts')) continue;
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/((?:from|import\()\s*['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2'));
  }
}

/** The pages of the console and of the documentation go straight to their folders, by scripts of their own. */
const PAGES = ['web', 'docs'];

/** Moves the new files in, then removes what the new build does not have. */
function swap(): void {
  mkdirSync(out, { recursive: true });
  const made = new Set<string>();
  for (const file of sourcesOf(fresh)) {
    const name = path.relative(fresh, file);
    made.add(name);
    const target = path.join(out, name);
    if (statSync(file).isDirectory()) mkdirSync(target, { recursive: true });
    else renameSync(file, target);
  }
  for (const file of sourcesOf(out).reverse()) {
    const name = path.relative(out, file);
    if (!PAGES.includes(name.split(path.sep)[0]) && !made.has(name)) rmSync(file, { recursive: true, force: true });
  }
}

try {
  const inputs = await bundle();
  declarations();
  chmodSync(path.join(fresh, 'main.js'), 0o755);
  inputs.push(...(await buildPages(path.join(out, 'web'))));
  inputs.push(...(await buildSite(path.join(out, 'docs'))));
  writeNotices(fresh, version, bundledPackages(inputs, root));
  swap();
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
