// Modules of Node.js in bundles: the same exports, looked up where they are used.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { lazyBuiltins } from '../../scripts/builtins.ts';

const BANNER =
  "import { createRequire as make } from 'node:module';\nconst require = make(import.meta.url);\nconst has = (name) => process.moduleLoadList.includes('NativeModule ' + name);";
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'builtins-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a bundle of this source prints. */
async function printed(source: string): Promise<string> {
  const file = path.join(folder, 'out.mjs');
  const stdin = { contents: source, resolveDir: folder };
  const common = { bundle: true, format: 'esm', platform: 'node', banner: { js: BANNER } } as const;
  await build({ ...common, stdin, outfile: file, plugins: [lazyBuiltins] });
  return execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim();
}

it('an import loads nothing, a use what it needs', async () => {
  const source = `import http, { STATUS_CODES } from 'node:http'; import { createSecureContext } from 'node:tls';
    const before = has('http'); const text = STATUS_CODES[404];
    console.log(before, text, http.STATUS_CODES === STATUS_CODES, has('tls'), typeof createSecureContext, has('tls'),
      has('internal/deps/undici/undici'));`;
  expect(await printed(source)).toBe('false Not Found true false function true false');
});

it('classes, functions and values are those of the module', async () => {
  const source = `import { Agent, request } from 'node:https'; import { createHash, randomBytes } from 'crypto';
    import * as workers from 'node:worker_threads';
    class Mine extends Agent {}
    console.log(new Mine() instanceof Agent, request === require('node:https').request, randomBytes(3).length,
      createHash('sha256').update('').digest('hex').slice(0, 6), workers.isMainThread);`;
  expect(await printed(source)).toBe('true true 3 e3b0c4 true');
});

it('of a module that is imported on demand split bundles know the default export alone, and the sources use no other', async () => {
  const outdir = path.join(folder, 'split');
  const contents = "const { default: http } = await import('node:http'); console.log(http.STATUS_CODES[404]);";
  const common = { bundle: true, splitting: true, format: 'esm', platform: 'node', banner: { js: BANNER } } as const;
  await build({
    ...common,
    stdin: { contents, resolveDir: folder },
    outdir,
    outExtension: { '.js': '.mjs' },
    plugins: [lazyBuiltins],
  });
  expect(execFileSync(process.execPath, [path.join(outdir, 'stdin.mjs')], { encoding: 'utf8' }).trim()).toBe(
    'Not Found',
  );
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const lines = sources.flatMap((name) => readFileSync(path.join('src', name), 'utf8').split('\n'));
  const demanded = lines.filter((line) =>
    /import\('(?:node:)?(?:https?|http2|tls|crypto|child_process|worker_threads)'\)/.test(line),
  );
  expect(demanded.filter((line) => !line.includes('{ default: '))).toEqual([]);
});

it('packages that require a module get the same', async () => {
  writeFileSync(path.join(folder, 'old.cjs'), "const { Server } = require('tls'); exports.name = Server.name;");
  expect(await printed("import { name } from './old.cjs'; console.log(name);")).toBe('Server');
});
