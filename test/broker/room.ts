// A native broker with clients that speak packets: connections inside the process, a clock that stands still, a journal at hand.
// Used by test/broker, test/session, test/delivery. Everything a test does not name is as a plain broker has it.
import type { Absentees, Access, Authenticator, Authorizer, Identity } from '../../src/auth/auth.ts';
import type { AccessControl } from '../../src/auth/chain.ts';
import type { Fields, Level } from '../../src/base/log.ts';
import type { MsgId } from '../../src/base/messages.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool } from '../../src/base/writer.ts';
import type { EngineOptions } from '../../src/broker/base.ts';
import { NativeBroker } from '../../src/broker/native/engine.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { decodePacket, encodePacket } from '../../src/codec/packet.ts';
import { decodePublish, encodePublish, newScan } from '../../src/codec/publish.ts';
import { Publication } from '../../src/mqtt/message.ts';
import {
  type AckPacket,
  CONNACK,
  CONNECT,
  type ConnackPacket,
  type ConnectPacket,
  type ControlPacket,
  DISCONNECT,
  PINGREQ,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  type Qos,
  SUBACK,
  SUBSCRIBE,
  type SubackPacket,
  type SubscriptionRequest,
  type Version,
} from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import type { Policies, Quotas } from '../../src/policy/policy.ts';
import type { SessionLimits } from '../../src/session/session.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import type { Journal } from '../../src/store/store.ts';
import { memoryPair } from '../../src/transport/memory.ts';
import type { Connection } from '../../src/transport/transport.ts';
import { FakeClock } from '../harness/clock.ts';

const LIMITS: SessionLimits = {
  maxPacketSize: 1 << 20,
  maxConnectSize: 65_536,
  maxTopicAlias: 10,
  keepaliveMultiplier: 1.5,
  maxKeepaliveSeconds: 0,
  maxAwaitingRel: 100,
  maxSessionExpiryMs: 0,
  maxQos: 2,
  retainAvailable: true,
  wildcardAvailable: true,
  sharedAvailable: true,
  maxTopicLevels: 128,
  maxPayloadSize: 0,
  clientIdPrefix: '',
  maxSessions: 0,
  maxSubscriptions: 0,
  maxTotalSubscriptions: 0,
  retained: { messages: 0, bytes: 0 },
  sendTimeoutMs: 30_000,
  checkRetainSource: false,
  sessionOwner: 'user',
  maxConnectRate: 0,
  maxPendingConnections: 0,
  memoryBudget: 0,
  keptBudget: 0,
  maxMatching: 0,
  outbox: { inflight: 100, queueLength: 1000, queueBytes: 0, queueQos0: false, writeBuffer: 1 << 20, topicAliases: 0 },
};

export type RoomLimits = Partial<Omit<SessionLimits, 'outbox'>> & {
  readonly outbox?: Partial<SessionLimits['outbox']>;
};

export interface RoomOptions {
  readonly limits?: RoomLimits;
  readonly journal?: Journal;
  readonly authorizer?: Partial<Authorizer>;
  readonly authenticator?: Authenticator;
  readonly denyAction?: Access['denyAction'];
  readonly vouches?: Access['vouches'];
  /** How clients that are not here are judged; as everybody unless given. */
  readonly absentees?: Absentees;
  /** Real rights, by listener, in the place of all of the above. */
  readonly control?: AccessControl;
  readonly sysIntervalMs?: number;
  readonly clock?: FakeClock;
  readonly policies?: Policies | null;
  /** Built on the room's own metrics. */
  readonly quotas?: (metrics: Metrics) => Quotas;
  /** Another engine in the place of the native one, for tests that ask only what the seam has. */
  readonly engine?: (options: EngineOptions) => NativeBroker;
}

export interface Delivered {
  readonly type: typeof PUBLISH;
  readonly topic: string;
  readonly payload: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly dup: boolean;
  readonly packetId: number;
  readonly properties: Properties | null;
  /** Bytes of the whole packet. */
  readonly bytes: number;
}

export type Came = Delivered | ControlPacket;
/** The packet of a type; the four acknowledgements are of one kind. */
type Packet<T> = T extends AckPacket['type'] ? AckPacket : Extract<ControlPacket, { type: T }>;

interface More {
  readonly retain?: boolean;
  readonly dup?: boolean;
  readonly packetId?: number;
  readonly properties?: Properties;
}

interface Coming {
  readonly expiry?: number;
  readonly listener?: string;
  readonly remoteAddress?: string;
}

const PATIENCE_MS = 5000;
const NOBODY = { kind: 'server', clientId: '', username: null, bridge: null } as const;

export class Room {
  readonly broker: NativeBroker;
  readonly clock: FakeClock;
  readonly metrics = new Metrics();
  readonly log: { level: Level; id: MsgId; fields?: Fields }[] = [];
  readonly pool = new BlockPool();
  /** Rights as they are now; change it and raise its version. */
  readonly authorizer: { -readonly [K in keyof Authorizer]: Authorizer[K] };
  private readonly access: Access;
  private readonly control: AccessControl | null;

  constructor(options: RoomOptions) {
    this.clock = options.clock ?? new FakeClock();
    this.control = options.control ?? null;
    this.authorizer = {
      version: 1,
      publish: () => true,
      subscribe: () => true,
      deliver: () => true,
      explain: () => ({ allowed: true, rule: 'test' }),
      ...options.authorizer,
    };
    const everybody: Authenticator = {
      authenticate: ({ clientId, username, remoteAddress, listener }) => {
        const identity: Identity = { clientId, username, remoteAddress, listener, claims: null, internal: false };
        return { accepted: true, identity };
      },
    };
    this.access = {
      realm: '',
      vouches: (identity) => options.vouches?.(identity) ?? true,
      authenticator: options.authenticator ?? everybody,
      authorizer: this.authorizer,
      enhanced: [],
      denyAction: options.denyAction ?? 'ignore',
    };
    const { outbox, ...others } = options.limits ?? {};
    const parts: EngineOptions = {
      clock: this.clock,
      resumeTime: (steadyMs) => this.clock.resume(steadyMs),
      turn: new Turn(),
      pool: this.pool,
      log: (level, id, fields) => this.log.push({ level, id, fields }),
      metrics: this.metrics,
      journal: options.journal ?? memoryJournal(),
      limits: { ...LIMITS, ...others, outbox: { ...LIMITS.outbox, ...outbox } },
      localAccess: () => options.control?.access('') ?? this.access,
      absentees: options.control?.absentees ?? options.absentees ?? { access: () => this.access, realmOf: () => '' },
      policies: options.policies,
      quotas: options.quotas?.(this.metrics),
      sys: { version: 'test', intervalMs: options.sysIntervalMs ?? 0, more: () => [] },
    };
    this.broker = options.engine?.(parts) ?? new NativeBroker(parts);
  }

  /** A connection that has said nothing yet. */
  open(version: Version = 5, listener = 'test', remoteAddress = ''): RoomClient {
    const [near, far] = memoryPair();
    Object.defineProperty(far, 'remoteAddress', { value: remoteAddress });
    const client = new RoomClient(near, version);
    this.accept(far, listener);
    return client;
  }

  accept(connection: Connection, listener = 'test'): void {
    const access = (): Access => this.control?.access(listener) ?? this.access;
    this.broker.accept(connection, { name: listener, connectTimeoutMs: 10_000, access });
  }

  /** A connection whose CONNECT has been answered with success. */
  async client(clientId: string, how: Partial<ConnectPacket> & Coming = {}): Promise<RoomClient> {
    const { listener, remoteAddress, ...more } = how;
    const client = this.open(more.version ?? 5, listener, remoteAddress);
    client.connect(clientId, more);
    const connack = await client.packet(CONNACK);
    if (connack.reasonCode !== 0) throw new Error(`CONNACK ${connack.reasonCode}`);
    client.present = connack.sessionPresent;
    client.connack = connack;
    return client;
  }

  /** A counter or gauge as /metrics would show it. */
  metric(name: string, labels: Record<string, string> = {}): number {
    const value = this.metrics.value(`tidegate_${name}`, labels);
    if (value === undefined) throw new Error(`no metric ${name}`);
    return value;
  }

  async advance(ms: number): Promise<void> {
    await settled();
    await this.clock.advanceAsync(ms);
  }

  stop(): Promise<void> {
    return this.broker.stop(0);
  }
}

/** Lets what was written before be read. */
export async function settled(turns = 6): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export async function openRoom(options: RoomOptions = {}): Promise<Room> {
  const room = new Room(options);
  await room.broker.start();
  return room;
}

export class RoomClient {
  readonly version: Version;
  readonly connection: Connection;
  present = false;
  connack: ConnackPacket | null = null;
  /** Bytes of the packet that next() gave last. */
  lastBytes = 0;
  /** Of the message that next() gave last. */
  lastPayload: Buffer = Buffer.alloc(0);
  closed = false;
  private rest: Buffer = Buffer.alloc(0);
  private chunks: Buffer[] = [];
  private readonly frame = newFrame();
  private wake: (() => void) | null = null;
  private nextPacketId = 1;

  constructor(connection: Connection, version: Version) {
    this.connection = connection;
    this.version = version;
    connection.onData((chunk) => {
      this.chunks.push(Buffer.from(chunk));
      this.wake?.();
    });
    connection.onClose(() => {
      this.closed = true;
      this.wake?.();
    });
  }

  // ---- what it sends

  raw(bytes: Buffer | string): void {
    this.connection.write(typeof bytes === 'string' ? Buffer.from(bytes.replaceAll(' ', ''), 'hex') : bytes, () => {});
  }

  send(packet: ControlPacket): void {
    this.raw(encodePacket(this.version, packet));
  }

  connect(clientId: string, more: Partial<ConnectPacket> & { expiry?: number } = {}): void {
    const { expiry, properties, ...others } = more;
    const all = expiry === undefined ? (properties ?? null) : { ...properties, sessionExpiryInterval: expiry };
    this.send({
      type: CONNECT,
      version: this.version,
      bridge: false,
      clientId,
      cleanStart: expiry === undefined,
      keepAlive: 0,
      username: null,
      password: null,
      will: null,
      properties: all,
      ...others,
    });
  }

  async subscribe(
    topicFilter: string,
    qos: Qos = 0,
    more: Partial<SubscriptionRequest> & { subscriptionIdentifier?: number } = {},
  ): Promise<number> {
    const { subscriptionIdentifier, ...options } = more;
    const request = {
      topicFilter,
      qos,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0 as const,
      ...options,
    };
    const properties =
      subscriptionIdentifier === undefined ? null : { subscriptionIdentifiers: [subscriptionIdentifier] };
    this.send({ type: SUBSCRIBE, packetId: 60_000, subscriptions: [request], properties });
    const suback = (await this.packet(SUBACK)) as SubackPacket;
    return suback.reasonCodes[0];
  }

  /** Sends a PUBLISH; gives its packet id. */
  publish(topic: string, payload: string | Buffer, qos: Qos = 0, more: More = {}): number {
    const packetId = more.packetId ?? (qos === 0 ? 0 : this.nextPacketId++);
    this.raw(this.publishBytes(topic, payload, qos, { ...more, packetId }));
    return packetId;
  }

  /** The bytes of a PUBLISH, for many in one write. */
  publishBytes(topic: string, payload: string | Buffer, qos: Qos, more: More = {}): Buffer {
    const { retain = false, dup = false, packetId = 0, properties = null } = more;
    return encodePublish(this.version, {
      topic,
      payload: Buffer.from(payload),
      qos,
      retain,
      dup,
      packetId,
      properties,
    });
  }

  /** Publishes and waits for the end of the exchange; gives the reason code of PUBACK or PUBREC. */
  async published(
    topic: string,
    payload: string | Buffer,
    qos: 1 | 2,
    more: { retain?: boolean; properties?: Properties } = {},
  ): Promise<number> {
    const packetId = this.publish(topic, payload, qos, more);
    const answer = (await this.packet(qos === 1 ? PUBACK : PUBREC)) as AckPacket;
    if (answer.packetId !== packetId) throw new Error(`answer for ${answer.packetId}`);
    if (qos === 1 || answer.reasonCode >= 0x80) return answer.reasonCode;
    this.ack(PUBREL, packetId);
    await this.packet(PUBCOMP);
    return answer.reasonCode;
  }

  ack(type: AckPacket['type'], packetId: number, reasonCode = 0): void {
    this.send({ type, packetId, reasonCode, properties: null });
  }

  disconnect(reasonCode = 0, properties: Properties | null = null): void {
    this.send({ type: DISCONNECT, reasonCode, properties });
  }

  /** The connection is lost without a word. */
  async drop(): Promise<void> {
    this.connection.destroy(true);
    await settled();
  }

  // ---- what it gets

  /** The next packet, null when the broker has closed. */
  async next(): Promise<Came | null> {
    for (;;) {
      if (this.chunks.length > 0) this.rest = Buffer.concat([this.rest, ...this.chunks.splice(0)]);
      if (readFrame(this.rest, 0, this.rest.length, this.frame, Number.POSITIVE_INFINITY) === 1) return this.take();
      if (this.closed) return null;
      await this.more();
    }
  }

  /** The next packet, which must be of this type. */
  async packet<T extends ControlPacket['type']>(type: T): Promise<Packet<T>> {
    const packet = await this.next();
    if (packet === null || packet.type !== type)
      throw new Error(`got ${JSON.stringify(packet)} instead of type ${type}`);
    return packet as Packet<T>;
  }

  /** The next message; acknowledged to the end unless `ack` is false. */
  async message(ack = true): Promise<Delivered> {
    const packet = await this.next();
    if (packet === null || packet.type !== PUBLISH)
      throw new Error(`got ${JSON.stringify(packet)} instead of a message`);
    if (!ack || packet.qos === 0) return packet;
    this.ack(packet.qos === 1 ? PUBACK : PUBREC, packet.packetId);
    if (packet.qos === 2) {
      await this.packet(PUBREL);
      this.ack(PUBCOMP, packet.packetId);
    }
    return packet;
  }

  /** All messages that come before the answer to a PINGREQ; QoS 1 ones are acknowledged. */
  async messages(): Promise<Delivered[]> {
    this.send({ type: PINGREQ });
    const found: Delivered[] = [];
    for (;;) {
      const packet = await this.next();
      if (packet === null) throw new Error('closed');
      if (packet.type === PINGRESP) return found;
      if (packet.type !== PUBLISH) continue;
      found.push(packet);
      if (packet.qos === 1) this.ack(PUBACK, packet.packetId);
    }
  }

  /** Reads so many messages of QoS 0; gives how many of the packets that came were messages. */
  async messagesCount(count: number): Promise<number> {
    let messages = 0;
    for (let n = 0; n < count; n++) if ((await this.next())?.type === PUBLISH) messages++;
    return messages;
  }

  /** Packets that are here and have not been read. */
  async arrived(): Promise<number> {
    if (this.chunks.length > 0) this.rest = Buffer.concat([this.rest, ...this.chunks.splice(0)]);
    let count = 0;
    for (let at = 0; readFrame(this.rest, at, this.rest.length, this.frame, Number.POSITIVE_INFINITY) === 1; count++)
      at = this.frame.end;
    return count;
  }

  /** Everything until the broker closes. */
  async untilClosed(): Promise<Came[]> {
    const found: Came[] = [];
    for (;;) {
      const packet = await this.next();
      if (packet === null) return found;
      found.push(packet);
    }
  }

  private take(): Came {
    const { rest, frame, version } = this;
    this.lastBytes = frame.end;
    this.rest = rest.subarray(frame.end);
    if (frame.type !== PUBLISH) return decodePacket(version, rest, frame, 'server');
    const publication = new Publication(NOBODY);
    decodePublish(rest, frame, version, newScan(), publication);
    const { topic, qos, retain, dup, packetId, properties } = publication;
    this.lastPayload = Buffer.from(publication.payload());
    const payload = this.lastPayload.toString();
    return { type: PUBLISH, topic, payload, qos, retain, dup, packetId, properties, bytes: frame.end };
  }

  private async more(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error('the broker says nothing')), PATIENCE_MS);
      this.wake = resolve;
    });
    clearTimeout(timer);
    this.wake = null;
  }
}
