// Figures over time and events in the archive's file. Called by worker.ts, on the thread of the archive.
import type { Database, Statement } from '../store/driver.ts';
import type { EventRow } from './archive.ts';
import type { EventQuery, FigureRow, Figures, NewEvent } from './protocol.ts';

/** Rows kept of each step, by its seconds: an hour, a day, 30 days. */
export const KEPT_FIGURES: ReadonlyMap<number, number> = new Map([
  [10, 360],
  [60, 1440],
  [600, 4320],
]);
/** Events looked at for one answer. */
const LOOKED_AT_EVENTS = 20_000;

export class Past {
  private readonly db: Database;
  private readonly putFigure: Statement;
  private readonly dropFigures: Statement;
  private readonly putEvent: Statement;

  constructor(db: Database) {
    this.db = db;
    this.putFigure = db.prepare('INSERT OR REPLACE INTO figure (level, time, figures) VALUES (?, ?, ?)', false);
    this.dropFigures = db.prepare('DELETE FROM figure WHERE level = ? AND time < ?', false);
    this.putEvent = db.prepare('INSERT INTO event (time, kind, level, text, fields) VALUES (?, ?, ?, ?, ?)', false);
  }

  writeFigures(rows: readonly FigureRow[]): void {
    for (const { level, time, values } of rows) {
      this.putFigure.run([level, time, JSON.stringify(values)]);
      const kept = KEPT_FIGURES.get(level) ?? 0;
      this.dropFigures.run([level, time - kept * level * 1000]);
    }
  }

  writeEvents(rows: readonly NewEvent[]): void {
    for (const { time, kind, level, text, fields } of rows) this.putEvent.run([time, kind, level, text, fields]);
  }

  /** Rows of the finest step that is not finer than asked for. */
  figures(names: readonly string[], from: number, to: number, stepMs: number): Figures {
    const level = [...KEPT_FIGURES.keys()].find((seconds) => seconds * 1000 >= stepMs) ?? 600;
    const rows = this.db
      .prepare('SELECT time, figures FROM figure WHERE level = ? AND time BETWEEN ? AND ? ORDER BY time', true)
      .all([level, Math.floor(from), Math.floor(to)]) as [number, string][];
    const values: Record<string, (number | null)[]> = Object.create(null) as Record<string, (number | null)[]>;
    for (const name of names) values[name] = [];
    const times: number[] = [];
    for (const [time, text] of rows) {
      const row = JSON.parse(text) as Record<string, unknown>;
      times.push(time);
      for (const name of names) {
        const value = Object.hasOwn(row, name) ? row[name] : null;
        values[name].push(typeof value === 'number' ? value : null);
      }
    }
    return { times, values };
  }

  events({ from, to, kinds, search, limit, before }: EventQuery): { rows: EventRow[]; next: number | null } {
    const needle = search.toLowerCase();
    const found = this.db
      .prepare(
        `SELECT id, time, kind, level, text, fields FROM event WHERE time BETWEEN ? AND ? AND id < ?
         ORDER BY id DESC LIMIT ${LOOKED_AT_EVENTS}`,
        true,
      )
      .all([Math.floor(from), Math.floor(to), before > 0 ? before : Number.MAX_SAFE_INTEGER]) as [
      number,
      number,
      string,
      string,
      string,
      string,
    ][];
    const rows: EventRow[] = [];
    for (const [id, time, kind, level, text, fields] of found) {
      if (kinds.length > 0 && !kinds.includes(kind)) continue;
      if (needle !== '' && !`${text} ${fields}`.toLowerCase().includes(needle)) continue;
      if (rows.length >= limit) return { rows, next: rows[rows.length - 1].id };
      rows.push({ id, time, kind, level, text, fields });
    }
    return { rows, next: null };
  }
}
