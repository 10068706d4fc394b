// Opens the file of a store: checks what it is and whether it is whole; brings it up to date; sets a damaged one aside.
// Called by the writer thread (worker.ts), by `tidegate store` (inspect.ts), and by commit.ts to set aside. Reads and
// writes no session data. Sources: https://www.sqlite.org/fileformat2.html, /pragma.html, /wal.html.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemErrorText } from '../base/systemerror.ts';
import {
  type Database,
  openDatabase,
  SQLITE_BUSY,
  SQLITE_CANTOPEN,
  SQLITE_CORRUPT,
  SQLITE_FULL,
  SQLITE_LOCKED,
  SQLITE_NOTADB,
  SQLITE_READONLY,
  SqliteError,
} from './driver.ts';
import { headerDamage } from './header.ts';
import { APPLICATION_ID, FORMAT_VERSION, isOurs } from './schema.ts';

export interface OpenOptions {
  readonly path: string;
  /** full: a commit is on the disk when it returns; normal: it survives the process, the last ones not a power cut. */
  readonly synchronous: 'full' | 'normal';
  /** Bytes of the write-ahead log at which a commit also copies it into the database. */
  readonly checkpointBytes: number;
  readonly driver?: Database['driver'];
  /** Keeps few pages in memory. */
  readonly small?: boolean;
}

export interface Opened {
  readonly db: Database;
  readonly pageBytes: number;
  /** Format in the file; 0: nothing is in it. */
  readonly version: number;
}

/** A store that cannot be opened; the text says what to do. Becomes GatewayError STORE-OPEN in the main thread. */
export class OpenError extends Error {
  /** The file is damaged: it may be set aside. */
  readonly damaged: boolean;
  /** There is no room for a new file; nothing was stored before. */
  readonly full: boolean;

  constructor(text: string, cause?: unknown, damaged = false, full = false) {
    super(text, { cause });
    this.name = 'OpenError';
    this.damaged = damaged;
    this.full = full;
  }
}

/**
 * Opens and checks; an older format is left as it is. Throws OpenError. O(file size): PRAGMA quick_check reads every
 * page.
 */
export function openStore(options: OpenOptions): Opened {
  const path = resolve(options.path);
  const made = prepare(path);
  try {
    return tryOpen(path, options);
  } catch (error) {
    // What was made and never filled would be taken for a damaged file at the next start.
    if (made) rmSync(path, { force: true });
    const full = made && error instanceof SqliteError && error.code === SQLITE_FULL;
    throw full
      ? new OpenError(`${path} cannot be created: the disk is full`, error, false, true)
      : refusal(path, error);
  }
}

/** Pages in memory on a small machine; SQLite's own choice is 2,000. */
const SMALL_CACHE_KB = 512;
/** The smallest page of a database; a file below that is what is left of one. */
const LEAST_BYTES = 512;

/** Readable by the service's group, as the folder is. */
export const FILE_MODE = 0o640;

/** Whether the file had to be made. */
function prepare(path: string): boolean {
  try {
    makeFolder(dirname(path));
    // SQLite would tell a read-only file system only as "disk I/O error".
    accessSync(dirname(path), constants.W_OK);
    if (!existsSync(path)) {
      // SQLite would let every user of the machine read the messages; it gives its log the mode of the database.
      closeSync(openSync(path, 'ax', FILE_MODE));
      return true;
    }
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    const full = (error as NodeJS.ErrnoException).code === 'ENOSPC' && !existsSync(path);
    throw new OpenError(`${path} cannot be written (${systemErrorText(error)})`, error, false, full);
  }
  const found = statSync(path);
  if (!found.isFile()) throw new OpenError(`${path} is not a file`);
  // SQLite takes nothing, and a few bytes, for an empty database and would write over them.
  const damage = found.size < LEAST_BYTES ? `${found.size} bytes are no database` : plainDamage(path);
  if (damage !== null) throw new OpenError(`${path} is damaged (${damage})`, undefined, true);
  return false;
}

/** What is wrong with the header, unless a write-ahead log may hold a newer one: SQLite then decides (refusal). */
function plainDamage(path: string): string | null {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  return log === undefined || log.size === 0 ? headerDamage(path) : null;
}

/** As mkdir -p. (mkdirSync's own recursion never ends where the kernel answers ENOENT for a folder in /proc.) */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o750 });
}

/** What went wrong with a file, told in one line. */
export function refusal(path: string, error: unknown): OpenError {
  if (error instanceof OpenError) return error;
  const code = error instanceof SqliteError ? error.code : 0;
  const text = (error as Error).message;
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB)
    return new OpenError(`${path} is damaged (${text})`, error, true);
  const damage = existsSync(path) && statSync(path).size >= LEAST_BYTES ? headerDamage(path) : null;
  if (damage !== null) return new OpenError(`${path} is damaged (${damage})`, error, true);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED)
    return new OpenError(`${path} is in use by another process`, error);
  if (code === SQLITE_READONLY) return new OpenError(`${path} is read-only`, error);
  if (code === SQLITE_CANTOPEN) return new OpenError(`${path} cannot be opened or created (permissions?)`, error);
  return new OpenError(`${path}: ${text}`, error);
}

function number(db: Database, pragma: string): number {
  return Number(db.prepare(`PRAGMA ${pragma}`, true).get([])?.[0] ?? 0);
}

function tryOpen(path: string, options: OpenOptions): Opened {
  const db = openDatabase(path, options.driver);
  try {
    // One process owns the file for as long as it runs; the index of the write-ahead log then lives in memory, without
    // a -shm file.
    db.prepare('PRAGMA locking_mode = EXCLUSIVE', true).all([]);
    const version = identify(db, path);
    // Writes even where it changes nothing; it has to be set before the first table.
    if (version === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    const mode = String(db.prepare('PRAGMA journal_mode = WAL', true).get([])?.[0]);
    if (mode !== 'wal')
      throw new OpenError(`${path}: the file system does not allow a write-ahead log (journal mode ${mode})`);
    db.exec(`PRAGMA synchronous = ${options.synchronous.toUpperCase()}`);
    if (options.small) db.exec(`PRAGMA cache_size = -${SMALL_CACHE_KB}`);
    const pageBytes = number(db, 'page_size');
    db.prepare(
      `PRAGMA wal_autocheckpoint = ${Math.max(64, Math.floor(options.checkpointBytes / pageBytes))}`,
      true,
    ).all([]);
    // The log is kept at its usual size for reuse: overwriting is cheaper than growing a file anew.
    db.prepare(`PRAGMA journal_size_limit = ${options.checkpointBytes * 2}`, true).all([]);
    if (version > 0) check(db);
    return { db, pageBytes, version };
  } catch (error) {
    try {
      db.close();
    } catch {
      // The first error is the one to tell.
    }
    throw error;
  }
}

/** Formats that a newer version may be ahead by. */
const PLAUSIBLE_STEPS = 100;

/** The format version, 0 for an empty file. Throws OpenError for a newer one or a database of something else. */
export function identify(db: Database, path: string): number {
  const tables = Number(db.prepare('SELECT count(*) FROM sqlite_schema', true).get([])?.[0] ?? 0);
  const application = number(db, 'application_id');
  const version = number(db, 'user_version');
  if (tables === 0 && application === 0) return 0;
  const ours = isOurs(db);
  if (application !== APPLICATION_ID && !ours) throw new OpenError(`${path} is a database of another program`);
  // What the header says is in a table as well: where they differ, the header is damaged.
  const noted = ours ? Number(db.prepare('SELECT max(version) FROM format', true).get([])?.[0] ?? 0) : 0;
  const newer = version > FORMAT_VERSION && (version === noted || version <= FORMAT_VERSION + PLAUSIBLE_STEPS);
  if (application !== APPLICATION_ID || (version !== noted && !newer)) {
    throw new OpenError(`${path} is damaged (its header says format ${version}, its tables ${noted})`, undefined, true);
  }
  if (version > FORMAT_VERSION) {
    throw new OpenError(
      `${path} has format ${version}, this version knows up to ${FORMAT_VERSION}: a newer Tidegate wrote it`,
    );
  }
  return version;
}

function check(db: Database): void {
  const found = db.prepare('PRAGMA quick_check(1)', true).get([])?.[0];
  if (found !== 'ok') throw new SqliteError(SQLITE_CORRUPT, String(found).replaceAll('\n', ' '));
}

/**
 * Renames a damaged database (or another one in its place) and its companions to `<name>.<word>-<time>`; gives the new
 * name. The thread that opened it must have ended: a connection that closes later would remove the write-ahead log of
 * its successor by name.
 */
export function setAside(file: string, now: number, word: 'bad' | 'other' = 'bad'): string {
  const path = resolve(file);
  const stamp = new Date(now).toISOString().replaceAll(/[-:]/g, '').replace(/\.\d+/, '');
  let target = `${path}.${word}-${stamp}`;
  for (let n = 2; existsSync(target); n++) target = `${path}.${word}-${stamp}-${n}`;
  try {
    for (const suffix of ['-wal', '-shm', '']) {
      if (existsSync(path + suffix)) renameSync(path + suffix, target + suffix);
    }
  } catch (error) {
    throw new OpenError(`${path} cannot be set aside: ${(error as Error).message}`, error);
  }
  return target;
}
