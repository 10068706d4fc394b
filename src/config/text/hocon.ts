// Reads HOCON text (https://github.com/lightbend/config/blob/main/HOCON.md) into an unresolved tree; resolve.ts does
// the rest. Called by config/load.ts and by itself for includes. Synchronous; runs nothing it reads, fetches nothing,
// opens only files below the main file's folder. Every value keeps file, line and column. Left out: url() and
// classpath() includes, include without extension. Bounds: MAX_FILE_BYTES over all files, MAX_DEPTH levels,
// MAX_INCLUDES files inside each other.
import { isAbsolute, resolve as resolvePath } from 'node:path';
import { ConfigError, type Position, type Problem } from '../problem.ts';
import { FORBIDDEN_KEY, formatPath, MAX_DEPTH, MAX_KEY, MAX_NODES, type ScalarNode } from './node.ts';
import { joinText, put, type Raw, type RawBlock, type RawList, type RawReference } from './raw.ts';
import { Scanner } from './scanner.ts';

/** Opens files for includes: null = not there. Throws GatewayError CFG-READ when it may not or cannot be read. */
export interface Source {
  /** `path` is absolute; `at` and `key` tell where the include stands. */
  open(path: string, at: Position, key: string): string | null;
  /** The path as it is shown in messages. */
  show(path: string): string;
}

const MAX_INCLUDES = 16;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const INCLUDE = /include(?=[\s"])[^\S\n]*(?="|required\s*\(|file\s*\(|url\s*\(|classpath\s*\()/y;

/**
 * Parses the text of the file at `path` (absolute), includes included. Throws ConfigError at the first mistake; what is
 * odd and still clear goes to `warnings`.
 */
export function parseHocon(text: string, path: string, source: Source, warnings: Problem[]): RawBlock {
  return new Parser(text, path, { source, warnings, nodes: 0 }, [], [], 0).parseRoot();
}

/** A key path as in `--set`: `a."b.c".d` -> [a, b.c, d]; null when it is none. */
export function parsePath(text: string): string[] | null {
  const source: Source = { open: () => null, show: () => '' };
  const parser = new Parser(text, '', { source, warnings: [], nodes: 0 }, [], [], 0);
  try {
    return parser.parseWholePath();
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

/** What the parsers of a file and of all it includes share. */
interface Reading {
  readonly source: Source;
  readonly warnings: Problem[];
  /** Values so far. */
  nodes: number;
}

class Parser extends Scanner {
  private readonly path: string;
  private readonly reading: Reading;
  /** Files being read, to find includes that never end. */
  private readonly stack: readonly string[];
  private readonly prefix: readonly string[];
  private depth: number;
  /** Keys from the root of the main file to where we are. */
  private readonly keys: string[];

  constructor(
    text: string,
    path: string,
    reading: Reading,
    stack: readonly string[],
    prefix: readonly string[],
    depth: number,
  ) {
    super(text, reading.source.show(path));
    this.path = path;
    this.reading = reading;
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

  // --- blocks
  // -------------------------------------------------------------------------------------------------------------

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
      if (part.length > MAX_KEY) this.failAt(at, `a name of more than ${MAX_KEY} characters`);
      const c = this.peek();
      if (c === '"') {
        part += this.parseString();
        hasPart = true;
        continue;
      }
      const blanks = this.skipSpaces();
      if (blanks !== '') {
        const next = this.peek();
        const goesOn = next !== '' && next !== '\n' && !'=:{+#}],['.includes(next) && !this.atComment();
        if (goesOn && (hasPart || part !== '')) part += blanks;
        continue;
      }
      const run = this.matchRun();
      if (run === '') break;
      const pieces = run.split('.', MAX_DEPTH + 2);
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
    if (path.some((name) => name.length > MAX_KEY)) this.failAt(at, `a name of more than ${MAX_KEY} characters`);
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

  // --- values
  // -------------------------------------------------------------------------------------------------------------

  private parseValue(): Raw {
    const at = this.here();
    const parts: Raw[] = [];
    for (;;) {
      const blanks = this.skipSpaces();
      const partAt = this.here();
      const part = this.parsePart();
      if (part === null) break;
      if (++this.reading.nodes > MAX_NODES) this.failAt(partAt, `more than ${MAX_NODES} values`);
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
    text += this.matchRun();
    if (text === '') return null;
    if (this.atComment()) {
      const message = 'a comment begins inside this value and cuts it; put the value into quotes';
      this.reading.warnings.push({ at, key: formatPath(this.keys), message });
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
        // HOCON makes one element of them, NanoMQ two: a rule that vanishes without a word is worse than an error.
        this.failAt(value.at, 'two blocks side by side in a list: put a comma or a new line between them');
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

  // --- includes
  // -----------------------------------------------------------------------------------------------------------

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
    const text = this.reading.source.open(path, at, key);
    if (text === null) {
      // Users and rights left out by a misspelt name would leave the gateway open, so there it is never passed over.
      const must = required || this.keys[0] === 'auth';
      const problem = { at, key, message: `there is no file ${name}` };
      if (must) throw new ConfigError([problem]);
      this.reading.warnings.push({ ...problem, message: `${problem.message}, nothing is included` });
      return;
    }
    const inner = new Parser(text, path, this.reading, this.stack, this.keys.slice(), this.depth).parseRoot();
    for (const [k, field] of inner.fields) for (const entry of field.entries) put(block, [k], entry, field.at);
  }

  private enter(): void {
    if (++this.depth > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels`);
  }
}

function plainValue(text: string): string | number | boolean | null {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  return WHOLE_NUMBER.test(text) ? Number(text) : text;
}
