// The one file that knows which SQLite there is: node:sqlite where the running Node has it, else the optional package
// libsql. Called by the writer thread (worker.ts) and by `tidegate store`. Nobody else may touch either package. Traps
// it hides: libsql aborts the process on run(buffer) or a boolean (always arrays, booleans are 0 and 1), binds every
// number as REAL (columns need INTEGER affinity), and its close() keeps the file locked until the statements are
// collected or the thread ends.
import { createRequire } from 'node:module';

export type Value = number | string | Uint8Array | null;
/** Values in column order. Integers beyond 2^53 do not occur in our tables. */
export type Row = Value[];

export interface Statement {
  run(values: readonly Value[]): void;
  get(values: readonly Value[]): Row | undefined;
  all(values: readonly Value[]): Row[];
}

export interface Database {
  readonly driver: 'node:sqlite' | 'libsql';
  exec(sql: string): void;
  /** `rows`: the statement gives rows (SELECT, PRAGMA that answers, RETURNING). */
  prepare(sql: string, rows: boolean): Statement;
  close(): void;
}

/**
 * Result codes of SQLite that decide what to do (https://www.sqlite.org/rescode.html); the low byte is the primary
 * code.
 */
export const SQLITE_BUSY = 5;
export const SQLITE_LOCKED = 6;
export const SQLITE_READONLY = 8;
export const SQLITE_IOERR = 10;
export const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_CANTOPEN = 14;
export const SQLITE_NOTADB = 26;

/** An error of SQLite with its primary result code, 0 when it has none. */
export class SqliteError extends Error {
  readonly code: number;

  constructor(code: number, text: string, cause?: unknown) {
    super(text, { cause });
    this.name = 'SqliteError';
    this.code = code;
  }
}

interface RawStatement {
  run(...values: unknown[]): unknown;
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown;
  raw?(on: boolean): unknown;
  setReturnArrays?(on: boolean): void;
}
interface RawDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): RawStatement;
  close(): void;
}
type RawConstructor = new (path: string, options?: { timeout?: number; readOnly?: boolean }) => RawDatabase;

function asSqliteError(thrown: unknown): SqliteError {
  if (thrown instanceof SqliteError) return thrown;
  const error = thrown as { errcode?: unknown; rawCode?: unknown; message?: unknown };
  const text = typeof error.message === 'string' ? error.message : String(thrown);
  let code = 0;
  if (typeof error.errcode === 'number') code = error.errcode;
  else if (typeof error.rawCode === 'number') code = error.rawCode;
  // libsql's constructor gives the code only as the end of its text.
  else if (text.startsWith('ConnectionFailed(')) code = Number(/: (\d{1,4})"\)$/.exec(text)?.[1] ?? SQLITE_CANTOPEN);
  return new SqliteError(code & 0xff, text, thrown);
}

/** Runs `fn`, turning whatever the driver throws into a SqliteError. */
function guarded<T>(fn: () => T): T {
  try {
    return fn();
  } catch (error) {
    throw asSqliteError(error);
  }
}

/** libsql: every call takes one array. */
class LibsqlStatement implements Statement {
  private readonly raw: RawStatement;

  constructor(raw: RawStatement, rows: boolean) {
    this.raw = raw;
    if (rows) raw.raw?.(true);
  }
  run(values: readonly Value[]): void {
    try {
      this.raw.run(values);
    } catch (error) {
      throw asSqliteError(error);
    }
  }
  get(values: readonly Value[]): Row | undefined {
    try {
      return this.raw.get(values) as Row | undefined;
    } catch (error) {
      throw asSqliteError(error);
    }
  }
  all(values: readonly Value[]): Row[] {
    try {
      return this.raw.all(values) as Row[];
    } catch (error) {
      throw asSqliteError(error);
    }
  }
}

/**
 * node:sqlite: values are separate arguments; rows are objects in column order before setReturnArrays existed (22.16).
 */
class NodeStatement implements Statement {
  private readonly raw: RawStatement;
  private readonly arrays: boolean;

  constructor(raw: RawStatement, rows: boolean) {
    this.raw = raw;
    this.arrays = rows && raw.setReturnArrays !== undefined;
    if (this.arrays) raw.setReturnArrays?.(true);
  }
  run(values: readonly Value[]): void {
    try {
      this.raw.run(...values);
    } catch (error) {
      throw asSqliteError(error);
    }
  }
  get(values: readonly Value[]): Row | undefined {
    try {
      const row = this.raw.get(...values);
      return row === undefined ? undefined : this.row(row);
    } catch (error) {
      throw asSqliteError(error);
    }
  }
  all(values: readonly Value[]): Row[] {
    try {
      const rows = this.raw.all(...values) as unknown[];
      return this.arrays ? (rows as Row[]) : rows.map((row) => this.row(row));
    } catch (error) {
      throw asSqliteError(error);
    }
  }
  private row(row: unknown): Row {
    return this.arrays ? (row as Row) : (Object.values(row as object) as Row);
  }
}

/** Milliseconds to wait for a lock: an earlier process of the same store may still be ending. */
const BUSY_MS = 3000;

/** node:sqlite, or undefined where Node has none (before 22.13 it hid behind a flag). */
function builtin(): RawConstructor | undefined {
  const ask = (process as { getBuiltinModule?: (id: string) => unknown }).getBuiltinModule;
  const found = ask?.call(process, 'node:sqlite') as { DatabaseSync?: RawConstructor } | undefined;
  return found?.DatabaseSync;
}

/**
 * Opens a database file, creating it when it is absent. Throws SqliteError; code 0 with text when there is no SQLite at
 * all.
 * @param only 'node:sqlite' or 'libsql' to insist on one of them (tests)
 */
export function openDatabase(path: string, only?: Database['driver']): Database {
  const Builtin = only === 'libsql' ? undefined : builtin();
  if (Builtin !== undefined) {
    const raw = guarded(() => new Builtin(path));
    return wrap('node:sqlite', raw, (statement, rows) => new NodeStatement(statement, rows));
  }
  if (only === 'node:sqlite') throw new SqliteError(0, 'this Node.js has no node:sqlite');
  let Libsql: RawConstructor;
  try {
    Libsql = createRequire(import.meta.url)('libsql') as RawConstructor;
  } catch (error) {
    throw new SqliteError(
      0,
      `no SQLite here: needs Node.js 22.13 or newer, or the optional package libsql (${(error as Error).message.split('\n')[0]})`,
      error,
    );
  }
  const raw = guarded(() => new Libsql(path));
  return wrap('libsql', raw, (statement, rows) => new LibsqlStatement(statement, rows));
}

function wrap(
  driver: Database['driver'],
  raw: RawDatabase,
  statement: (raw: RawStatement, rows: boolean) => Statement,
): Database {
  guarded(() => raw.exec(`PRAGMA busy_timeout = ${BUSY_MS}`));
  return {
    driver,
    exec: (sql) => {
      guarded(() => raw.exec(sql));
    },
    prepare: (sql, rows) => guarded(() => statement(raw.prepare(sql), rows)),
    close: () => guarded(() => raw.close()),
  };
}
