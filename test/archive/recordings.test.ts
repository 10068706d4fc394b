// Recorded messages in their file: found by filter and time as a plain list would be, thinned out, and kept within bounds.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { MessageRow } from '../../src/archive/archive.ts';
import { ArchiveRefused, Bounds, openArchive } from '../../src/archive/file.ts';
import { Past } from '../../src/archive/past.ts';
import type { RecordBatch } from '../../src/archive/protocol.ts';
import { Recordings } from '../../src/archive/recordings.ts';
import { matches } from '../../src/mqtt/topic.ts';
import { type Database, openDatabase } from '../../src/store/driver.ts';

interface Recorded {
  readonly time: number;
  readonly topic: string;
  readonly payload: string;
}

let folder: string;
let file: string;
let db: Database;
let recordings: Recordings;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'archive-'));
  file = path.join(folder, 'a', 'archive.db');
  db = openArchive(file, false).db;
  recordings = new Recordings(db);
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

function batchOf(rows: readonly Recorded[]): RecordBatch {
  let end = 0;
  return {
    times: Float64Array.from(rows.map(({ time }) => time)),
    topics: rows.map(({ topic }) => topic),
    flags: Uint8Array.from(rows.map(() => 1 | 4)),
    ends: Uint32Array.from(
      rows.map(({ payload }) => {
        end += Buffer.byteLength(payload);
        return end;
      }),
    ),
    payloads: Buffer.from(rows.map(({ payload }) => payload).join('')),
    extras: rows.map(() => '{"from":"c"}'),
  };
}

function shown({ time, topic, payload }: MessageRow): Recorded {
  return { time, topic, payload: Buffer.from(payload).toString() };
}

/** All pages of a question. */
function found(filter: string, from: number, to: number, newestFirst: boolean, limit: number): Recorded[] {
  const all: Recorded[] = [];
  let after: string | null = null;
  do {
    const page = recordings.messages({ filter, from, to, limit, newestFirst, after });
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    all.push(...page.rows.map(shown));
    after = page.next;
  } while (after !== null);
  return all;
}

/** The database, with the sizes of all payloads that are read from it in `read`. */
function watching(inner: Database, read: number[]): Database {
  const seen = (row: readonly unknown[]): void => {
    for (const value of row) if (value instanceof Uint8Array) read.push(value.length);
  };
  return {
    driver: inner.driver,
    exec: (sql) => inner.exec(sql),
    close: () => inner.close(),
    prepare: (sql, reads) => {
      const statement = inner.prepare(sql, reads);
      return {
        run: (values) => statement.run(values),
        get: (values) => {
          const row = statement.get(values);
          seen(row ?? []);
          return row;
        },
        all: (values) => {
          const rows = statement.all(values);
          for (const row of rows) seen(row);
          return rows;
        },
      };
    },
  };
}

const level = fc.constantFrom('a', 'b', 'c', '');
const topic = fc.array(level, { minLength: 1, maxLength: 3 }).map((levels) => levels.join('/') || 'x');
const filter = fc
  .array(fc.constantFrom('a', 'b', '+', '#'), { minLength: 1, maxLength: 3 })
  .map((levels) => levels.filter((one, i) => one !== '#' || i === levels.length - 1).join('/') || '#');

test('messages are those that filter and time take, in order, however long the pages are', () => {
  const row = fc.record({ time: fc.integer({ min: 0, max: 50 }), topic, payload: fc.string({ maxLength: 4 }) });
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 40 }),
      filter,
      fc.integer({ min: 0, max: 50 }),
      fc.integer({ min: 0, max: 50 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 7 }),
      (rows, wanted, from, span, newestFirst, limit) => {
        db.exec('DELETE FROM message; DELETE FROM topic');
        recordings.forget();
        recordings.write(batchOf(rows));
        const expected = rows
          .map((one, i) => ({ one, i }))
          .filter(({ one }) => one.time >= from && one.time <= from + span && matches(wanted, one.topic))
          .sort((a, b) => a.one.time - b.one.time || a.i - b.i)
          .map(({ one }) => one);
        if (newestFirst) expected.reverse();
        expect(found(wanted, from, from + span, newestFirst, limit)).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});

test('a filter that takes more topics than are asked for by id finds the same', () => {
  const rows = Array.from({ length: 300 }, (_, i) => ({ time: i, topic: `t/${i % 150}/${i % 2}`, payload: String(i) }));
  recordings.write(batchOf(rows));
  const expected = rows.filter(({ topic: name }) => name.endsWith('/1'));
  expect(found('t/+/1', 0, 1000, false, 17)).toEqual(expected);
});

test('a page reads only the payloads that it gives', () => {
  const large = 'x'.repeat(3 << 20);
  recordings.write(batchOf(Array.from({ length: 6 }, (_, i) => ({ time: i, topic: 't', payload: large }))));
  const read: number[] = [];
  const watched = new Recordings(watching(db, read));
  const { rows, next } = watched.messages({
    filter: 't',
    from: 0,
    to: 9,
    limit: 100,
    newestFirst: false,
    after: null,
  });
  expect(rows).toHaveLength(2);
  expect(next).toBe(`1-${2}`);
  // Two that are given, one that was too much.
  expect(read.reduce((sum, bytes) => sum + bytes, 0)).toBe(3 * large.length);
});

test('a series has count, least, most, mean and last of each step, from JSON fields and from plain numbers', () => {
  const rows = [
    ...[1, 2, 9].map((t, i) => ({ time: i, topic: 'j', payload: JSON.stringify({ a: [{ t }] }) })),
    { time: 3, topic: 'j', payload: 'no number' },
    { time: 99, topic: 'j', payload: '{"a":[{"t":true}]}' },
    { time: 50, topic: 'n', payload: ' -2.5e1 ' },
    { time: 60, topic: 'n', payload: '1e999' },
  ];
  recordings.write(batchOf(rows));
  expect(recordings.series({ filter: 'j', field: 'a.0.t', from: 0, to: 100, points: 2 })).toEqual([
    {
      topic: 'j',
      cut: false,
      points: [
        { time: 25, count: 3, min: 1, max: 9, mean: 4, last: 9 },
        { time: 75, count: 1, min: 1, max: 1, mean: 1, last: 1 },
      ],
    },
  ]);
  const [plain] = recordings.series({ filter: 'n', field: '', from: 0, to: 100, points: 1 });
  expect(plain.points).toEqual([{ time: 50, count: 1, min: -25, max: -25, mean: -25, last: -25 }]);
  expect(recordings.series({ filter: 'j', field: '__proto__.x', from: 0, to: 9, points: 1 })[0].points).toEqual([]);
});

test('beyond its size the oldest messages go, and names of topics without messages with them', () => {
  const bounds = new Bounds(db, { keepMs: 0, maxBytes: 1 << 20 });
  const rows = Array.from({ length: 8000 }, (_, i) => ({
    time: i,
    topic: `t/${i < 4000 ? 'old' : 'new'}`,
    payload: 'x'.repeat(300),
  }));
  recordings.write(batchOf(rows));
  expect(bounds.bytes()).toBeGreaterThan(2 << 20);
  while (bounds.prune(8000));
  expect(bounds.bytes()).toBeLessThanOrEqual(1 << 20);
  const left = found('#', 0, 10_000, false, 10_000);
  expect(left.length).toBeGreaterThan(0);
  expect(left.at(-1)?.time).toBe(7999);
  expect(left[0].time).toBe(8000 - left.length);
  bounds.sweepTopics();
  recordings.forget();
  expect(recordings.topics('#', '', 10).rows.map(({ topic: name }) => name)).toEqual(['t/new']);
});

test('messages older than they are to be kept go', () => {
  const bounds = new Bounds(db, { keepMs: 1000, maxBytes: 0 });
  recordings.write(batchOf([100, 900, 1100, 2000].map((time) => ({ time, topic: 't', payload: '' }))));
  while (bounds.prune(2000));
  expect(found('#', 0, 5000, false, 10).map(({ time }) => time)).toEqual([1100, 2000]);
});

test('figures are kept for as many steps as their level has; events for as many rows as there may be', () => {
  const past = new Past(db);
  past.writeFigures(Array.from({ length: 400 }, (_, i) => ({ level: 10, time: i * 10_000, values: { cpu: i } })));
  const { times, values } = past.figures(['cpu', 'none'], 0, 1e9, 10_000);
  expect(times.length).toBe(361);
  expect(times[0]).toBe(39 * 10_000);
  expect(values.cpu.at(-1)).toBe(399);
  expect(values.none.every((value) => value === null)).toBe(true);
  past.writeEvents(
    Array.from({ length: 8050 }, (_, i) => ({
      time: i,
      kind: i % 2 ? 'alarm' : 'bridge',
      level: 'warn',
      text: `e${i}`,
      fields: '{}',
    })),
  );
  new Bounds(db, { keepMs: 0, maxBytes: 0 }).prune(0);
  const all = past.events({ from: 0, to: 1e9, kinds: [], search: '', limit: 30_000, before: 0 });
  expect(all.rows.length).toBe(8000);
  const query = { from: 0, to: 1e9, kinds: ['alarm'], search: 'E1', limit: 3, before: 0 };
  const first = past.events(query);
  expect(first.rows.map(({ text }) => text)).toEqual(['e1999', 'e1997', 'e1995']);
  const second = past.events({ ...query, before: first.next ?? 0 });
  expect(second.rows[0].text).toBe('e1993');
});

test('a damaged file is set aside and a new one begun; a foreign or newer one is left alone', () => {
  const damaged = path.join(folder, 'damaged.db');
  writeFileSync(damaged, Buffer.alloc(8192, 0x41));
  const opened = openArchive(damaged, false);
  expect(opened.note).toContain('damaged');
  opened.db.close();
  expect(readdirSync(folder).filter((name) => name.startsWith('damaged.db.damaged-'))).toHaveLength(1);
  const foreign = path.join(folder, 'foreign.db');
  const other = openDatabase(foreign);
  other.exec('CREATE TABLE x (y)');
  other.close();
  expect(() => openArchive(foreign, false)).toThrow(ArchiveRefused);
  const newer = path.join(folder, 'newer.db');
  const next = openDatabase(newer);
  next.exec('CREATE TABLE x (y); PRAGMA user_version = 99');
  next.close();
  expect(() => openArchive(newer, false)).toThrow(/newer version/);
});
