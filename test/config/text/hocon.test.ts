// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError, type Problem } from '../../../src/config/problem.ts';
import { parseHocon, parsePath, type Source } from '../../../src/config/text/hocon.ts';
import type { Node } from '../../../src/config/text/node.ts';
import { resolveTree } from '../../../src/config/text/resolve.ts';
import { folder, problems, warnings } from '../../harness/configfiles.ts';
import { caught } from '../../harness/thrown.ts';

interface Vectors {
  readonly env: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly {
    readonly name: string;
    readonly text: string;
    readonly value?: unknown;
    readonly error?: boolean;
  }[];
}
const vectors: Vectors = JSON.parse(readFileSync(new URL('../../vectors/hocon.json', import.meta.url), 'utf8'));
const files: Source = {
  open: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : null),
  show: (path) => path,
};

function plain(node: Node): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(plain);
  return Object.fromEntries([...node.fields].map(([key, member]) => [key, plain(member.value)]));
}

function parse(text: string, dir = '/none', warned: Problem[] = []): unknown {
  const env = (name: string) => (Object.hasOwn(vectors.env, name) ? vectors.env[name] : undefined);
  return plain(resolveTree(parseHocon(text, join(dir, 'main.conf'), files, warned), env));
}

function mistake(text: string, dir?: string): string {
  const error = caught(() => parse(text, dir));
  if (!(error instanceof ConfigError)) throw error;
  const { at, key, message } = error.problems[0];
  return `${at.line}:${at.column} ${key}: ${message}`;
}

describe('HOCON', () => {
  const dir = folder(vectors.files);
  for (const { name, text, value, error } of vectors.cases) {
    test(`vector "${name}" gives what the language says`, () => {
      const source = text.replaceAll('{dir}', dir);
      if (error) expect(caught(() => parse(source, dir))).toBeInstanceOf(ConfigError);
      else expect(parse(source, dir)).toEqual(value);
    });
  }

  test('names keep the order of the file, numbers too', () => {
    const tree = resolveTree(
      parseHocon('b = 1\n7 = 2\na = 3\n"1" = 4\nb = 5', '/main.conf', files, []),
      () => undefined,
    );
    expect([...tree.fields.keys()]).toEqual(['b', '7', 'a', '1']);
  });

  test('a list written with += keeps its order among blocks and references', () => {
    expect(parse('x = 1\na += 1\na += { b = 2 }\na += ${x}\na += 3')).toEqual({ x: 1, a: [1, { b: 2 }, 1, 3] });
  });

  test('+= inside a block goes on with the list from an earlier block', () => {
    expect(parse('p.a = [1]\np { a += 2 }\np { a += 3, a += 4 }\np.a += 5')).toEqual({ p: { a: [1, 2, 3, 4, 5] } });
    expect(parse('p { a += 1 }\np { a += 2 }')).toEqual({ p: { a: [1, 2] } });
    expect(parse('b.a = [0]\np = ${b}\np { a += 1 }')).toEqual({ b: { a: [0] }, p: { a: [0, 1] } });
    expect(parse('p { a += 1 }\np.a = [5]\np { a += 2 }')).toEqual({ p: { a: [5, 2] } });
  });

  test('+= after a value of the environment is not taken from there', () => {
    expect(parse('HOCON_TEST_ENV += 1')).toEqual({ HOCON_TEST_ENV: [1] });
  });

  test('a reference inside a list sees the older value of its own key', () => {
    expect(parse('a = [1]\na = [${a}, 2]')).toEqual({ a: [[1], 2] });
  });

  test('a reference to a key with an older block merges over it', () => {
    expect(parse('b { x = 1 }\na { y = 2 }\na = ${b}\na { z = 3 }')).toEqual({ b: { x: 1 }, a: { y: 2, x: 1, z: 3 } });
  });

  test('escapes of JSON are decoded, pairs of surrogates too', () => {
    expect(parse(String.raw`a = "\t\n\r\b\f\\\/\"\u2192\ud83d\ude80"`)).toEqual({ a: '\t\n\r\b\f\\/"→🚀' });
  });

  test('a raw tab inside quotes is kept', () => {
    expect(parse('a = "x\ty"')).toEqual({ a: 'x\ty' });
  });
});

describe('HOCON mistakes', () => {
  const cases: [string, string, string][] = [
    ['a text without an end', 'a {\n  b = "x\n}', '2:7 syntax: this text has no closing quote'],
    ['a triple-quoted text without an end', '\na = """x', '2:5 syntax: this text has no closing """'],
    ['a brace too many', 'a { b = 1 }\n}', '2:1 syntax: a closing brace without an opening one'],
    ['a brace too few', 'x = 1\n  a {\n b = 1', '2:6 syntax: this brace is never closed'],
    ['a bracket too few', 'a = [1,', '1:5 syntax: this bracket is never closed'],
    ['no value', 'a {\n  b =\n}', '3:1 syntax: a value expected, found "}"'],
    [
      'an unquoted address',
      'bind = 0.0.0.0:1883',
      '1:15 syntax: a comma or a new line expected, found ":"; a text with this sign needs quotes',
    ],
    ['a dollar without a brace', 'a = $x', '1:5 syntax: "$" has to be followed by "{"; put the value into quotes'],
    ['a reference without an end', 'a = ${x', '1:5 syntax: this ${ has no closing brace'],
    ['an unknown escape', 'a = "\\x"', '1:6 syntax: unknown escape; write \\\\ for a backslash'],
    ['half of a surrogate pair', 'a = "\\ud83d"', '1:5 syntax: this text holds half of a surrogate pair'],
    ['text joined with a block', 'a = x { b = 1 }', '1:7 a: texts, lists and blocks cannot be joined with each other'],
    ['a list at the top', '[1]', '1:1 syntax: the file has to be a block of keys, not a list'],
    ['text after the last brace', '{ a = 1 }\nb', '2:1 syntax: nothing may follow the last brace, found "b"'],
    [
      'an include from the network',
      'include url("http://x/y")',
      '1:1 syntax: include url() is not supported, only files',
    ],
    ['a name that would change all objects', 'a.__proto__.b = 1', '1:1 a.__proto__.b: this name cannot be used'],
  ];
  for (const [name, text, want] of cases) {
    test(`${name} is told with its place`, () => {
      expect(mistake(text)).toBe(want);
    });
  }

  test('every reference that finds nothing is told, with the key it stands in', () => {
    const error = caught(() => parse('a.b = ${x}\nc = [${y.z}]\nd = ${?w}'));
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems.map((p) => `${p.at.line}:${p.at.column} ${p.key}`)).toEqual([
      '1:7 a.b',
      '2:6 c',
    ]);
  });

  test('a value that a comment cuts off is warned about', () => {
    const warned: Problem[] = [];
    parse('a = x#y\nb = x #y\nc = "x"#y\nd = http//x', '/none', warned);
    expect(warned.map((w) => `${w.at.line}:${w.at.column} ${w.key}`)).toEqual(['1:5 a', '4:5 d']);
  });

  test('a comment that cuts a line is told with the mistake it causes', () => {
    expect(problems('http_server { password = x#y }')[1]).toContain('a comment begins inside this value');
  });

  test('two blocks side by side in a list are refused: HOCON would merge them, NanoMQ reads two', () => {
    const text = 'bridges.mqtt.x { server = "mqtt://h", forwards = [ { local_topic = a } { local_topic = b } ] }';
    expect(problems(text)[0]).toContain('two blocks side by side in a list');
  });
});

describe('HOCON includes', () => {
  test('a file outside the folder is refused, whichever way it is named', () => {
    const outside = [
      '"/etc/passwd"',
      '"../../etc/passwd"',
      'file("/etc/hosts")',
      '"/nonexistent/x"',
      'required(file("/etc/passwd"))',
    ];
    for (const name of outside) {
      expect(problems(`include ${name}`)).toEqual([
        expect.stringMatching(
          /^1:1 include: only files below \/\S+, the folder of the main file, can be included: move/,
        ),
      ]);
    }
  });

  test('a symbolic link that leads outside is refused', () => {
    const dir = folder();
    symlinkSync('/etc/passwd', join(dir, 'link.conf'));
    expect(() => parse('include "link.conf"', dir)).toThrow();
    expect(problems(`include "${join(dir, 'link.conf')}"`)[0]).toContain('only files below');
  });

  test('a file that includes itself is refused', () => {
    expect(problems('include "c.conf"')).toEqual(['1:1 include: c.conf includes itself']);
  });

  test('more than 16 files inside each other are refused', () => {
    const chain = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`i${i}.conf`, `include "i${i + 1}.conf"`]));
    expect(problems('include "i0.conf"', { files: chain })[0]).toContain('more than 16 files include each other');
  });

  test('a missing file is warned about, but is a mistake where rights depend on it', () => {
    expect(warnings('include "none.conf"')).toEqual(['1:1 include: there is no file none.conf, nothing is included']);
    expect(problems('auth { acl = {include "none.conf"} }')).toEqual(['1:15 include: there is no file none.conf']);
    expect(problems('include required("none.conf")')).toEqual(['1:1 include: there is no file none.conf']);
  });

  test('a mistake in an included file is told there', () => {
    const error = caught(() => parse('include "sub/x.conf"', folder({ 'sub/x.conf': '\n\na = ]' })));
    expect((error as ConfigError).problems[0].at).toMatchObject({
      file: expect.stringMatching(/sub\/x\.conf$/),
      line: 3,
      column: 5,
    });
  });
});

describe('HOCON bounds', () => {
  const doubling = (line: (i: number) => string) =>
    `a0 = [1]\n${Array.from({ length: 60 }, (_, i) => line(i)).join('\n')}`;
  const hostile: [string, string][] = [
    ['braces', 'a {'.repeat(100_000)],
    ['lists', `a = ${'['.repeat(100_000)}`],
    ['dots', `a${'.a'.repeat(100_000)} = 1`],
    ['lists that double', doubling((i) => `a${i + 1} = \${a${i}} \${a${i}}`)],
    ['lists of lists that double', doubling((i) => `a${i + 1} = [\${a${i}}, \${a${i}}]`)],
    ['blocks that double', doubling((i) => `a${i + 1} { l = \${a${i}}, r = \${a${i}} }`)],
    [
      'texts that double',
      `a0 = "0123456789"\n${Array.from({ length: 60 }, (_, i) => `a${i + 1} = \${a${i}}\${a${i}}`).join('\n')}`,
    ],
    ['a key that doubles itself', `a = x\n${'a = ${a}${a}\n'.repeat(300)}`],
    ['a key that asks for itself in vain', 'a = ${?a}${?a}${?x}\n'.repeat(300)],
    [
      'a chain of references',
      `${Array.from({ length: 9000 }, (_, i) => `a${i} = \${a${i + 1}}`).join('\n')}\na9000 = 1`,
    ],
  ];
  for (const [name, text] of hostile) {
    test(`${name} are refused with a place`, () => {
      expect(mistake(text)).toMatch(
        /^\d+:\d+ syntax: (more than 64 levels|references make this configuration too large)$/,
      );
    });
  }

  const long: [string, string][] = [
    ['a text in quotes', `log.dir = "${'x\t'.repeat(2_000_000)}"`],
    ['a text in triple quotes', `log.dir = """${'x\n'.repeat(2_000_000)}"""`],
    ['an unquoted text', `log.dir = ${'x/'.repeat(2_000_000)}`],
    ['blanks and comments', `${' '.repeat(4_000_000)}#${'x'.repeat(4_000_000)}`],
  ];
  for (const [name, text] of long) {
    test(`${name} of megabytes is taken`, () => {
      expect(warnings(text)).toEqual([]);
    });
  }

  test('too many values and names that are too long are refused', () => {
    expect(mistake(`a = ${'x '.repeat(600_000)}`)).toMatch(/syntax: more than 500000 values$/);
    expect(mistake(`a = [${'1,'.repeat(600_000)}]`)).toMatch(/syntax: more than 500000 values$/);
    expect(mistake(`${'x'.repeat(1001)} = 1`)).toBe('1:1 syntax: a name of more than 1000 characters');
    expect(mistake(`${'"x" '.repeat(1001)} = 1`)).toBe('1:1 syntax: a name of more than 1000 characters');
  });

  test('of very many mistakes the first 200 are told and the rest counted', () => {
    const told = problems(Array.from({ length: 1000 }, (_, i) => `k${i} = 1`).join('\n'));
    expect(told).toHaveLength(201);
    expect(told[200]).toBe('configuration and: 800 more');
  });

  test('20,000 elements added one by one are taken', () => {
    expect(parse(`a = []\n${'a += 1\n'.repeat(20_000)}`)).toEqual({ a: Array.from({ length: 20_000 }, () => 1) });
  });

  test('a file over 16 MB is refused', () => {
    expect(problems(new Uint8Array(16 * 1024 * 1024 + 1).fill(0x20))).toEqual([
      '1:1 syntax: larger than 16 MB, with what it includes',
    ]);
  });

  test('many files that come to over 16 MB together are refused', () => {
    const text = Array.from({ length: 200 }, () => 'include "e.conf"').join('\n');
    expect(problems(text, { files: { 'e.conf': ' '.repeat(100_000) } })[0]).toContain('larger than 16 MB');
  });

  test('bytes that are no UTF-8 are told with their place', () => {
    expect(problems(Buffer.from([0x61, 0x3d, 0x31, 0x0a, 0x62, 0x3d, 0x22, 0xff, 0x22]))).toEqual([
      '2:4 syntax: this is not UTF-8',
    ]);
  });

  test('any text gives a tree or a ConfigError', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '=',
      ':',
      ',',
      '"',
      '"""',
      '\\',
      '#',
      '//',
      '\n',
      ' ',
      '${',
      '?',
      '+=',
      '.',
      'a',
      'b.c',
      '1',
      'include',
      '\u0000',
      'é',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 60 }), (parts) => {
        const error = outcome(parts.join(''));
        expect(error === null || error instanceof ConfigError).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test('what JSON writes is read as JSON reads it', () => {
    const leaf = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.dictionary(
        fc.string({ unit: 'grapheme', minLength: 1 }).filter((k) => k !== '__proto__'),
        fc.oneof(leaf, fc.array(leaf), tie('tree')),
        {
          maxKeys: 5,
        },
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(JSON.stringify(parse(text)))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
  });
});

function outcome(text: string): unknown {
  try {
    parse(text);
    return null;
  } catch (error) {
    return error;
  }
}

describe('key paths', () => {
  test('dots part names, quotes keep them together', () => {
    expect(parsePath('a."b.c".d')).toEqual(['a', 'b.c', 'd']);
  });

  test('what is no path is refused', () => {
    for (const text of ['', 'a..b', '.a', 'a.', 'a=', '__proto__.x', 'a#b']) expect(parsePath(text)).toBeNull();
  });
});
