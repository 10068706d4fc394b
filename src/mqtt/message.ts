// An Application Message in its two lives. A Publication is a PUBLISH that is being handled right now: a reusable view
// into the bytes it arrived in, valid until the handler returns. A Message is the copy that outlives them: in flight,
// queued, retained, spooled. Made by session/ (from the wire) and by internal clients; read by router/, delivery/ and
// bridge/.
import { textBytes } from '../base/ledger.ts';
import { SHARE_BYTES, SharedBytes } from '../base/sharedbytes.ts';
import type { Slab } from '../base/slab.ts';
import type { Qos, Version } from './packet.ts';
import { type Properties, propertiesMemory } from './property.ts';
import { skipVarint, varintAt } from './varint.ts';

/**
 * What vouched for a client when it came. `unchecked`: it gave a name and no source of users was configured; `hook`: a
 * function of the embedding program.
 */
export type Via = 'anonymous' | 'unchecked' | 'users' | 'token' | 'http' | 'certificate' | 'hook';

/** Where a client came in and as whom: with its names, what its rights are judged by once it has gone. */
export interface Arrival {
  /** Name of the listener, e.g. "tcp" or "tcp.second". */
  readonly listener: string;
  /** Without port; "" for unix sockets. */
  readonly remoteAddress: string;
  /** The set of users it is one of; absent: the global one, null: not known. A name in two realms is two users. */
  readonly realm?: string | null;
  /** Absent where nothing vouched for it or that is not known. */
  readonly via?: Via;
  /** JSON values that a source of users added; opaque to the others. */
  readonly claims: ReadonlyMap<string, unknown> | null;
}

/** Who sent it, for No Local, ACL at delivery, bridge loops. One object for all messages of a connection. */
export interface Origin {
  readonly kind: 'client' | 'bridge' | 'api' | 'server';
  readonly clientId: string;
  readonly username: string | null;
  /** Name of the bridge for kind 'bridge': nng:<name> or mqtt:<name>. */
  readonly bridge: string | null;
  /** For kind 'client'. Absent or null: not known, and what depends on it is denied. */
  readonly arrival?: Arrival | null;
}

/** The object and the view of its payload. */
const MESSAGE_BYTES = 200;
/** Less that is not its own a payload may hold on to: another buffer costs more. */
const SHARED_SLACK_BYTES = 128;

/** Longer names of a publisher are counted with each message: they stay as long as it does. */
const LONG_CHARACTERS = 256;

function longNames({ clientId, username }: Origin): number {
  const id = clientId.length > LONG_CHARACTERS ? textBytes(clientId) : 0;
  return username !== null && username.length > LONG_CHARACTERS ? id + textBytes(username) : id;
}

/** Immutable once made but for its holders; shared by every receiver. */
export class Message {
  readonly topic: string;
  /** The same bytes always, if not in the same place (settle). */
  payload: Uint8Array;
  /** QoS and RETAIN as published; receivers lower and clear them by their subscription. */
  readonly qos: Qos;
  readonly retain: boolean;
  /** Without Topic Alias and Subscription Identifier; null when there are none. */
  readonly properties: Properties | null;
  /** Steady milliseconds (base/clock.ts) when it expires, 0 = never [MQTT-3.3.2-5]. */
  readonly expiresAt: number;
  readonly origin: Origin;
  /** Memory it stands for, properties and topic included. */
  readonly bytes: number;
  /** Queues and windows that hold it: its memory counts once. */
  holders = 0;

  constructor(
    topic: string,
    payload: Uint8Array,
    qos: Qos,
    retain: boolean,
    properties: Properties | null,
    expiresAt: number,
    origin: Origin,
  ) {
    this.topic = topic;
    this.payload = payload;
    this.qos = qos;
    this.retain = retain;
    this.properties = properties;
    this.expiresAt = expiresAt;
    this.origin = origin;
    this.bytes = payload.length + textBytes(topic) + propertiesMemory(properties) + longNames(origin) + MESSAGE_BYTES;
  }

  /** It will be kept for an unknown time: its payload lets go of the memory that it shares with others. */
  settle(): void {
    const { payload } = this;
    if (payload.buffer.byteLength <= payload.length + SHARED_SLACK_BYTES) return;
    this.payload = new Uint8Array(payload);
  }
}

/**
 * Something the acknowledgement of a publish has to wait for: a commit, or room in a peer's queue. add() before each
 * wait, done() after it; when all are done, the callbacks run once with 0 or the worst reason code given.
 */
export class Hold {
  /**
   * A receiver has not taken the message: it has to come again. False while a failure means only that it is not on the
   * disk yet.
   */
  refused = false;
  private waits = 0;
  private reasonCode = 0;
  private settle: ((reasonCode: number) => void) | null = null;

  add(): void {
    this.waits++;
  }

  done(reasonCode = 0): void {
    if (reasonCode >= 0x80) this.refused = true;
    this.settled(reasonCode);
  }

  /**
   * In the place of done(): what was to be stored is still in memory, in its order, and is stored as soon as that is
   * possible.
   */
  unstored(reasonCode: number): void {
    this.settled(reasonCode);
  }

  private settled(reasonCode: number): void {
    if (reasonCode > this.reasonCode) this.reasonCode = reasonCode;
    if (--this.waits === 0 && this.settle !== null) {
      const settle = this.settle;
      this.settle = null;
      settle(this.reasonCode);
    }
  }

  get open(): boolean {
    return this.waits > 0;
  }

  /** The worst reason code so far. */
  get outcome(): number {
    return this.reasonCode;
  }

  /** Calls `settle` when all waits are done: at once if they are. Several are called in their order. */
  whenDone(settle: (reasonCode: number) => void): void {
    const before = this.settle;
    if (this.waits === 0) settle(this.reasonCode);
    else if (before === null) this.settle = settle;
    else {
      this.settle = (reasonCode) => {
        before(reasonCode);
        settle(reasonCode);
      };
    }
  }
}

const NOTHING = new Uint8Array(0);

/** Finds the text of a Topic Name by its bytes, buffer[start, end), which have been checked. */
export interface TopicNames {
  nameAt(buffer: Uint8Array, start: number, end: number): string;
}

/** A PUBLISH being handled. Fields are set by whoever reads it; receivers copy what they keep. */
export class Publication {
  topic = '';
  /** The topic in UTF-8, when whoever publishes has it at hand: encoders copy it. */
  topicUtf8: Uint8Array | null = null;
  qos: Qos = 0;
  retain = false;
  dup = false;
  packetId = 0;
  properties: Properties | null = null;
  /** Steady milliseconds, 0 = never. */
  expiresAt = 0;
  /** payload = buffer[payloadStart, payloadEnd). */
  buffer: Uint8Array = NOTHING;
  payloadStart = 0;
  payloadEnd = 0;
  /**
   * The whole packet as received is buffer[packetStart, payloadEnd) when its topic and properties may go out as they
   * are to a client of the same form (`wireVersion` 5 or not 5); -1 when not. DUP, RETAIN and Packet Identifier (at
   * packetIdAt, 0 at QoS 0) are the reader's to set.
   */
  packetStart = -1;
  packetIdAt = 0;
  wireVersion: Version = 4;
  /** `buffer` where nobody writes to it any more: what is large is sent and kept from where it lies. */
  shared: SharedBytes | null = null;
  /** Set while this is a run whose packets have different topics: step() then finds the topic too. */
  names: TopicNames | null = null;
  /** Set by whoever told the journal of it: the acknowledgement then waits for the commit. */
  stored = false;
  /**
   * Accepted before (a will, a message of a member that has gone): a store that takes nothing new takes it all the
   * same.
   */
  promised = false;
  origin: Origin;
  private kept: Message | null = null;
  private waiting: Hold | null = null;

  /** Where copies of payloads lie; without one each is made by itself. */
  private readonly slab: Slab | null;

  constructor(origin: Origin, slab: Slab | null = null) {
    this.origin = origin;
    this.slab = slab;
  }

  /** Must be called before the fields are set for the next PUBLISH. */
  reset(): void {
    this.kept = null;
    this.waiting = null;
    this.stored = false;
    this.promised = false;
    this.topicUtf8 = null;
    this.packetStart = -1;
    this.properties = null;
    this.expiresAt = 0;
    this.names = null;
    this.shared = null;
  }

  /**
   * `shared` when the payload is most of it, and large: not for the messages of a run, nor for what is little beside
   * its properties.
   */
  get large(): SharedBytes | null {
    const { shared } = this;
    const bytes = this.payloadEnd - this.payloadStart;
    return shared !== null && bytes >= SHARE_BYTES && bytes * 2 >= shared.bytes.length ? shared : null;
  }

  /**
   * Copies a large payload, with the packet around it, for all who are going to send or keep it. True when it was
   * copied: the caller says then when it is handled.
   */
  share(): boolean {
    if (this.shared !== null || this.payloadEnd - this.payloadStart < SHARE_BYTES) return false;
    const start = this.packetStart < 0 ? this.payloadStart : this.packetStart;
    this.move(start, this.payloadEnd);
    if (this.packetStart >= 0) this.packetStart = 0;
    this.packetIdAt -= start;
    this.payloadStart -= start;
    this.payloadEnd -= start;
    return true;
  }

  /** The same for a run of packets, buffer[start, end). It then begins at 0. */
  shareRun(start: number, end: number): boolean {
    if (this.shared !== null || end - start < SHARE_BYTES) return false;
    this.move(start, end);
    this.step(0);
    return true;
  }

  /**
   * Makes this the view of the packet at `at`, one of a run of whole QoS 0 PUBLISH packets without properties; returns
   * the offset behind it. The run was checked when it was read (layout: codec/publish.ts).
   */
  step(at: number): number {
    const buffer = this.buffer;
    const o = skipVarint(buffer, at + 1);
    const end = o + varintAt(buffer, at + 1);
    this.kept = null;
    this.packetStart = at;
    const topicEnd = o + 2 + ((buffer[o] << 8) | buffer[o + 1]);
    if (this.names !== null) this.topic = this.names.nameAt(buffer, o + 2, topicEnd);
    this.payloadStart = topicEnd + (this.wireVersion === 5 ? 1 : 0);
    this.payloadEnd = end;
    return end;
  }

  /** The payload as a view that is valid only now. */
  payload(): Uint8Array {
    return this.buffer.subarray(this.payloadStart, this.payloadEnd);
  }

  /** The copy that outlives the chunk: made at the first call, shared by all who ask. */
  message(): Message {
    if (this.kept === null) {
      const bytes = this.payloadEnd - this.payloadStart;
      const { slab } = this;
      const { large } = this;
      large?.keep();
      const payload =
        large !== null
          ? this.payload()
          : slab === null
            ? Buffer.from(this.payload())
            : slab.copy(this.buffer, this.payloadStart, bytes);
      this.kept = new Message(this.topic, payload, this.qos, this.retain, this.properties, this.expiresAt, this.origin);
    }
    return this.kept;
  }

  private move(start: number, end: number): void {
    const { slab, buffer } = this;
    this.shared = slab?.share(buffer, start, end) ?? new SharedBytes(Buffer.from(buffer.subarray(start, end)));
    this.buffer = this.shared.bytes;
  }

  /** Gives it other properties; the bytes it came in are not passed on any more. */
  replaceProperties(properties: Properties): void {
    this.properties = properties;
    this.packetStart = -1;
    this.kept = null;
  }

  /** What the acknowledgement waits for; asking for it makes it. */
  hold(): Hold {
    if (this.waiting === null) this.waiting = new Hold();
    return this.waiting;
  }

  /** The hold if somebody asked for one. */
  get held(): Hold | null {
    return this.waiting;
  }

  /** Makes this the view of a stored message. */
  load(message: Message): void {
    this.reset();
    this.topic = message.topic;
    this.qos = message.qos;
    this.retain = message.retain;
    this.dup = false;
    this.properties = message.properties;
    this.expiresAt = message.expiresAt;
    this.buffer = message.payload;
    this.payloadStart = 0;
    this.payloadEnd = message.payload.length;
    if (message.payload.length >= SHARE_BYTES && Buffer.isBuffer(message.payload))
      this.shared = new SharedBytes(message.payload);
    this.origin = message.origin;
    this.kept = message;
  }
}
