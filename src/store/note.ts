// The row in which the store notes when the gateway was last known to run (time.ts says what that is for). Called by
// worker.ts.
import type { Database } from './driver.ts';
import type { Noted } from './time.ts';

/** Formats before this one have no such table. */
const FIRST_FORMAT = 4;

/** null: there is none. Throws SqliteError. */
export function readNote(db: Database, format: number): Noted | null {
  if (format < FIRST_FORMAT) return null;
  const row = db.prepare('SELECT steady, wall, uptime, boot FROM clock WHERE id = 0', true).get([]);
  if (row === undefined) return null;
  const [steadyMs, wallMs, uptimeMs, id] = row;
  if (typeof steadyMs !== 'number' || typeof wallMs !== 'number' || typeof uptimeMs !== 'number') return null;
  return { steadyMs, wallMs, boot: { id: typeof id === 'string' ? id : null, uptimeMs } };
}

/** Throws SqliteError. */
export function writeNote(db: Database, { steadyMs, wallMs, boot }: Noted): void {
  const values = [Math.round(steadyMs), Math.round(wallMs), Math.round(boot.uptimeMs), boot.id];
  db.prepare('INSERT OR REPLACE INTO clock VALUES (0, ?, ?, ?, ?)', false).run(values);
}
