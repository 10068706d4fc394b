// The tables of a store and how an older file becomes a current one. One list of migrations; PRAGMA user_version says
// how many have run. Called by open.ts. A released migration is never changed: what is different becomes the next one.
// INTEGER and BLOB are declared everywhere: the affinity turns the driver's REAL numbers back into integers
// (driver.ts).
import type { Database } from './driver.ts';

/** "TDGT": tells our files from other people's databases (PRAGMA application_id). */
export const APPLICATION_ID = 0x54444754;

/**
 * Messages are stored once and counted by the rows of `queued` that name them. Retained messages and wills have a life
 * of their own and keep their bytes themselves. No constraint can fail on what a client sends: a batch that cannot be
 * written would stop all others.
 */
const VERSION_1 = `
CREATE TABLE format (version INTEGER PRIMARY KEY, applied_at INTEGER);
CREATE TABLE session (
  id INTEGER PRIMARY KEY, client_id TEXT, username TEXT, expires_at INTEGER, expiry_interval INTEGER, protocol INTEGER);
CREATE TABLE subscription (
  session INTEGER, topic_filter TEXT, options INTEGER, identifier INTEGER, PRIMARY KEY (session, topic_filter)) WITHOUT ROWID;
CREATE TABLE message (
  id INTEGER PRIMARY KEY, topic TEXT, payload BLOB, flags INTEGER, expires_at INTEGER, properties BLOB, origin BLOB);
CREATE TABLE queued (
  session INTEGER, sequence INTEGER, message INTEGER, flags INTEGER, state INTEGER, packet_id INTEGER, identifiers BLOB,
  PRIMARY KEY (session, sequence)) WITHOUT ROWID;
CREATE TABLE inbound (session INTEGER, packet_id INTEGER, PRIMARY KEY (session, packet_id)) WITHOUT ROWID;
CREATE TABLE will (
  session INTEGER PRIMARY KEY, due_at INTEGER, topic TEXT, payload BLOB, flags INTEGER, expires_at INTEGER, properties BLOB, origin BLOB);
CREATE TABLE retained (
  topic TEXT PRIMARY KEY, payload BLOB, flags INTEGER, expires_at INTEGER, properties BLOB, origin BLOB);
CREATE TABLE spool (id INTEGER PRIMARY KEY, bridge TEXT, sequence INTEGER, bytes BLOB);
CREATE UNIQUE INDEX spool_order ON spool (bridge, sequence);
`;

/**
 * A message of a shared subscription names it, so that another member gets it when its session ends. What is there
 * already names none.
 */
const VERSION_2 = 'ALTER TABLE queued ADD COLUMN share TEXT';

/**
 * Whose a session is and who published a retained message (arrival.ts, JSON): rights of those who are away are judged
 * by it. Publishers are kept once. What is there already has none: not known, and what depends on it is denied.
 */
const VERSION_3 = `
ALTER TABLE session ADD COLUMN arrival TEXT;
ALTER TABLE session ADD COLUMN valid_until INTEGER;
CREATE TABLE publisher (id INTEGER PRIMARY KEY, arrival TEXT UNIQUE);
ALTER TABLE retained ADD COLUMN publisher INTEGER;
`;

/** When the gateway was last known to run, on all clocks (time.ts); row 0 is the only one. */
const VERSION_4 =
  'CREATE TABLE clock (id INTEGER PRIMARY KEY, steady INTEGER, wall INTEGER, uptime INTEGER, boot TEXT)';

const MIGRATIONS: readonly string[] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4];

/** The format this program writes. */
export const FORMAT_VERSION = MIGRATIONS.length;

/** What makes the present tables of those of version `from`, in order. */
export function upgrades(from: number): readonly string[] {
  return MIGRATIONS.slice(from);
}

/** Brings tables of version `from` (0: an empty file) to FORMAT_VERSION; to be called in a transaction. */
export function migrate(db: Database, from: number, now: number): void {
  if (from === FORMAT_VERSION) return;
  for (let version = from; version < FORMAT_VERSION; version++) {
    db.exec(MIGRATIONS[version]);
    db.prepare('INSERT OR REPLACE INTO format VALUES (?, ?)', false).run([version + 1, now]);
  }
  db.exec(`PRAGMA user_version = ${FORMAT_VERSION}`);
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
}

/** Whether the tables are those of a store, whatever the header says. */
export function isOurs(db: Database): boolean {
  const names = "'format', 'session', 'queued', 'message', 'inbound', 'retained'";
  const found = db.prepare(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN (${names})`, true);
  return Number(found.get([])?.[0] ?? 0) === 6;
}
