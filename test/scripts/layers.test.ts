// The check of layers finds what it is for: imports upwards or from behind a seam, cycles, files that act when they are loaded.
import { describe, expect, it } from 'vitest';
import { checkLayers } from '../../scripts/layers.ts';

/** file:line of each breach in these sources. */
function breaches(files: Record<string, string>): string[] {
  return checkLayers(new Map(Object.entries(files))).map(({ file, line, text }) => `${file}:${line} ${text}`);
}

function one(files: Record<string, string>): string {
  const found = breaches(files);
  expect(found).toHaveLength(1);
  return found[0];
}

const FN = 'export function f(): number {\n  return 1;\n}\n';

describe('layers', () => {
  it('allow values from the folders below', () => {
    expect(
      breaches({
        'base/a.ts': FN,
        'mqtt/b.ts': FN,
        'codec/c.ts':
          "import { f } from '../base/a.ts';\nimport { f as g } from '../mqtt/b.ts';\nexport const h = () => f() + g();\n",
      }),
    ).toEqual([]);
  });

  it('refuse an import upwards, with file and line', () => {
    expect(one({ 'base/a.ts': "// top\n\nimport { f } from '../codec/c.ts';\nexport const g = () => f();\n" })).toMatch(
      /^base\/a\.ts:3 base\/ may not depend on codec\//,
    );
  });

  it('refuse types upwards as well', () => {
    expect(one({ 'mqtt/a.ts': "import type { F } from '../router/router.ts';\nexport type G = F;\n" })).toContain(
      'mqtt/ may not depend on router/',
    );
  });

  it('allow types of a seam and refuse its values', () => {
    expect(breaches({ 'delivery/a.ts': "import type { S } from '../store/store.ts';\nexport type T = S;\n" })).toEqual(
      [],
    );
    expect(one({ 'delivery/a.ts': "import { s } from '../store/store.ts';\nexport const t = () => s;\n" })).toContain(
      'may use types of store/store.ts only',
    );
  });

  it('take inline type specifiers for types', () => {
    expect(breaches({ 'delivery/a.ts': "import { type S } from '../store/store.ts';\nexport type T = S;\n" })).toEqual(
      [],
    );
    expect(
      breaches({
        'delivery/a.ts': "import { type S, s } from '../store/store.ts';\nexport const t = (x: S) => s(x);\n",
      }),
    ).toHaveLength(1);
  });

  it('refuse types from behind a seam', () => {
    expect(one({ 'delivery/a.ts': "import type { S } from '../store/sqlite.ts';\nexport type T = S;\n" })).toContain(
      'only the seam store/store.ts is open',
    );
  });

  it('see lazy imports, import types and re-exports', () => {
    expect(one({ 'router/a.ts': "export const f = async () => import('../session/x.ts');\n" })).toContain('session');
    expect(one({ 'router/a.ts': "export type T = import('../session/session.ts').S;\n" })).toContain('session');
    expect(breaches({ 'router/a.ts': "export { f } from '../session/x.ts';\n" })).toHaveLength(2);
  });

  it('refuse files outside src and folders without a row', () => {
    expect(one({ 'base/a.ts': "import { x } from '../../test/x.ts';\nexport const y = () => x;\n" })).toContain(
      'outside src/',
    );
    expect(one({ 'stuff/a.ts': FN })).toContain('no row');
  });

  it('let only the top use the gateway', () => {
    expect(breaches({ 'cli/a.ts': "export const f = async () => import('../gateway.ts');\n" })).toEqual([]);
    expect(one({ 'broker/a.ts': "import type { G } from '../gateway.ts';\nexport type H = G;\n" })).toContain(
      'may not depend on gateway/',
    );
  });
});

describe('cycles', () => {
  it('of values are refused', () => {
    const found = one({
      'base/a.ts': "import { b } from './b.ts';\nexport const a = () => b;\n",
      'base/b.ts': "import { a } from './a.ts';\nexport const b = () => a;\n",
    });
    expect(found).toContain('cycle: base/a.ts -> base/b.ts -> base/a.ts');
  });

  it('of types are none', () => {
    expect(
      breaches({
        'base/a.ts': "import type { B } from './b.ts';\nexport type A = B;\n",
        'base/b.ts': "import type { A } from './a.ts';\nexport type B = A;\n",
      }),
    ).toEqual([]);
  });
});

describe('a file', () => {
  it('may not pass on other files or have a default export', () => {
    expect(one({ 'base/a.ts': "export * from './b.ts';\n" })).toContain('re-exports');
    expect(one({ 'base/a.ts': "export type { B } from './b.ts';\n" })).toContain('re-exports');
    expect(one({ 'base/a.ts': 'export default function f() {}\n' })).toContain('default export');
  });

  it('that is the seam may name things of its own folder', () => {
    expect(breaches({ 'store/store.ts': "export type { B } from './b.ts';\n" })).toEqual([]);
    expect(one({ 'store/store.ts': "export * from './b.ts';\n" })).toContain('re-exports');
    expect(one({ 'store/store.ts': "export type { B } from '../base/b.ts';\n" })).toContain('re-exports');
  });

  it.each([
    ['a call', 'start();\n'],
    ['a loop', 'for (const x of [1]) f(x);\n'],
    ['an import for its effect', "import './b.ts';\n"],
    [
      'a read of a file',
      "import { readFileSync } from 'node:fs';\nconst text = readFileSync('/x');\nexport const f = () => text;\n",
    ],
    [
      'a read through a namespace',
      "import fs from 'node:fs';\nconst text = { a: fs.readFileSync('/x') };\nexport const f = () => text;\n",
    ],
    ['a timer', 'const t = setInterval(() => {}, 5);\nexport const f = () => t;\n'],
    ['a wait', "const t = await import('ws');\nexport const f = () => t;\n"],
  ])('may not do %s at import time', (_name, source) => {
    expect(one({ 'base/a.ts': source })).toMatch(/import time|side effect/);
  });

  it('may hold constants, functions, classes and lazy calls', () => {
    const source =
      "import { readFileSync } from 'node:fs';\nexport const A = new Map([[1, 2]]);\nconst EMPTY: ReadonlySet<string> = new Set();\ntype R = ReadonlyMap<string, string>;\nconst NONE: R = new Map();\nexport const N = () => NONE;\nexport const f = () => readFileSync('/x');\nexport class C {\n  x = Buffer.alloc(1);\n}\nexport const E = () => EMPTY;\n";
    expect(breaches({ 'base/a.ts': source })).toEqual([]);
  });

  it('may hold no state', () => {
    expect(one({ 'base/a.ts': 'let n = 0;\nexport const f = () => n++;\n' })).toContain('module state');
    expect(one({ 'base/a.ts': 'const seen = new Map<string, string>();\nexport const f = () => seen;\n' })).toContain(
      'module state',
    );
  });

  it('that starts the program or a thread may act', () => {
    expect(breaches({ 'main.ts': 'run();\n', 'store/worker.ts': 'listen();\n' })).toEqual([]);
  });
});

it('a comment wider than 120 columns is refused, code is left to the formatter', () => {
  expect(one({ 'base/a.ts': `// top\n/** ${'x'.repeat(120)} */\nexport const a = 1;\n` })).toMatch(
    /^base\/a\.ts:2 a comment of \d+ columns/,
  );
  expect(breaches({ 'base/a.ts': `export const a = '${'x'.repeat(150)}';\n` })).toEqual([]);
});
