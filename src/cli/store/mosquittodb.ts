// The database of mosquitto 2.0 and 2.1 (format 6) as a Restored: retained messages, sessions, subscriptions, queues.
// Called by store.ts for a file that begins like one. Pure. Every length is checked before anything is read. Layout,
// read from files that mosquitto 2.0.11 wrote (be/le = byte order):
//   15 bytes magic, 4 crc, be32 version; then chunks: be32 type, be32 length, body
//   2 message       le64 id, le64 expiry, be32 payload, be16 mid, be16 source, be16 user, be16 topic, be16 port,
//                   8 qos, 8 retain; source, user, topic, payload, properties
//   3 client message  le64 id, be16 mid, be16 client, 8 qos, 8 state, 8 retain+dup, 8 direction; client, properties
//   4 retained      le64 id
//   5 subscription  be32 identifier, be16 client, be16 topic, 8 qos, 8 options, 16 padding; client, topic
//   6 client        le64 expiry, be32 expiry interval, be16 mid, be16 client, be16 port, be16 user, 32 padding; texts
import { GatewayError } from '../../base/errors.ts';
import { decodeProperties } from '../../codec/property.ts';
import { Message } from '../../mqtt/message.ts';
import { PUBLISH, type Qos } from '../../mqtt/packet.ts';
import { isTopicFilter, isTopicName, matches, parseShare } from '../../mqtt/topic.ts';
import type { Restored, RestoredSession, StoredMessage, StoredSession, StoredSubscription } from '../../store/store.ts';

export const MAGIC: Buffer = Buffer.from('00b5006d6f7371756974746f206462', 'hex');
const VERSION = 6;
const NEVER = 0xffff_ffff;
/** States of an outgoing message. */
const SENT = new Set([3, 5]);
const RELEASED = new Set([6, 9]);

type Building = RestoredSession & {
  readonly subscriptions: StoredSubscription[];
  readonly queue: StoredMessage[];
  readonly inbound: number[];
};

export interface TimeBase {
  /** Wall-clock and steady milliseconds now. */
  readonly wallMs: number;
  readonly steadyMs: number;
}

export interface ReadDatabase {
  readonly restored: Restored;
  /** Sessions and messages that have expired. */
  readonly expired: number;
}

class Reader {
  private readonly messages = new Map<bigint, Message>();
  private readonly sessions = new Map<string, Building>();
  private readonly retained = new Map<string, Message>();
  private readonly incoming: Message[] = [];
  private readonly time: TimeBase;
  private expired = 0;
  private sequence = 0;

  constructor(time: TimeBase) {
    this.time = time;
  }

  read(bytes: Buffer): ReadDatabase {
    if (bytes.length < 23 || !bytes.subarray(0, 15).equals(MAGIC)) throw new Error('not a database of mosquitto');
    const version = bytes.readUInt32BE(19);
    if (version !== VERSION) throw new Error(`format ${version}; only ${VERSION} is read`);
    const chunks: { type: number; body: Buffer }[] = [];
    for (let at = 23; at < bytes.length; ) {
      if (at + 8 > bytes.length) throw new Error(`cut off at byte ${at}`);
      const length = bytes.readUInt32BE(at + 4);
      if (at + 8 + length > bytes.length) throw new Error(`cut off at byte ${at}`);
      chunks.push({ type: bytes.readUInt32BE(at), body: bytes.subarray(at + 8, at + 8 + length) });
      at += 8 + length;
    }
    // Sessions come before what belongs to them, whatever the order of the file.
    for (const type of [2, 6, 5, 4, 3])
      for (const chunk of chunks) if (chunk.type === type) this.chunk(type, chunk.body);
    for (const message of this.incoming) this.route(message);
    const sessions = [...this.sessions.values()];
    return {
      restored: { sessions, retained: [...this.retained.values()], spools: new Map() },
      expired: this.expired,
    };
  }

  private chunk(type: number, body: Buffer): void {
    if (type === 2) this.message(body);
    else if (type === 6) this.session(body);
    else if (type === 5) this.subscription(body);
    else if (type === 4) this.retain(body);
    else this.queued(body);
  }

  /** Steady milliseconds of a time in seconds; null when it is over, 0 = never. */
  private steady(seconds: bigint): number | null {
    if (seconds === 0n) return 0;
    const leftMs = Number(seconds) * 1000 - this.time.wallMs;
    return leftMs <= 0 ? null : Math.round(this.time.steadyMs + leftMs);
  }

  private message(body: Buffer): void {
    const id = body.readBigUInt64LE(0);
    const [payload, source, user, topic] = [
      body.readUInt32BE(16),
      body.readUInt16BE(22),
      body.readUInt16BE(24),
      body.readUInt16BE(26),
    ];
    const at = 32 + source + user + topic;
    if (at + payload > body.length) throw new Error('a message reaches past its chunk');
    const name = body.toString('utf8', 32 + source + user, at);
    const expiresAt = this.steady(body.readBigInt64LE(8));
    if (expiresAt === null || !isTopicName(name) || name.startsWith('$SYS/')) {
      if (expiresAt === null) this.expired++;
      return;
    }
    const rest = at + payload;
    const properties = rest === body.length ? null : decodeProperties(body, rest, body.length, PUBLISH).properties;
    const seconds = expiresAt === 0 ? 0 : Math.max(1, Math.round((expiresAt - this.time.steadyMs) / 1000));
    const all = seconds === 0 ? properties : { ...properties, messageExpiryInterval: seconds };
    const origin = {
      kind: 'client',
      clientId: body.toString('utf8', 32, 32 + source),
      username: user === 0 ? null : body.toString('utf8', 32 + source, 32 + source + user),
      bridge: null,
      arrival: null,
    } as const;
    const qos = qosOf(body[30]);
    this.messages.set(id, new Message(name, body.subarray(at, rest), qos, body[31] !== 0, all, expiresAt, origin));
  }

  private session(body: Buffer): void {
    const interval = body.readUInt32BE(8);
    const [id, user] = [body.readUInt16BE(14), body.readUInt16BE(18)];
    if (24 + id + user > body.length) throw new Error('a session reaches past its chunk');
    const clientId = body.toString('utf8', 24, 24 + id);
    const ends = interval === NEVER ? Number.POSITIVE_INFINITY : this.steady(body.readBigInt64LE(0));
    if (ends === null) {
      this.expired++;
      return;
    }
    const session: StoredSession = {
      clientId,
      username: user === 0 ? null : body.toString('utf8', 24 + id, 24 + id + user),
      expiresAt: ends === 0 ? Math.round(this.time.steadyMs + interval * 1000) : ends,
      expiryInterval: interval,
      version: 4,
      arrival: null,
      validUntil: 0,
    };
    this.sessions.set(clientId, { session, subscriptions: [], queue: [], inbound: [], will: null });
  }

  private subscription(body: Buffer): void {
    const [id, topic] = [body.readUInt16BE(4), body.readUInt16BE(6)];
    if (12 + id + topic > body.length) throw new Error('a subscription reaches past its chunk');
    const topicFilter = body.toString('utf8', 12 + id, 12 + id + topic);
    const options = body[9];
    if (!isTopicFilter(topicFilter)) throw new Error('a subscription without a topic filter');
    this.sessions.get(body.toString('utf8', 12, 12 + id))?.subscriptions.push({
      topicFilter,
      qos: qosOf(body[8]),
      noLocal: (options & 4) !== 0,
      retainAsPublished: (options & 8) !== 0,
      retainHandling: qosOf((options >> 4) & 3),
      subscriptionIdentifier: body.readUInt32BE(0),
    });
  }

  private retain(body: Buffer): void {
    const message = this.messages.get(body.readBigUInt64LE(0));
    if (message !== undefined && message.payload.length > 0) this.retained.set(message.topic, message);
  }

  private queued(body: Buffer): void {
    const [packetId, id, qos, state, direction] = [
      body.readUInt16BE(8),
      body.readUInt16BE(10),
      qosOf(body[12]),
      body[13],
      body[15],
    ];
    const message = this.messages.get(body.readBigUInt64LE(0));
    const session = this.sessions.get(body.toString('utf8', 16, 16 + id));
    if (message === undefined || session === undefined) return;
    if (direction === 0) {
      // Its PUBREC may have gone: here a message is delivered with it, there with its PUBREL.
      session.inbound.push(packetId);
      this.incoming.push(message);
      return;
    }
    const isOut = qos > 0 && (SENT.has(state) || RELEASED.has(state));
    const word = RELEASED.has(state) ? 'received' : isOut ? 'sent' : 'queued';
    session.queue.push(this.entry(message, qos, word, isOut ? packetId : 0, (body[14] & 0xf0) !== 0));
  }

  private route(message: Message): void {
    for (const session of this.sessions.values()) {
      const found = session.subscriptions.filter(
        ({ topicFilter }) => parseShare(topicFilter) === null && matches(topicFilter, message.topic),
      );
      const qos = found.reduce<Qos>((most, one) => (one.qos > most ? one.qos : most), 0);
      const lowest = qos < message.qos ? qos : message.qos;
      if (found.length > 0) session.queue.push(this.entry(message, lowest, 'queued', 0, false));
    }
    if (message.retain && message.payload.length > 0) this.retained.set(message.topic, message);
  }

  private entry(message: Message, qos: Qos, state: StoredMessage['state'], packetId: number, retain: boolean) {
    const sequence = ++this.sequence;
    return { sequence, message, qos, retain, subscriptionIdentifiers: [], share: null, state, packetId };
  }
}

function qosOf(value: number): Qos {
  if (value === 0 || value === 1 || value === 2) return value;
  throw new Error('a QoS that is none');
}

/** Throws CLI-FAILED for a file that is not whole. */
export function readMosquittoDb(bytes: Buffer, time: TimeBase): ReadDatabase {
  try {
    return new Reader(time).read(bytes);
  } catch (error) {
    const text = error instanceof RangeError ? 'a chunk is cut off' : error instanceof Error ? error.message : '';
    throw new GatewayError('CLI-FAILED', `the database of mosquitto cannot be read: ${text}`, error);
  }
}
