// Reads HOCON text (https://github.com/lightbend/config/blob/main/HOCON.md) into an unresolved tree; resolve.ts does the rest.
// Called by load.ts and by itself for includes. Synchronous; runs nothing it reads, fetches nothing, opens only files below the main
// file's folder. Every value keeps file, line and column. Left out: url() and classpath() includes, include without extension.
// Bounds: MAX_FILE_BYTES over all files, MAX_DEPTH levels, MAX_INCLUDES files inside each other.
import { isAbsolute, resolve as resolvePath } from 'node:path';
import { FORBIDDEN_KEY, formatPath, MAX_DEPTH, type Node, type ScalarNode } from './node.ts';
import { ConfigError, type Position, type Problem } from './problem.ts';

/** A value as written, before substitutions: what is not yet known stays a reference. */
export type Raw = ScalarNode | RawList | RawBlock | RawReference | RawConcat;
export interface RawList {
  readonly kind: 'list';
  readonly items: Raw[];
  readonly at: Position;
}
/** All values a key was given that may still matter, oldest first. */
export interface RawField {
  readonly entries: Raw[];
  at: Position;
}
export interface RawBlock {
  readonly kind: 'block';
  readonly fields: Map<string, RawField>;
  readonly at: Position;
}
export interface RawReference {
  readonly kind: 'reference';
  readonly path: readonly string[];
  /** As written, for the environment. */
  readonly name: string;
  readonly optional: boolean;
  /** Where the file that holds it was included; looked up below that first. */
  readonly prefix: readonly string[];
  /** Key path of the value it stands in, for messages. */
  readonly key: string;
  readonly at: Position;
}
/** Values written side by side; blanks between them are scalars with quoted = false and only blanks in `text`. */
export interface RawConcat {
  readonly kind: 'concat';
  readonly parts: Raw[];
  /** Set for a += v: the list that is added, the last part. */
  readonly added?: RawList;
  readonly key: string;
  readonly at: Position;
}

/** Opens files for includes: null = not there. Throws GatewayError CFG-READ when it may not or cannot be read. */
export interface Source {
  /** `path` is absolute; `at` and `key` tell where the include stands. */
  open(path: string, at: Position, key: string): string | null;
  /** The path as it is shown in messages. */
  show(path: string): string;
}

const MAX_INCLUDES = 16;
// HOCON.md, "Unquoted strings": characters that cannot stand in them. A run also ends at "//".
const RUN = /(?:[^$"{}[\]:=,+#`^?!@*&\\\s\ufeff/]|\/(?!\/))+/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const BLANKS = /[^\S\n]+/y;
const COMMENT = /(?:#|\/\/)[^\n]*/y;
const STRING_PLAIN = /(?:[^"\\\p{Cc}]|[\t\u007f-\u009f])+/uy;
const INCLUDE = /include(?=[\s"])[^\S\n]*(?="|required\s*\(|file\s*\(|url\s*\(|classpath\s*\()/y;
const LONE_SURROGATE = /\p{Surrogate}/u;
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

/**
 * Parses the text of the file at `path` (absolute), includes included. Throws ConfigError at the first mistake; what is odd and
 * still clear goes to `warnings`.
 */
export function parseHocon(text: string, path: string, source: Source, warnings: Problem[]): RawBlock {
  return new Parser(text, path, source, warnings, [], [], 0).parseRoot();
}

/** A key path as in `--set`: `a."b.c".d` -> [a, b.c, d]; null when it is none. */
export function parsePath(text: string): string[] | null {
  const source: Source = { open: () => null, show: () => '' };
  const parser = new Parser(text, '', source, [], [], [], 0);
  try {
    return parser.parseWholePath();
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

class Parser {
  private readonly text: string;
  private readonly path: string;
  private readonly file: string;
  private readonly source: Source;
  private readonly warnings: Problem[];
  /** Files being read, to find includes that never end. */
  private readonly stack: readonly string[];
  private readonly prefix: readonly string[];
  private pos = 0;
  private line = 1;
  private lineStart = 0;
  private depth: number;
  /** Keys from the root of the main file to where we are. */
  private readonly keys: string[];

  constructor(
    text: string,
    path: string,
    source: Source,
    warnings: Problem[],
    stack: readonly string[],
    prefix: readonly string[],
    depth: number,
  ) {
    this.text = text;
    this.path = path;
    this.file = source.show(path);
    this.source = source;
    this.warnings = warnings;
    this.stack = [...stack, path];
    this.prefix = prefix;
    this.keys = [...prefix];
    this.depth = depth;
  }

  parseRoot(): RawBlock {
    this.skipBlank();
    const block: RawBlock = { kind: 'block', fields: new Map(), at: this.here() };
    if (this.peek() === '[') this.fail('the file has to be a block of keys, not a list');
    if (this.peek() === '{') {
      this.pos++;
      this.parseFields(block, '}');
      this.skipBlank();
      if (this.pos < this.text.length) this.fail(`nothing may follow the last brace, found ${this.found()}`);
      return block;
    }
    this.parseFields(block, '');
    return block;
  }

  parseWholePath(): string[] {
    const path = this.parseKey();
    if (this.pos < this.text.length) this.fail('not a key path');
    return path;
  }

  // --- blocks -------------------------------------------------------------------------------------------------------------

  /** Reads fields up to `end` ("}" or the end of the text), which is consumed. */
  private parseFields(block: RawBlock, end: '}' | ''): void {
    this.enter();
    const opened = this.here();
    for (;;) {
      this.skipBlank();
      const c = this.peek();
      if (c === '' && end === '') break;
      if (c === '') this.failAt(opened, 'this brace is never closed');
      if (c === '}') {
        if (end === '') this.fail('a closing brace without an opening one');
        this.pos++;
        break;
      }
      if (c === ',') this.fail('a comma without a value before it');
      if (!this.tryInclude(block)) this.parseField(block);
      this.parseSeparator(end === '}' ? '}' : '');
    }
    this.depth--;
  }

  private parseField(block: RawBlock): void {
    const at = this.here();
    const path = this.parseKey();
    this.depth += path.length - 1;
    if (this.depth > MAX_DEPTH) this.failAt(at, `more than ${MAX_DEPTH} levels`);
    this.keys.push(...path);
    this.skipBlank();
    const c = this.peek();
    let append = false;
    if (c === '+' && this.text[this.pos + 1] === '=') {
      append = true;
      this.pos += 2;
    } else if (c === '=' || c === ':') this.pos++;
    else if (c !== '{') this.fail(`"=", ":" or "{" expected after ${formatPath(path)}, found ${this.found()}`);
    this.skipBlank();
    const value = this.parseValue();
    put(block, path, append ? this.appendTo(value, at) : value, at);
    this.keys.length -= path.length;
    this.depth -= path.length - 1;
  }

  /** a += v stands for a = ${?a} [v]. */
  private appendTo(value: Raw, at: Position): Raw {
    const key = formatPath(this.keys);
    const own = this.keys.slice();
    const before: RawReference = { kind: 'reference', path: own, name: '', optional: true, prefix: [], key, at };
    const added: RawList = { kind: 'list', items: [value], at };
    return { kind: 'concat', parts: [before, added], added, key, at };
  }

  /** A path expression: quoted and unquoted pieces, split at dots outside quotes. */
  private parseKey(): string[] {
    const at = this.here();
    const path: string[] = [];
    let part = '';
    let hasPart = false;
    for (;;) {
      const c = this.peek();
      if (c === '"') {
        part += this.parseString();
        hasPart = true;
        continue;
      }
      const blanks = this.match(BLANKS);
      if (blanks !== '') {
        const next = this.peek();
        const goesOn = next !== '' && next !== '\n' && !'=:{+#}],['.includes(next) && !this.atComment();
        if (goesOn && (hasPart || part !== '')) part += blanks;
        continue;
      }
      const run = this.match(RUN);
      if (run === '') break;
      const pieces = run.split('.');
      for (let i = 0; i < pieces.length; i++) {
        if (i > 0) {
          if (part === '' && !hasPart) this.failAt(at, 'a dot without a name before it');
          path.push(part);
          part = '';
          hasPart = false;
        }
        part += pieces[i];
      }
    }
    if (part === '' && !hasPart) {
      this.failAt(
        path.length > 0 ? at : this.here(),
        path.length > 0 ? 'a dot without a name after it' : `a key expected, found ${this.found()}`,
      );
    }
    path.push(part);
    if (path.includes(FORBIDDEN_KEY)) {
      throw new ConfigError([{ at, key: formatPath([...this.keys, ...path]), message: 'this name cannot be used' }]);
    }
    return path;
  }

  /** Between members: a new line or one comma, or the end of the block follows. */
  private parseSeparator(end: '}' | ']' | ''): void {
    const before = this.line;
    this.skipBlank();
    const c = this.peek();
    if (c === ',') {
      this.pos++;
      this.skipBlank();
      if (this.peek() === ',') this.fail('two commas without a value between them');
      return;
    }
    if (c === '' || c === end || this.line > before) return;
    this.fail(this.unexpected());
  }

  // --- values -------------------------------------------------------------------------------------------------------------

  private parseValue(): Raw {
    const at = this.here();
    const parts: Raw[] = [];
    for (;;) {
      const blanks = this.match(BLANKS);
      const partAt = this.here();
      const part = this.parsePart();
      if (part === null) break;
      if (blanks !== '' && parts.length > 0) {
        parts.push({ kind: 'scalar', value: blanks, text: blanks, quoted: false, at: partAt });
      }
      parts.push(part);
    }
    if (parts.length === 0) this.fail(`a value expected, found ${this.found()}`);
    if (parts.length === 1) return parts[0];
    return joinText(parts, at) ?? { kind: 'concat', parts, key: formatPath(this.keys), at };
  }

  private parsePart(): Raw | null {
    const at = this.here();
    switch (this.peek()) {
      case '{': {
        const block: RawBlock = { kind: 'block', fields: new Map(), at };
        this.pos++;
        this.parseFields(block, '}');
        return block;
      }
      case '[':
        return this.parseList(at);
      case '"': {
        const value = this.parseString();
        return { kind: 'scalar', value, text: value, quoted: true, at };
      }
      case '$':
        return this.parseReference(at);
      default:
        return this.parseUnquoted(at);
    }
  }

  private parseUnquoted(at: Position): ScalarNode | null {
    if (this.atComment()) return null;
    let text = this.match(NUMBER);
    text += this.match(RUN);
    if (text === '') return null;
    if (this.atComment()) {
      const message = 'a comment begins inside this value and cuts it; put the value into quotes';
      this.warnings.push({ at, key: formatPath(this.keys), message });
    }
    return { kind: 'scalar', value: plainValue(text), text, quoted: false, at };
  }

  private parseList(at: Position): RawList {
    const items: Raw[] = [];
    this.pos++;
    this.enter();
    for (;;) {
      this.skipBlank();
      const c = this.peek();
      if (c === '') this.failAt(at, 'this bracket is never closed');
      if (c === ']') break;
      if (c === ',') this.fail('a comma without a value before it');
      const value = this.parseValue();
      if (value.kind === 'concat' && value.parts.filter((part) => part.kind === 'block').length > 1) {
        const message = 'two blocks side by side become one element; put a comma between them if they are two';
        this.warnings.push({ at: value.at, key: formatPath(this.keys), message });
      }
      items.push(value);
      this.parseSeparator(']');
    }
    this.pos++;
    this.depth--;
    return { kind: 'list', items, at };
  }

  private parseReference(at: Position): RawReference {
    if (this.text[this.pos + 1] !== '{') this.fail('"$" has to be followed by "{"; put the value into quotes');
    this.pos += 2;
    const optional = this.peek() === '?';
    if (optional) this.pos++;
    const from = this.pos;
    const path = this.parseKey();
    const name = this.text.slice(from, this.pos).trim();
    if (this.peek() !== '}') this.failAt(at, 'this ${ has no closing brace');
    this.pos++;
    return { kind: 'reference', path, name, optional, prefix: this.prefix, key: formatPath(this.keys), at };
  }

  private parseString(): string {
    const at = this.here();
    if (this.text.startsWith('"""', this.pos)) return this.parseTripleString(at);
    this.pos++;
    let value = '';
    for (;;) {
      value += this.match(STRING_PLAIN);
      const c = this.peek();
      if (c === '"') break;
      if (c === '' || c === '\n' || c === '\r') this.failAt(at, 'this text has no closing quote');
      if (c !== '\\') this.fail('a control character inside quotes; write it as \\u00..');
      value += this.parseEscape();
    }
    this.pos++;
    if (LONE_SURROGATE.test(value)) this.failAt(at, 'this text holds half of a surrogate pair');
    return value;
  }

  private parseEscape(): string {
    const c = this.text[this.pos + 1] ?? '';
    if (c === 'u') {
      const hex = this.text.slice(this.pos + 2, this.pos + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(hex)) this.fail('\\u needs four hexadecimal digits');
      this.pos += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const value = ESCAPES.get(c);
    if (value === undefined) this.fail('unknown escape; write \\\\ for a backslash');
    this.pos += 2;
    return value;
  }

  /** Everything up to the last three quotes of the first run of three or more, as it stands. */
  private parseTripleString(at: Position): string {
    const from = this.pos + 3;
    let end = this.text.indexOf('"""', from);
    if (end < 0) this.failAt(at, 'this text has no closing """');
    while (this.text[end + 3] === '"') end++;
    const value = this.text.slice(from, end);
    for (let i = value.indexOf('\n'); i >= 0; i = value.indexOf('\n', i + 1)) this.newLine(from + i + 1);
    this.pos = end + 3;
    return value;
  }

  // --- includes -----------------------------------------------------------------------------------------------------------

  private tryInclude(block: RawBlock): boolean {
    const at = this.here();
    if (this.match(INCLUDE) === '') return false;
    let closing = 0;
    let required = false;
    for (let word = this.includeWord(); word !== ''; word = this.includeWord()) {
      if (word === 'required') required = true;
      else if (word !== 'file') this.failAt(at, `include ${word}() is not supported, only files`);
      closing++;
    }
    if (this.peek() !== '"') this.fail('the name of a file in quotes expected');
    const name = this.parseString();
    for (; closing > 0; closing--) {
      this.skipBlank();
      if (this.peek() !== ')') this.fail('")" expected');
      this.pos++;
    }
    this.include(block, name, required, at);
    return true;
  }

  private includeWord(): string {
    const word = /[a-z]+(?=\s*\()/y;
    word.lastIndex = this.pos;
    const found = word.exec(this.text)?.[0] ?? '';
    if (found === '') return '';
    this.pos += found.length;
    this.skipBlank();
    this.pos++;
    this.skipBlank();
    return found;
  }

  private include(block: RawBlock, name: string, required: boolean, at: Position): void {
    const path = isAbsolute(name) ? name : resolvePath(this.path, '..', name);
    const key = 'include';
    if (this.stack.includes(path)) throw new ConfigError([{ at, key, message: `${name} includes itself` }]);
    if (this.stack.length >= MAX_INCLUDES) {
      throw new ConfigError([{ at, key, message: `more than ${MAX_INCLUDES} files include each other` }]);
    }
    const text = this.source.open(path, at, key);
    if (text === null) {
      // Users and rights left out by a misspelt name would leave the gateway open, so there it is never passed over.
      const must = required || this.keys[0] === 'auth';
      const problem = { at, key, message: `there is no file ${name}` };
      if (must) throw new ConfigError([problem]);
      this.warnings.push({ ...problem, message: `${problem.message}, nothing is included` });
      return;
    }
    const inner = new Parser(
      text,
      path,
      this.source,
      this.warnings,
      this.stack,
      this.keys.slice(),
      this.depth,
    ).parseRoot();
    for (const [k, field] of inner.fields) for (const entry of field.entries) put(block, [k], entry, field.at);
  }

  // --- text ---------------------------------------------------------------------------------------------------------------

  private enter(): void {
    if (++this.depth > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels`);
  }

  private peek(): string {
    return this.text[this.pos] ?? '';
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.pos;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.pos += found.length;
    return found;
  }

  private atComment(): boolean {
    return this.peek() === '#' || (this.peek() === '/' && this.text[this.pos + 1] === '/');
  }

  /** Blanks, new lines and comments. */
  private skipBlank(): void {
    for (;;) {
      this.match(BLANKS);
      if (this.peek() === '\n') {
        this.pos++;
        this.newLine(this.pos);
      } else if (this.match(COMMENT) === '') return;
    }
  }

  private newLine(start: number): void {
    this.line++;
    this.lineStart = start;
  }

  private here(): Position {
    return { file: this.file, line: this.line, column: this.pos - this.lineStart + 1 };
  }

  private found(): string {
    const c = this.text.codePointAt(this.pos);
    if (c === undefined) return 'the end of the file';
    if (c === 10) return 'the end of the line';
    return c < 32 || c === 127 ? 'a control character' : `"${String.fromCodePoint(c)}"`;
  }

  private unexpected(): string {
    const hint = ':=+?!@*&^`\\$'.includes(this.peek()) ? '; a text with this sign needs quotes' : '';
    return `a comma or a new line expected, found ${this.found()}${hint}`;
  }

  private fail(message: string): never {
    this.failAt(this.here(), message);
  }

  private failAt(at: Position, message: string): never {
    throw new ConfigError([{ at, key: 'syntax', message }]);
  }
}

function plainValue(text: string): string | number | boolean | null {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  return WHOLE_NUMBER.test(text) ? Number(text) : text;
}

/** Scalars side by side are one text, blanks between them kept; null when something else is among them. */
export function joinText(parts: readonly (Raw | Node)[], at: Position): ScalarNode | null {
  let text = '';
  for (const part of parts) {
    if (part.kind !== 'scalar') return null;
    text += part.text;
  }
  return { kind: 'scalar', value: text, text, quoted: true, at };
}

/** A scalar, or a list without references: nothing older can shine through. */
function definite(value: Raw): boolean {
  if (value.kind === 'list') return value.items.every(settled);
  return value.kind === 'scalar';
}

function settled(value: Raw): boolean {
  if (value.kind === 'block') {
    for (const field of value.fields.values()) if (!field.entries.every(settled)) return false;
    return true;
  }
  return definite(value);
}

/** block.path = value: blocks merge, a scalar or list hides what was there, a reference waits for resolve.ts. */
function put(block: RawBlock, path: readonly string[], value: Raw, at: Position): void {
  for (let i = path.length - 1; i > 0; i--) {
    value = { kind: 'block', fields: new Map([[path[i], { entries: [value], at }]]), at };
  }
  const field = block.fields.get(path[0]);
  if (field === undefined) {
    block.fields.set(path[0], { entries: [value], at });
    return;
  }
  const last = field.entries[field.entries.length - 1];
  // Long runs of += become one list, not a chain: nothing in them looks at the values before.
  if (value.kind === 'concat' && value.added?.items.every(settled)) {
    const list = last.kind === 'concat' ? last.added : last;
    if (list?.kind === 'list') {
      list.items.push(...value.added.items);
      return;
    }
  }
  if (value.kind === 'block' && last.kind === 'block') {
    for (const [key, from] of value.fields) for (const entry of from.entries) put(last, [key], entry, from.at);
    return;
  }
  if (definite(value) || (value.kind === 'block' && definite(last))) field.entries.length = 0;
  if (definite(value)) field.at = at;
  field.entries.push(value);
}
