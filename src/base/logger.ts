// The Log of a running gateway, on pino: one JSON line a call, or the same in colour for a person at a terminal. Made
// by cli/ at start-up; every other stage sees only the Log of log.ts. Lines leave in the background and are flushed at
// exit. Whatever came from outside stands in the fields: it is bounded, and no control character of it reaches the
// output as such. Source: ECMA-48 (C0, C1), Unicode TR 9 (bidirectional controls).
import { existsSync, fstatSync, mkdirSync, openSync, renameSync } from 'node:fs';
import path from 'node:path';
import pino from 'pino';
import { errorText } from './errors.ts';
import { LineWriter } from './linewriter.ts';
import type { Fields, Level, Log } from './log.ts';
import { ALWAYS, MESSAGES, type MsgId } from './messages.ts';

export type LogFormat = 'json' | 'pretty' | 'auto';

export interface LoggerOptions {
  readonly level: Level;
  readonly format: LogFormat;
  readonly console: boolean;
  /** Path of the log file, or null. */
  readonly file: string | null;
  /** A file that reaches this many bytes becomes <file>.1, that one <file>.2 and so on; 0 = never. */
  readonly rotateBytes: number;
  /** How many old files are kept. */
  readonly rotateCount: number;
  /** Wall-clock milliseconds, for tests. */
  readonly now?: () => number;
  /** Where console lines go: the file descriptor of standard output unless a test says otherwise. */
  readonly consoleFd?: number;
  /** Whether the console is a terminal: what `auto` means. */
  readonly tty: boolean;
  /** Whether pretty lines have colours; absent: on a terminal. */
  readonly colours?: boolean;
  /** Told once for each run of failures to write (disk full, file gone). */
  readonly onError: (text: string) => void;
}

export interface Logger {
  readonly log: Log;
  setLevel(level: Level): void;
  /** Opens the log file anew, after somebody has moved it away (SIGHUP). */
  reopen(): void;
  /** Writes what is still waiting, before the process ends. Never throws. */
  flush(): void;
}

const RANK: Readonly<Record<Level, number>> = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60 };

/** Names of the line itself; a field of that name gets an underscore behind it. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'msgid', 'msg']);

const MAX_TEXT = 2048;
const MAX_ITEMS = 64;
const MAX_DEPTH = 5;
/** Bytes that may wait for a slow disk or pipe; beyond that lines are lost, and onError says so. */
const MAX_WAITING = 4 * 1024 * 1024;

/** Readable by the service's group, not by everybody: addresses and client ids are in it. */
const FILE_MODE = 0o640;

/**
 * What JSON leaves as it is and terminals or viewers do not: DEL and C1, line separators, bidirectional and zero-width
 * controls.
 */
const ODD = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function escapeOdd(line: string): string {
  return line.replace(ODD, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}... (${text.length} characters)`;
}

/** A value as it may stand in a line: bounded in size and depth, bytes as their count, errors as their text. */
function plain(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cut(value);
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value === 'function') return '(function)';
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return errorFields(value, depth);
  if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
  if (depth >= MAX_DEPTH) return '(deeper)';
  if (value instanceof Map) return plainObject(value.entries(), depth);
  if (Array.isArray(value) || value instanceof Set) {
    const items: unknown[] = [];
    for (const item of value) {
      if (items.length === MAX_ITEMS) {
        items.push('(more)');
        break;
      }
      items.push(plain(item, depth + 1));
    }
    return items;
  }
  return plainObject(Object.entries(value), depth);
}

function plainObject(entries: Iterable<[unknown, unknown]>, depth: number): Record<string, unknown> {
  const out: Record<string, unknown> = Object.create(null);
  let count = 0;
  for (const [key, value] of entries) {
    if (count++ === MAX_ITEMS) {
      out['(more)'] = true;
      break;
    }
    out[cut(String(key))] = plain(value, depth + 1);
  }
  return out;
}

function errorFields(error: Error, depth: number): Record<string, unknown> {
  const out: Record<string, unknown> = { message: cut(error.message) };
  if ('code' in error) out.code = plain(error.code, MAX_DEPTH);
  if (error.stack !== undefined) out.stack = cut(error.stack);
  if (error.cause !== undefined && depth < MAX_DEPTH) out.cause = plain(error.cause, depth + 1);
  return out;
}

/** The fields of a line: names that would stand for the line itself or for a terminal's are changed. */
export function plainFields(id: MsgId, fields: Fields | undefined): Record<string, unknown> {
  const out: Record<string, unknown> = { msgid: id, msg: MESSAGES[id] };
  if (fields === undefined) return out;
  for (const key of Object.keys(fields)) {
    const name = key.replace(/[^\w.-]/g, '_').slice(0, 64);
    const free = RESERVED.has(name) || name === '__proto__' ? `${name}_` : name;
    out[free] = plain(fields[key], 0);
  }
  return out;
}

interface Output {
  write(line: string): void;
  reopen(): void;
  flush(): void;
}

class ConsoleOutput implements Output {
  private readonly destination: LineWriter;
  private readonly paint: ((line: string) => string) | null;

  constructor(fd: number, paint: ((line: string) => string) | null, onError: (text: string) => void) {
    this.destination = new LineWriter(fd, MAX_WAITING, (text) => onError(`log console: ${text}`));
    this.paint = paint;
  }

  write(line: string): void {
    this.destination.write(this.paint === null ? line : escapeOdd(this.paint(line)));
  }

  reopen(): void {}

  flush(): void {
    this.destination.flush();
  }
}

class FileOutput implements Output {
  private destination: LineWriter;
  private readonly file: string;
  private readonly rotateBytes: number;
  private readonly rotateCount: number;
  private readonly onError: (text: string) => void;
  private sizeBytes = 0;

  constructor(file: string, options: LoggerOptions) {
    this.file = path.resolve(file);
    this.rotateBytes = options.rotateBytes;
    this.rotateCount = Math.max(1, options.rotateCount);
    this.onError = options.onError;
    mkdirSync(path.dirname(this.file), { recursive: true });
    this.destination = this.open();
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.rotateBytes > 0 && this.sizeBytes > 0 && this.sizeBytes + bytes > this.rotateBytes) this.rotate();
    this.sizeBytes += bytes;
    this.destination.write(line);
  }

  /** Goes on in a new file; when that cannot be opened, in the old one. */
  reopen(): void {
    const old = this.destination;
    try {
      this.destination = this.open();
    } catch (error) {
      this.onError(`log ${this.file}: cannot open: ${errorText(error)}`);
      return;
    }
    old.end();
  }

  flush(): void {
    this.destination.flush();
  }

  /** Opened at once, so that a file that cannot be written is an error of the start, not a line nobody reads. */
  private open(): LineWriter {
    const fd = openSync(this.file, 'a', FILE_MODE);
    this.sizeBytes = fstatSync(fd).size;
    return new LineWriter(fd, MAX_WAITING, (text) => this.onError(`log ${this.file}: ${text}`));
  }

  private rotate(): void {
    try {
      for (let n = this.rotateCount - 1; n >= 1; n--) {
        if (existsSync(`${this.file}.${n}`)) renameSync(`${this.file}.${n}`, `${this.file}.${n + 1}`);
      }
      renameSync(this.file, `${this.file}.1`);
    } catch (error) {
      this.onError(`log ${this.file}: cannot rotate: ${errorText(error)}`);
      // Tried again after as many bytes as a file should have, not at every line.
      this.sizeBytes = 0;
      return;
    }
    this.reopen();
  }
}

/** pino-pretty is loaded only for a person who reads; escape sequences are for terminals alone. */
async function painter(colours: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = (await import('pino-pretty')).default;
  const pretty = prettyFactory({
    colorize: colours,
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: '{msgid} {msg}',
    ignore: 'msgid',
    singleLine: true,
  });
  return (line) => pretty(line) ?? line;
}

/** Opens the outputs. Throws when the log file cannot be opened at all. */
export async function createLogger(options: LoggerOptions): Promise<Logger> {
  const outputs: Output[] = [];
  if (options.console) {
    const pretty = options.format === 'pretty' || (options.format === 'auto' && options.tty);
    outputs.push(
      new ConsoleOutput(
        options.consoleFd ?? 1,
        pretty ? await painter(options.colours ?? options.tty) : null,
        options.onError,
      ),
    );
  }
  if (options.file !== null) outputs.push(new FileOutput(options.file, options));
  const now = options.now ?? Date.now;
  const lines = pino(
    {
      level: 'trace',
      base: null,
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    {
      write: (line: string): void => {
        const safe = escapeOdd(line);
        for (const output of outputs) output.write(safe);
      },
    },
  );
  let threshold = RANK[options.level];
  return {
    log: (level, id, fields) => {
      if (RANK[level] >= threshold || ALWAYS.has(id)) lines[level](plainFields(id, fields));
    },
    setLevel: (level) => {
      threshold = RANK[level];
    },
    reopen: () => {
      for (const output of outputs) output.reopen();
    },
    flush: () => {
      for (const output of outputs) output.flush();
    },
  };
}
