// One connection to a remote broker, from CONNECT to its end: the client's side of MQTT over a Connection that is open
// already. Made by bridge.ts for each attempt. Knows packets, limits the remote has told, keep alive; knows no rules,
// no queue, no retries. A message of the remote is acknowledged when it is accepted here, in the order received
// [MQTT-4.6.0-2] [MQTT-4.6.0-3]. Sources: MQTT 5.0 and 3.1.1 chapters 3 and 4; 3.1 for version 3.
import type { Timer } from '../../base/clock.ts';
import { errorText, ProtocolError } from '../../base/errors.ts';
import { Writer } from '../../base/writer.ts';
import { PacketCutter } from '../../codec/cutter.ts';
import { checkFrame, decodePacket, encodePacket } from '../../codec/packet.ts';
import { encodedPropertiesBytes } from '../../codec/property.ts';
import { decodePublish, newScan, type PublishParts, publishBytes, writePublish } from '../../codec/publish.ts';
import { Publication } from '../../mqtt/message.ts';
import {
  type AckPacket,
  CONNACK,
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
  type SubscriptionRequest,
  UNSUBACK,
  UNSUBSCRIBE,
} from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { PROTOCOL_ERROR, reasonText } from '../../mqtt/reason.ts';
import type { CloseReason, Connection } from '../../transport/transport.ts';
import { RemoteAcks } from './acks.ts';
import { connackText, subscribePacket } from './connect.ts';
import { type Receiving, RemoteInbox } from './inbox.ts';
import type { MqttBridgeOptions, MqttParts } from './options.ts';
import { type Outgoing, type OutLink, PUBLISH_IDS } from './outmessage.ts';
import { Pulse } from './pulse.ts';
import { Requests } from './requests.ts';
import type { RemoteSession } from './session.ts';

/** Bytes that may be unsent: QoS 0 is dropped beyond, the others wait. */
const WRITE_BUFFER = 4 * 1024 * 1024;
/** How often time is looked at. */
const TICK_MS = 250;
const ORIGIN = { kind: 'bridge', clientId: '', username: null, bridge: null } as const;
/** The longest packet MQTT has, where there is no other limit. */
const MAX_PACKET = 268_435_460;
const NOTHING = Buffer.alloc(0);

/**
 * refused: CONNACK said no. protocol: it broke the protocol. cut: closed by it or by the network. lost: anything else.
 */
export type EndKind = 'refused' | 'protocol' | 'cut' | 'lost';

export interface RemoteUser extends Receiving {
  /** The remote has let the bridge in. `present`: it has kept the session. */
  opened(connack: ConnackPacket, present: boolean): void;
  acknowledged(type: AckPacket['type'], packetId: number, reasonCode: number): void;
  /** Everything that came in one piece has been handled, or bytes have left: more may be sent. */
  ready(): void;
  /** Whether something that was sent is not acknowledged yet. */
  waits(): boolean;
  /** Called once, unless close() was called before. */
  ended(kind: EndKind, reason: string): void;
}

export class Remote implements OutLink {
  /** What the remote takes; known after CONNACK. */
  receiveMaximum: number | null = null;
  maximumPacketSize = Number.POSITIVE_INFINITY;
  maximumQos: Qos = 2;
  retainAvailable = true;
  identifiersAvailable = false;
  readonly name: string;
  private readonly options: MqttBridgeOptions;
  private readonly parts: MqttParts;
  private readonly user: RemoteUser;
  private readonly connection: Connection;
  private readonly writer: Writer;
  /** What outlives the connection. */
  private readonly session: RemoteSession;
  private state: 'connecting' | 'open' | 'closed' = 'connecting';
  private timer: Timer | null = null;
  private readonly startedMs: number;
  private readonly pulse: Pulse;
  private readonly cutter: PacketCutter;
  private readonly scan = newScan();
  private readonly publication = new Publication(ORIGIN);
  private readonly inbox: RemoteInbox;
  private readonly acks: RemoteAcks;
  private readonly requests = new Requests();
  private readonly onPacket = (buffer: Buffer): boolean => this.packet(buffer);
  private readonly out: PublishParts;

  constructor(
    connection: Connection,
    options: MqttBridgeOptions,
    parts: MqttParts,
    session: RemoteSession,
    user: RemoteUser,
  ) {
    this.connection = connection;
    this.options = options;
    this.parts = parts;
    this.user = user;
    this.session = session;
    this.name = connection.remote;
    this.writer = new Writer(parts.turn, parts.pool, connection, () => this.user.ready());
    this.acks = new RemoteAcks(this.writer, {
      version: options.protoVer,
      most: options.maxRecvQueueLen,
      pause: (paused) => (paused ? connection.pause() : connection.resume()),
      unkept: (packetId, reasonCode, refused) => {
        // The remote sends it again: a message that is in memory is not to be taken a second time.
        if (refused) session.refused(packetId);
        this.fail('lost', `a message of the remote broker could not be kept, ${reasonText(reasonCode)}`, null);
      },
    });
    this.inbox = new RemoteInbox(session, this.acks, user, options.connProperties.topicAliasMaximum);
    this.cutter = new PacketCutter(Remote.maxPacketBytes(options, parts));
    this.startedMs = parts.clock.mono();
    const { keepaliveMs: keepAliveMs, resendIntervalMs: progressMs, cancelTimeoutMs: answerMs } = options;
    this.pulse = new Pulse({ keepAliveMs, progressMs, answerMs }, this.startedMs);
    this.out = {
      version: options.protoVer,
      qos: 0,
      dup: false,
      retain: false,
      packetId: 0,
      topic: '',
      topicUtf8: null,
      topicBytes: 0,
      properties: null,
      propertyBytes: 0,
      payload: NOTHING,
      payloadStart: 0,
      payloadEnd: 0,
    };
  }

  /** Largest packet that is taken from the remote, as it is told in CONNECT. */
  static maxPacketBytes(options: MqttBridgeOptions, parts: MqttParts): number {
    const own = options.connProperties.maximumPacketSize;
    const most = parts.maxPacketSize() || MAX_PACKET;
    return own > 0 ? Math.min(own, most) : most;
  }

  get open(): boolean {
    return this.state === 'open';
  }

  get unsentBytes(): number {
    return this.writer.queuedBytes;
  }

  get room(): boolean {
    return this.writer.queuedBytes < WRITE_BUFFER;
  }

  /** Messages of the remote that are not acknowledged yet. */
  get unanswered(): number {
    return this.acks.length;
  }

  /** Takes no more messages of the remote: without an acknowledgement they stay there. */
  quiet(): void {
    this.inbox.deaf = true;
  }

  start(connect: ConnectPacket): void {
    this.connection.onClose((reason) => this.gone(reason));
    this.connection.onData((chunk) => this.data(chunk));
    this.send(connect);
    this.timer = this.parts.clock.every(TICK_MS, () => this.check());
  }

  /** Says goodbye and closes; the user is told nothing more. */
  close(graceMs: number): void {
    if (this.state === 'closed') return;
    if (this.state === 'open') {
      this.send({ type: DISCONNECT, reasonCode: 0, properties: null });
      this.writer.flush();
    }
    this.over();
    this.connection.end(graceMs);
  }

  subscribe(request: SubscriptionRequest, identifier: number, done: (reasonCode: number) => void): void {
    this.requests.ask((packetId) => this.send(subscribePacket(this.options, packetId, request, identifier)), done);
  }

  unsubscribe(topicFilter: string): void {
    const send = (packetId: number): void =>
      this.send({ type: UNSUBSCRIBE, packetId, topicFilters: [topicFilter], properties: null });
    this.requests.ask(send, ignore);
  }

  // ---- OutLink

  publish(message: Outgoing, packetId: number, dup: boolean): Qos | -1 {
    const { out, writer } = this;
    const version = out.version;
    out.qos = message.qos < this.maximumQos ? message.qos : this.maximumQos; // [MQTT-3.2.2-11]
    out.dup = dup && out.qos > 0;
    out.retain = message.retain && this.retainAvailable; // [MQTT-3.2.2-14]
    out.packetId = packetId;
    if (message.topic !== out.topic) {
      out.topic = message.topic;
      out.topicUtf8 = null;
      out.topicBytes = Buffer.byteLength(message.topic);
    } else if (out.topicUtf8 === null) out.topicUtf8 = Buffer.from(message.topic);
    out.properties = version === 5 ? this.propertiesOf(message) : null;
    out.propertyBytes = out.properties === null ? 0 : encodedPropertiesBytes(out.properties, PUBLISH);
    out.payload = message.payload;
    out.payloadEnd = message.payload.length;
    const size = publishBytes(version, out.qos, out.topicBytes, out.propertyBytes, out.payloadEnd);
    if (size > this.maximumPacketSize) return -1; // [MQTT-3.2.2-15]
    writer.reserve(size);
    writePublish(writer.block, writer.at, out);
    writer.advance(size);
    this.pulse.spoke = true;
    return out.qos;
  }

  release(packetId: number): void {
    this.acks.send(PUBREL, packetId);
    this.pulse.spoke = true;
  }

  // ---- in

  private data(chunk: Buffer): void {
    const { turn } = this.parts;
    this.pulse.heard = true;
    turn.enter();
    try {
      this.cutter.feed(chunk, this.onPacket);
    } catch (error) {
      this.fail('protocol', errorText(error), error instanceof ProtocolError ? error.reasonCode : PROTOCOL_ERROR);
    }
    if (this.open) this.user.ready();
    turn.leave();
  }

  /** False when the connection has ended with it. */
  private packet(buffer: Buffer): boolean {
    const { frame } = this.cutter;
    const version = this.options.protoVer;
    if (frame.type === PUBLISH) {
      checkFrame(version, frame, 'server');
      this.needOpen(PUBLISH);
      decodePublish(buffer, frame, version, this.scan, this.publication);
      this.inbox.message(this.publication);
    } else this.control(decodePacket(version, buffer, frame, 'server'));
    return this.state !== 'closed';
  }

  private needOpen(type: number): void {
    if (this.state === 'open') return;
    throw new ProtocolError(PROTOCOL_ERROR, `packet type ${type} before CONNACK`);
  }

  private control(packet: ControlPacket): void {
    if (packet.type === CONNACK) {
      if (this.state !== 'connecting') throw new ProtocolError(PROTOCOL_ERROR, 'a second CONNACK');
      this.connack(packet);
      return;
    }
    this.needOpen(packet.type);
    switch (packet.type) {
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.pulse.progress = true;
        this.user.acknowledged(packet.type, packet.packetId, packet.reasonCode);
        return;
      case PUBREL:
        this.acks.answer(PUBCOMP, packet.packetId, 0, this.session.released(packet.packetId));
        return;
      case SUBACK:
        this.requests.answered(packet.packetId, packet.reasonCodes[0] ?? 0x80);
        return;
      case UNSUBACK:
        this.requests.answered(packet.packetId, 0);
        return;
      case PINGRESP:
        return;
      case DISCONNECT: {
        const { reasonCode, properties } = packet;
        const text = properties?.reasonString === undefined ? '' : `: ${properties.reasonString}`;
        this.fail('lost', `disconnected by the remote broker, ${reasonText(reasonCode)}${text}`, null);
        return;
      }
      default:
        throw new ProtocolError(PROTOCOL_ERROR, `packet type ${packet.type} from a server`);
    }
  }

  private connack(packet: ConnackPacket): void {
    const { options } = this;
    if (packet.reasonCode !== 0) {
      this.fail('refused', `refused by the remote broker, ${connackText(options.protoVer, packet)}`, null);
      return;
    }
    const told = packet.properties ?? {};
    if (options.protoVer === 5) {
      // Identifiers of SUBSCRIBE have a range of their own, which leaves these.
      this.receiveMaximum = Math.min(told.receiveMaximum ?? 65_535, PUBLISH_IDS);
      this.identifiersAvailable = told.subscriptionIdentifiersAvailable !== false;
    }
    const { maxPacketSize = 0 } = options;
    const own = maxPacketSize > 0 ? maxPacketSize : Number.POSITIVE_INFINITY;
    this.maximumPacketSize = Math.min(own, told.maximumPacketSize ?? Number.POSITIVE_INFINITY);
    if (told.maximumQos !== undefined) this.maximumQos = told.maximumQos === 1 ? 1 : 0;
    if (told.retainAvailable === false) this.retainAvailable = false;
    if (told.serverKeepAlive !== undefined) this.pulse.keepAliveMs = told.serverKeepAlive * 1000; // [MQTT-3.2.2-21]
    // 3.1 does not say; what is asked for is what there is.
    const present = options.protoVer === 3 ? !options.cleanStart : packet.sessionPresent;
    this.state = 'open';
    this.user.opened(packet, present);
  }

  // ---- out

  private send(packet: ControlPacket): void {
    const bytes = encodePacket(this.options.protoVer, packet);
    this.writer.append(bytes, 0, bytes.length);
    this.pulse.spoke = true;
  }

  private propertiesOf(message: Outgoing): Properties | null {
    if (message.expiresAt === 0) return message.properties;
    const left = Math.max(1, Math.ceil((message.expiresAt - this.parts.clock.steady()) / 1000));
    return { ...message.properties, messageExpiryInterval: left }; // [MQTT-3.3.2-6]
  }

  // ---- time and end

  private check(): void {
    const nowMs = this.parts.clock.mono();
    if (this.state === 'connecting') {
      if (nowMs - this.startedMs >= this.options.cancelTimeoutMs) this.fail('lost', 'no CONNACK in time', null);
      return;
    }
    // What is not read cannot be heard.
    if (this.acks.paused) this.pulse.heard = true;
    const verdict = this.pulse.look(nowMs, this.user.waits());
    if (verdict === 'dead') this.fail('lost', 'the remote broker does not answer', null);
    else if (verdict === 'ask') {
      this.parts.turn.enter();
      this.send({ type: PINGREQ });
      this.parts.turn.leave();
    }
  }

  private gone(reason: CloseReason): void {
    if (reason.by === 'error') this.fail('cut', `the connection broke: ${reason.error ?? 'unknown'}`, null);
    else this.fail('cut', 'the remote broker closed the connection', null);
  }

  /** @param reasonCode told to a 5.0 remote, null = nothing */
  private fail(kind: EndKind, reason: string, reasonCode: number | null): void {
    if (this.state === 'closed') return;
    if (reasonCode !== null && this.options.protoVer === 5 && this.state === 'open') {
      this.send({ type: DISCONNECT, reasonCode, properties: null });
      this.writer.flush();
      this.over();
      this.connection.end(1000);
    } else {
      this.over();
      this.connection.destroy();
    }
    this.user.ended(kind, reason);
  }

  private over(): void {
    this.state = 'closed';
    this.timer?.cancel();
    this.timer = null;
    this.writer.close();
    this.acks.close();
    this.requests.clear();
  }
}

function ignore(): void {}
