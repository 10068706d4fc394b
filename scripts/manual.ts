// Manual pages from the definitions of the commands and the configuration schema: tidegate(1), one page for each
// command, and tidegate.conf(5). Called by deb.ts and by `npx tsx scripts/manual.ts FOLDER`. Equal sources give equal
// bytes. Sources: man-pages(7), groff_man(7).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { wholeProgram } from '../src/cli/cli.ts';
import { examplesOf } from '../src/cli/examples.ts';
import type { Fields, Key } from '../src/config/schema/key.ts';
import { SECTIONS } from '../src/config/schema/schema.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Text as roff shows it: backslashes, hyphens and leading dots as they are. */
function roff(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return safe.replace(/^([.'])/gm, '\\&$1');
}

function bold(text: string): string {
  return `\\fB${roff(text)}\\fR`;
}

function header(name: string, section: number, version: string): string {
  return `.TH ${name.toUpperCase()} ${section} "" "tidegate ${version}" "Tidegate"`;
}

const EXIT_STATUS = `.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Failed.
.TP
.B 64
Wrong command line.
.TP
.B 78
Wrong configuration.`;

function optionsOf(command: Command, heading: string): string[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command);
  if (options.length === 0) return [];
  return [
    heading,
    ...options.map(
      (o) =>
        `.TP\n${bold(help.optionTerm(o))}\n${roff(command.configureHelp().optionDescription?.(o) ?? help.optionDescription(o))}`,
    ),
  ];
}

function argumentsOf(command: Command): string[] {
  const help = command.createHelp();
  const given = help.visibleArguments(command);
  if (given.length === 0) return [];
  return [
    '.SH ARGUMENTS',
    ...given.map((a) => `.TP\n${bold(help.argumentTerm(a))}\n${roff(help.argumentDescription(a))}`),
  ];
}

function exampleLines(words: string): string[] {
  const lines = examplesOf(words);
  return lines.length === 0 ? [] : ['.PP', '.EX', ...lines.map((line) => roff(line)), '.EE'];
}

/** Subcommands in full on the page of their parent. */
function subcommandsOf(command: Command, prefix: string): string[] {
  const help = command.createHelp();
  return help
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help')
    .flatMap((child) => {
      const words = `${prefix} ${child.name()}`;
      return [
        `.SS ${roff(`${words} ${child.usage().replace(/^\[options\] ?/, '')}`.trim())}`,
        roff(child.description()),
        ...optionsOf(child, ''),
        ...exampleLines(words),
        ...subcommandsOf(child, words),
      ].filter((line) => line !== '');
    });
}

export function commandPage(command: Command, version: string): string {
  const name = `tidegate-${command.name()}`;
  const inner = subcommandsOf(command, command.name());
  return `${[
    header(name, 1, version),
    '.SH NAME',
    `${roff(name)} \\- ${roff(command.description().split('\n')[0])}`,
    '.SH SYNOPSIS',
    `${bold(`tidegate ${command.name()}`)} ${roff(command.usage())}`,
    '.SH DESCRIPTION',
    roff(command.description()),
    ...argumentsOf(command),
    ...optionsOf(command, '.SH OPTIONS'),
    ...(inner.length > 0 ? ['.SH COMMANDS', ...inner] : []),
    ...(examplesOf(command.name()).length > 0 ? ['.SH EXAMPLES', ...exampleLines(command.name())] : []),
    EXIT_STATUS,
    '.SH SEE ALSO',
    '.BR tidegate (1),\n.BR tidegate.conf (5)',
  ].join('\n')}\n`;
}

export function mainPage(program: Command, version: string): string {
  const commands = program.commands.filter((child) => child.name() !== 'help');
  return `${[
    header('tidegate', 1, version),
    '.SH NAME',
    `tidegate \\- ${roff(program.description())}`,
    '.SH SYNOPSIS',
    '.B tidegate\n.I command\n[\\fIoptions\\fR]',
    '.SH COMMANDS',
    ...commands.map(
      (child) => `.TP\n.BR tidegate\\-${roff(child.name())} (1)\n${roff(child.description().split('\n')[0])}`,
    ),
    '.SH FILES',
    '.TP\n.I /etc/tidegate/tidegate.conf\nThe configuration of the service.',
    '.TP\n.I /var/lib/tidegate\nIts state: sessions, messages, what the console keeps.',
    EXIT_STATUS,
    '.SH SEE ALSO',
    '.BR tidegate.conf (5)',
  ].join('\n')}\n`;
}

function keysOf(fields: Fields, prefix: string): string[] {
  return Object.entries(fields).flatMap(([name, key]) => keyRows(key, prefix === '' ? name : `${prefix}.${name}`));
}

function keyRows(key: Key<unknown>, name: string): string[] {
  if (key.doc.ignored === true) return [];
  const { inside } = key;
  if (inside?.kind === 'fields') return keysOf(inside.fields, name);
  if (inside?.kind === 'named') return keyRows(inside.item, `${name}.<name>`);
  if (inside?.kind === 'list' && inside.item.inside?.kind === 'fields') return keyRows(inside.item, `${name}[]`);
  const { type, text, default: fallback, restart } = key.doc;
  const facts = [
    type,
    ...(fallback === undefined ? ['required'] : [`default ${fallback}`]),
    ...(restart ? ['requires a restart'] : []),
  ];
  return [`.TP\n${bold(name)} (${roff(facts.join(', '))})\n${roff(text)}`];
}

export function configurationPage(version: string): string {
  return `${[
    header('tidegate.conf', 5, version),
    '.SH NAME',
    'tidegate.conf \\- configuration of tidegate',
    '.SH DESCRIPTION',
    roff('HOCON (.conf) or TOML (.toml), one schema. Sizes: 512B 16KB 8MB 1GB (1024). Durations: 500ms 5s 10m 1h 2d.'),
    '.SH KEYS',
    ...Object.entries(SECTIONS).flatMap(([name, key]) => keyRows(key as Key<unknown>, name)),
    '.SH SEE ALSO',
    '.BR tidegate\\-check (1)',
  ].join('\n')}\n`;
}

/** All pages by file name. */
export async function manualPages(version: string): Promise<Map<string, string>> {
  const program = await wholeProgram();
  const pages = new Map([['tidegate.1', mainPage(program, version)]]);
  for (const command of program.commands)
    if (command.name() !== 'help') pages.set(`tidegate-${command.name()}.1`, commandPage(command, version));
  pages.set('tidegate.conf.5', configurationPage(version));
  return pages;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = process.argv[2] ?? 'release/man';
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of await manualPages(version)) writeFileSync(path.join(folder, name), text);
}
