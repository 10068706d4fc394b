// Reads TOML (https://toml.io, 0.5) with @iarna/toml and finds out where every key and value stands, which that package
// does not tell. Called by config/load.ts; the package is loaded here and only for .toml files. The finder goes first:
// where it stops, the package may read no further, and keys that are names of every object (constructor, toString) get
// another name before the package sees them, because it would write the table [constructor] into the object Object
// itself. Sources: the package's error has `line` and `col` counted from 0, `col` up to two past the end of the line.
import { createRequire } from 'node:module';
import { ConfigError, type Position } from '../problem.ts';
import { type BlockNode, FORBIDDEN_KEY, MAX_DEPTH, MAX_KEY, MAX_NODES, type Member, type Node } from './node.ts';

interface TomlPackage {
  parse(text: string): unknown;
}

/** What stands at a place of the tree: a key of a table, or an element of a list. */
interface Spot {
  at: Position;
  readonly keys: Map<string, Spot>;
  readonly items: Spot[];
}

/** Throws ConfigError with the place of the first mistake. */
export function parseToml(text: string, file: string): BlockNode {
  if (text.startsWith('\ufeff')) text = text.slice(1);
  const finder = new Finder(text, file);
  const root = finder.find();
  const value = parse(finder.safeText(), file);
  const node = finder.finished ? convert(value, root, 0) : null;
  if (node?.kind === 'block') return node;
  throw new ConfigError([{ at: finder.here(), key: 'syntax', message: 'not TOML' }]);
}

/** Put before names that every object has; a sign of the private use area, which no key begins with by chance. */
const MARK = '\ue000';

function isInherited(key: string): boolean {
  return key in Object.prototype;
}

/**
 * Loaded at the first .toml file. In the bundle `require` is there and the package is a part of it; as a source file it
 * is not.
 */
function tomlPackage(): TomlPackage {
  if (typeof require === 'function') return require('@iarna/toml') as TomlPackage;
  return createRequire(import.meta.url)('@iarna/toml') as TomlPackage;
}

function parse(text: string, file: string): unknown {
  try {
    return tomlPackage().parse(text);
  } catch (error) {
    const { line, col, message } = error as { line?: number; col?: number; message?: string };
    const row = Math.max(0, line ?? 0);
    const length = (text.split('\n')[row] ?? '').replace(/\r$/, '').length;
    const column = Math.min(Math.max(0, col ?? 0), length) + 1;
    const first = (message ?? 'not TOML').split('\n')[0].replace(/ at row \d+, col \d+, pos \d+:?$/, '');
    throw new ConfigError([{ at: { file, line: row + 1, column }, key: 'syntax', message: `TOML: ${first}` }]);
  }
}

function convert(value: unknown, spot: Spot, depth: number): Node {
  const at = spot.at;
  if (depth > MAX_DEPTH) throw new ConfigError([{ at, key: 'syntax', message: `more than ${MAX_DEPTH} levels` }]);
  if (Array.isArray(value)) {
    return { kind: 'list', items: value.map((item, i) => convert(item, spot.items[i] ?? nowhere(at), depth + 1)), at };
  }
  if (value instanceof Date) return scalar(value.toISOString(), at);
  if (typeof value === 'object' && value !== null) return table(value, spot, depth);
  if (typeof value === 'bigint') return scalar(String(value), at, false);
  if (typeof value === 'number' || typeof value === 'boolean') {
    return { kind: 'scalar', value, text: String(value), quoted: false, at };
  }
  const text = String(value);
  if (/\p{Surrogate}/u.test(text)) {
    throw new ConfigError([{ at, key: 'syntax', message: 'this text holds half of a surrogate pair' }]);
  }
  return scalar(text, at);
}

/** Keys in the order of the file: an object of JavaScript would put names that are numbers first. */
function table(value: object, spot: Spot, depth: number): BlockNode {
  const fields = new Map<string, Member>();
  const given = Object.keys(value).map((name) =>
    name.startsWith(MARK) && isInherited(name.slice(1)) ? name.slice(1) : name,
  );
  const names = new Set([...spot.keys.keys(), ...given]);
  for (const name of names) {
    const inner = Object.getOwnPropertyDescriptor(value, isInherited(name) ? MARK + name : name)?.value;
    if (inner === undefined) continue;
    const place = spot.keys.get(name) ?? nowhere(spot.at);
    fields.set(name, { at: place.at, value: convert(inner, place, depth + 1) });
  }
  return { kind: 'block', fields, at: spot.at };
}

function scalar(text: string, at: Position, quoted = true): Node {
  return { kind: 'scalar', value: text, text, quoted, at };
}

function nowhere(at: Position): Spot {
  return { at, keys: new Map(), items: [] };
}

const BARE = /[A-Za-z0-9_-]+/y;
// Plain classes only: the engine keeps a stack for everything else that repeats, and long texts would use it up.
const BASIC_PLAIN = /[^"\\\n]+/y;
const BLANKS = /[ \t\r]+/y;
const SPACE = /\s+/y;
const COMMENT = /#[^\n]*/y;
const PLAIN_VALUE = /[^,\]}\n#]+/y;

class Finder {
  private readonly text: string;
  private readonly file: string;
  private readonly root: Spot;
  private pos = 0;
  private line = 1;
  private lineStart = 0;
  private lineEnd: number;
  /** Keys that need another name: where they begin and end, and what to write there. */
  private readonly renamed: { readonly from: number; readonly to: number; readonly text: string }[] = [];
  private values = 0;
  /** Whether everything was understood. */
  finished = false;

  constructor(text: string, file: string) {
    this.text = text;
    this.file = file;
    this.root = nowhere({ file, line: 1, column: 1 });
    this.lineEnd = this.endOfLine();
  }

  find(): Spot {
    let table = this.root;
    for (;;) {
      this.skipSpace();
      if (this.pos >= this.text.length) {
        this.finished = true;
        break;
      }
      const before = this.pos;
      if (this.text[this.pos] === '[') table = this.header() ?? table;
      else this.pair(table, 0);
      if (this.pos === before) break;
    }
    return this.root;
  }

  /** What the package may read: the text up to where the finder stopped, with some keys renamed. */
  safeText(): string {
    let out = '';
    let done = 0;
    for (const { from, to, text } of this.renamed) {
      out += this.text.slice(done, from) + text;
      done = to;
    }
    const end = this.finished ? this.text.length : this.text.indexOf('\n', this.pos);
    return out + this.text.slice(done, end < 0 ? undefined : end);
  }

  private header(): Spot | null {
    const double = this.text.startsWith('[[', this.pos);
    this.pos += double ? 2 : 1;
    const at = this.here();
    const path = this.path();
    if (path === null) return null;
    this.match(BLANKS);
    this.pos += double ? 2 : 1;
    let spot = this.root;
    for (const key of path.slice(0, -1)) spot = last(this.enter(spot, key, at));
    const end = this.enter(spot, path[path.length - 1], at);
    if (!double) return last(end);
    end.items.push(nowhere(at));
    return last(end);
  }

  /** key = value. */
  private pair(table: Spot, depth: number): void {
    const at = this.here();
    const path = this.path();
    if (path === null) return;
    this.match(BLANKS);
    if (this.text[this.pos] !== '=') return;
    this.pos++;
    this.match(BLANKS);
    let spot = table;
    for (const key of path) spot = this.enter(spot, key, at);
    this.value(spot, depth);
  }

  private value(spot: Spot, depth: number): void {
    spot.at = this.here();
    if (++this.values > MAX_NODES) throw this.error(spot.at, `more than ${MAX_NODES} values`);
    const c = this.text[this.pos];
    if (depth > MAX_DEPTH) throw this.error(spot.at, `more than ${MAX_DEPTH} levels`);
    if (c === '[') {
      this.members(']', () => {
        const item = nowhere(this.here());
        spot.items.push(item);
        this.value(item, depth + 1);
      });
    } else if (c === '{') this.members('}', () => this.pair(spot, depth + 1));
    else if (c === '"' || c === "'") this.quoted(c, true);
    else this.match(PLAIN_VALUE);
  }

  /** What stands between brackets, up to `close`; ends where a member is not understood. */
  private members(close: ']' | '}', member: () => void): void {
    this.pos++;
    for (;;) {
      this.skipSpace();
      if (this.text[this.pos] === ',') {
        this.pos++;
        continue;
      }
      if (this.text[this.pos] === close || this.pos >= this.text.length) break;
      const before = this.pos;
      member();
      if (this.pos === before) return;
    }
    this.pos++;
  }

  /** a."b c".d, or null when there is no key. */
  private path(): string[] | null {
    const path: string[] = [];
    for (;;) {
      this.match(BLANKS);
      const from = this.pos;
      const at = this.here();
      const c = this.text[this.pos];
      const quoted = c === '"' || c === "'" ? this.quoted(c, false) : '';
      const key = quoted === '' ? this.match(BARE) : c === '"' ? unquoteKey(quoted) : quoted.slice(1, -1);
      if (key === '' && quoted === '') return null;
      if (key.length > MAX_KEY) throw this.error(at, `a name of more than ${MAX_KEY} characters`);
      if (key === FORBIDDEN_KEY)
        throw new ConfigError([{ at, key: FORBIDDEN_KEY, message: 'this name cannot be used' }]);
      if (isInherited(key)) this.renamed.push({ from, to: this.pos, text: JSON.stringify(MARK + key) });
      path.push(key);
      if (path.length > MAX_DEPTH) throw this.error(at, `more than ${MAX_DEPTH} levels`);
      this.match(BLANKS);
      if (this.text[this.pos] !== '.') return path;
      this.pos++;
    }
  }

  /** Passes a text in quotes; '' when it has no end. */
  private quoted(quote: '"' | "'", mayBeLong: boolean): string {
    const from = this.pos;
    const long = mayBeLong && this.text.startsWith(quote.repeat(3), from);
    const close = long ? quote.repeat(3) : quote;
    this.pos += close.length;
    for (;;) {
      if (quote === "'") {
        const end = this.text.indexOf(close, this.pos);
        this.pos = end < 0 ? this.text.length : end;
      } else this.match(BASIC_PLAIN);
      const c = this.text[this.pos];
      if (this.text.startsWith(close, this.pos)) break;
      if (c === undefined || (c === '\n' && !long)) {
        this.pos = from;
        return '';
      }
      this.pos += c === '\\' ? 2 : 1;
    }
    this.pos += close.length;
    while (long && this.text[this.pos] === quote) this.pos++;
    return this.text.slice(from, this.pos);
  }

  /** Blanks, new lines and comments. */
  private skipSpace(): void {
    while (this.match(SPACE) !== '' || this.match(COMMENT) !== '') {}
  }

  private error(at: Position, message: string): ConfigError {
    return new ConfigError([{ at, key: 'syntax', message }]);
  }

  private enter(spot: Spot, key: string, at: Position): Spot {
    const known = spot.keys.get(key);
    if (known !== undefined) return known;
    const made = nowhere(at);
    spot.keys.set(key, made);
    return made;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.pos;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.pos += found.length;
    return found;
  }

  here(): Position {
    while (this.lineEnd < this.pos) {
      this.line++;
      this.lineStart = this.lineEnd + 1;
      this.lineEnd = this.endOfLine();
    }
    return { file: this.file, line: this.line, column: this.pos - this.lineStart + 1 };
  }

  private endOfLine(): number {
    const end = this.text.indexOf('\n', this.lineStart);
    return end < 0 ? this.text.length : end;
  }
}

/** The element a header after [[...]] goes on in. */
function last(spot: Spot): Spot {
  return spot.items.length > 0 ? spot.items[spot.items.length - 1] : spot;
}

/** A basic string of TOML; what JSON does not know stays as it is, then the key is found by the package only. */
function unquoteKey(quoted: string): string {
  try {
    const value: unknown = JSON.parse(quoted);
    return typeof value === 'string' ? value : quoted;
  } catch {
    return quoted;
  }
}
