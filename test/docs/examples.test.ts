// Every configuration and every command that README.md and docs/ show: configurations load, alone or in the block their page is about;
// commands and options exist; targets of make, paths of the REST API and links lead somewhere.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wholeProgram } from '../../src/cli/cli.ts';
import { loadConfig } from '../../src/config/load.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const pages = ['README.md', ...readdirSync(path.join(ROOT, 'docs'), { recursive: true }).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, text: readFileSync(path.join(ROOT, name), 'utf8') }));

interface Example {
  readonly where: string;
  readonly language: string;
  readonly text: string;
}
const examples: Example[] = pages.flatMap(({ name, text }) =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map((found) => ({
    where: `${name}:${text.slice(0, found.index).split('\n').length}`,
    language: found[1],
    text: found[2],
  })),
);
const inLanguage = (...languages: string[]): Example[] =>
  examples.filter(({ language }) => languages.includes(language));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'examples-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What is around the parts that the page of the proxy shows. */
const POOLS = ['pool', 'both', 'sites', 'new', 'old', 'lab', 'europe', 'gateways', 'cloud']
  .map((name) => `upstreams.${name} { servers = [ { addr = "127.0.0.1:1" } ] }`)
  .join('\n');
const AROUND: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `${text}\n${POOLS}`,
  (text) => `bridges.mqtt.part { server = "mqtt-tcp://127.0.0.1:1"\n${text} }`,
  (text) => `proxy.part { bind = "127.0.0.1:0", default = pool\n${text} }\n${POOLS}`,
];

/** Errors of a configuration; files it names need not exist. */
function errorOf(text: string, extension: string): string | null {
  const file = path.join(mkdtempSync(path.join(folder, 'x-')), `a.${extension}`);
  writeFileSync(file, text);
  // Variables that pages name stand for secrets.
  const env = Object.fromEntries([...text.matchAll(/\$\{(?:env\.)?([A-Z][A-Z_]+)\}/g)].map(([, name]) => [name, 'x']));
  try {
    loadConfig({ file, env, cwd: folder });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe('configurations', () => {
  it.each(inLanguage('hocon'))('$where loads', ({ text }) => {
    const errors = AROUND.map((around) => errorOf(around(text), 'conf'));
    expect(errors.includes(null) ? '' : errors.join('\n')).toBe('');
  });
  it.each(inLanguage('toml'))('$where loads', ({ text }) => {
    expect(errorOf(text, 'toml')).toBeNull();
  });
  it.each(inLanguage('json'))('$where is JSON, line by line or as a whole', ({ text }) => {
    const lines = text.trim().split('\n');
    const isJson = (one: string): boolean => {
      try {
        JSON.parse(one);
        return true;
      } catch {
        return false;
      }
    };
    expect(isJson(text) || lines.every(isJson)).toBe(true);
  });
});

/** The words of each `tidegate ...` of a line of shell, up to what ends a command. */
function commandsOf(line: string): string[][] {
  const words: string[][] = [];
  const shell = line.replace(/^\(?\w*\)?\$ /, '');
  for (const found of shell.matchAll(
    /(?:^|[|;&(]\s*|\b\w+='?[^' ]*'? )tidegate((?: +(?:"[^"]*"|'[^']*'|[^\s|;&#)<>"']|\\.)+)+)/g,
  ))
    words.push([...found[1].matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word));
  return words;
}
const shellLines = inLanguage('sh', 'console').flatMap(({ where, text }) =>
  text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .flatMap((line) => commandsOf(line).map((words) => ({ where, line: line.trim(), words }))),
);

/** What is wrong with the words of a command, or null. */
function wrong(program: Command, words: readonly string[]): string | null {
  let command = program;
  const rest = [...words];
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i];
    if (word === '--') return null;
    if (word.startsWith('-') && word !== '-') {
      const [flag] = word.split('=');
      const option =
        command.options.find(({ short, long }) => short === flag || long === flag) ??
        command.options.find(({ short, required }) => short === flag.slice(0, 2) && required);
      if (option === undefined) return flag === '--help' || flag === '-h' ? null : `${command.name()} has no ${flag}`;
      if ((option.required || option.optional) && !word.includes('=')) i++;
      continue;
    }
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (next !== undefined) command = next;
    else if (command.commands.length > 0) return `${command.name()} has no command ${word}`;
  }
  return null;
}

describe('commands', () => {
  it('are found on the pages', () => {
    expect(shellLines.length).toBeGreaterThan(60);
  });
  it.each(shellLines)('$where: $line', async ({ words }) => {
    expect(wrong(await wholeProgram(), words)).toBeNull();
  });
  it('an unknown command and an unknown option are found', async () => {
    const program = await wholeProgram();
    expect(wrong(program, ['ctl', 'nothing'])).toBe('ctl has no command nothing');
    expect(wrong(program, ['pub', '--nothing'])).toBe('pub has no --nothing');
    expect(wrong(program, ['pub', '-t', '--nothing', '-m', 'x'])).toBeNull();
  });
  it('make has the targets that pages name', () => {
    const makefile = readFileSync(path.join(ROOT, 'Makefile'), 'utf8');
    const named = pages.flatMap(({ name, text }) =>
      [...text.matchAll(/(?:^|`)make ([a-z][a-z-]*)/gm)].map(([, target]) => ({ name, target })),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter(({ target }) => !new RegExp(`^${target}:`, 'm').test(makefile))).toEqual([]);
  });
});

/** The blocks of code of a page, without comments and empty lines. */
const codeOf = (text: string): string[] =>
  [...text.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, code]) =>
    code
      .split('\n')
      .map((line) => (/^\s*#(?! file )/.test(line) ? '' : line.replace(/ # .*$/, '').trimEnd()))
      .filter((line) => line !== '')
      .join('\n'),
  );

describe('pages in Chinese', () => {
  const chinese = pages.filter(({ name }) => name.startsWith('docs/zh/') && !name.endsWith('/index.md'));
  it.each(chinese)('$name shows the code of the English page, which is run', ({ name, text }) => {
    const english = pages.find((page) => page.name === name.replace('/zh/', '/'));
    expect(codeOf(text)).toEqual(codeOf(english?.text ?? ''));
  });
  it.each(chinese)('$name has the chapters of the English page', ({ name, text }) => {
    const english = pages.find((page) => page.name === name.replace('/zh/', '/'));
    const levels = (page: string): string[] =>
      [...page.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^(#+) /gm)].map(([, marks]) => marks);
    expect(levels(text)).toEqual(levels(english?.text ?? ''));
  });
  it('the index lists every page', () => {
    const index = pages.find(({ name }) => name === 'docs/zh/index.md')?.text ?? '';
    expect(chinese.filter(({ name }) => !index.includes(`](${path.basename(name)})`))).toEqual([]);
    expect(chinese.length).toBeGreaterThan(4);
  });
});

/** Anchors as GitHub makes them of headings. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('links', () => {
  it.each(pages)('$name leads somewhere', ({ name, text }) => {
    const links = [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link);
    const broken = links.filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [file, anchor] = link.split('#');
      const target = file === '' ? path.join(ROOT, name) : path.join(ROOT, path.dirname(name), file);
      if (!existsSync(target)) return true;
      return (
        anchor !== undefined && target.endsWith('.md') && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
      );
    });
    expect(broken).toEqual([]);
  });
});
