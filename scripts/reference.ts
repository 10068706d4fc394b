// Turns the configuration schema into its reference: files in HOCON and TOML that load to exactly the defaults, and
// Markdown tables. Called by scripts/docs.ts and by tests. Pure. In the files "##" explains and "#" is a key that is
// off or has no default.
import type { TreeValue } from '../src/config/config.ts';
import type { Fields, Key } from '../src/config/schema/key.ts';
import { SECTIONS } from '../src/config/schema/schema.ts';

const HEAD = (dialect: string): string[] => [
  `## Every configuration key, in ${dialect}. Loading this file gives exactly the defaults.`,
  '## "##" marks explanations; "#" marks keys that are off or have no default. To set one, remove the "#" and enter your value.',
  '## Sizes: 512B 16KB 8MB 1GB (1024). Durations: 500ms 5s 10m 1h 2d; a bare number has the unit given with the key.',
  '## Generated from the schema by `make docs`; edits to this file are lost.',
];

function isBlock(key: Key<unknown>): boolean {
  return key.inside !== null && key.inside.kind !== 'list';
}

function listOfBlocks(key: Key<unknown>): Key<unknown> | null {
  return key.inside?.kind === 'list' && key.inside.item.inside?.kind === 'fields' ? key.inside.item : null;
}

/** "Text. (size, requires a restart)" */
function explain(key: Key<unknown>): string {
  const { type, unit, text, restart } = key.doc;
  const isScalar = !isBlock(key) && listOfBlocks(key) === null;
  const notes = [
    ...(isScalar ? [type + (unit !== undefined && unit !== 'bytes' ? `, bare numbers in ${unit}` : '')] : []),
    ...(key.doc.default === undefined && isScalar ? ['required'] : []),
    ...(restart ? ['requires a restart'] : []),
  ];
  return notes.length === 0 ? text : `${text} (${notes.join('; ')})`;
}

/** What stands in the file: the default, else the example; `isDefault` tells which. */
function sample(key: Key<unknown>): { value: TreeValue; isDefault: boolean } {
  const { default: fallback, example, type } = key.doc;
  if (
    fallback !== null &&
    fallback !== undefined &&
    !(key.inside?.kind === 'list' && fallback === '[]' && example !== undefined)
  ) {
    const value = key.inside?.kind === 'list' ? (JSON.parse(String(fallback)) as TreeValue) : (fallback as TreeValue);
    return { value, isDefault: true };
  }
  return { value: example ?? (type.startsWith('true') ? true : type.includes('number') ? 1 : ''), isDefault: false };
}

function quoteName(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

function off(lines: readonly string[], indent: string): string[] {
  return lines.map((line) => `${indent}#${line.slice(indent.length)}`);
}

function fieldsOf(key: Key<unknown>): Fields {
  if (key.inside?.kind === 'fields') return key.inside.fields;
  if (key.inside?.kind === 'named') return fieldsOf(key.inside.item);
  return {};
}

function shown(fields: Fields): [string, Key<unknown>][] {
  return Object.entries(fields).filter(([, key]) => !key.doc.ignored);
}

/** Whether the block is there without being written. */
function isActive(key: Key<unknown>, path: string): boolean {
  if (path === 'listeners.tcp') return true;
  return key.inside?.kind === 'fields' && !key.inside.optional;
}

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = `${indent}##`;
  for (const word of text.split(' ')) {
    if (line.length + word.length > 118) {
      lines.push(line);
      line = `${indent}##`;
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

/** Unquoted where the dialect allows it: numbers, truth values, sizes and durations in HOCON. */
function literal(value: TreeValue, dialect: 'hocon' | 'toml'): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map((item: TreeValue) => literal(item, dialect)).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([k, v]) => `${/^[\w-]+$/.test(k) ? k : JSON.stringify(k)} = ${literal(v, dialect)}`,
    );
    return `{ ${members.join(', ')} }`;
  }
  const bare =
    dialect === 'hocon' && typeof value === 'string' && /^(?:\d+(?:B|KB|MB|GB|ms|s|m|h|d)|[a-z][a-z_]*)$/.test(value);
  return bare ? value : JSON.stringify(value);
}

// --- HOCON
// ------------------------------------------------------------------------------------------------------------------

function hoconKey(name: string, key: Key<unknown>, path: string, indent: string): string[] {
  const text = wrap(explain(key), indent);
  const item = listOfBlocks(key);
  if (item !== null) {
    const inner = hoconFields(fieldsOf(item), `${path}[]`, `${indent}    `);
    const lines = [`${indent}${name} = [`, `${indent}  {`, ...inner, `${indent}  }`, `${indent}]`];
    return [...text, ...off(lines, indent)];
  }
  if (isBlock(key)) {
    const named = key.inside?.kind === 'named' ? key.inside : null;
    if (named !== null) text.push(...wrap(`${named.group ? 'Further blocks: ' : ''}${path}.<name> { ... }`, indent));
    const title = named !== null && !named.group ? `${name}.${quoteName(named.example)}` : name;
    const lines = [`${indent}${title} {`, ...hoconFields(fieldsOf(key), path, `${indent}  `), `${indent}}`];
    return [...text, ...(isActive(key, path) ? lines : off(lines, indent))];
  }
  const { value, isDefault } = sample(key);
  const line = `${indent}${name} = ${literal(value, 'hocon')}`;
  return [...text, ...(isDefault ? [line] : off([line], indent))];
}

function hoconFields(fields: Fields, path: string, indent: string): string[] {
  return shown(fields).flatMap(([name, key]) => hoconKey(name, key, path === '' ? name : `${path}.${name}`, indent));
}

/** etc/tidegate.reference.conf */
export function referenceHocon(): string {
  const parts = shown(SECTIONS).map(([name, key]) => hoconKey(name, key, name, '').join('\n'));
  return `${[HEAD('HOCON').join('\n'), ...parts].join('\n\n')}\n`;
}

// --- TOML
// -------------------------------------------------------------------------------------------------------------------

/** Single keys first, then tables, as TOML wants it. */
function tomlTable(title: string, key: Key<unknown>, path: string, active: boolean, isList: boolean): string[] {
  const named = key.inside?.kind === 'named' ? key.inside : null;
  const text = wrap(explain(key), '');
  if (named?.group) text.push(...wrap(`Further blocks: [${path}.<name>]`, ''));
  const name = named !== null && !named.group ? `${title}.${quoteName(named.example)}` : title;
  const fields = shown(fieldsOf(key));
  const here: string[] = [];
  const below: string[] = [];
  for (const [child, spec] of fields) {
    const inner = `${path}.${child}`;
    const item = listOfBlocks(spec);
    if (item !== null) below.push('', ...tomlTable(`${name}.${child}`, item, `${inner}[]`, false, true));
    else if (isBlock(spec))
      below.push('', ...tomlTable(`${name}.${child}`, spec, inner, active && isActive(spec, inner), false));
    else {
      const { value, isDefault } = sample(spec);
      const line = `${child} = ${literal(value, 'toml')}`;
      here.push(...wrap(explain(spec), ''), ...(active && !isDefault ? off([line], '') : [active ? line : `#${line}`]));
    }
  }
  const header = isList ? `[[${name}]]` : `[${name}]`;
  return [...text, active ? header : `#${header}`, ...here, ...below];
}

function tomlKey(name: string, key: Key<unknown>): string[] {
  const { value, isDefault } = sample(key);
  const line = `${name} = ${literal(value, 'toml')}`;
  return [...wrap(explain(key), ''), ...(isDefault ? [line] : off([line], ''))];
}

/** etc/tidegate.reference.toml */
export function referenceToml(): string {
  const sections = shown(SECTIONS);
  // A key beside the sections would belong to the table before it.
  const single = sections.filter(([, key]) => !isBlock(key)).map(([name, key]) => tomlKey(name, key).join('\n'));
  const tables = sections
    .filter(([, key]) => isBlock(key))
    .map(([name, key]) => tomlTable(name, key, name, isActive(key, name), false).join('\n'));
  const parts = [...single, ...tables];
  return `${[HEAD('TOML').join('\n'), ...parts].join('\n\n')}\n`;
}

// --- Markdown
// ---------------------------------------------------------------------------------------------------------------

function cell(text: string): string {
  return text.replace(/\|/g, '\\|').replace(/</g, '&lt;');
}

function code(text: string): string {
  return `\`${text.replace(/\|/g, '\\|')}\``;
}

function defaultCell(key: Key<unknown>): string {
  const { default: fallback } = key.doc;
  if (fallback === undefined) return '**required**';
  if (fallback === null) return '';
  return fallback === '' ? '`""`' : code(String(fallback));
}

function markdownRows(fields: Fields, path: string): string[] {
  return Object.entries(fields).flatMap(([name, key]) => {
    if (key.doc.ignored) return [];
    const inner = `${path}${name}`;
    const item = listOfBlocks(key);
    const row = `| ${code(inner)} | ${cell(item === null ? key.doc.type : 'list of blocks')} | ${defaultCell(key)} | ${cell(key.doc.text)}${key.doc.restart ? ' *Requires a restart.*' : ''} |`;
    if (item !== null) return [row, ...markdownRows(fieldsOf(item), `${inner}[].`)];
    if (!isBlock(key)) return [row];
    const title = key.inside?.kind === 'named' ? `${inner}.<name>` : inner;
    return [`| ${code(title)} | block | | ${cell(key.doc.text)} |`, ...markdownRows(fieldsOf(key), `${title}.`)];
  });
}

function ignoredRows(fields: Fields, path: string): string[] {
  return Object.entries(fields).flatMap(([name, key]) => {
    const inner = `${path}${name}`;
    if (key.doc.ignored) return [`| ${code(inner)} | ${cell(key.doc.text)} |`];
    const below = listOfBlocks(key);
    if (below !== null) return ignoredRows(fieldsOf(below), `${inner}[].`);
    return isBlock(key) ? ignoredRows(fieldsOf(key), `${inner}${key.inside?.kind === 'named' ? '.<name>' : ''}.`) : [];
  });
}

/** docs/reference-config.md */
export function referenceMarkdown(foreign: Fields): string {
  const parts = [
    '# Configuration reference',
    'Generated from the schema by `make docs`. HOCON (`.conf`, `.hocon`, `.json`) and TOML (`.toml`) give the same tree. Sizes: `512B 16KB 8MB 1GB`, in multiples of 1024. Durations: `500ms 5s 10m 1h 2d`; a bare number is in seconds unless the table says ms. For limits, 0 means no limit.',
    'Later values win: defaults, file, `tidegate.d/*.conf` beside the file, environment (`TIDEGATE__section__key=value`, or `TIDEGATE__section__key_FILE=path` to read the value from a file), `--set section.key=value`. Values from the environment and `--set` are literal.',
    'Files in the folder `tidegate.d` next to the configuration file are read after it, in order of their names, as if they were included at its end. They are HOCON; their names end in `.conf` and do not begin with a dot; at most 100 files are read. The main file, its includes and these files together may have 16 MB. A folder or file that cannot be read is an error. [Kept changes](rest-api.md#keeping-changes) are stored in `tidegate.d/50-console.conf`; files with higher names override it.',
  ];
  for (const [name, key] of Object.entries(SECTIONS)) {
    const title = key.inside?.kind === 'named' ? `${name}.<name>` : name;
    const rows = isBlock(key) ? markdownRows(fieldsOf(key), `${title}.`) : markdownRows({ [name]: key }, '');
    parts.push(`## ${name}`, key.doc.text, ['| key | type | default | |', '|---|---|---|---|', ...rows].join('\n'));
  }
  const rows = [...ignoredRows(SECTIONS, ''), ...ignoredRows(foreign, '')];
  parts.push(
    '## NanoMQ keys without effect',
    'They are accepted with a warning that names file and line. The block `sqlite` turns persistence on, as in NanoMQ.',
    ['| key | |', '|---|---|', ...rows].join('\n'),
  );
  return `${parts.join('\n\n')}\n`;
}
