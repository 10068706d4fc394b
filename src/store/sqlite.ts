// The Journal over SQLite: turns what it is told into events, and takes back what its session is done with before it is
// written. Built by gateway/gateway.ts when persistence.path is set. Never blocks and never throws after load(): what
// cannot be written stays in memory, is refused a promise (unstored(0x97)) and is written when it can be (commit.ts).
// Architecture: docs/durability.md.
import type { Hold, Message } from '../mqtt/message.ts';
import { BATCH_EVENTS, Committer } from './commit.ts';
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
  release,
  SENT,
  SESSION_DELETE,
  SESSION_PUT,
  Slot,
  SPOOL_DELETE,
  SPOOL_PUT,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
  sizeOf,
  WAITING,
  WILL_DELETE,
  WILL_PUT,
} from './event.ts';
import type { SqliteOptions } from './options.ts';
import type {
  Journal,
  QueuedState,
  Restored,
  StoredMessage,
  StoredSession,
  StoredSubscription,
  StoredWill,
} from './store.ts';

/** The durable journal. */
export function sqliteJournal(options: SqliteOptions): Journal {
  return new SqliteJournal(options);
}

class SqliteJournal implements Journal {
  readonly durable = true;
  steadyMs: number | null = null;
  private readonly options: SqliteOptions;
  private readonly committer: Committer;
  private readonly slots = new Map<string, Slot>();
  private readonly spools = new Map<string, Slot>();
  /** The last value told of a topic, while it may still be open. */
  private readonly retained = new Map<string, Event>();
  private lastSlot: Slot | null = null;
  private nextSlotId = 1;
  /** Only to tell spools apart: their rows go by the bridge's name. */
  private nextSpoolId = 0x8000_0000;

  constructor(options: SqliteOptions) {
    this.options = options;
    this.committer = new Committer(options);
  }

  get accepting(): boolean {
    return this.committer.accepting;
  }

  get writing(): boolean {
    return this.committer.writing;
  }

  async load(): Promise<Restored> {
    const { restorer, steadyMs } = await this.committer.load();
    this.steadyMs = steadyMs;
    for (const [clientId, id] of restorer.sessionIds) {
      const slot = new Slot(id, clientId, 0);
      slot.written = true;
      this.slots.set(clientId, slot);
      if (id >= this.nextSlotId) this.nextSlotId = id + 1;
    }
    const restored = restorer.finish();
    if (restorer.skipped > 0) this.options.log('error', 'STO-ROWS', { rows: restorer.skipped });
    for (const [bridge, entries] of restored.spools) this.spool(bridge).top = entries[entries.length - 1].sequence;
    return restored;
  }

  close(): Promise<void> {
    return this.committer.close();
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
    this.committer.pending(entry.message.bytes);
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
    if (number === RECEIVED || event.kind === STATE || (event.body as StoredMessage).qos === 2)
      this.committer.log.touch();
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
    this.committer.pending(message.bytes);
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
      this.committer.forget(sizeOf(earlier));
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
    this.committer.pending(bytes.length);
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
    this.committer.barrier(hold);
  }

  gather(on: boolean): void {
    this.committer.gather(on);
  }

  barrierAll(hold: Hold): void {
    this.committer.barrierAll(hold);
  }

  // ---- book-keeping

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
    const event = new Event(kind, slot, sequence, body, this.committer.log.round);
    this.committer.add(event);
    return event;
  }

  /** A session is done with a message that is not committed yet. */
  private elide(event: Event): void {
    const slot = event.slot;
    if (slot !== null) slot.misses = 0;
    if (event.place === OPEN) {
      event.place = GONE;
      this.committer.forget(sizeOf(event));
      event.body = null;
      this.committer.stats.elided++;
    } else if (slot !== null) {
      // If its batch fails it need not be tried again; if not, the row goes with the next batch.
      event.place = GONE;
      this.add(DONE, slot, event.sequence, null);
    }
    release(event);
  }
}

function stateNumber(state: QueuedState): number {
  return state === 'queued' ? WAITING : state === 'sent' ? SENT : RECEIVED;
}
