// A remote broker made of nothing but packets, and a bridge to it over memory connections: tests say what the remote answers.
// Used by test/bridge/mqtt*.test.ts. Time is the test's own.
import { Metrics } from '../../src/base/metrics.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool } from '../../src/base/writer.ts';
import { MqttBridge } from '../../src/bridge/mqtt/bridge.ts';
import type { MqttBridgeOptions, MqttForward, MqttParts, MqttSubscription } from '../../src/bridge/mqtt/options.ts';
import { MqttOutbox } from '../../src/bridge/mqtt/outbox.ts';
import { RemoteSession } from '../../src/bridge/mqtt/session.ts';
import { encodeAck } from '../../src/codec/ack.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { decodePacket, encodePacket } from '../../src/codec/packet.ts';
import { decodePublish, encodePublish, newScan } from '../../src/codec/publish.ts';
import { type Hold, Message, Publication } from '../../src/mqtt/message.ts';
import {
  type AckPacket,
  CONNACK,
  CONNECT,
  type ConnectPacket,
  type ControlPacket,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  type Qos,
  SUBACK,
  SUBSCRIBE,
  type SubscribePacket,
  type Version,
} from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import type { RestoredSession, SpoolEntry, StoredSession } from '../../src/store/store.ts';
import { Backoff } from '../../src/transport/backoff.ts';
import { memoryPair } from '../../src/transport/memory.ts';
import type { Connection, DialTarget } from '../../src/transport/transport.ts';
import { FakeClock } from './clock.ts';
import { CLIENT, StubBroker } from './stubbroker.ts';

export interface Received {
  readonly type: number;
  readonly packetId: number;
  readonly topic: string;
  readonly payload: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly dup: boolean;
  readonly properties: Properties | null;
}

type PacketOf<T> = T extends AckPacket['type'] ? AckPacket : Extract<ControlPacket, { type: T }>;

/** One connection as the remote broker sees it. */
export class RemoteCall {
  readonly connect: ConnectPacket;
  readonly version: Version;
  closed = false;
  private readonly connection: Connection;
  private readonly packets: ControlPacket[] = [];
  private readonly publishes: Received[] = [];
  private wake: (() => void)[] = [];

  constructor(connection: Connection, connect: ConnectPacket) {
    this.connection = connection;
    this.connect = connect;
    this.version = connect.version;
  }

  take(packet: ControlPacket | Received): void {
    if (packet.type === PUBLISH) this.publishes.push(packet as Received);
    else this.packets.push(packet as ControlPacket);
    this.look();
  }

  look(): void {
    const wake = this.wake;
    this.wake = [];
    for (const one of wake) one();
  }

  async until(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => this.wake.push(resolve));
  }

  /** The next packet of this type that nobody has asked for yet. */
  async packet<T extends ControlPacket['type']>(type: T): Promise<PacketOf<T>> {
    await this.until(() => this.packets.some((packet) => packet.type === type));
    const at = this.packets.findIndex((packet) => packet.type === type);
    return this.packets.splice(at, 1)[0] as PacketOf<T>;
  }

  async publish(): Promise<Received> {
    await this.until(() => this.publishes.length > 0);
    return this.publishes.shift() as Received;
  }

  async texts(count: number): Promise<string[]> {
    const texts: string[] = [];
    while (texts.length < count) texts.push((await this.publish()).payload);
    return texts;
  }

  /** Nobody has asked for these yet. */
  get unread(): number {
    return this.publishes.length + this.packets.length;
  }

  accept(properties: Properties | null = null, sessionPresent = false, reasonCode = 0): void {
    this.send(encodePacket(this.version, { type: CONNACK, sessionPresent, reasonCode, properties }));
  }

  async grant(reasonCode = 0): Promise<SubscribePacket> {
    const packet = await this.packet(SUBSCRIBE);
    this.send(
      encodePacket(this.version, {
        type: SUBACK,
        packetId: packet.packetId,
        reasonCodes: [reasonCode],
        properties: null,
      }),
    );
    return packet;
  }

  ack(type: AckPacket['type'], packetId: number, reasonCode = 0): void {
    this.send(encodeAck(this.version, type, packetId, reasonCode));
  }

  message(
    topic: string,
    payload: string,
    qos: Qos = 0,
    packetId = 0,
    properties: Properties | null = null,
    dup = false,
  ): void {
    const retain = false;
    const packet = { topic, payload: Buffer.from(payload), qos, retain, dup, packetId, properties };
    this.send(encodePublish(this.version, packet));
  }

  send(bytes: Buffer): void {
    this.connection.write(bytes, () => {});
  }

  /** The connection breaks. */
  drop(): void {
    this.connection.destroy();
  }
}

/** What bridges keep, as a journal would keep it; commits come when the test says so, or at once. */
export class SpoolStub {
  durable = true;
  accepting = true;
  /** Holds wait until commit(). */
  slow = false;
  readonly entries: SpoolEntry[] = [];
  readonly marks: number[] = [];
  readonly inbound = new Set<number>();
  readonly sessions: StoredSession[] = [];
  /** What belongs together, in the order told; tests may add to it. */
  readonly together: string[] = [];
  private waiting: Hold[] = [];

  spoolPut(bridge: string, sequence: number, bytes: Uint8Array): void {
    if (bridge.startsWith('mqtt:')) this.entries.push({ sequence, bytes });
    else this.marks.push(sequence);
  }

  spoolDelete(bridge: string, upTo: number): void {
    const list = bridge.startsWith('mqtt:') ? this.entries.map((entry) => entry.sequence) : this.marks;
    const gone = list.filter((sequence) => sequence <= upTo).length;
    (bridge.startsWith('mqtt:') ? this.entries : this.marks).splice(0, gone);
  }

  sessionPut(session: StoredSession): void {
    this.sessions.push(session);
  }

  sessionDelete(): void {
    this.sessions.length = 0;
    this.inbound.clear();
  }

  inboundPut(_clientId: string, packetId: number): void {
    this.inbound.add(packetId);
    this.together.push(`identifier ${packetId}`);
  }

  inboundDelete(_clientId: string, packetId: number): void {
    this.inbound.delete(packetId);
  }

  gather(on: boolean): void {
    this.together.push(on ? 'begin' : 'end');
  }

  barrier(hold: Hold): void {
    if (!this.slow) return;
    hold.add();
    this.waiting.push(hold);
  }

  barrierAll(hold: Hold): void {
    this.barrier(hold);
  }

  /** What was told so far is on the disk, or (0x97) cannot be put there. */
  commit(reasonCode = 0): void {
    for (const hold of this.waiting.splice(0)) reasonCode === 0 ? hold.done() : hold.unstored(reasonCode);
  }
}

export function mqttForward(localTopic: string, remoteTopic = '', more: Partial<MqttForward> = {}): MqttForward {
  return { localTopic, remoteTopic, qos: null, retain: null, prefix: '', suffix: '', ...more };
}

export function mqttSubscription(
  remoteTopic: string,
  localTopic = '',
  more: Partial<MqttSubscription> = {},
): MqttSubscription {
  return {
    remoteTopic,
    localTopic,
    qos: 1,
    retain: null,
    retainAsPublished: false,
    retainHandling: 0,
    noLocal: true,
    prefix: '',
    suffix: '',
    ...more,
  };
}

export function mqttOptions(more: Partial<MqttBridgeOptions> = {}): MqttBridgeOptions {
  return {
    type: 'mqtt',
    name: 'up',
    enable: true,
    server: 'mqtt-tcp://remote.test:1883',
    hybridServers: [],
    protoVer: 4,
    clientId: 'gw',
    username: null,
    password: null,
    keepaliveMs: 60_000,
    backoffMaxMs: 5000,
    cleanStart: true,
    transparent: false,
    retryQos0: false,
    noLocalV4: true,
    loopGuard: true,
    connProperties: {
      sessionExpiryIntervalSeconds: 0,
      receiveMaximum: 65_535,
      topicAliasMaximum: 0,
      maximumPacketSize: 0,
      requestProblemInformation: true,
      requestResponseInformation: false,
      userProperty: [],
    },
    will: null,
    tls: null,
    tcp: { bindInterface: null },
    forwards: [],
    subscription: [],
    subProperties: { identifier: null, userProperty: [] },
    maxSendQueueLen: 1024,
    maxInflight: 0,
    maxRecvQueueLen: 1024,
    resendIntervalMs: 5000,
    cancelTimeoutMs: 10_000,
    ...more,
  };
}

/** A bridge, the local broker beside it, and the remote that answers its calls. */
export class MqttBench {
  readonly clock = new FakeClock();
  readonly broker = new StubBroker();
  readonly metrics = new Metrics();
  readonly spool = new SpoolStub();
  readonly lines: { id: string; fields: Record<string, unknown> }[] = [];
  readonly targets: DialTarget[] = [];
  /** What the next attempts to connect fail with. */
  readonly refusals: Error[] = [];
  readonly outbox: MqttOutbox;
  readonly bridge: MqttBridge;
  private readonly calls: RemoteCall[] = [];
  private wake: (() => void)[] = [];

  /**
   * @param restored messages that an earlier process has left
   * @param marks which of them the remote had received
   * @param inbound its end of the remote's session
   */
  constructor(
    options: Partial<MqttBridgeOptions> = {},
    restored: readonly SpoolEntry[] = [],
    durable = false,
    marks: readonly number[] = [],
    inbound: RestoredSession | null = null,
  ) {
    this.spool.durable = durable;
    this.spool.entries.push(...restored);
    this.spool.marks.push(...marks);
    for (const packetId of inbound?.inbound ?? []) this.spool.inbound.add(packetId);
    const { clock, metrics } = this;
    const parts: MqttParts = {
      broker: { attach: (local) => this.broker.attach(local), onEvent: () => () => {}, subscriptions: () => [] },
      dial: (target) => this.dialled(target),
      retry: (maxMs) => new Backoff({ clock, random: () => 0, maxMs }),
      journal: this.spool,
      maxPacketSize: () => 1 << 20,
      clock,
      turn: new Turn(),
      pool: new BlockPool(),
      log: (_level, id, fields) => {
        this.lines.push({ id, fields: { ...fields } });
        this.look();
      },
      metrics,
    };
    this.outbox = new MqttOutbox(
      { name: 'mqtt:up', marks: 'mqtt-received:up', journal: this.spool, clock, maxBytes: 1 << 20 },
      restored,
      marks.map((sequence) => ({ sequence, bytes: Buffer.from([1]) })),
    );
    const session = new RemoteSession('\u0001mqtt:up', this.spool, inbound);
    this.bridge = new MqttBridge(mqttOptions(options), parts, { outbox: this.outbox, session });
  }

  /** The next connection of the bridge, after its CONNECT. */
  async call(): Promise<RemoteCall> {
    while (this.calls.length === 0) await new Promise<void>((resolve) => this.wake.push(resolve));
    return this.calls.shift() as RemoteCall;
  }

  /** The next connection, accepted. */
  async connected(properties: Properties | null = null, sessionPresent = false): Promise<RemoteCall> {
    const call = await this.call();
    call.accept(properties, sessionPresent);
    await this.state('connected');
    return call;
  }

  async state(state: string): Promise<void> {
    while (this.bridge.status().state !== state) await new Promise<void>((resolve) => this.wake.push(resolve));
  }

  publish(topic: string, payload: string, qos: Qos = 0, retain = false): ReturnType<StubBroker['publish']> {
    return this.broker.publish(topic, payload, qos, retain);
  }

  dropped(reason: string, rule = 'forwards.0'): number {
    return this.metrics.value('tidegate_bridge_dropped_total', { bridge: 'up', type: 'mqtt', rule, reason }) ?? 0;
  }

  private async dialled(target: DialTarget): Promise<Connection> {
    // As from a network: the answer comes later, and tests may say until then what it is.
    await Promise.resolve();
    this.targets.push(target);
    this.look();
    const refusal = this.refusals.shift();
    if (refusal !== undefined) throw refusal;
    const [ours, theirs] = memoryPair();
    this.serve(theirs);
    return ours;
  }

  private serve(connection: Connection): void {
    const frame = newFrame();
    const scan = newScan();
    const publication = new Publication(CLIENT);
    let call: RemoteCall | null = null;
    let rest = Buffer.alloc(0);
    connection.onData((chunk) => {
      rest = Buffer.concat([rest, chunk]);
      let at = 0;
      while (readFrame(rest, at, rest.length, frame, 1 << 28) === 1) {
        if (call === null) {
          const packet = decodePacket(4, rest, frame, 'client');
          if (packet.type !== CONNECT) throw new Error(`packet type ${packet.type} before CONNECT`);
          call = new RemoteCall(connection, packet);
          this.calls.push(call);
          this.look();
        } else if (frame.type === PUBLISH) {
          decodePublish(rest, frame, call.version, scan, publication);
          const { packetId, topic, qos, retain, dup, properties } = publication;
          const payload = Buffer.from(publication.payload()).toString();
          call.take({ type: PUBLISH, packetId, topic, payload, qos, retain, dup, properties });
        } else call.take(decodePacket(call.version, rest, frame, 'client'));
        at = frame.end;
      }
      rest = rest.subarray(at);
    });
    connection.onClose(() => {
      if (call === null) return;
      call.closed = true;
      call.look();
    });
  }

  private look(): void {
    const wake = this.wake;
    this.wake = [];
    for (const one of wake) one();
  }
}

export function message(topic: string, payload: string, more: { qos?: Qos; expiresAt?: number } = {}): Message {
  return new Message(topic, Buffer.from(payload), more.qos ?? 1, false, null, more.expiresAt ?? 0, CLIENT);
}

export { PUBACK, PUBCOMP, PUBREC };
