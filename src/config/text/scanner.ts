// The characters of a HOCON text: where we are, blanks and comments, quoted texts, mistakes with their place.
// hocon.ts builds its grammar on it. Lines and columns count from 1, columns in UTF-16 units as editors do.
// Source: HOCON.md, "Comments", "Whitespace", "Multi-line strings"; RFC 8259 section 7 for escapes.
import { ConfigError, type Position } from '../problem.ts';

const BLANKS = /[^\S\n]+/y;
const COMMENT = /(?:#|\/\/)[^\n]*/y;
// Plain classes only: the engine keeps a stack for everything else that repeats, and long texts would use it up.
const STRING_PLAIN = /[^"\\\n\r]+/y;
/** Control characters that JSON wants escaped; a tab is let through, as NanoMQ's files have it. */
const CONTROL = /[^\P{Cc}\t\u007f-\u009f]/u;
// HOCON.md, "Unquoted strings": characters that cannot stand in them. A run also ends at "//".
const RUN = /[^$"{}[\]:=,+#`^?!@*&\\\s/]+/y;
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

export class Scanner {
  protected readonly text: string;
  protected pos = 0;
  /** The line we are in. */
  protected line = 1;
  private readonly file: string;
  private lineStart = 0;

  /** `file` is the name shown in messages. */
  constructor(text: string, file: string) {
    this.text = text;
    this.file = file;
  }

  peek(): string {
    return this.text[this.pos] ?? '';
  }

  match(pattern: RegExp): string {
    pattern.lastIndex = this.pos;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.pos += found.length;
    return found;
  }

  atComment(): boolean {
    return this.peek() === '#' || (this.peek() === '/' && this.text[this.pos + 1] === '/');
  }

  /** Characters that need no quotes, up to blanks, a sign or a comment. */
  matchRun(): string {
    const from = this.pos;
    for (;;) {
      this.match(RUN);
      if (this.peek() !== '/' || this.atComment()) return this.text.slice(from, this.pos);
      this.pos++;
    }
  }

  /** Blanks within a line; gives what it has passed. */
  skipSpaces(): string {
    return this.match(BLANKS);
  }

  /** Blanks, new lines and comments. */
  skipBlank(): void {
    for (;;) {
      this.skipSpaces();
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

  here(): Position {
    return { file: this.file, line: this.line, column: this.pos - this.lineStart + 1 };
  }

  found(): string {
    const c = this.text.codePointAt(this.pos);
    if (c === undefined) return 'the end of the file';
    if (c === 10) return 'the end of the line';
    return c < 32 || c === 127 ? 'a control character' : `"${String.fromCodePoint(c)}"`;
  }

  unexpected(): string {
    const hint = ':=+?!@*&^`\\$'.includes(this.peek()) ? '; a text with this sign needs quotes' : '';
    return `a comma or a new line expected, found ${this.found()}${hint}`;
  }

  fail(message: string): never {
    this.failAt(this.here(), message);
  }

  failAt(at: Position, message: string): never {
    throw new ConfigError([{ at, key: 'syntax', message }]);
  }

  parseString(): string {
    const at = this.here();
    if (this.text.startsWith('"""', this.pos)) return this.parseTripleString(at);
    this.pos++;
    let value = '';
    for (;;) {
      const from = this.pos;
      const plain = this.match(STRING_PLAIN);
      const control = plain.search(CONTROL);
      if (control >= 0) {
        this.pos = from + control;
        this.fail('a control character inside quotes; write it as \\u00..');
      }
      value += plain;
      const c = this.peek();
      if (c === '"') break;
      if (c !== '\\') this.failAt(at, 'this text has no closing quote');
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
}
