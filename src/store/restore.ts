// Reading a whole store: rows out of the tables in packs of bytes (writer thread), packs into a Restored (main thread).
// Called by worker.ts and opening.ts at start, and by `tidegate store export`. Writes only to throw away what expired
// or belongs to nothing. A pack holds rows of one table: each value is a tag byte (0 null, 1 number, 2 text, 3 bytes)
// and f64, or u32 length + bytes.
import { unpackProperties } from '../codec/property.ts';
import { unpackArrival } from '../mqtt/arrival.ts';
import { type Arrival, Message, type Origin } from '../mqtt/message.ts';
import type { Qos, Version } from '../mqtt/packet.ts';
import { LOOSE_PUBLISHERS, NEVER } from './apply.ts';
import type { Database, Row, Value } from './driver.ts';
import { FrameReader, FrameWriter, unpackOrigin } from './frame.ts';
import type {
  QueuedState,
  Restored,
  RestoredSession,
  SpoolEntry,
  StoredMessage,
  StoredSession,
  StoredSubscription,
  StoredWill,
} from './store.ts';

/** In the order in which rows refer to each other. */
export const TABLES = [
  'session',
  'subscription',
  'inbound',
  'will',
  'message',
  'queued',
  'publisher',
  'retained',
  'spool',
] as const;
export type Table = (typeof TABLES)[number];

/**
 * Most messages come from the origin of the one before: it is read, carried and taken apart once. 0 stands for "the
 * same".
 */
const ORIGIN = 'CASE WHEN origin IS NOT NULL AND origin IS lag(origin) OVER (ORDER BY';
const SAME = 0;

const SELECT: Record<Table, string> = {
  session:
    'SELECT id, client_id, username, expires_at, expiry_interval, protocol, arrival, valid_until FROM session WHERE id > ? ORDER BY id LIMIT ?',
  subscription: 'SELECT session, topic_filter, options, identifier FROM subscription ORDER BY session, topic_filter',
  inbound: 'SELECT session, packet_id FROM inbound ORDER BY session, packet_id',
  will: 'SELECT session, due_at, topic, payload, flags, expires_at, properties, origin FROM will ORDER BY session',
  message: `SELECT id, topic, payload, flags, expires_at, properties, ${ORIGIN} id) THEN ${SAME} ELSE origin END FROM message WHERE id > ? ORDER BY id LIMIT ?`,
  queued:
    'SELECT session, sequence, message, flags, state, packet_id, identifiers, share FROM queued ORDER BY session, sequence',
  publisher: 'SELECT id, arrival FROM publisher WHERE id > ? ORDER BY id LIMIT ?',
  retained: `SELECT rowid, topic, payload, flags, expires_at, properties, ${ORIGIN} rowid) THEN ${SAME} ELSE origin END, publisher FROM retained WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  spool: 'SELECT id, bridge, sequence, bytes FROM spool WHERE id > ? ORDER BY id LIMIT ?',
};
/** Tables whose rows carry payloads are read in steps, so that a large store does not stand in memory twice. */
const STEPPED: ReadonlySet<Table> = new Set(['session', 'message', 'publisher', 'retained', 'spool']);
const STEP = 2000;

/**
 * Throws away what expired while the gateway was down, what belongs to no session, and sessions that a later one
 * replaced. To be called in a transaction. O(rows).
 */
export function sweep(db: Database, now: number): void {
  db.exec('DELETE FROM session WHERE id NOT IN (SELECT max(id) FROM session GROUP BY client_id)');
  for (const table of ['subscription', 'inbound', 'will', 'queued']) {
    db.exec(`DELETE FROM ${table} WHERE session NOT IN (SELECT id FROM session)`);
  }
  // What has been sent already is finished whatever its age: the receiver may hold its packet id [MQTT-3.3.2-5].
  const expired = 'expires_at > 0 AND expires_at <= ?';
  db.prepare(`DELETE FROM queued WHERE state = 0 AND message IN (SELECT id FROM message WHERE ${expired})`, false).run([
    now,
  ]);
  db.prepare(`DELETE FROM retained WHERE ${expired}`, false).run([now]);
  db.exec(LOOSE_PUBLISHERS);
  db.exec('DELETE FROM message WHERE id NOT IN (SELECT message FROM queued)');
  db.exec('DELETE FROM queued WHERE message NOT IN (SELECT id FROM message)');
}

function packValue(writer: FrameWriter, value: Value): void {
  if (value === null) writer.u8(0);
  else if (typeof value === 'number') {
    writer.u8(1);
    writer.f64(value);
  } else if (typeof value === 'string') {
    writer.u8(2);
    writer.text(value);
  } else {
    writer.u8(3);
    writer.blob(value);
  }
}

export interface Pack {
  readonly table: Table;
  readonly width: number;
  readonly buffer: ArrayBuffer;
  readonly bytes: number;
}

function pack(table: Table, rows: readonly Row[]): Pack {
  const writer = new FrameWriter();
  for (const row of rows) for (const value of row) packValue(writer, value);
  return { table, width: rows[0].length, buffer: writer.buffer, bytes: writer.at };
}

/** All rows, table by table in the order of TABLES. */
export function* readPacks(db: Database, tables: readonly Table[] = TABLES): Iterable<Pack> {
  for (const table of tables) {
    const statement = db.prepare(SELECT[table], true);
    if (!STEPPED.has(table)) {
      const rows = statement.all([]);
      for (let i = 0; i < rows.length; i += STEP) yield pack(table, rows.slice(i, i + STEP));
      continue;
    }
    for (let last = 0; ; ) {
      const rows = statement.all([last, STEP]);
      if (rows.length === 0) break;
      yield pack(table, rows);
      last = rows[rows.length - 1][0] as number;
    }
  }
}

const NO_BYTES = Buffer.alloc(0);
const NO_IDENTIFIERS: readonly number[] = Object.freeze([]);

const STATES: readonly QueuedState[] = ['queued', 'sent', 'received'];

/** A session being put together. */
interface Draft {
  readonly session: StoredSession;
  readonly subscriptions: StoredSubscription[];
  readonly queue: StoredMessage[];
  readonly inbound: number[];
  will: StoredWill | null;
}

/** Builds a Restored from packs given in the order of readPacks. */
export class Restorer {
  /** Number of each session in the tables, by client id. */
  readonly sessionIds = new Map<string, number>();
  private readonly drafts = new Map<number, Draft>();
  private readonly messages = new Map<number, Message>();
  private readonly retained: Message[] = [];
  private readonly spools = new Map<string, SpoolEntry[]>();
  private readonly publishers = new Map<number, Arrival | null>();
  /** The origin of the last retained message, without and with how it came. */
  private bare: Origin | null = null;
  private whole: Origin | null = null;
  private text = '';
  private origin: Origin = unpackOrigin(null);
  /** Rows left out because a value cannot be what it should be: damage that SQLite's own check does not see. */
  skipped = 0;

  add(pack: Pack): void {
    const reader = new FrameReader(pack.buffer, pack.bytes);
    const row: Row = Array(pack.width).fill(null);
    while (reader.more) {
      for (let i = 0; i < row.length; i++) row[i] = this.value(reader);
      try {
        this.row(pack.table, row);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        this.skipped++;
      }
    }
  }

  finish(): Restored {
    for (const list of this.spools.values()) list.sort((a, b) => a.sequence - b.sequence);
    const sessions: readonly RestoredSession[] = [...this.drafts.values()];
    return { sessions, retained: this.retained, spools: this.spools };
  }

  private value(reader: FrameReader): Value {
    switch (reader.u8()) {
      case 1:
        return reader.f64();
      case 2: {
        const text = reader.text() ?? '';
        // Texts often repeat from row to row (topics): one string is kept, not many.
        if (text === this.text) return this.text;
        this.text = text;
        return text;
      }
      case 3:
        return reader.blob();
      default:
        return null;
    }
  }

  private row(table: Table, row: Row): void {
    switch (table) {
      case 'session':
        this.session(row);
        return;
      case 'subscription':
        this.draft(row).subscriptions.push(subscription(row));
        return;
      case 'inbound':
        this.draft(row).inbound.push(whole(row[1], 0xffff));
        return;
      case 'will':
        this.draft(row).will = { dueAt: integer(row[1]), message: this.message(row, 2) };
        return;
      case 'message':
        this.messages.set(whole(row[0]), this.message(row, 1));
        return;
      case 'queued':
        this.queued(row);
        return;
      case 'publisher':
        this.publishers.set(whole(row[0]), unpackArrival(string(row[1])));
        return;
      case 'retained':
        this.retained.push(this.published(row));
        return;
      case 'spool':
        this.spool(row);
    }
  }

  /** The session that column 0 names. */
  private draft(row: Row): Draft {
    const draft = this.drafts.get(whole(row[0]));
    if (draft === undefined) throw new RangeError('no such session');
    return draft;
  }

  private session(row: Row): void {
    const id = whole(row[0], 0xffff_ffff);
    const version = whole(row[5], 5);
    if (version < 3) throw new RangeError('no such version');
    const session: StoredSession = {
      clientId: string(row[1]),
      username: row[2] === null ? null : string(row[2]),
      expiresAt: row[3] === NEVER ? Number.POSITIVE_INFINITY : whole(row[3]),
      expiryInterval: whole(row[4], 0xffff_ffff),
      version: version as Version,
      arrival: row[6] === null ? null : unpackArrival(string(row[6])),
      validUntil: row[7] === null ? 0 : whole(row[7]),
    };
    this.sessionIds.set(session.clientId, id);
    this.drafts.set(id, { session, subscriptions: [], queue: [], inbound: [], will: null });
  }

  /** A retained message, with how its publisher came. Messages of one publisher share one origin. */
  private published(row: Row): Message {
    const message = this.message(row, 1);
    const arrival = row[7] === null ? null : (this.publishers.get(whole(row[7])) ?? null);
    if (arrival === null) return message;
    const { topic, payload, qos, retain, properties, expiresAt, origin } = message;
    if (this.bare !== origin || this.whole?.arrival !== arrival) {
      this.bare = origin;
      this.whole = { ...origin, arrival };
    }
    return new Message(topic, payload, qos, retain, properties, expiresAt, this.whole);
  }

  /**
   * The columns topic, payload, flags, expires_at, properties, origin from `at` on. The payload is copied: its pack is
   * not kept.
   */
  private message(row: Row, at: number): Message {
    const origin = row[at + 5];
    // First of all: a row that is left out for another column still is the one before the next.
    if (origin !== SAME) this.origin = unpackOrigin(bytes(origin));
    const flags = whole(row[at + 2], 7);
    const properties = bytes(row[at + 4]);
    const payload = bytes(row[at + 1]);
    return new Message(
      string(row[at]),
      payload === null ? NO_BYTES : Buffer.from(payload),
      qosOf(flags),
      (flags & 4) !== 0,
      properties === null ? null : unpackProperties(properties),
      whole(row[at + 3]),
      this.origin,
    );
  }

  private queued(row: Row): void {
    const message = this.messages.get(whole(row[2]));
    if (message === undefined) throw new RangeError('no such message');
    const flags = whole(row[3], 7);
    this.draft(row).queue.push({
      sequence: whole(row[1]),
      message,
      qos: qosOf(flags),
      retain: (flags & 4) !== 0,
      state: STATES[whole(row[4], 2)],
      packetId: whole(row[5], 0xffff),
      subscriptionIdentifiers: identifiers(bytes(row[6])),
      share: row[7] === null ? null : string(row[7]),
    });
  }

  private spool(row: Row): void {
    const bridge = string(row[1]);
    const entry: SpoolEntry = { sequence: whole(row[2]), bytes: Buffer.from(bytes(row[3]) ?? []) };
    const list = this.spools.get(bridge);
    if (list === undefined) this.spools.set(bridge, [entry]);
    else list.push(entry);
  }
}

function string(value: Value): string {
  if (typeof value !== 'string') throw new RangeError('not a text');
  return value;
}

function bytes(value: Value): Uint8Array | null {
  if (value !== null && !(value instanceof Uint8Array)) throw new RangeError('not bytes');
  return value;
}

function whole(value: Value, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > most) {
    throw new RangeError('not a number in range');
  }
  return value;
}

function integer(value: Value): number {
  if (!Number.isSafeInteger(value)) throw new RangeError('not an integer');
  return value as number;
}

function qosOf(flags: number): Qos {
  const qos = flags & 3;
  if (qos === 3) throw new RangeError('no such QoS');
  return qos as Qos;
}

function subscription(row: Row): StoredSubscription {
  const options = whole(row[2], 0x3f);
  const retainHandling = options >> 4;
  if (retainHandling === 3) throw new RangeError('no such Retain Handling');
  return {
    topicFilter: string(row[1]),
    qos: qosOf(options),
    noLocal: (options & 4) !== 0,
    retainAsPublished: (options & 8) !== 0,
    retainHandling: retainHandling as 0 | 1 | 2,
    subscriptionIdentifier: whole(row[3], 268_435_455),
  };
}

function identifiers(stored: Uint8Array | null): readonly number[] {
  if (stored === null) return NO_IDENTIFIERS;
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  const list: number[] = [];
  for (let at = 0; at + 4 <= stored.byteLength; at += 4) list.push(view.getUint32(at, true));
  return list;
}
