// Writes a tree as HOCON or TOML text that reads back to the same tree. Called by cli/convert.ts. Comments and the
// spelling of values are not kept. TOML has no null: under `set` of a proxy it is written as false, elsewhere left out.
import type { BlockNode, ListNode, Member, Node, ScalarNode } from './node.ts';

const PLAIN_KEY = /^[A-Za-z0-9_-]+$/;
/** Words that need no quotes in HOCON and cannot be taken for something else. */
const PLAIN_WORD = /^(?!(?:true|false|null|include)$)[A-Za-z][A-Za-z0-9_]*$/;

function key(name: string): string {
  return PLAIN_KEY.test(name) ? name : quote(name);
}

/** A JSON text; DEL and the C1 controls are escaped too, which TOML demands. */
function quote(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function isNull(node: Node): boolean {
  return node.kind === 'scalar' && node.value === null;
}

/** Numbers only where they come back as written: 1.10 would not. */
function plain(node: ScalarNode): string | null {
  if (typeof node.value === 'boolean') return String(node.value);
  return typeof node.value === 'number' && String(node.value) === node.text ? node.text : null;
}

// --- HOCON
// ------------------------------------------------------------------------------------------------------------------

export function writeHocon(tree: BlockNode): string {
  return hoconFields(tree, '');
}

function hoconFields(block: BlockNode, indent: string): string {
  let out = '';
  for (const [name, { value }] of block.fields) {
    if (value.kind === 'block' && value.fields.size > 0) {
      out += `${indent}${key(name)} {\n${hoconFields(value, `${indent}  `)}${indent}}\n`;
    } else out += `${indent}${key(name)} = ${hoconValue(value, indent)}\n`;
  }
  return out;
}

function hoconValue(node: Node, indent: string): string {
  if (node.kind === 'scalar') {
    if (node.value === null) return 'null';
    return plain(node) ?? (PLAIN_WORD.test(node.text) ? node.text : quote(node.text));
  }
  if (node.kind === 'block') return node.fields.size === 0 ? '{}' : `{\n${hoconFields(node, `${indent}  `)}${indent}}`;
  if (node.items.every((item) => item.kind === 'scalar')) {
    return `[${node.items.map((item) => hoconValue(item, indent)).join(', ')}]`;
  }
  const inner = `${indent}  `;
  return `[\n${node.items.map((item) => `${inner}${hoconValue(item, inner)}\n`).join('')}${indent}]`;
}

// --- TOML
// -------------------------------------------------------------------------------------------------------------------

export function writeToml(tree: BlockNode): string {
  return tomlTable(tree, []).replace(/^\n/, '');
}

function isTables(node: Node): node is ListNode {
  return node.kind === 'list' && node.items.length > 0 && node.items.every((item) => item.kind === 'block');
}

/** Values first, then the tables below, as TOML wants it. */
function tomlTable(block: BlockNode, path: readonly string[]): string {
  let out = '';
  const tables: [string, Member][] = [];
  for (const [name, member] of block.fields) {
    const { value } = member;
    if (value.kind === 'block' || isTables(value)) tables.push([name, member]);
    else if (!isNull(value)) out += `${key(name)} = ${tomlValue(value)}\n`;
    else if (path.at(-1) === 'set') out += `${key(name)} = false\n`;
  }
  for (const [name, { value }] of tables) {
    const inner = [...path, name];
    const title = inner.map(key).join('.');
    if (value.kind === 'block')
      out += needsHeader(value) ? `\n[${title}]\n${tomlTable(value, inner)}` : tomlTable(value, inner);
    else if (isTables(value)) {
      for (const item of value.items) if (item.kind === 'block') out += `\n[[${title}]]\n${tomlTable(item, inner)}`;
    }
  }
  return out;
}

/** A table that only holds tables is made by their headers. */
function needsHeader(block: BlockNode): boolean {
  if (block.fields.size === 0) return true;
  return [...block.fields.values()].some(({ value }) => value.kind !== 'block' && !isTables(value));
}

function tomlValue(node: Node): string {
  if (node.kind === 'scalar') return plain(node) ?? quote(node.text);
  if (node.kind === 'list')
    return `[${node.items
      .filter((item) => !isNull(item))
      .map(tomlValue)
      .join(', ')}]`;
  const fields = [...node.fields].filter(([, { value }]) => !isNull(value));
  return `{ ${fields.map(([name, { value }]) => `${key(name)} = ${tomlValue(value)}`).join(', ')} }`;
}
