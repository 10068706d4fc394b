// Reads the fields of a JSON object that a rule asks for, and checks the rest, without making a value of it. Used by
// transform.ts where expressions read the payload by the names of its fields alone. Gives exactly what JSON.parse gives
// for these fields, or null: then the caller reads the whole payload. Null is the answer to everything unusual: other
// JSON values, escapes, characters beyond ASCII, long numbers, exponents, deep nesting, what is no JSON. Source: RFC
// 8259.

/** Longer payloads are read by JSON.parse, whose start costs little against them. */
const MOST_BYTES = 4096;
/** Objects and lists in each other. */
const MOST_DEPTH = 16;
/** Digits of a number: its digits fit a double exactly, and so do powers of ten up to 10^22. */
const MOST_DIGITS = 15;
const POWERS = Array.from({ length: MOST_DIGITS + 1 }, (_, i) => Number(`1e${i}`));
/** More fields than this are read as a whole. */
const MOST_FIELDS = 16;
/** Texts up to this length are remembered by field: device names come again and again. */
const REMEMBERED_BYTES = 32;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const WORDS = [
  { bytes: Buffer.from('true'), value: true },
  { bytes: Buffer.from('false'), value: false },
  { bytes: Buffer.from('null'), value: null },
];

interface Field {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The last text of this field. */
  text: string;
  textBytes: Uint8Array;
}

export class FieldReader {
  private readonly fields: readonly Field[];
  private bytes: Uint8Array = new Uint8Array(0);
  private at = 0;
  private end = 0;
  /** The value that value() has read. */
  private value: unknown = null;

  private constructor(names: readonly string[]) {
    const none = new Uint8Array(0);
    this.fields = names.map((name) => ({ name, bytes: Buffer.from(name), text: '', textBytes: none }));
  }

  /** Null where these fields cannot be read on their own. */
  static of(names: ReadonlySet<string>): FieldReader | null {
    const usual = [...names].every((name) => /^[ !#-[\]-~]+$/.test(name) && name !== '__proto__');
    return usual && names.size > 0 && names.size <= MOST_FIELDS ? new FieldReader([...names]) : null;
  }

  /** The object in bytes[start, end) with these fields alone; null: read the whole. O(bytes). */
  read(bytes: Uint8Array, start: number, end: number): Record<string, unknown> | null {
    if (end - start > MOST_BYTES) return null;
    this.bytes = bytes;
    this.at = start;
    this.end = end;
    this.space();
    if (this.peek() !== OPEN) return null;
    const found = this.object();
    if (found === null) return null;
    this.space();
    return this.at === end ? found : null;
  }

  // Each of the functions below returns false, or null, at anything unusual.

  private object(): Record<string, unknown> | null {
    const found: Record<string, unknown> = {};
    this.at++;
    this.space();
    if (this.peek() === CLOSE) {
      this.at++;
      return found;
    }
    for (;;) {
      if (this.peek() !== QUOTE) return null;
      const from = this.at + 1;
      if (!this.string()) return null;
      const field = this.fieldAt(from, this.at - 1);
      this.space();
      if (this.peek() !== COLON) return null;
      this.at++;
      this.space();
      if (field === null) {
        if (!this.skip(0)) return null;
      } else {
        if (!this.take(field)) return null;
        found[field.name] = this.value;
      }
      this.space();
      const next = this.peek();
      this.at++;
      if (next === CLOSE) return found;
      if (next !== COMMA) return null;
      this.space();
    }
  }

  private fieldAt(from: number, to: number): Field | null {
    const { bytes, fields } = this;
    for (let i = 0; i < fields.length; i++) {
      const name = fields[i].bytes;
      if (name.length === to - from && equals(name, bytes, from)) return fields[i];
    }
    return null;
  }

  /** Reads a value that is asked for. */
  private take(field: Field): boolean {
    const from = this.at;
    const first = this.peek();
    if (first === QUOTE) {
      if (!this.string()) return false;
      this.value = this.textOf(field, from + 1, this.at - 1);
      return true;
    }
    if (first === OPEN || first === OPEN_LIST) {
      if (!this.skip(0)) return false;
      this.value = JSON.parse(latin1(this.bytes, from, this.at));
      return true;
    }
    return first === MINUS || (first >= ZERO && first <= NINE) ? this.number() : this.word();
  }

  private textOf(field: Field, from: number, to: number): string {
    const { textBytes } = field;
    if (textBytes.length === to - from && equals(textBytes, this.bytes, from)) return field.text;
    const text = latin1(this.bytes, from, to);
    if (to - from <= REMEMBERED_BYTES) {
      field.text = text;
      field.textBytes = Uint8Array.from(this.bytes.subarray(from, to));
    }
    return text;
  }

  /** Passes a value that is not asked for. */
  private skip(depth: number): boolean {
    const first = this.peek();
    if (first === QUOTE) return this.string();
    if (first === OPEN || first === OPEN_LIST) return depth < MOST_DEPTH && this.skipAll(first, depth + 1);
    return first === MINUS || (first >= ZERO && first <= NINE) ? this.number() : this.word();
  }

  private skipAll(open: number, depth: number): boolean {
    const close = open === OPEN ? CLOSE : CLOSE_LIST;
    this.at++;
    this.space();
    if (this.peek() === close) {
      this.at++;
      return true;
    }
    for (;;) {
      if (open === OPEN) {
        if (this.peek() !== QUOTE || !this.string()) return false;
        this.space();
        if (this.peek() !== COLON) return false;
        this.at++;
        this.space();
      }
      if (!this.skip(depth)) return false;
      this.space();
      const next = this.peek();
      this.at++;
      if (next === close) return true;
      if (next !== COMMA) return false;
      this.space();
    }
  }

  /** A text of plain ASCII, without escapes. */
  private string(): boolean {
    const { bytes, end } = this;
    for (let at = this.at + 1; at < end; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
      if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return false;
    }
    return false;
  }

  private number(): boolean {
    const negative = this.peek() === MINUS;
    if (negative) this.at++;
    const from = this.at;
    let digits = this.digits(0);
    const whole = this.at - from;
    if (whole === 0 || (whole > 1 && this.bytes[from] === ZERO)) return false;
    let behind = 0;
    if (this.peek() === DOT) {
      this.at++;
      const dot = this.at;
      digits = this.digits(digits);
      behind = this.at - dot;
      if (behind === 0) return false;
    }
    const next = this.peek() | 0x20;
    if (next === 0x65 || whole + behind > MOST_DIGITS) return false;
    const size = behind === 0 ? digits : digits / POWERS[behind];
    this.value = negative ? -size : size;
    return true;
  }

  /** Goes on with the digits that stand here. */
  private digits(before: number): number {
    const { bytes, end } = this;
    let value = before;
    let { at } = this;
    for (; at < end; at++) {
      const digit = bytes[at] - ZERO;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    this.at = at;
    return value;
  }

  private word(): boolean {
    for (const { bytes, value } of WORDS) {
      if (this.end - this.at < bytes.length || !equals(bytes, this.bytes, this.at)) continue;
      this.at += bytes.length;
      this.value = value;
      return true;
    }
    return false;
  }

  /** The byte here, 0 at the end. */
  private peek(): number {
    return this.at < this.end ? this.bytes[this.at] : 0;
  }

  private space(): void {
    const { bytes, end } = this;
    let { at } = this;
    while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09)) at++;
    this.at = at;
  }
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1');
}

function equals(wanted: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
