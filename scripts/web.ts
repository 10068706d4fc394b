// Builds the pages of the console (src/console/web) with vite, and lists what came out in pages.json with a packed copy
// of each file. Run by scripts/build.ts and by `npx tsx scripts/web.ts`; writes dist/web. What is built asks nothing of
// any other host.
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';
import { writeList } from './pagelist.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/**
 * Gives the files that went into the pages, as paths below the project. Whatever NODE_ENV says here: under a test runner
 * vite would build for development, with the paths of this machine in the pages.
 */
async function buildInto(folder: string): Promise<string[]> {
  const before = process.env.NODE_ENV;
  process.env.NODE_ENV = 'production';
  try {
    return await bundleInto(folder);
  } finally {
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
  }
}

async function bundleInto(folder: string): Promise<string[]> {
  const result = await build({
    root: path.join(root, 'src/console/web'),
    configFile: false,
    mode: 'production',
    base: './',
    publicDir: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: ['chrome123', 'firefox121', 'safari17.5'],
      // Small pictures stay files of their own: the pages' policy allows no more than it must.
      assetsInlineLimit: 0,
      modulePreload: false,
      sourcemap: false,
    },
  });
  writeList(folder, '/');
  if (!('output' in result)) throw new Error('scripts/web.ts: vite gave no single build');
  const chunks = result.output.filter((part) => part.type === 'chunk');
  return chunks
    .flatMap((chunk) => chunk.moduleIds)
    .map((id) => path.relative(root, id.replace(/^\0/, '').split('?')[0]));
}

/** Builds beside `folder` and takes its place only when all of it is there. Gives the files that went in. */
export async function buildPages(folder: string): Promise<string[]> {
  const fresh = `${folder}.${process.pid}`;
  try {
    mkdirSync(fresh, { recursive: true });
    const inputs = await buildInto(fresh);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
    return inputs;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  await buildPages(path.join(root, 'dist/web'));
