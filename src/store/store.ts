// SEAM of store/: what survives the process. The state in memory (session/, router/, delivery/) is the truth while the
// gateway runs; a Journal is told every change and gives it back at the next start. memory.ts forgets, sqlite.ts
// commits in groups. Calls return at once and never throw; what must be durable before it is acknowledged takes part in
// a Hold through barrier(). Contract (test/contract/store.ts): after barrier() has released a hold with 0, load() of a
// new process gives what the barrier covers.
//
// Map (made by `make docs`):
//   apply.ts     Applies a frame of events to the tables: one transaction a batch, rows in groups
//   commit.ts    From the open log to the disk: closes batches, hands them to the writer thread
//   compact.ts   Keeps the open log small while the writer cannot write
//   driver.ts    The one file that knows which SQLite there is: node:sqlite where the running Node has it
//   event.ts     What the journal is told
//   frame.ts     The bytes that carry one batch of events to the writer thread: FrameWriter (main thread) packs
//   header.ts    The first hundred bytes of a database file: whether they can be those of a store
//   inspect.ts   Looks into the file of a store without changing it, whatever its format
//   link.ts      The main thread's end of the writer thread: starts it, hands it frames, passes on what it answers
//   log.ts       The open batch: events told and not yet sent to the writer
//   memory.ts    The journal of a gateway without persistence: it forgets everything and never makes anybody wait
//   note.ts      The row in which the store notes when the gateway was last known to run
//   open.ts      Opens the file of a store: checks what it is and whether it is whole; brings it up to date
//   opening.ts   A start of the store that is under way: collects the packs the writer thread reads
//   options.ts   What a durable journal is built from
//   place.ts     Whether the files of a store are still where they were opened
//   protocol.ts  What the main thread (link.ts) and the writer thread (worker.ts) say to each other
//   restore.ts   Reading a whole store: rows out of the tables in packs of bytes (writer thread), packs into a Restored
//   schema.ts    The tables of a store and how an older file becomes a current one
//   sqlite.ts    The Journal over SQLite
//   stats.ts     The figures of a durable store, declared once in the registry of base/metrics.ts: shown in /metrics
//   time.ts      The time that expiries are measured with, over restarts
//   upkeep.ts    What the writer thread does besides writing: measures the files
//   worker.ts    The writer thread: owns the database file, applies batches one after the other
import type { Arrival, Hold, Message } from '../mqtt/message.ts';
import type { Qos, SubscriptionRequest } from '../mqtt/packet.ts';

export interface StoredSubscription extends SubscriptionRequest {
  readonly subscriptionIdentifier: number;
}

export interface StoredWill {
  readonly message: Message;
  /**
   * Steady milliseconds when it is to be published. Zero or less while the client is connected: minus the milliseconds
   * it has to come back after a restart of the gateway before the will is published.
   */
  readonly dueAt: number;
}

export interface StoredSession {
  readonly clientId: string;
  readonly username: string | null;
  /** Steady milliseconds when it ends, 0 while connected, Infinity = never. */
  readonly expiresAt: number;
  /** Session Expiry Interval in seconds, 0xFFFFFFFF = never. */
  readonly expiryInterval: number;
  readonly version: 3 | 4 | 5;
  /** How its client came when it was last here; null: not known, or nobody has claimed the session yet. */
  readonly arrival: Arrival | null;
  /** Wall-clock milliseconds when what vouched for the client ends, 0 = it does not. */
  readonly validUntil: number;
}

/** State of one outgoing message of a session. */
export type QueuedState = 'queued' | 'sent' | 'received';

export interface StoredMessage {
  /** Position in the session's queue: ascending, never reused in it. */
  readonly sequence: number;
  readonly message: Message;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly subscriptionIdentifiers: readonly number[];
  /**
   * The shared subscription through which it came ($share/<name>/<filter>): it goes to another member when the session
   * ends.
   */
  readonly share: string | null;
  /** 'sent': PUBLISH went out with this packet id; 'received': PUBREC came, PUBREL is due. */
  readonly state: QueuedState;
  readonly packetId: number;
}

export interface RestoredSession {
  readonly session: StoredSession;
  readonly subscriptions: readonly StoredSubscription[];
  readonly queue: readonly StoredMessage[];
  /** Packet ids of QoS 2 publishes that have their PUBREC and not their PUBREL. */
  readonly inbound: readonly number[];
  readonly will: StoredWill | null;
}

/** One frame that a bridge keeps until its remote end has it. */
export interface SpoolEntry {
  /** Ascending in its bridge, never reused while older ones are kept. */
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

export interface Restored {
  readonly sessions: readonly RestoredSession[];
  readonly retained: readonly Message[];
  /** By bridge name, each list ascending by sequence. */
  readonly spools: ReadonlyMap<string, readonly SpoolEntry[]>;
}

export interface Journal {
  /** Whether anything survives: where false, callers need not tell and never wait. */
  readonly durable: boolean;
  /** Opens and reads everything. Throws GatewayError STORE-OPEN when it cannot and policy says not to go on. */
  load(): Promise<Restored>;
  /** After load(): steady milliseconds (base/clock.ts) as they go on from the process before; null: they begin. */
  readonly steadyMs: number | null;
  /** Writes what is left and closes. */
  close(): Promise<void>;

  /** Comes before anything else is told of a client id. */
  sessionPut(session: StoredSession): void;
  /** With its subscriptions, queue, inbound ids and will. */
  sessionDelete(clientId: string): void;
  subscriptionPut(clientId: string, subscription: StoredSubscription): void;
  subscriptionDelete(clientId: string, topicFilter: string): void;
  /**
   * State and packet id are taken now: those of `entry` may change afterwards, each change is told by messageState().
   */
  messageQueued(clientId: string, entry: StoredMessage): void;
  messageState(clientId: string, sequence: number, state: QueuedState, packetId: number): void;
  /**
   * The session needs it no more: acknowledged, dropped or expired. Whoever waits for its commit is released at once,
   * for there is nothing left to store. A message that moves to another session is told there first, and is done here
   * when that is durable.
   */
  messageDone(clientId: string, sequence: number): void;
  /** Told again for a repeated PUBLISH, so that its PUBREC waits as the first one did. */
  inboundPut(clientId: string, packetId: number): void;
  inboundDelete(clientId: string, packetId: number): void;
  retainedPut(message: Message): void;
  retainedDelete(topic: string): void;
  willPut(clientId: string, will: StoredWill): void;
  willDelete(clientId: string): void;
  /** Keeps a frame of a bridge; `bytes` must not change afterwards. */
  spoolPut(bridge: string, sequence: number, bytes: Uint8Array): void;
  /** Forgets the frames of a bridge up to and including `upToSequence` (Infinity: all of them). */
  spoolDelete(bridge: string, upToSequence: number): void;

  /**
   * Takes part in `hold`: done() when what was told since the barrier before this one is durable (a message whose
   * session is done with it counts as durable), unstored(0x97) when it cannot be for now. Where nothing was told since,
   * it covers everything told so far. Never waits for messageDone and spoolDelete: a crash then repeats a delivery and
   * loses nothing.
   */
  barrier(hold: Hold): void;
  /**
   * What is told from here on belongs to one message, barriers in between or not, until its packet id comes
   * (inboundPut) or `on` is false. It is stored together with that packet id. For a message that is published in
   * several parts; ends within the same turn.
   */
  gather(on: boolean): void;
  /**
   * Takes part in `hold`: done() when everything told so far is durable, whatever barriers were called before;
   * unstored(0x97) when it cannot be for now. Leaves alone what the next barrier() covers.
   */
  barrierAll(hold: Hold): void;
  /** False while QoS>0 messages for durable sessions have to be refused: disk full, max_size reached. */
  readonly accepting: boolean;
  /** False while nothing can be written at all: not even a packet id becomes durable. */
  readonly writing: boolean;
}
