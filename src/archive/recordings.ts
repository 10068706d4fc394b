// Recorded messages in the archive's file: written in batches, found by topic filter and time, thinned out to series
// of numbers. Called by worker.ts, on the thread of the archive. Every answer is bounded in rows, bytes and rows
// looked at.
import { matches } from '../mqtt/topic.ts';
import type { Database, Row, Statement } from '../store/driver.ts';
import type { MessageQuery, MessageRow, Point, SeriesQuery, TopicRow } from './archive.ts';
import { numberIn } from './number.ts';
import type { RecordBatch, Sizes } from './protocol.ts';

/** Topic names kept with their ids. */
const KNOWN_TOPICS = 50_000;
/** With more topics than this, messages are read in the order of time and those of other topics are left out. */
const FEW_TOPICS = 64;
/** Rows read at once. */
const READ_ROWS = 2000;
/** Rows that one question looks at; what is left is told. */
const LOOKED_AT_ROWS = 200_000;
/** Bytes of payloads in one answer. */
const ANSWER_BYTES = 8 << 20;
const SERIES_TOPICS = 10;

/** Without payloads: those are read one by one, so that a page of large ones costs no memory. */
const COLUMNS = 'message.time, topic.name, message.flags, message.id';
const FROM = 'FROM message JOIN topic ON topic.id = message.topic';

export class Recordings {
  private readonly db: Database;
  private readonly ids = new Map<string, number>();
  private readonly insert: Statement;
  private readonly findTopic: Statement;
  private readonly addTopic: Statement;
  private readonly content: Statement;

  constructor(db: Database) {
    this.db = db;
    this.insert = db.prepare('INSERT INTO message (topic, time, flags, payload, extra) VALUES (?, ?, ?, ?, ?)', false);
    this.findTopic = db.prepare('SELECT id FROM topic WHERE name = ?', true);
    this.addTopic = db.prepare('INSERT INTO topic (name) VALUES (?) RETURNING id', true);
    this.content = db.prepare('SELECT payload, extra FROM message WHERE id = ?', true);
  }

  /** Within a transaction of the caller. */
  write({ times, topics, flags, ends, payloads, extras }: RecordBatch): void {
    let start = 0;
    for (let i = 0; i < topics.length; i++) {
      const payload = payloads.subarray(start, ends[i]);
      this.insert.run([this.idOf(topics[i]), Math.floor(times[i]), flags[i], payload, extras[i]]);
      start = ends[i];
    }
  }

  /** The ids may be wrong: a transaction was taken back, or names were deleted. */
  forget(): void {
    this.ids.clear();
  }

  messages({ filter, from, to, limit, newestFirst, after }: MessageQuery): { rows: MessageRow[]; next: string | null } {
    const wanted = this.topicsOf(filter);
    if (wanted?.size === 0) return { rows: [], next: null };
    const rows: MessageRow[] = [];
    let position = readPosition(after);
    let bytes = 0;
    for (let looked = 0; looked < LOOKED_AT_ROWS; ) {
      const page = this.page(wanted, from, to, newestFirst, position, Math.min(READ_ROWS, limit * 4));
      if (page.length === 0) return { rows, next: null };
      looked += page.length;
      for (const row of page) {
        const [time, topic, flags, id] = row as [number, string, number, number];
        if (wanted !== null && !wanted.has(topic)) {
          position = { time, id };
          continue;
        }
        if (rows.length >= limit) return { rows, next: writePosition(position) };
        const { payload, extra } = this.contentOf(id);
        if (bytes > 0 && bytes + payload.length > ANSWER_BYTES) return { rows, next: writePosition(position) };
        position = { time, id };
        bytes += payload.length;
        rows.push({ time, topic, qos: flags & 3, retain: (flags & 4) !== 0, payload, extra });
      }
    }
    return { rows, next: writePosition(position) };
  }

  /** Topics that the filter takes, by name. */
  topics(filter: string, search: string, limit: number): { rows: TopicRow[]; more: boolean } {
    const newest = this.db.prepare('SELECT max(time) FROM message WHERE topic = ?', true);
    const needle = search.toLowerCase();
    const rows: TopicRow[] = [];
    let more = false;
    this.walkTopics((id, name) => {
      if (!matches(filter, name) || !name.toLowerCase().includes(needle)) return true;
      if (rows.length >= limit) {
        more = true;
        return false;
      }
      const time = newest.get([id])?.[0];
      // A name may outlive its messages until the next sweep.
      if (typeof time === 'number') rows.push({ topic: name, newest: time });
      return true;
    });
    return { rows, more };
  }

  series({ filter, field, from, to, points }: SeriesQuery): { topic: string; points: Point[]; cut: boolean }[] {
    const names: string[] = [];
    this.walkTopics((_id, name) => {
      if (matches(filter, name)) names.push(name);
      return names.length < SERIES_TOPICS;
    });
    return names.map((topic) => ({ topic, ...this.line(topic, field, from, to, points) }));
  }

  sizes(bytes: number): Sizes {
    const one = (sql: string): number | null => (this.db.prepare(sql, true).get([])?.[0] as number | null) ?? null;
    return {
      bytes,
      messages: one('SELECT count(*) FROM message') ?? 0,
      topics: one('SELECT count(*) FROM topic') ?? 0,
      oldest: one('SELECT min(time) FROM message'),
      newest: one('SELECT max(time) FROM message'),
    };
  }

  // ---- inside

  private idOf(name: string): number {
    const known = this.ids.get(name);
    if (known !== undefined) return known;
    const id = Number((this.findTopic.get([name]) ?? this.addTopic.get([name]))?.[0]);
    if (this.ids.size >= KNOWN_TOPICS) this.ids.clear();
    this.ids.set(name, id);
    return id;
  }

  /** The topics of a filter with wildcards, by name; null: all of them. */
  private topicsOf(filter: string): ReadonlyMap<string, number> | null {
    if (filter === '#') return null;
    const found = new Map<string, number>();
    if (!/[+#]/.test(filter)) {
      const id = this.findTopic.get([filter])?.[0];
      if (typeof id === 'number') found.set(filter, id);
      return found;
    }
    this.walkTopics((id, name) => {
      if (matches(filter, name)) found.set(name, id);
      return true;
    });
    return found;
  }

  /** In the order of names, until `visit` has had enough. */
  private walkTopics(visit: (id: number, name: string) => boolean): void {
    const page = this.db.prepare(`SELECT id, name FROM topic WHERE name > ? ORDER BY name LIMIT ${READ_ROWS}`, true);
    for (let last = ''; ; ) {
      const rows = page.all([last]) as [number, string][];
      for (const [id, name] of rows) if (!visit(id, name)) return;
      if (rows.length < READ_ROWS) return;
      last = rows[rows.length - 1][1];
    }
  }

  /** Nothing deletes on this thread between a page and its content. */
  private contentOf(id: number): { readonly payload: Uint8Array; readonly extra: string } {
    const [payload, extra] = this.content.get([id]) as [Uint8Array, string];
    return { payload, extra };
  }

  private page(
    wanted: ReadonlyMap<string, number> | null,
    from: number,
    to: number,
    newestFirst: boolean,
    position: Position | null,
    limit: number,
  ): Row[] {
    const order = newestFirst ? 'DESC' : 'ASC';
    const behind = newestFirst ? '<' : '>';
    const ids =
      wanted === null || wanted.size > FEW_TOPICS ? '' : `AND message.topic IN (${[...wanted.values()].join()})`;
    // Beside the row value, for which alone the index would not be used.
    const edge = newestFirst ? 'message.time <= ?' : 'message.time >= ?';
    const after = position === null ? '' : `AND ${edge} AND (message.time, message.id) ${behind} (?, ?)`;
    const values = position === null ? [] : [position.time, position.time, position.id];
    const sql = `SELECT ${COLUMNS} ${FROM} WHERE message.time BETWEEN ? AND ? ${ids} ${after}
      ORDER BY message.time ${order}, message.id ${order} LIMIT ${limit}`;
    return this.db.prepare(sql, true).all([Math.floor(from), Math.floor(to), ...values]);
  }

  private line(
    topic: string,
    field: string,
    from: number,
    to: number,
    steps: number,
  ): { points: Point[]; cut: boolean } {
    const wanted = new Map([[topic, this.idOf(topic)]]);
    const width = Math.max(1, (to - from) / steps);
    const points = new Map<number, { count: number; min: number; max: number; sum: number; last: number }>();
    let position: Position | null = null;
    let looked = 0;
    for (; looked < LOOKED_AT_ROWS; ) {
      const page = this.page(wanted, from, to, false, position, READ_ROWS);
      if (page.length === 0) break;
      looked += page.length;
      for (const row of page) {
        const [time, , , id] = row as [number, string, number, number];
        position = { time, id };
        const value = numberIn(this.contentOf(id).payload, field);
        if (value === null) continue;
        const step = Math.min(steps - 1, Math.floor((time - from) / width));
        const point = points.get(step) ?? { count: 0, min: value, max: value, sum: 0, last: value };
        point.count++;
        point.min = Math.min(point.min, value);
        point.max = Math.max(point.max, value);
        point.sum += value;
        point.last = value;
        points.set(step, point);
      }
    }
    const made = [...points].map(([step, { count, min, max, sum, last }]) => {
      return { time: Math.round(from + (step + 0.5) * width), count, min, max, mean: sum / count, last };
    });
    return { points: made, cut: looked >= LOOKED_AT_ROWS };
  }
}

interface Position {
  readonly time: number;
  readonly id: number;
}

function readPosition(text: string | null): Position | null {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? '');
  return found === null ? null : { time: Number(found[1]), id: Number(found[2]) };
}

function writePosition(position: Position | null): string | null {
  return position === null ? null : `${position.time}-${position.id}`;
}
