// The bundle of `tidegate start`: one file with everything that each start loads, and files for features on demand. With
// the files that all commands share, a start read 77 of them, and finding a file takes longer than reading it.
// Used by build.ts for the entry src/cli/run.ts. Each feature on demand imports that entry, which costs nothing by then;
// so all modules of the entry have the same users, and esbuild keeps them together.
// Source: https://esbuild.github.io/api/#splitting.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';

const src = path.join(path.dirname(import.meta.dirname), 'src');
export const CORE = path.join(src, 'cli/run.ts');
const COMMANDS = path.join(src, 'cli/cli.ts');

/** In the bundle of all commands: `start` has a bundle of its own, `name`. */
export function coreApart(name: string): Plugin {
  return {
    name: 'core-apart',
    setup(build) {
      build.onResolve({ filter: /\/run\.ts$/ }, ({ kind, importer }) =>
        kind === 'dynamic-import' && importer === path.join(src, 'main.ts') ? { path: name, external: true } : null,
      );
    },
  };
}

/** In the bundle of `start`: what is loaded on demand uses the core, and the other commands are not in it. */
export const oneCore: Plugin = {
  name: 'one-core',
  setup(build) {
    const onDemand = new Set<string>();
    build.onResolve({ filter: /^\./ }, ({ path: wanted, kind, importer }) => {
      if (kind !== 'dynamic-import' || !importer.startsWith(src)) return null;
      if (importer === COMMANDS && wanted !== './start.ts') return { path: './main.js', external: true };
      onDemand.add(path.join(path.dirname(importer), wanted));
      return null;
    });
    build.onLoad({ filter: /\.ts$/ }, ({ path: file }) =>
      onDemand.has(file)
        ? { contents: `import ${JSON.stringify(CORE)};${readFileSync(file, 'utf8')}`, loader: 'ts' }
        : null,
    );
  },
};
