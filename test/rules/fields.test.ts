// What a rule reads of a JSON object by names alone is what JSON.parse gives for them, on any bytes.
import { describe, expect, test } from 'vitest';
import { FieldReader } from '../../src/rules/fields.ts';

const NAMES = new Set(['temp', 'unit', 'k', 'a b']);

function reader(): FieldReader {
  const made = FieldReader.of(NAMES);
  if (made === null) throw new Error('these names are usual');
  return made;
}

/** What JSON.parse gives for the names; undefined where it gives no object. */
function wanted(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.fromEntries(Object.entries(value).filter(([name]) => NAMES.has(name)));
  } catch {
    return undefined;
  }
}

function read(text: string, by = reader()): Record<string, unknown> | null {
  const bytes = Buffer.from(`##${text}##`);
  return by.read(bytes, 2, bytes.length - 2);
}

/** Numbers that look random and are the same in each run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const PIECES = [
  ...'{ } [ ] , : "temp" "unit" "k" "x" "C" "" "__proto__" "constructor" true false null tru'.split(' '),
  ...'1 -1 0 -0 01 1. .5 0.1 21.5 123456789012345.5 999999999999999 9007199254740993 1e3'.split(' '),
  ...[
    '\\u0041',
    '"\\n"',
    '"é"',
    ' ',
    '\n',
    '\t',
    '"a b"',
    '{"temp":1}',
    '[1,[2,{"k":[]}]]',
    '"temp":21.5',
    ',"unit":"C"',
  ],
];

describe('fields of a JSON object', () => {
  test.each([
    ['{"temp":21.5,"unit":"C"}'],
    [' { "unit" : "C" , "temp" : -0.25 , "x" : [ 1 , { "k" : "no" } ] } '],
    ['{"temp":1,"temp":2}'],
    ['{"k":{"deep":[1,2,{"a":null}]},"temp":-0}'],
    ['{"temp":999999999999999,"unit":true,"k":null,"a b":false}'],
    ['{"temp":0.1,"unit":""}'],
    ['{}'],
    ['{"x":1}'],
  ])('%s is read as JSON.parse reads it', (text) => expect(read(text)).toStrictEqual(wanted(text)));

  test.each([
    ['1e3', '{"temp":1e3}'],
    ['a number of 16 digits', '{"x":1234567890123456}'],
    ['an escape', '{"x":"\\u0041"}'],
    ['characters beyond ASCII', '{"unit":"°C"}'],
    ['nesting', `{"x":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['another value', '[1]'],
    ['no JSON', '{"temp":01}'],
    ['something behind it', '{"temp":1}}'],
    ['a long text', `{"x":"${'y'.repeat(5000)}"}`],
  ])('%s is left to JSON.parse', (_, text) => expect(read(text)).toBeNull());

  test('names that objects cannot have like others are left to JSON.parse', () => {
    expect(FieldReader.of(new Set(['__proto__']))).toBeNull();
    expect(FieldReader.of(new Set(['é']))).toBeNull();
    expect(FieldReader.of(new Set([]))).toBeNull();
  });

  test('a text that is remembered does not stand for another one', () => {
    const by = reader();
    for (const unit of ['C', 'F', 'C', 'CC', '', 'F'])
      expect(read(`{"unit":"${unit}","temp":1}`, by)).toStrictEqual({ unit, temp: 1 });
  });

  test('whatever the bytes, the answer is that of JSON.parse or none', () => {
    const draw = random(20260102);
    const by = reader();
    let answers = 0;
    for (let round = 0; round < 30_000; round++) {
      let text = draw(2) === 0 ? '{"temp":21.5,"unit":"C","x":{"k":[1,2]}}' : '{';
      for (let i = draw(8); i > 0; i--) {
        const at = draw(text.length + 1);
        text = text.slice(0, at) + PIECES[draw(PIECES.length)] + text.slice(at + draw(3));
      }
      if (draw(2) === 0) text += '}';
      const found = read(text, by);
      if (found === null) continue;
      answers++;
      expect(found, text).toStrictEqual(wanted(text));
    }
    expect(answers).toBeGreaterThan(500);
  });
});
