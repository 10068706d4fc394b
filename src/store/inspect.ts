// Looks into the file of a store without changing it, whatever its format: `tidegate store check` and `export`. An
// older format is brought up to date in a transaction that is never committed; a file that cannot be written is looked
// at in a copy. Must not repair, set aside or sweep anything. Sources: https://www.sqlite.org/lang_transaction.html,
// /wal.html.
import { accessSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { type Database, openDatabase } from './driver.ts';
import { identify, OpenError, refusal } from './open.ts';
import { upgrades } from './schema.ts';

export interface Inspected {
  /** With the tables of the present format. */
  readonly db: Database;
  /** The format in the file. */
  readonly format: number;
  close(): void;
}

/**
 * Opens a store to read it. Throws OpenError: not there, not a store, damaged beyond reading, in use, of a newer
 * version. O(1) but for an older format; pages are not checked.
 */
export function inspectStore(file: string): Inspected {
  const path = resolve(file);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new OpenError(`${path} does not exist`);
  if (!found.isFile()) throw new OpenError(`${path} is not a file`);
  if (found.size === 0) throw new OpenError(`${path} is empty`);
  const copy = isWritable(path) ? null : copyOf(path);
  try {
    return open(path, copy);
  } catch (error) {
    if (copy !== null) rmSync(dirname(copy), { recursive: true, force: true });
    throw refusal(path, error);
  }
}

function open(path: string, copy: string | null): Inspected {
  const db = openDatabase(copy ?? path);
  try {
    // A gateway that runs holds the file: this fails then, instead of reading what is about to change.
    db.prepare('PRAGMA locking_mode = EXCLUSIVE', true).all([]);
    const format = identify(db, path);
    if (format === 0) throw new OpenError(`${path} is empty`);
    db.exec('BEGIN IMMEDIATE');
    for (const sql of upgrades(format)) db.exec(sql);
    const close = (): void => {
      db.exec('ROLLBACK');
      db.close();
      if (copy !== null) rmSync(dirname(copy), { recursive: true, force: true });
    };
    return { db, format, close };
  } catch (error) {
    try {
      db.close();
    } catch {
      // The first error is the one to tell.
    }
    throw error;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** A copy with its write-ahead log, where the system keeps temporary files. */
function copyOf(path: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-inspect-'));
  try {
    for (const suffix of ['', '-wal']) {
      if (existsSync(path + suffix)) copyFileSync(path + suffix, join(folder, basename(path) + suffix));
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new OpenError(`${path} cannot be read (${(error as Error).message})`, error);
  }
  return join(folder, basename(path));
}
