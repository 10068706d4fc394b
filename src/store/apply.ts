// Applies a frame of events to the tables: one transaction a batch, rows in groups, bound parameters only. Called by
// the writer thread (worker.ts) and by `tidegate store import`. The journal (log.ts) has put the events in order and
// left out what cancels itself, so within one batch no row of `queued` is both written and deleted; applying a batch
// twice gives the same rows.
import type { Database, Statement, Value } from './driver.ts';
import {
  DONE,
  INBOUND_DELETE,
  INBOUND_PUT,
  MESSAGE,
  QUEUED,
  RETAINED_DELETE,
  RETAINED_PUT,
  SESSION_DELETE,
  SESSION_PUT,
  SPOOL_DELETE,
  SPOOL_PUT,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
  WILL_DELETE,
  WILL_PUT,
} from './event.ts';
import { FrameReader } from './frame.ts';

/**
 * Rows of one INSERT: a call into the driver costs as much as four rows (measured: 3.6 us alone, 0.9 us a row in 32).
 */
const GROUP = 32;

/** Inserts rows of `width` values, GROUP at a time. */
class Inserter {
  private readonly one: Statement;
  private readonly group: Statement;
  private readonly full: number;
  private readonly width: number;
  private values: Value[] = [];

  constructor(db: Database, into: string, width: number) {
    const row = `(${Array(width).fill('?').join(', ')})`;
    this.one = db.prepare(`INSERT OR REPLACE INTO ${into} VALUES ${row}`, false);
    this.group = db.prepare(`INSERT OR REPLACE INTO ${into} VALUES ${Array(GROUP).fill(row).join(', ')}`, false);
    this.width = width;
    this.full = width * GROUP;
  }

  /** A row of seven values. */
  add(a: Value, b: Value, c: Value, d: Value, e: Value, f: Value, g: Value): void {
    this.values.push(a, b, c, d, e, f, g);
    if (this.values.length === this.full) this.insert();
  }

  /** A row of eight values. */
  addEight(a: Value, b: Value, c: Value, d: Value, e: Value, f: Value, g: Value, h: Value): void {
    this.values.push(a, b, c, d, e, f, g, h);
    if (this.values.length === this.full) this.insert();
  }

  private insert(): void {
    this.group.run(this.values);
    this.values = [];
  }

  flush(): void {
    const values = this.values;
    for (let i = 0; i < values.length; i += this.width) this.one.run(values.slice(i, i + this.width));
    this.values = [];
  }

  clear(): void {
    this.values = [];
  }
}

/** Publishers whose number is remembered; then those that nothing names any more are deleted. */
const PUBLISHERS = 4096;
export const LOOSE_PUBLISHERS =
  'DELETE FROM publisher WHERE id NOT IN (SELECT publisher FROM retained WHERE publisher IS NOT NULL)';

/** expiresAt of a session: Infinity (never) has no integer. */
export const NEVER = -1;

export class Applier {
  private readonly db: Database;
  private readonly messages: Inserter;
  private readonly queued: Inserter;
  private readonly statements = new Map<string, Statement>();
  /** Messages that more than one row of `queued` names. */
  private readonly references = new Map<number, number>();
  private readonly publishers = new Map<string, number>();
  private nextMessage: number;
  private current = 0;
  private uses = 0;
  /** Reference counts as they will be when the batch commits. */
  private readonly changed = new Map<number, number>();
  /** Messages that lost a row of `queued` in this batch. */
  private readonly orphans: number[] = [];
  private doneSlots: number[] = [];
  private doneSequences: number[] = [];

  /** O(rows of queued): counts the shared messages. */
  constructor(db: Database) {
    this.db = db;
    this.messages = new Inserter(db, 'message', 7);
    this.queued = new Inserter(db, 'queued', 8);
    const shared = db
      .prepare('SELECT message, count(*) FROM queued GROUP BY message HAVING count(*) > 1', true)
      .all([]);
    for (const [id, count] of shared) this.references.set(id as number, count as number);
    this.nextMessage = Number(db.prepare('SELECT max(id) FROM message', true).get([])?.[0] ?? 0) + 1;
  }

  /**
   * One transaction. Throws SqliteError, then nothing of the batch is applied.
   * @returns milliseconds of the commit alone
   */
  apply(buffer: ArrayBuffer, bytes: number): number {
    const nextMessage = this.nextMessage;
    this.db.exec('BEGIN IMMEDIATE');
    try {
      const reader = new FrameReader(buffer, bytes);
      while (reader.more) this.event(reader);
      this.messages.flush();
      this.queued.flush();
      this.countUses();
      this.finishDone();
      const start = performance.now();
      this.db.exec('COMMIT');
      const commitMs = performance.now() - start;
      for (const [id, count] of this.changed) {
        if (count > 1) this.references.set(id, count);
        else this.references.delete(id);
      }
      this.changed.clear();
      return commitMs;
    } catch (error) {
      this.nextMessage = nextMessage;
      this.reset();
      try {
        this.db.exec('ROLLBACK');
      } catch {
        // SQLite has rolled back by itself (full disk, I/O error).
      }
      throw error;
    }
  }

  private reset(): void {
    this.messages.clear();
    this.queued.clear();
    this.changed.clear();
    this.publishers.clear();
    this.orphans.length = 0;
    this.current = 0;
    this.uses = 0;
    this.doneSlots = [];
    this.doneSequences = [];
  }

  /** The reference count of the message written last is known when the next one comes. */
  private countUses(): void {
    if (this.uses > 1) this.changed.set(this.current, this.uses);
    this.current = 0;
    this.uses = 0;
  }

  private prepared(sql: string, rows = false): Statement {
    let statement = this.statements.get(sql);
    if (statement === undefined) {
      statement = this.db.prepare(sql, rows);
      this.statements.set(sql, statement);
    }
    return statement;
  }

  private event(r: FrameReader): void {
    const kind = r.u8();
    const slot = r.u32();
    switch (kind) {
      case MESSAGE:
        this.message(r);
        return;
      case QUEUED:
        this.queue(r, slot);
        return;
      case DONE:
        this.doneSlots.push(slot);
        this.doneSequences.push(r.f64());
        return;
      case STATE: {
        const sequence = r.f64();
        const state = r.u8();
        this.prepared('UPDATE queued SET state = ?, packet_id = ? WHERE session = ? AND sequence = ?').run([
          state,
          r.u32(),
          slot,
          sequence,
        ]);
        return;
      }
      case INBOUND_PUT:
        this.prepared('INSERT OR REPLACE INTO inbound VALUES (?, ?)').run([slot, r.f64()]);
        return;
      case INBOUND_DELETE:
        this.prepared('DELETE FROM inbound WHERE session = ? AND packet_id = ?').run([slot, r.f64()]);
        return;
      case RETAINED_PUT:
        this.retained(r);
        return;
      case RETAINED_DELETE:
        this.prepared('DELETE FROM retained WHERE topic = ?').run([r.text()]);
        return;
      case SPOOL_PUT: {
        const bridge = r.text();
        const sequence = r.f64();
        this.prepared(
          'INSERT INTO spool (bridge, sequence, bytes) VALUES (?, ?, ?) ON CONFLICT (bridge, sequence) DO UPDATE SET bytes = excluded.bytes',
        ).run([bridge, sequence, r.blob()]);
        return;
      }
      case SPOOL_DELETE: {
        const bridge = r.text();
        // Infinity has no place in an INTEGER column; the largest exact number is above every sequence.
        const upTo = Math.min(r.f64(), Number.MAX_SAFE_INTEGER);
        this.prepared('DELETE FROM spool WHERE bridge = ? AND sequence <= ?').run([bridge, upTo]);
        return;
      }
      default:
        this.sessionEvent(kind, slot, r);
        return;
    }
  }

  private sessionEvent(kind: number, slot: number, r: FrameReader): void {
    switch (kind) {
      case SESSION_PUT: {
        const clientId = r.text();
        const username = r.text();
        const expiresAt = r.f64();
        const expiryInterval = r.f64();
        const version = r.u8();
        const arrival = r.text();
        const ends = expiresAt === Infinity ? NEVER : expiresAt;
        this.prepared('INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)').run([
          slot,
          clientId,
          username,
          ends,
          expiryInterval,
          version,
          arrival,
          r.f64(),
        ]);
        return;
      }
      case SESSION_DELETE:
        this.deleteSession(slot);
        return;
      case SUBSCRIPTION_PUT: {
        const filter = r.text();
        const options = r.u8();
        this.prepared('INSERT OR REPLACE INTO subscription VALUES (?, ?, ?, ?)').run([slot, filter, options, r.f64()]);
        return;
      }
      case SUBSCRIPTION_DELETE:
        this.prepared('DELETE FROM subscription WHERE session = ? AND topic_filter = ?').run([slot, r.text()]);
        return;
      case WILL_PUT: {
        const dueAt = r.f64();
        const [topic, flags, expiresAt, properties, origin, payload] = readMessage(r);
        const values = [slot, dueAt, topic, payload, flags, expiresAt, properties, origin];
        this.prepared('INSERT OR REPLACE INTO will VALUES (?, ?, ?, ?, ?, ?, ?, ?)').run(values);
        return;
      }
      case WILL_DELETE:
        this.prepared('DELETE FROM will WHERE session = ?').run([slot]);
        return;
      default:
        throw new RangeError(`unknown event ${kind}`);
    }
  }

  private message(r: FrameReader): void {
    this.countUses();
    this.current = this.nextMessage++;
    const [topic, flags, expiresAt, properties, origin, payload] = readMessage(r);
    this.messages.add(this.current, topic, payload, flags, expiresAt, properties, origin);
  }

  private queue(r: FrameReader, slot: number): void {
    this.uses++;
    const sequence = r.f64();
    const flags = r.u8();
    const state = r.u8();
    const packetId = r.u32();
    this.queued.addEight(slot, sequence, this.current, flags, state, packetId, r.blob(), r.text());
  }

  private retained(r: FrameReader): void {
    const [topic, flags, expiresAt, properties, origin, payload] = readMessage(r);
    this.prepared(
      `INSERT INTO retained VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (topic) DO UPDATE SET payload = excluded.payload, flags = excluded.flags,
       expires_at = excluded.expires_at, properties = excluded.properties, origin = excluded.origin, publisher = excluded.publisher`,
    ).run([topic, payload, flags, expiresAt, properties, origin, this.publisher(r.text())]);
  }

  /** The number of a publisher in its table, where each stands once. */
  private publisher(arrival: string | null): Value {
    if (arrival === null) return null;
    const known = this.publishers.get(arrival);
    if (known !== undefined) return known;
    if (this.publishers.size >= PUBLISHERS) {
      this.publishers.clear();
      // Those whose last message has been replaced since.
      this.db.exec(LOOSE_PUBLISHERS);
    }
    this.prepared('INSERT OR IGNORE INTO publisher (arrival) VALUES (?)').run([arrival]);
    const id = this.prepared('SELECT id FROM publisher WHERE arrival = ?', true).get([arrival])?.[0] as number;
    this.publishers.set(arrival, id);
    return id;
  }

  private deleteSession(slot: number): void {
    // What this batch has queued elsewhere is not touched; the rows of this session are all in the table (log.ts kills
    // open ones).
    const messages = this.prepared('DELETE FROM queued WHERE session = ? RETURNING message', true).all([slot]);
    for (const [id] of messages) this.orphans.push(id as number);
    for (const table of ['subscription', 'inbound', 'will'])
      this.prepared(`DELETE FROM ${table} WHERE session = ?`).run([slot]);
    this.prepared('DELETE FROM session WHERE id = ?').run([slot]);
  }

  /** Deletes what sessions are done with: runs of sequences and of message numbers go in one statement each. */
  private finishDone(): void {
    const slots = this.doneSlots;
    const sequences = this.doneSequences;
    for (let i = 0; i < slots.length; ) {
      let end = i + 1;
      while (end < slots.length && slots[end] === slots[i] && sequences[end] === sequences[end - 1] + 1) end++;
      const range = [slots[i], sequences[i], sequences[end - 1]];
      const rows = this.prepared(
        'DELETE FROM queued WHERE session = ? AND sequence BETWEEN ? AND ? RETURNING message',
        true,
      ).all(range);
      for (const [id] of rows) this.orphans.push(id as number);
      i = end;
    }
    this.doneSlots = [];
    this.doneSequences = [];
    this.dropOrphans();
  }

  private dropOrphans(): void {
    const changed = this.changed;
    const free: number[] = [];
    for (const id of this.orphans) {
      const count = changed.get(id) ?? this.references.get(id) ?? 1;
      if (count <= 1) free.push(id);
      changed.set(id, count - 1);
    }
    this.orphans.length = 0;
    free.sort((a, b) => a - b);
    for (let i = 0; i < free.length; ) {
      let end = i + 1;
      while (end < free.length && free[end] === free[end - 1] + 1) end++;
      this.prepared('DELETE FROM message WHERE id BETWEEN ? AND ?').run([free[i], free[end - 1]]);
      i = end;
    }
  }
}

type MessageFields = [topic: Value, flags: number, expiresAt: number, properties: Value, origin: Value, payload: Value];

function readMessage(r: FrameReader): MessageFields {
  const topic = r.text();
  const flags = r.u8();
  const expiresAt = r.f64();
  const properties = r.blob();
  const origin = r.blob();
  return [topic, flags, expiresAt, properties, origin, r.blob()];
}
