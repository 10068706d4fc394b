// What happened, as a person wants to read it later: starts, reloads, changes and by whom, bridges, alarms, and
// clients in sums by the minute. Takes them from the log lines of the gateway, whatever level is written. Built by
// gateway/archive.ts. Bounded in memory and in rows of a time, so that a flapping peer leaves room for the rest.
import { brief } from '../base/brief.ts';
import type { Clock, Timer } from '../base/clock.ts';
import type { Fields, Log } from '../base/log.ts';
import { MESSAGES, type MsgId } from '../base/messages.ts';
import type { Broker } from '../broker/broker.ts';
import type { Archive, EventRow } from './archive.ts';
import type { EventQuery, NewEvent } from './protocol.ts';

export const EVENT_KINDS = ['gateway', 'configuration', 'bridge', 'alarm', 'login', 'clients'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** Lines that are kept, with their kind. Lines of strangers are not: they come as sums. */
const KINDS: ReadonlyMap<MsgId, EventKind> = new Map<MsgId, EventKind>([
  ['GW-READY', 'gateway'],
  ['GW-STOP', 'gateway'],
  ['GW-RELOAD', 'configuration'],
  ['GW-RELOAD-FAILED', 'configuration'],
  ['CFG-KEPT', 'configuration'],
  ['WEB-CHANGE', 'configuration'],
  ['AUTH-CHANGE', 'configuration'],
  ['PXY-DRAIN', 'configuration'],
  ['PXY-DISCOVERED', 'configuration'],
  ['NNG-STATE', 'bridge'],
  ['MQB-STATE', 'bridge'],
  ['NNG-DROPPED', 'bridge'],
  ['MQB-DROPPED', 'bridge'],
  ['MQB-REFUSED', 'bridge'],
  ['MQB-LOOP', 'bridge'],
  ['MQB-LOOP-PAUSED', 'bridge'],
  ['BRG-DENIED', 'bridge'],
  ['WEB-LOGIN', 'login'],
  ['WEB-LOCKED', 'login'],
  ['AUTH-LOCKED', 'login'],
  ['GW-BUDGET', 'alarm'],
  ['LSN-FAILED', 'alarm'],
  ['LSN-FULL', 'alarm'],
  ['LSN-DESCRIPTORS', 'alarm'],
  ['CLI-HELD', 'alarm'],
  ['SES-CONTEST', 'alarm'],
  ['SES-LIMIT', 'alarm'],
  ['SES-QUEUE-FULL', 'alarm'],
  ['BRK-REDIS', 'alarm'],
  ['AUTH-SOURCE-DOWN', 'alarm'],
  ['AUTH-SOURCE-UP', 'alarm'],
  ['AUTH-NOT-KEPT', 'alarm'],
  ['AUTH-WARNING', 'alarm'],
  ['PLUGIN-FAILED', 'alarm'],
  ['PLUGIN-SLOW', 'alarm'],
  ['HOOK-FAILED', 'alarm'],
  ['HOOK-DROPPED', 'alarm'],
  ['HOOK-DOWN', 'alarm'],
  ['HOOK-UP', 'alarm'],
  ['TLS-EXPIRES', 'alarm'],
  ['STO-DAMAGED', 'alarm'],
  ['STO-ROWS', 'alarm'],
  ['STO-FULL', 'alarm'],
  ['STO-FAILED', 'alarm'],
  ['STO-ROOM', 'alarm'],
  ['STO-LOST', 'alarm'],
  ['ARC-DAMAGED', 'alarm'],
  ['ARC-FAILED', 'alarm'],
  ['ARC-RECOVERED', 'alarm'],
  ['REC-MISSED', 'alarm'],
  ['RULE-ERROR', 'alarm'],
  ['RULE-LOOP', 'alarm'],
  ['PXY-FAILED', 'alarm'],
  ['PXY-RESTS', 'alarm'],
  ['PXY-HEALTHY', 'alarm'],
  ['PXY-UNHEALTHY', 'alarm'],
  ['PXY-LOOKUP', 'alarm'],
  ['PXY-DISCOVERY', 'alarm'],
  ['PXY-DISCOVERY-BACK', 'alarm'],
  ['PXY-TOPICS-LOST', 'alarm'],
  ['GW-INTERNAL', 'alarm'],
]);

/** Rows in memory: those of a gateway without a file, and those that wait to be written. */
const MOST_ROWS = 1000;
/** Rows of one kind of line in one minute; more are counted. */
const MOST_A_MINUTE = 20;
const FLUSH_MS = 2000;
const MINUTE_MS = 60_000;
const TEXT_CHARACTERS = 256;
const FIELDS_CHARACTERS = 600;

function bounded(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? brief(value, TEXT_CHARACTERS) : value;
}

interface Sums {
  connected: number;
  disconnected: number;
  refused: number;
  readonly reasons: Map<string, number>;
}

export class Happenings {
  private readonly clock: Pick<Clock, 'now' | 'every'>;
  /** Oldest first: all of them while there is no archive. */
  private readonly rows: EventRow[] = [];
  private readonly waiting: NewEvent[] = [];
  private archive: Archive | null = null;
  private timers: Timer[] = [];
  private lastId = 0;
  private minute = new Map<MsgId, number>();
  private writing = false;
  private sums: Sums = { connected: 0, disconnected: 0, refused: 0, reasons: new Map() };

  constructor(clock: Pick<Clock, 'now' | 'every'>) {
    this.clock = clock;
  }

  /** The log to hand out instead of `log`. */
  wrap(log: Log): Log {
    return (level, msgid, fields) => {
      log(level, msgid, fields);
      const kind = KINDS.get(msgid);
      if (kind !== undefined) this.line(kind, level, msgid, fields);
    };
  }

  /** @param archive null: rows stay in memory */
  start(archive: Archive | null): void {
    this.archive = archive;
    this.timers.push(this.clock.every(FLUSH_MS, () => void this.flush()));
    this.timers.push(this.clock.every(MINUTE_MS, () => this.nextMinute()));
  }

  /** Sums of what clients do; returns what ends it. */
  follow(broker: Pick<Broker, 'onEvent'>): () => void {
    return broker.onEvent((event) => {
      const { sums } = this;
      if (event.kind === 'connected') sums.connected++;
      else if (event.kind === 'disconnected') sums.disconnected++;
      else if (event.kind === 'refused') {
        sums.refused++;
        const { reasons } = sums;
        if (reasons.size < 20 || reasons.has(event.reason))
          reasons.set(event.reason, (reasons.get(event.reason) ?? 0) + 1);
      }
    });
  }

  async stop(): Promise<void> {
    for (const timer of this.timers.splice(0)) timer.cancel();
    this.nextMinute();
    await this.flush();
  }

  /** Newest first. Rejects where the archive does not answer. */
  async find(query: EventQuery): Promise<{ rows: EventRow[]; next: number | null }> {
    if (this.archive !== null) {
      await this.flush();
      return this.archive.ask('events', query);
    }
    const { from, to, kinds, search, limit, before } = query;
    const needle = search.toLowerCase();
    const found = this.rows.filter(
      ({ id, time, kind, text, fields }) =>
        time >= from &&
        time <= to &&
        (before === 0 || id < before) &&
        (kinds.length === 0 || kinds.includes(kind)) &&
        `${text} ${fields}`.toLowerCase().includes(needle),
    );
    const rows = found.slice(-limit).reverse();
    return { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null };
  }

  // ---- inside

  private line(kind: EventKind, level: string, msgid: MsgId, fields: Fields | undefined): void {
    const seen = (this.minute.get(msgid) ?? 0) + 1;
    this.minute.set(msgid, seen);
    if (seen > MOST_A_MINUTE) return;
    this.add(kind, level, MESSAGES[msgid], { id: msgid, ...fields });
  }

  private add(kind: EventKind, level: string, text: string, fields: Fields): void {
    const json = JSON.stringify(fields, bounded);
    const kept = json.length <= FIELDS_CHARACTERS ? json : JSON.stringify({ id: fields.id, cut: true });
    const row: NewEvent = { time: this.clock.now(), kind, level, text, fields: kept };
    this.rows.push({ ...row, id: ++this.lastId });
    if (this.rows.length > MOST_ROWS) this.rows.shift();
    this.waiting.push(row);
    if (this.waiting.length > MOST_ROWS) this.waiting.shift();
  }

  private nextMinute(): void {
    const { sums } = this;
    this.sums = { connected: 0, disconnected: 0, refused: 0, reasons: new Map() };
    const { connected, disconnected, refused, reasons } = sums;
    if (connected + disconnected + refused > 0) {
      const text = `clients: ${connected} connected, ${disconnected} disconnected, ${refused} refused`;
      const fields = { connected, disconnected, refused, ...Object.fromEntries(reasons) };
      this.add('clients', refused > 0 ? 'warn' : 'info', text, fields);
    }
    for (const [msgid, seen] of this.minute) {
      if (seen <= MOST_A_MINUTE) continue;
      const kind = KINDS.get(msgid) ?? 'alarm';
      this.add(kind, 'warn', `${MESSAGES[msgid]}: ${seen - MOST_A_MINUTE} more times`, { id: msgid });
    }
    this.minute = new Map();
  }

  private async flush(): Promise<void> {
    const { archive, waiting } = this;
    if (archive === null || waiting.length === 0 || this.writing) return;
    const rows = waiting.splice(0);
    this.writing = true;
    try {
      await archive.write({ what: 'events', rows });
    } catch {
      // The archive has logged it; they are tried again, the newest first to stay.
      waiting.unshift(...rows.slice(-Math.max(0, MOST_ROWS - waiting.length)));
    } finally {
      this.writing = false;
    }
  }
}
