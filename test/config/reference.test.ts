// The generated reference says what the schema says, loads to the defaults, and every file in etc/ is a valid configuration.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { referenceHocon, referenceMarkdown, referenceToml } from '../../scripts/reference.ts';
import { diffConfig } from '../../src/config/reload.ts';
import { FOREIGN } from '../../src/config/schema/foreign.ts';
import type { Fields, Key } from '../../src/config/schema/key.ts';
import { SECTIONS } from '../../src/config/schema/schema.ts';
import { config, load, warnings } from '../harness/configfiles.ts';

/** Takes the "#" before keys away, again and again; "##" stays. */
function switchedOn(text: string): string {
  let before = '';
  while (before !== text) {
    before = text;
    text = text.replace(/^(\s*)#(?!#)/gm, '$1').replace(/^(\s*)##.*\n/gm, '');
  }
  return text;
}

function every(fields: Fields, path: string, see: (key: Key<unknown>, path: string) => void): void {
  for (const [name, key] of Object.entries(fields)) {
    see(key, `${path}${name}`);
    const inside = key.inside?.kind === 'list' || key.inside?.kind === 'named' ? key.inside.item.inside : key.inside;
    if (inside?.kind === 'fields') every(inside.fields, `${path}${name}.`, see);
  }
}

describe('the reference', () => {
  for (const [ext, make] of [
    ['conf', referenceHocon],
    ['toml', referenceToml],
  ] as const) {
    test(`as .${ext} loads to exactly the defaults`, () => {
      expect(load(make(), { ext }).tree).toEqual(load('').tree);
      expect(diffConfig(load(make(), { ext }), load(''))).toEqual([]);
      expect(warnings(make(), { ext })).toEqual([]);
    });

    test(`as .${ext} knows every key it names, those that are off too`, () => {
      // Persistence that is on needs a path, which has none by default.
      const text = switchedOn(make()).replace('path = ""', 'path = "x"');
      const found = told(text, ext);
      expect(found.filter((m) => /unknown|expected|is missing|syntax/.test(m))).toEqual([]);
    });
  }

  test('every key has a sentence and no secret shows a default', () => {
    every(SECTIONS, '', (key, path) => {
      expect(key.doc.text, path).toMatch(key.doc.ignored ? /./ : /^\S.*[.)]$/);
      if (key.doc.secret) expect(key.doc.default ?? null, path).toBeNull();
    });
  });

  test('a key of a part that is built at the start is marked as taking a restart, one that is looked at again is not', () => {
    const again = /^(log\.level|http_server\.(username|password|users|jwt)\b.*|log\.uds_addr)/;
    for (const part of ['persistence', 'http_server', 'metrics', 'broker', 'log'] as const) {
      every({ [part]: SECTIONS[part] }, '', (key, path) => {
        if (key.inside?.kind === 'fields' || key.doc.ignored) return;
        expect([path, key.doc.restart ?? false]).toEqual([path, !again.test(path)]);
      });
    }
  });

  test('every key stands in the Markdown tables', () => {
    const text = referenceMarkdown(FOREIGN);
    every(SECTIONS, '', (_key, path) => expect(text).toContain(`${path.split('.').at(-1)}`));
  });
});

function told(text: string, ext: string): string[] {
  try {
    return load(text, { ext }).warnings.map((w) => `${w.key}: ${w.message}`);
  } catch (error) {
    return String(error).split('\n');
  }
}

describe('files in etc', () => {
  const etc = new URL('../../etc/', import.meta.url);

  test('tidegate.conf opens loopback ports only and needs no warning', () => {
    const text = readFileSync(new URL('tidegate.conf', etc), 'utf8');
    const c = config(text);
    expect(warnings(text)).toEqual([]);
    expect(c.listeners.map((l) => l.bind)).toEqual(['127.0.0.1:1883']);
    expect([...c.bridges.nng.pub, ...c.bridges.nng.sub].map((b) => [b.enable, b.urls.length])).toEqual([
      [true, 2],
      [true, 2],
    ]);
  });

  for (const name of readdirSync(new URL('examples/', etc))) {
    test(`examples/${name} is valid and needs no warning`, () => {
      const ext = name.endsWith('.toml') ? 'toml' : 'conf';
      expect(warnings(readFileSync(new URL(`examples/${name}`, etc), 'utf8'), { ext })).toEqual([]);
    });
  }
});
