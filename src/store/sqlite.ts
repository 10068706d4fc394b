// The Journal over SQLite: takes what it is told into the open log, closes batches, releases whoever waits when they are committed.
// Built by gateway.ts when persistence.path is set. Never blocks and never throws after load(): what cannot be written stays in memory,
// is refused a promise (done(0x97)) and is written when it can be. Architecture: docs/durability.md.
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Hold, Message } from '../mqtt/message.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { compact, isDeletion } from './compact.ts';
import type { Database } from './driver.ts';
import {
  type Body,
  DONE,
  Event,
  GONE,
  INBOUND_DELETE,
  INBOUND_PUT,
  OPEN,
  PATIENCE,
  QUEUED,
  RECEIVED,
  RETAINED_DELETE,
  RETAINED_PUT,
  SENT,
  SESSION_DELETE,
  SESSION_PUT,
  Slot,
  SPOOL_DELETE,
  SPOOL_PUT,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
  WAITING,
  WILL_DELETE,
  WILL_PUT,
} from './event.ts';
import { FrameWriter } from './frame.ts';
import { Link, writerUrl } from './link.ts';
import { Batch, OpenLog } from './log.ts';
import { setAside } from './open.ts';
import type { FromWriter } from './protocol.ts';
import { Restorer } from './restore.ts';
import { StoreStats } from './stats.ts';
import type {
  Journal,
  QueuedState,
  Restored,
  StoredMessage,
  StoredSession,
  StoredSubscription,
  StoredWill,
} from './store.ts';

export interface SqliteOptions {
  /** The database file; its folder is made when it is absent. */
  readonly path: string;
  /** ack: barriers wait for the commit; interval and off: they do not, and commits come every intervalMs (off: every second). */
  readonly sync: 'ack' | 'interval' | 'off';
  readonly intervalMs: number;
  /** Bytes of the database at which QoS > 0 messages for durable sessions are refused. */
  readonly maxSize: number;
  /** start: a damaged file is set aside and an empty one begins; stop: load() throws. */
  readonly onCorrupt: 'start' | 'stop';
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The writer's code, when it is not beside this file. */
  readonly worker?: URL;
  readonly driver?: Database['driver'];
}

/** A batch that nobody waits for closes after this; what may be elided has two such rounds. */
const ROUND_MS = 4;
/** With a batch on its way, the next one closes when it has so many events. */
const BATCH_EVENTS = 1000;
/** Batches on their way at a time: the second one keeps the writer busy while the first is being confirmed. */
const UNDERWAY = 2;
/** sync = off: commits this often. */
const OFF_MS = 1000;
/** A batch closes early when so much is told. */
const EARLY_BYTES = 8 * 1024 * 1024;
/** Told and not committed; past it the store is behind and takes no new messages. */
const BEHIND_BYTES = 128 * 1024 * 1024;
/** After a failed write: how long until the next attempt, doubling from the first to the last. */
const RETRY_FIRST_MS = 250;
const RETRY_LAST_MS = 4000;
/** Bytes of the write-ahead log that a commit copies into the database; small stores keep it smaller. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** A stop does not wait for a writer that has hung. */
const CLOSE_MS = 15_000;

/** The durable journal. */
export function sqliteJournal(options: SqliteOptions): Journal {
  return new SqliteJournal(options);
}

class SqliteJournal implements Journal {
  readonly durable = true;
  /** Read for every publish: kept up to date instead of computed. */
  accepting = false;
  private readonly options: SqliteOptions;
  private readonly waits: boolean;
  private readonly stats: StoreStats;
  private readonly log: OpenLog = new OpenLog();
  private readonly slots = new Map<string, Slot>();
  private readonly spools = new Map<string, Slot>();
  private readonly retained = new Map<string, Event>();
  private readonly complain: Log;
  private state: 'closed' | 'opening' | 'running' | 'failing' | 'closing' = 'closed';
  private link: Link | null = null;
  private lastSlot: Slot | null = null;
  private nextSlotId = 1;
  /** Only to tell spools apart: their rows go by the bridge's name. */
  private nextSpoolId = 0x8000_0000;
  private serial = 0;
  private readonly posted: Batch[] = [];
  private immediate = false;
  private timer: Timer | null = null;
  private retryTimer: Timer | null = null;
  private retryMs = RETRY_FIRST_MS;
  private compactAt = 0;
  private full = false;
  private pendingBytes = 0;
  private opening: { resolve: (restored: Restored | null) => void; reject: (error: unknown) => void } | null = null;
  private restorer: Restorer | null = null;
  private drained: (() => void) | null = null;

  constructor(options: SqliteOptions) {
    this.options = options;
    this.waits = options.sync === 'ack';
    this.stats = new StoreStats(
      options.metrics,
      () => this.posted.length,
      () => this.pendingBytes,
    );
    this.complain = limitLog(options.log, () => options.clock.mono(), 10_000);
  }

  // ---- start and stop

  async load(): Promise<Restored> {
    if (this.state !== 'closed') throw new GatewayError('GW-STATE', 'the store is open');
    this.state = 'opening';
    let restored = await this.open(true);
    if (restored === null) {
      const path = setAside(this.options.path, this.options.clock.now());
      this.options.log('error', 'STO-DAMAGED', { path: this.options.path, setAside: path });
      this.stats.damaged.value++;
      restored = await this.open(false);
    }
    if (restored === null) throw new GatewayError('STORE-OPEN', `${this.options.path} cannot be created anew`);
    this.state = 'running';
    // Taking messages is the normal state and no news; not taking them is.
    this.accepting = true;
    this.stats.ok.value = 1;
    this.judge();
    return restored;
  }

  /** Starts a writer and reads everything. Null when the file is damaged and may be set aside. */
  private async open(mayBeDamaged: boolean): Promise<Restored | null> {
    this.restorer = new Restorer();
    const answer = new Promise<Restored | null>((resolve, reject) => {
      this.opening = { resolve, reject };
    });
    this.start(true);
    try {
      const restored = await answer;
      if (restored !== null) return restored;
      await this.dropLink();
      if (mayBeDamaged && this.options.onCorrupt === 'start') return null;
      throw new GatewayError('STORE-OPEN', `${this.options.path} is damaged`);
    } catch (error) {
      await this.dropLink();
      this.state = 'closed';
      throw error;
    } finally {
      this.opening = null;
      this.restorer = null;
    }
  }

  private start(load: boolean): void {
    const { path, maxSize, sync, clock, driver } = this.options;
    const checkpointBytes = Math.max(256 * 1024, Math.min(CHECKPOINT_BYTES, Math.floor(maxSize / 4)));
    const synchronous = sync === 'off' ? 'normal' : 'full';
    this.link = new Link(
      this.options.worker ?? writerUrl(),
      { path, maxSize, synchronous, checkpointBytes, now: clock.now(), load, driver },
      { onMessage: (message) => this.message(message), onDeath: (reason) => this.died(reason) },
    );
  }

  private async dropLink(): Promise<void> {
    const link = this.link;
    this.link = null;
    if (link !== null) await link.stop();
  }

  async close(): Promise<void> {
    if (this.state === 'closed' || this.state === 'closing') return;
    const failing = this.state === 'failing';
    this.state = 'closing';
    this.accepting = false;
    this.timer?.cancel();
    this.retryTimer?.cancel();
    const link = this.link;
    if (link !== null) {
      const drained = new Promise<void>((resolve) => {
        this.drained = resolve;
      });
      const deadline = this.options.clock.after(CLOSE_MS, () => this.drained?.());
      if (failing) link.post({ kind: 'resume' });
      this.drain(link);
      await drained;
      deadline.cancel();
    }
    const lost = this.log.reopen(this.posted);
    this.posted.length = 0;
    for (const hold of lost) hold.done(QUOTA_EXCEEDED);
    if (this.log.length > 0) this.options.log('error', 'STO-LOST', { events: this.log.length });
    await this.dropLink();
    this.state = 'closed';
  }

  /** While closing: sends all that is open, then asks the writer to close. */
  private drain(link: Link): void {
    while (this.log.length > 0 && this.post(link, true, Infinity));
    if (this.posted.length === 0) link.post({ kind: 'close' });
  }

  // ---- what is told

  sessionPut(session: StoredSession): void {
    this.add(SESSION_PUT, this.slot(session.clientId), 0, session);
  }

  sessionDelete(clientId: string): void {
    const slot = this.slots.get(clientId);
    if (slot === undefined) return;
    this.slots.delete(clientId);
    this.lastSlot = null;
    this.add(SESSION_DELETE, slot, 0, null);
    for (const state of slot.states.values()) state.place = GONE;
    slot.states.clear();
    for (const event of [...slot.open()]) {
      if (event.place === OPEN) this.elide(event);
      else {
        event.place = GONE;
        release(event);
      }
    }
  }

  subscriptionPut(clientId: string, subscription: StoredSubscription): void {
    this.add(SUBSCRIPTION_PUT, this.slot(clientId), 0, subscription);
  }

  subscriptionDelete(clientId: string, topicFilter: string): void {
    this.add(SUBSCRIPTION_DELETE, this.slot(clientId), 0, topicFilter);
  }

  messageQueued(clientId: string, entry: StoredMessage): void {
    const slot = this.slot(clientId);
    const event = this.add(QUEUED, slot, entry.sequence, entry);
    event.state = stateNumber(entry.state);
    event.packetId = entry.packetId;
    slot.push(event);
    this.pending(entry.message.bytes);
  }

  messageState(clientId: string, sequence: number, state: QueuedState, packetId: number): void {
    const slot = this.slot(clientId);
    const number = stateNumber(state);
    let event = slot.find(sequence);
    if (event === null || event.place !== OPEN) {
      const told = slot.states.get(sequence);
      event = told !== undefined && told.place === OPEN ? told : this.add(STATE, slot, sequence, null);
      if (event !== told) slot.states.set(sequence, event);
    }
    event.state = number;
    event.packetId = packetId;
    // A QoS 2 exchange goes on only when its step is durable; for QoS 1 "sent" is no more than a hint for DUP.
    if (number === RECEIVED || event.kind === STATE || (event.body as StoredMessage).qos === 2) this.log.touch();
  }

  messageDone(clientId: string, sequence: number): void {
    const slot = this.slot(clientId);
    const event = slot.find(sequence);
    if (event !== null) {
      this.elide(event);
      return;
    }
    const told = slot.states.get(sequence);
    if (told !== undefined) {
      told.place = told.place === OPEN ? GONE : told.place;
      slot.states.delete(sequence);
    }
    this.add(DONE, slot, sequence, null);
  }

  inboundPut(clientId: string, packetId: number): void {
    this.add(INBOUND_PUT, this.slot(clientId), packetId, null);
  }

  inboundDelete(clientId: string, packetId: number): void {
    this.add(INBOUND_DELETE, this.slot(clientId), packetId, null);
  }

  retainedPut(message: Message): void {
    this.pending(message.bytes);
    this.retain(message.topic, RETAINED_PUT, message);
  }

  retainedDelete(topic: string): void {
    this.retain(topic, RETAINED_DELETE, topic);
  }

  /** Of several values for one topic in a batch only the last is written; the barrier of each waits for that one. */
  private retain(topic: string, kind: number, body: Message | string): void {
    const earlier = this.retained.get(topic);
    if (earlier !== undefined && earlier.place === OPEN) {
      earlier.place = GONE;
      this.pendingBytes -= sizeOf(earlier);
    }
    if (earlier === undefined && this.retained.size >= BATCH_EVENTS) this.retained.clear();
    this.retained.set(topic, this.add(kind, null, 0, body));
  }

  willPut(clientId: string, will: StoredWill): void {
    this.add(WILL_PUT, this.slot(clientId), 0, will);
  }

  willDelete(clientId: string): void {
    this.add(WILL_DELETE, this.slot(clientId), 0, null);
  }

  spoolPut(bridge: string, sequence: number, bytes: Uint8Array): void {
    const slot = this.spool(bridge);
    slot.push(this.add(SPOOL_PUT, slot, sequence, bytes));
    this.pending(bytes.length);
  }

  spoolDelete(bridge: string, upToSequence: number): void {
    const slot = this.spool(bridge);
    if (slot.top > slot.deleted) {
      slot.deleted = Math.min(upToSequence, slot.top);
      this.add(SPOOL_DELETE, slot, upToSequence, null);
    }
    for (let event = slot.first(); event !== null && event.sequence <= upToSequence; event = slot.first()) {
      if (event.place === OPEN) this.elide(event);
      else {
        slot.misses = 0;
        event.place = GONE;
        release(event);
      }
    }
  }

  barrier(hold: Hold): void {
    if (!this.waits) return;
    if (this.state !== 'running') {
      hold.add();
      hold.done(QUOTA_EXCEEDED);
      return;
    }
    this.log.barrier(hold, this.posted.length > 0 ? this.posted[this.posted.length - 1] : null);
    if (this.log.urgent) this.hurry();
  }

  // ---- the open log

  private slot(clientId: string): Slot {
    const last = this.lastSlot;
    if (last !== null && last.name === clientId) return last;
    let slot = this.slots.get(clientId);
    if (slot === undefined) {
      slot = new Slot(this.nextSlotId++, clientId, 0);
      this.slots.set(clientId, slot);
    }
    this.lastSlot = slot;
    return slot;
  }

  /** A spool is waited for only once its remote end has proved quick. */
  private spool(bridge: string): Slot {
    let slot = this.spools.get(bridge);
    if (slot === undefined) {
      slot = new Slot(this.nextSpoolId++, bridge, PATIENCE);
      this.spools.set(bridge, slot);
    }
    return slot;
  }

  private add(kind: number, slot: Slot | null, sequence: number, body: Body): Event {
    const event = new Event(kind, slot, sequence, body, this.log.round);
    this.log.add(event);
    this.stats.told++;
    if (this.timer === null) this.arm();
    return event;
  }

  /** Counts bytes that wait; a batch does not wait for its time when they are many. */
  private pending(bytes: number): void {
    this.pendingBytes += bytes;
    if (this.pendingBytes <= EARLY_BYTES) return;
    this.log.urgent = true;
    this.hurry();
    if (this.pendingBytes > BEHIND_BYTES) this.judge();
  }

  /** A session is done with a message that is not committed yet. */
  private elide(event: Event): void {
    const slot = event.slot;
    if (slot !== null) slot.misses = 0;
    if (event.place === OPEN) {
      event.place = GONE;
      this.pendingBytes -= sizeOf(event);
      this.stats.elided++;
    } else if (slot !== null) {
      // If its batch fails it need not be tried again; if not, the row goes with the next batch.
      event.place = GONE;
      this.add(DONE, slot, event.sequence, null);
    }
    release(event);
  }

  /** Closes at the end of this turn, when everything that was read with it has been told. */
  private hurry(): void {
    if (this.immediate) return;
    this.immediate = true;
    setImmediate(() => {
      this.immediate = false;
      this.turn();
    });
  }

  private turn(): void {
    const link = this.link;
    if (this.state !== 'running' || link === null || !this.log.urgent) return;
    const underway = this.posted.length;
    if (underway === 0 || (underway < UNDERWAY && this.log.length >= BATCH_EVENTS)) this.post(link, false, Infinity);
  }

  private arm(): void {
    if (this.state === 'closed' || this.state === 'closing') return;
    const { sync, intervalMs, clock } = this.options;
    const periodMs = sync === 'ack' ? ROUND_MS : sync === 'interval' ? intervalMs : OFF_MS;
    this.timer = clock.after(periodMs, () => this.roundOver());
  }

  private roundOver(): void {
    this.timer = null;
    this.log.round++;
    const link = this.link;
    if (this.state === 'running' && link !== null && this.posted.length < UNDERWAY)
      this.post(link, !this.waits, Infinity);
    if (this.state === 'failing' && this.log.length > this.compactAt) this.compactLog();
    if (this.log.length > 0) this.arm();
  }

  /** Sends what is due. False when nothing was. */
  private post(link: Link, all: boolean, limit: number): boolean {
    const batch = new Batch(++this.serial);
    const frame = new FrameWriter(link.frame());
    if (!this.log.take(frame, batch, all, limit)) {
      // Everything was elided: whoever waited for the batch waits for what is on its way, or for nothing.
      const last = this.posted.length > 0 ? this.posted[this.posted.length - 1] : null;
      for (const hold of batch.holds) {
        if (last === null) hold.done(0);
        else last.holds.push(hold);
      }
      return false;
    }
    batch.postedMs = this.options.clock.mono();
    this.posted.push(batch);
    this.stats.batch(batch.events.length, frame.at);
    link.post({ kind: 'batch', serial: batch.serial, buffer: frame.buffer, bytes: frame.at });
    return true;
  }

  // ---- what the writer answers

  private message(message: FromWriter): void {
    switch (message.kind) {
      case 'pack':
        this.restorer?.add(message.pack);
        return;
      case 'loaded':
        this.loaded();
        return;
      case 'opened':
        this.options.log('info', 'STO-OPEN', { path: this.options.path, driver: message.driver });
        if (this.state === 'failing') this.retry();
        return;
      case 'refused':
        this.refused(message.text, message.damaged);
        return;
      case 'done':
        this.stats.committed(message.applyMs, message.commitMs);
        this.stats.space = message.space;
        this.full = message.space.full;
        this.committed(message.serial);
        return;
      case 'failed':
        this.failed(message.code, message.text);
        return;
      case 'space':
        this.stats.space = message.space;
        this.full = message.space.full;
        this.judge();
        return;
      case 'closed':
        this.drained?.();
    }
  }

  private loaded(): void {
    const restorer = this.restorer;
    if (restorer === null) return;
    for (const [clientId, id] of restorer.sessionIds) {
      const slot = new Slot(id, clientId, 0);
      slot.written = true;
      this.slots.set(clientId, slot);
      if (id >= this.nextSlotId) this.nextSlotId = id + 1;
    }
    const restored = restorer.finish();
    if (restorer.skipped > 0) this.options.log('error', 'STO-ROWS', { rows: restorer.skipped });
    for (const [bridge, entries] of restored.spools) this.spool(bridge).top = entries[entries.length - 1].sequence;
    this.opening?.resolve(restored);
  }

  private refused(text: string, damaged: boolean): void {
    if (this.opening === null) {
      // A writer that was to take the place of another.
      this.complain('error', 'STO-FAILED', { reason: text });
      void this.dropLink().then(() => this.retryLater());
      return;
    }
    if (damaged && this.options.onCorrupt === 'start') this.opening.resolve(null);
    else this.opening.reject(new GatewayError('STORE-OPEN', damaged ? `${text}, and on_corrupt is stop` : text));
  }

  private committed(serial: number): void {
    const batch = this.posted[0];
    if (batch === undefined || batch.serial !== serial) return;
    this.posted.shift();
    batch.underway = false;
    this.stats.latency(this.options.clock.mono() - batch.postedMs);
    for (const event of batch.events) {
      event.place = GONE;
      this.pendingBytes -= sizeOf(event);
      if (event.kind === STATE && event.slot?.states.get(event.sequence) === event)
        event.slot.states.delete(event.sequence);
    }
    if (this.state === 'failing') this.recovering();
    this.judge();
    for (const event of batch.events) release(event);
    for (const hold of batch.holds) hold.done(0);
    if (this.state === 'closing' && this.link !== null) this.drain(this.link);
    else this.turn();
  }

  // ---- when it cannot write

  private failed(code: number, text: string): void {
    if (this.posted.length === 0) return;
    const holds = this.log.reopen(this.posted);
    this.posted.length = 0;
    this.stats.failed.value++;
    this.complain('error', 'STO-FAILED', { code, reason: text });
    if (this.state === 'closing') this.drained?.();
    else {
      this.state = 'failing';
      this.compactLog();
      this.retryLater();
    }
    this.judge();
    for (const hold of holds) hold.done(QUOTA_EXCEEDED);
  }

  private died(reason: string): void {
    this.link = null;
    if (this.opening !== null) {
      this.opening.reject(new GatewayError('STORE-OPEN', `the writer thread failed: ${reason}`));
      return;
    }
    this.complain('error', 'STO-FAILED', { reason: `the writer thread failed: ${reason}` });
    if (this.state === 'closing') this.drained?.();
    if (this.state === 'running') this.state = 'failing';
    const holds = this.log.reopen(this.posted);
    this.posted.length = 0;
    if (this.state === 'failing') {
      this.compactLog();
      this.retryLater();
    }
    this.judge();
    for (const hold of holds) hold.done(QUOTA_EXCEEDED);
  }

  private compactLog(): void {
    this.log.rearrange(compact);
    this.pendingBytes = this.log.sum(sizeOf);
    this.compactAt = Math.max(1000, this.log.length * 2);
  }

  private retryLater(): void {
    this.retryTimer?.cancel();
    this.retryTimer = this.options.clock.after(this.retryMs, () => this.retry());
    this.retryMs = Math.min(RETRY_LAST_MS, this.retryMs * 2);
  }

  /** Tries again: first what makes room, then the rest in pieces. */
  private retry(): void {
    if (this.state !== 'failing' || this.posted.length > 0) return;
    const link = this.link;
    if (link === null) {
      this.start(false);
      return;
    }
    this.compactLog();
    link.post({ kind: 'resume' });
    const freeing = this.log.count(isDeletion);
    if (!this.post(link, true, freeing > 0 ? freeing : BATCH_EVENTS)) this.recovered();
  }

  /** A batch went through while failing: the next piece, or the end of the trouble. */
  private recovering(): void {
    const link = this.link;
    if (link === null) return;
    if (!this.post(link, true, BATCH_EVENTS)) this.recovered();
  }

  private recovered(): void {
    this.state = 'running';
    this.retryMs = RETRY_FIRST_MS;
    this.judge();
  }

  /** Whether new messages may come. */
  private judge(): void {
    if (this.state === 'opening') return;
    const accepting = this.state === 'running' && !this.full && this.pendingBytes <= BEHIND_BYTES;
    if (accepting === this.accepting) return;
    this.accepting = accepting;
    this.stats.ok.value = accepting ? 1 : 0;
    if (this.state !== 'running') return;
    if (accepting) this.options.log('info', 'STO-ROOM', {});
    else this.complain('error', 'STO-FULL', { usedBytes: this.stats.usedBytes, maxBytes: this.options.maxSize });
  }
}

function stateNumber(state: QueuedState): number {
  return state === 'queued' ? WAITING : state === 'sent' ? SENT : RECEIVED;
}

function release(event: Event): void {
  const hold = event.hold;
  if (hold === null) return;
  event.hold = null;
  hold.done(0);
}

/** What an event adds to the bytes that wait for the writer. */
function sizeOf(event: Event): number {
  switch (event.kind) {
    case QUEUED:
      return (event.body as StoredMessage).message.bytes;
    case RETAINED_PUT:
      return (event.body as Message).bytes;
    case SPOOL_PUT:
      return (event.body as Uint8Array).length;
    default:
      return 0;
  }
}
