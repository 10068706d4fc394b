// Modules of Node.js that cost more than what most starts use of them: an import statement loads the whole module and
// evaluates every export, also those that load half a library when they are read (node:http: fetch and WebSocket, 40 ms
// and 10 MB). In the bundles each export is looked up where it is used. Called by build.ts.
// Must not change what the modules export. Measured on Node.js 20 and 22 with /proc/self/status around an import.
// Source: https://esbuild.github.io/plugins/.
import { createRequire } from 'node:module';
import type { Plugin } from 'esbuild';

const require = createRequire(import.meta.url);
const COSTLY = /^(?:node:)?(http|https|http2|tls|crypto|child_process|worker_threads)$/;

export const lazyBuiltins: Plugin = {
  name: 'lazy-builtins',
  setup(build) {
    build.onResolve({ filter: COSTLY }, ({ path, namespace }) => {
      const name = `node:${path.replace(/^node:/, '')}`;
      return namespace === 'builtin' ? { path: name, external: true } : { path: name, namespace: 'builtin' };
    });
    build.onLoad({ filter: /./, namespace: 'builtin' }, ({ path }) => ({
      contents: `for (const key of ${JSON.stringify(Object.keys(require(path) as object).sort())})
        Object.defineProperty(exports, key, { enumerable: true, get: () => require('${path}')[key] });`,
    }));
  },
};
