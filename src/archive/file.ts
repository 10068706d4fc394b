// The archive's file: opens it, sets a damaged one aside, keeps it within its bounds. Called by worker.ts, on the
// thread of the archive. Knows the tables, not what the rows mean. Sources: https://www.sqlite.org/pragma.html,
// /wal.html.
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Database, openDatabase, SQLITE_CORRUPT, SQLITE_NOTADB, SqliteError } from '../store/driver.ts';
import type { ArchiveLimits } from './protocol.ts';

/** 'TGar' as SQLite's application_id: no other database is taken for an archive. */
const APPLICATION_ID = 0x54476172;
const FORMAT = 1;

const TABLES = `
CREATE TABLE topic (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE message (id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, time INTEGER NOT NULL, flags INTEGER NOT NULL,
  payload BLOB NOT NULL, extra TEXT NOT NULL);
CREATE INDEX message_topic ON message (topic, time);
CREATE INDEX message_time ON message (time);
CREATE TABLE figure (level INTEGER NOT NULL, time INTEGER NOT NULL, figures TEXT NOT NULL,
  PRIMARY KEY (level, time)) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, kind TEXT NOT NULL, level TEXT NOT NULL,
  text TEXT NOT NULL, fields TEXT NOT NULL);
CREATE INDEX event_time ON event (time);
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${FORMAT};`;

/** Messages deleted at once: some milliseconds. */
const PRUNE_ROWS = 2000;
/** Free pages given back at once. */
const VACUUM_PAGES = 500;
const CHECKPOINT_PAGES = 1000;
/** With the longest fields these are about 6 MB. */
const KEPT_EVENTS = 8000;

/** A file that is not opened, with a text for people. */
export class ArchiveRefused extends Error {}

/** Opens or creates it; a damaged one is renamed and a new one begun: `note` then says so. Throws ArchiveRefused. */
export function openArchive(file: string, small: boolean): { db: Database; note: string } {
  const path = resolve(file);
  try {
    mkdirSync(dirname(path), { recursive: true });
    // Messages of others are in it: nobody else reads them.
    closeSync(openSync(path, 'a', 0o600));
    return { db: prepared(path, small), note: '' };
  } catch (error) {
    if (!isDamage(error)) throw refused(path, error);
  }
  const aside = `${path}.damaged-${Date.now()}`;
  try {
    renameSync(path, aside);
    for (const tail of ['-wal', '-shm']) if (existsSync(path + tail)) rmSync(path + tail);
    closeSync(openSync(path, 'a', 0o600));
    return { db: prepared(path, small), note: `it was damaged and is now ${aside}` };
  } catch (error) {
    throw refused(path, error);
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof SqliteError && (error.code === SQLITE_CORRUPT || error.code === SQLITE_NOTADB);
}

function refused(path: string, error: unknown): ArchiveRefused {
  if (error instanceof ArchiveRefused) return error;
  return new ArchiveRefused(`${path}: ${(error as Error).message}`, { cause: error });
}

function prepared(path: string, small: boolean): Database {
  const db = openDatabase(path);
  try {
    const version = numberOf(db, 'PRAGMA user_version');
    if (version > FORMAT) throw new ArchiveRefused(`${path}: written by a newer version (format ${version})`);
    const tables = numberOf(db, 'SELECT count(*) FROM sqlite_schema');
    if (tables > 0 && numberOf(db, 'PRAGMA application_id') !== APPLICATION_ID)
      throw new ArchiveRefused(`${path}: is no archive of this gateway`);
    if (tables === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.exec('PRAGMA journal_mode = WAL');
    // A commit survives the process; the last ones before a power cut may be missing.
    db.exec('PRAGMA synchronous = NORMAL');
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.exec(`PRAGMA journal_size_limit = ${8 << 20}`);
    db.exec(`PRAGMA cache_size = -${small ? 1024 : 8192}`);
    if (tables === 0) db.exec(`BEGIN IMMEDIATE;${TABLES}COMMIT;`);
    else if (db.prepare('PRAGMA quick_check(1)', true).get([])?.[0] !== 'ok')
      throw new SqliteError(SQLITE_CORRUPT, 'the file is damaged');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function numberOf(db: Database, sql: string): number {
  return Number(db.prepare(sql, true).get([])?.[0] ?? 0);
}

/** Keeps the file within its bounds, a little at a time. */
export class Bounds {
  limits: ArchiveLimits;
  private readonly db: Database;

  constructor(db: Database, limits: ArchiveLimits) {
    this.db = db;
    this.limits = limits;
  }

  /** Bytes that are in use in the file. */
  bytes(): number {
    const { db } = this;
    const pages = numberOf(db, 'PRAGMA page_count') - numberOf(db, 'PRAGMA freelist_count');
    return pages * numberOf(db, 'PRAGMA page_size');
  }

  /** Deletes what is too old or too much, at most one portion. True: there is more to delete. */
  prune(nowMs: number): boolean {
    const { db } = this;
    const { keepMs, maxBytes } = this.limits;
    const oldest = `SELECT id FROM message ORDER BY time LIMIT ${PRUNE_ROWS}`;
    let more = false;
    if (maxBytes > 0 && this.bytes() > maxBytes) {
      db.exec(`DELETE FROM message WHERE id IN (${oldest})`);
      more = numberOf(db, 'SELECT EXISTS (SELECT 1 FROM message)') === 1 && this.bytes() > maxBytes;
    } else if (keepMs > 0) {
      const before = Math.floor(nowMs - keepMs);
      const aged = `SELECT id FROM message WHERE time < ${before} ORDER BY time LIMIT ${PRUNE_ROWS}`;
      if (numberOf(db, `SELECT EXISTS (${aged})`) === 1) {
        db.exec(`DELETE FROM message WHERE id IN (${aged})`);
        more = numberOf(db, `SELECT EXISTS (${aged})`) === 1;
      }
    }
    db.exec(`DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ${KEPT_EVENTS}`);
    db.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
    return more;
  }

  /** Names of topics without a message. */
  sweepTopics(): void {
    this.db.exec('DELETE FROM topic WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.topic = topic.id)');
  }
}
