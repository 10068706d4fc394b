// TOML as HOCON has it: the same tree, the same places in errors, nothing on prototypes, bounded.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/config/problem.ts';
import type { Node } from '../../../src/config/text/node.ts';
import { parseToml } from '../../../src/config/text/toml.ts';
import { caught } from '../../harness/thrown.ts';

function places(node: Node, path = ''): string[] {
  if (node.kind === 'scalar') return [`${path} ${node.at.line}:${node.at.column} ${node.text}`];
  if (node.kind === 'list') return node.items.flatMap((item, i) => places(item, `${path}[${i}]`));
  return [...node.fields].flatMap(([key, member]) => places(member.value, path === '' ? key : `${path}.${key}`));
}

function mistake(text: string): string {
  const error = caught(() => parseToml(text, 'f.toml'));
  if (!(error instanceof ConfigError)) throw error;
  const { at, key, message } = error.problems[0];
  return `${at.line}:${at.column} ${key}: ${message}`;
}

describe('TOML', () => {
  test('every value knows its place', () => {
    const text = [
      '# one',
      'a = 1',
      '[b."c.d"]',
      "  e.f = 'x # y'  # comment",
      'g = [ "h", # i',
      '  """j',
      'k""", 2 ]',
      '[[l]]',
      'm = { n = true, o = { p = 1.5 } }',
      '[[l]]',
      'q = "\\u2192"',
      '[l.r]',
      's = 0x10',
    ].join('\n');
    expect(places(parseToml(text, 'f.toml'))).toEqual([
      'a 2:5 1',
      'b.c.d.e.f 4:9 x # y',
      'b.c.d.g[0] 5:7 h',
      'b.c.d.g[1] 6:3 j\nk',
      'b.c.d.g[2] 7:7 2',
      'l[0].m.n 9:11 true',
      'l[0].m.o.p 9:27 1.5',
      'l[1].q 11:5 →',
      'l[1].r.s 13:5 16',
    ]);
  });

  test('names keep the order of the file, numbers too', () => {
    expect([...parseToml('b = 1\n7 = 2\na = 3\n', 'f').fields.keys()]).toEqual(['b', '7', 'a']);
  });

  test('CRLF and a byte order mark change nothing', () => {
    expect(places(parseToml('\ufeff[a]\r\nb = 1\r\n', 'f'))).toEqual(['a.b 2:5 1']);
  });

  test('a date is its text', () => {
    expect(places(parseToml('a = 1979-05-27T07:32:00Z\n', 'f'))).toEqual(['a 1:5 1979-05-27T07:32:00.000Z']);
  });

  const cases: [string, string, RegExp][] = [
    ['a value without quotes', '[listeners.tcp]\nbind = 127.0.0.1:1883\n', /^2:13 syntax: TOML: Unexpected character/],
    ['a key twice', '[metrics]\nauth = "none"\nauth = "basic"\n', /^3:\d+ syntax: TOML: Can't redefine existing key/],
    ['a table twice', '[a]\n[a]\n', /^2:\d+ syntax/],
    ['a text without an end', 'a = "x\n', /^1:\d syntax: TOML: Unterminated string/],
    ['no value', '\n\n  k = \n', /^3:7 syntax/],
    ['a line without a value', 'ok = 1\nbad\nmore = 2\n', /^2:4 syntax/],
    ['a table without an end', 'a = 1\n\n[b\nc = 1', /^3:3 syntax/],
    ['a date that is none', 'd = 2020-13-01\n', /^1:1 syntax: TOML: Invalid Datetime/],
    ['a name that would change all objects', '[a]\n__proto__.b = 1\n', /^2:1 __proto__: this name cannot be used/],
    ['too many levels of lists', `a = ${'['.repeat(100_000)}`, /^1:\d+ syntax: more than 64 levels/],
    ['too many levels of tables', `a${'.a'.repeat(1000)} = 1`, /^1:\d+ syntax: more than 64 levels/],
    ['half of a surrogate pair', 'a = "\\ud83d"', /^1:\d+ syntax/],
  ];
  for (const [name, text, want] of cases) {
    test(`${name} is told with its place`, () => {
      expect(mistake(text)).toMatch(want);
    });
  }

  test('texts of megabytes are taken, too many values and names that are too long are not', () => {
    for (const [quote, text] of [
      ['"', 'x\\t'],
      ["'", 'x'],
      ['"""', 'x\n'],
      ["'''", 'x\n'],
    ]) {
      expect(places(parseToml(`a = ${quote}${text.repeat(500_000)}${quote}\nb = 1`, 'f')).at(-1)).toMatch(
        /^b \d+:5 1$/,
      );
    }
    expect(mistake(`a = [${'1,'.repeat(600_000)}]`)).toMatch(/syntax: more than 500000 values$/);
    expect(mistake(`${'x'.repeat(1001)} = 1`)).toBe('1:1 syntax: a name of more than 1000 characters');
  });

  test('a text that ends with quotes is passed whole', () => {
    expect(places(parseToml('a = """x"""""\nb = \'\'\'y\'\'\'\'\nc = "\\\\" # "\nd = 1\n', 'f'))).toEqual([
      'a 1:5 x""',
      "b 2:5 y'",
      'c 3:5 \\',
      'd 4:5 1',
    ]);
  });

  test('objects stay as they are whatever a file names', () => {
    for (const name of [
      'constructor',
      'toString',
      'valueOf',
      'hasOwnProperty',
      '"constructor"."prototype"',
      "a.'toString'",
    ]) {
      parseToml(`[${name}]\npolluted = true\n`, 'f');
      caught(() => parseToml(`[${name}]\npolluted = true\n!\n`, 'f'));
      caught(() => parseToml(`!\n[${name}]\npolluted = true\n`, 'f'));
    }
    for (const object of [
      {},
      Object,
      Object.prototype.toString,
      Object.prototype.valueOf,
      Object.prototype.hasOwnProperty,
    ]) {
      expect((object as { polluted?: boolean }).polluted).toBeUndefined();
    }
  });

  test('names that every object has are names like others', () => {
    const text =
      "[constructor]\na = 1\n[[toString]]\nvalueOf = 2\n[x]\nhasOwnProperty = { toString = 3 }\nisPrototypeOf.valueOf = 4\n'constructor' = 5\n";
    expect(places(parseToml(text, 'f')).map((p) => p.replace(/ \S+ /, ' '))).toEqual([
      'constructor.a 1',
      'toString[0].valueOf 2',
      'x.hasOwnProperty.toString 3',
      'x.isPrototypeOf.valueOf 4',
      'x.constructor 5',
    ]);
  });

  test('any text gives a tree or a ConfigError', () => {
    const piece = fc.constantFrom(
      '[',
      ']',
      '[[',
      ']]',
      '{',
      '}',
      '=',
      ',',
      '"',
      "'",
      '"""',
      "'''",
      '\\',
      '#',
      '\n',
      ' ',
      '.',
      'a',
      'b',
      '1',
      'true',
      '0x',
      '1979-05-27',
      '\u0000',
      'é',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 40 }), (parts) => {
        try {
          parseToml(parts.join(''), 'f');
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
      { numRuns: 1500 },
    );
  });
});
