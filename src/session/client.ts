// One connection that speaks MQTT: hands each packet to its handler, and is the one place where a ProtocolError becomes
// bytes. Made by broker/native/engine.ts for every accepted connection. States: connect -> (auth) -> open -> closed.
// Bytes become packets in reader.ts; what a CONNECT leads to is decided in admission.ts.
import type { Access, Identity } from '../auth/auth.ts';
import { errorText, ProtocolError } from '../base/errors.ts';
import { Writer } from '../base/writer.ts';
import type { ListenerContext } from '../broker/broker.ts';
import { ackPacketId, decodeAck } from '../codec/ack.ts';
import type { Frame } from '../codec/codec.ts';
import { ConnectError, encodeRefusal } from '../codec/connect.ts';
import { checkFrame, decodePacket } from '../codec/packet.ts';
import { encodeDisconnect } from '../codec/session.ts';
import { Hold } from '../mqtt/message.ts';
import {
  AUTH,
  type AuthPacket,
  type ConnectPacket,
  DISCONNECT,
  type DisconnectPacket,
  PINGREQ,
  PUBACK,
  PUBCOMP,
  PUBREC,
  PUBREL,
  SUBSCRIBE,
  type SubscribePacket,
  UNSUBSCRIBE,
  type UnsubscribePacket,
  type Version,
} from '../mqtt/packet.ts';
import {
  DISCONNECT_WITH_WILL,
  IMPLEMENTATION_SPECIFIC_ERROR,
  KEEP_ALIVE_TIMEOUT,
  MALFORMED_PACKET,
  NORMAL_DISCONNECTION,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  SESSION_TAKEN_OVER,
  SUCCESS,
  UNSPECIFIED_ERROR,
} from '../mqtt/reason.ts';
import type { CloseReason, Connection } from '../transport/transport.ts';
import { Acks } from './acks.ts';
import { Admission, type Arriving } from './admission.ts';
import { type Admitted, admit, capExpiry } from './connect.ts';
import { Exchanges } from './exchanges.ts';
import { hintFor } from './hint.ts';
import { Inbound } from './publish.ts';
import { Reader } from './reader.ts';
import type { Registry } from './registry.ts';
import type { Core } from './session.ts';
import { Stall } from './stall.ts';
import type { Session } from './state.ts';
import { SubscriptionAnswers } from './suback.ts';
import { subscribe } from './subscribe.ts';

export type ClientState = 'connect' | 'auth' | 'open' | 'closed';

export class Client {
  state: ClientState = 'connect';
  version: Version = 4;
  session: Session | null = null;
  readonly connection: Connection;
  readonly listener: ListenerContext;
  readonly writer: Writer;
  startedMs: number;
  /** Silence after which the connection is closed; 0 = never. */
  keepAliveMs = 0;
  /** Told when a client is in. */
  onOpened: ((client: Client, session: Session) => void) | null = null;
  /** Told once for every client that had been let in. */
  onClosed: ((client: Client, session: Session, reason: string, reasonCode: number) => void) | null = null;
  private readonly core: Core;
  private readonly registry: Registry;
  private readonly forget: (client: Client) => void;
  private readonly reader: Reader;
  private readonly admission: Admission;
  private readonly stall = new Stall();
  private acks: Acks | null = null;
  private expiryInterval = 0;
  /** How the connection ends: with the will unless a DISCONNECT said otherwise. */
  private withWill = true;
  private takenOver = false;
  private closeReason = 'closed by the peer';
  private closeCode = UNSPECIFIED_ERROR;

  constructor(
    core: Core,
    registry: Registry,
    connection: Connection,
    listener: ListenerContext,
    forget: (client: Client) => void,
  ) {
    this.core = core;
    this.registry = registry;
    this.connection = connection;
    this.listener = listener;
    this.forget = forget;
    this.startedMs = core.clock.mono();
    this.writer = new Writer(core.turn, core.pool, connection, () => this.roomCame());
    this.reader = new Reader(core, connection, {
      maxBytes: () => this.maxBytes(),
      packet: (buffer, frame) => this.packet(buffer, frame),
      notMqtt: (buffer, at, end) => this.notMqtt(buffer, at, end),
      room: () => this.stall.room(this.writer, this.core.limits.outbox.writeBuffer),
      fail: (error) => this.fail(error),
      held: (ms) => this.held(ms),
    });
    this.admission = new Admission(core, registry, connection, listener, this.arriving());
  }

  private roomCame(): void {
    this.session?.outbox.pump();
    this.stall.moved(this.writer, this.core.limits.outbox.writeBuffer);
  }

  start(): void {
    this.connection.onClose((reason) => this.closed(reason));
    this.reader.start();
  }

  /** Reads no more. Resolves when what was read is answered, or the connection has gone. */
  lastAnswers(): Promise<void> {
    this.reader.close();
    this.connection.pause();
    return this.acks?.emptied() ?? Promise.resolve();
  }

  // ---- ends

  /** Closes with a 5.0 DISCONNECT (older versions: just closes). The will is sent unless `withWill` is false. */
  disconnect(reasonCode: number, why: string, withWill = true): void {
    if (this.state === 'closed') return;
    this.closeReason = why;
    this.closeCode = reasonCode;
    this.withWill = withWill;
    if (this.state === 'open' && this.version === 5) {
      // A reason string is always allowed in DISCONNECT (MQTT 5.0 section 3.1.2.11.7), where it fits [MQTT-3.14.2-3].
      const properties = reasonCode >= 0x80 ? { reasonString: why.slice(0, REASON_CHARACTERS) } : null;
      const told = encodeDisconnect(5, { type: DISCONNECT, reasonCode, properties });
      const bare = encodeDisconnect(5, { type: DISCONNECT, reasonCode, properties: null });
      const packet = told.length > this.admission.maximumPacketSize ? bare : told;
      if (packet.length <= this.admission.maximumPacketSize) this.writer.append(packet, 0, packet.length);
    }
    this.finish();
  }

  /** Another connection has come with the same client id [MQTT-3.1.4-3]. `continued`: it goes on with the session. */
  takeOver(continued: boolean): void {
    this.takenOver = continued;
    this.disconnect(SESSION_TAKEN_OVER, 'another connection has the same client id');
  }

  /** The gateway itself was away: silence before now proves nothing, and every interval begins again. */
  excuse(nowMs: number): void {
    this.startedMs = nowMs;
    this.reader.heardMs = nowMs;
    this.stall.excuse();
  }

  /** Called about once a second: closes what is silent or stuck for too long. */
  check(nowMs: number): void {
    if (this.state === 'connect' || this.state === 'auth') {
      const limitMs = this.listener.connectTimeoutMs;
      if (limitMs > 0 && nowMs - this.startedMs > limitMs) this.refuse('no CONNECT in time');
      return;
    }
    if (this.keepAliveMs > 0 && nowMs - this.reader.heardMs > this.keepAliveMs && !this.reader.suspended) {
      this.disconnect(KEEP_ALIVE_TIMEOUT, 'keep alive timeout'); // [MQTT-3.1.2-22]
      return;
    }
    const validUntil = this.session?.identity.validUntil;
    if (validUntil !== undefined && this.core.clock.now() >= validUntil) {
      this.disconnect(NOT_AUTHORIZED, 'the token has expired');
      return;
    }
    const { outbox, sendTimeoutMs } = this.core.limits;
    if (this.stall.lasts(nowMs, this.writer, this.connection, outbox.writeBuffer, sendTimeoutMs))
      this.disconnect(QUOTA_EXCEEDED, 'the client does not read');
  }

  private finish(): void {
    const session = this.session;
    const opened = this.state === 'open';
    this.state = 'closed';
    this.writer.flush();
    this.writer.close();
    this.acks?.close();
    this.reader.inbound?.close();
    this.reader.close();
    this.connection.end();
    this.forget(this);
    if (session === null || session.client !== this) return;
    if (!opened) {
      // Let in, and gone before its CONNACK was stored: an older will does not wait any more, so this one is due.
      this.registry.close(session, this.withWill, this.takenOver);
      return;
    }
    this.core.stats.connected--;
    this.core.stats.disconnects++;
    session.lastError = this.closeCode >= 0x80 ? this.closeReason : session.lastError;
    this.core.log('info', 'CLI-DISCONNECT', {
      clientId: session.clientId,
      remote: this.connection.remote,
      reason: this.closeReason,
      reasonCode: this.closeCode,
    });
    this.registry.close(session, this.withWill, this.takenOver);
    this.onClosed?.(this, session, this.closeReason, this.closeCode);
  }

  private closed(reason: CloseReason): void {
    if (this.state === 'closed') return;
    this.closeReason = reason.by === 'error' ? `connection lost: ${reason.error ?? 'unknown'}` : 'closed by the peer';
    this.closeCode = UNSPECIFIED_ERROR;
    this.core.turn.enter();
    this.finish();
    this.core.turn.leave();
  }

  /** Ends a connection that is not a client yet. */
  private refuse(why: string): void {
    this.core.stats.refused++;
    this.core.log('info', 'CON-REFUSED', { remote: this.connection.remote, listener: this.listener.name, reason: why });
    this.finish();
  }

  private held(ms: number): void {
    this.core.stats.held++;
    this.core.log('warn', 'CLI-HELD', {
      clientId: this.session?.clientId,
      remote: this.connection.remote,
      ms: Math.round(ms),
    });
  }

  private fail(error: unknown): void {
    if (this.state === 'closed') return;
    if (!(error instanceof ProtocolError)) {
      this.core.log('error', 'GW-INTERNAL', {
        error: errorText(error),
        stack: error instanceof Error ? error.stack : undefined,
      });
      this.disconnect(UNSPECIFIED_ERROR, 'internal error');
      return;
    }
    this.core.stats.protocolErrors++;
    if (this.state === 'open') {
      this.core.log('info', 'CLI-PROTOCOL', {
        clientId: this.session?.clientId,
        remote: this.connection.remote,
        reasonCode: error.reasonCode,
        error: error.message,
      });
      this.disconnect(error.reasonCode, error.message);
      return;
    }
    const answer = error instanceof ConnectError ? encodeRefusal(error) : null;
    if (answer !== null) this.send(answer);
    this.refuse(error.message);
  }

  /**
   * An answer that is larger than the client takes cannot be given, and what asked for it cannot go on [MQTT-3.1.2-24].
   */
  private send(packet: Buffer): void {
    if (this.writer.closed) return;
    if (packet.length <= this.admission.maximumPacketSize) this.writer.append(packet, 0, packet.length);
    else if (this.state === 'open')
      this.disconnect(IMPLEMENTATION_SPECIFIC_ERROR, 'the answer is larger than the client takes');
  }

  private maxBytes(): number {
    const { maxPacketSize, maxConnectSize } = this.core.limits;
    const packet = maxPacketSize === 0 ? Number.POSITIVE_INFINITY : maxPacketSize;
    if (this.state === 'open') return packet;
    return maxConnectSize === 0 ? packet : Math.min(packet, maxConnectSize);
  }

  private notMqtt(buffer: Buffer, at: number, end: number): never {
    const hint = hintFor(buffer, at, end);
    this.core.log('warn', 'CON-NOT-MQTT', { remote: this.connection.remote, listener: this.listener.name, hint });
    throw new ProtocolError(PROTOCOL_ERROR, `the first packet is not CONNECT: ${hint}`); // [MQTT-3.1.0-1]
  }

  // ---- packets

  private packet(buffer: Buffer, frame: Frame): void {
    if (this.state === 'connect') {
      this.connect(decodePacket(this.version, buffer, frame) as ConnectPacket);
      return;
    }
    if (this.state === 'auth' && frame.type !== AUTH && frame.type !== DISCONNECT) {
      throw new ProtocolError(PROTOCOL_ERROR, 'only AUTH may follow a CONNECT that is not answered'); // [MQTT-3.1.2-30]
    }
    const session = this.session;
    if (session === null && this.state === 'open') throw new ProtocolError(PROTOCOL_ERROR, 'no session');
    switch (frame.type) {
      case PUBACK:
      case PUBREC:
      case PUBREL:
      case PUBCOMP:
        if (session !== null) this.ack(buffer, frame, session);
        return;
      case SUBSCRIBE:
        this.subscribe(decodePacket(this.version, buffer, frame) as SubscribePacket);
        return;
      case UNSUBSCRIBE:
        if (session !== null) this.unsubscribe(decodePacket(this.version, buffer, frame) as UnsubscribePacket, session);
        return;
      case PINGREQ:
        decodePacket(this.version, buffer, frame);
        this.send(PINGRESP_BYTES); // [MQTT-3.12.4-1]
        return;
      case DISCONNECT:
        this.peerDisconnects(decodePacket(this.version, buffer, frame) as DisconnectPacket);
        return;
      case AUTH:
        if (this.version < 5) throw new ProtocolError(MALFORMED_PACKET, 'packet type 15 before MQTT 5.0');
        this.admission.auth(decodePacket(this.version, buffer, frame) as AuthPacket);
        return;
      default:
        // Type 0, a second CONNECT [MQTT-3.1.0-2], and packets that only a server sends.
        checkFrame(this.version, frame, 'client');
        throw new ProtocolError(PROTOCOL_ERROR, `packet type ${frame.type} where none may be`);
    }
  }

  private ack(buffer: Buffer, frame: Frame, session: Session): void {
    checkFrame(this.version, frame, 'client');
    // Two bytes are the usual form; more are looked at only where they may be.
    const short = frame.end - frame.bodyStart === 2;
    const packetId = ackPacketId(buffer, frame);
    const reasonCode = short ? SUCCESS : decodeAck(buffer, frame, this.version).reasonCode;
    const { outbox } = session;
    let fitting = true;
    if (frame.type === PUBACK) fitting = outbox.acknowledge(packetId) || !outbox.waits(packetId);
    else if (frame.type === PUBREC) fitting = outbox.received(packetId, reasonCode);
    else if (frame.type === PUBCOMP) fitting = outbox.complete(packetId) || !outbox.waits(packetId);
    else this.reader.inbound?.release(packetId);
    // An acknowledgement of another QoS, or a step of QoS 2 before its time [MQTT-4.3.2-3] [MQTT-4.3.3-5].
    if (!fitting)
      throw new ProtocolError(PROTOCOL_ERROR, `acknowledgement of the wrong kind for packet identifier ${packetId}`);
  }

  private subscribe(packet: SubscribePacket): void {
    const session = this.session;
    if (session === null) return;
    const { packetId } = packet;
    const answers = this.answers(session);
    const isOpen = (): boolean => this.state === 'open';
    const result = subscribe(this.core, session, this.listener, packet, isOpen);
    if (!(result instanceof Promise)) {
      answers.granted(packetId, result);
      return;
    }
    this.reader.suspend(result, (granted) => {
      if (granted !== null) answers.granted(packetId, granted);
    });
  }

  private unsubscribe(packet: UnsubscribePacket, session: Session): void {
    const waiting = this.answers(session).end(packet);
    if (waiting !== null) this.reader.suspend(waiting, () => {});
  }

  private answers(session: Session): SubscriptionAnswers {
    return new SubscriptionAnswers(this.core, session, this.version, {
      isOpen: () => this.state === 'open',
      send: (packet) => this.send(packet),
      disconnect: (reasonCode, why) => this.disconnect(reasonCode, why),
      reasonStrings: this.admission.reasonStrings,
    });
  }

  private peerDisconnects(packet: DisconnectPacket): void {
    if (this.state === 'auth') {
      this.refuse('disconnected while authenticating');
      return;
    }
    const expiry = packet.properties?.sessionExpiryInterval;
    let told = false;
    if (expiry !== undefined && this.session !== null) {
      // A session that was to end with the connection cannot be prolonged now (MQTT 5.0 section 3.14.2.2.2).
      if (this.expiryInterval === 0 && expiry !== 0)
        throw new ProtocolError(PROTOCOL_ERROR, 'Session Expiry Interval set at DISCONNECT');
      told = this.registry.begin(this.session, capExpiry(this.core.limits, expiry));
    }
    this.closeReason = 'disconnected';
    this.closeCode = packet.reasonCode;
    this.withWill = packet.reasonCode === DISCONNECT_WITH_WILL || packet.reasonCode >= 0x80;
    if (this.session !== null && packet.reasonCode === NORMAL_DISCONNECTION) this.withWill = false; // [MQTT-3.14.4-3]
    if (!told) {
      this.finish();
      return;
    }
    // The connection closes when the store has it: a session that was ended is not there again after a crash
    // [MQTT-3.14.4-2].
    const hold = new Hold();
    this.core.journal.barrierAll(hold);
    this.reader.suspend(new Promise<number>((resolve) => hold.whenDone(resolve)), () => this.finish());
  }

  // ---- CONNECT

  private connect(packet: ConnectPacket): void {
    this.reader.fresh = false;
    this.version = packet.version;
    this.admission.connect(packet);
  }

  private arriving(): Arriving {
    return {
      identityAgain: () => (this.state === 'open' ? (this.session?.identity ?? null) : null),
      waits: () => {
        this.state = 'auth';
      },
      gone: () => this.state === 'closed',
      suspend: (promise, then) => this.reader.suspend(promise, then),
      send: (packet) => this.send(packet),
      admit: (packet, identity) => this.admit(packet, identity),
      opened: (packet, session, answer) => {
        this.state = 'open';
        this.send(answer);
        this.serve(packet, session);
      },
      takenBack: (session) => {
        this.session = null;
        if (session.client === this) session.client = null;
      },
      refused: (why) => {
        this.withWill = false;
        this.refuse(why);
      },
      ended: () => this.finish(),
    };
  }

  private admit(packet: ConnectPacket, identity: Identity): Admitted {
    const admitted = admit(this.core, this.registry, this, packet, identity);
    const { session } = admitted;
    this.session = session;
    this.expiryInterval = session.expiryInterval;
    this.keepAliveMs = session.keepAlive * 1000 * this.core.limits.keepaliveMultiplier;
    return admitted;
  }

  /** From here on packets are handled: the CONNACK has been written [MQTT-3.2.0-1]. */
  private serve(packet: ConnectPacket, session: Session): void {
    const { core } = this;
    const { identity } = session;
    core.stats.connects++;
    core.stats.connected++;
    const { version } = packet;
    const failed = (): void => this.disconnect(QUOTA_EXCEEDED, 'the message could not be kept');
    const exchanges = new Exchanges(core, session, version, failed);
    const acks = new Acks(this.writer, version, exchanges, this.admission.reasonStrings, core.held);
    const access = (): Access => this.listener.access();
    const maxQos = this.listener.rules?.maxQos ?? 2;
    this.acks = acks;
    this.reader.inbound = new Inbound({ core, session, identity, access, acks, exchanges, version, maxQos });
    core.log('info', 'CLI-CONNECT', {
      clientId: session.clientId,
      username: identity.username,
      remote: this.connection.remote,
      listener: this.listener.name,
      version: packet.version,
      cleanStart: packet.cleanStart,
      keepAlive: session.keepAlive,
    });
    this.onOpened?.(this, session);
    const asked = packet.properties;
    session.outbox.attach({
      writer: this.writer,
      version: packet.version,
      receiveMaximum: asked?.receiveMaximum ?? 65_535,
      maximumPacketSize: asked?.maximumPacketSize ?? Number.POSITIVE_INFINITY,
      topicAliasMaximum: asked?.topicAliasMaximum ?? 0,
    });
  }
}

/** Reasons may quote a topic of 64 KB, and a string can hold no more than that. */
const REASON_CHARACTERS = 200;

const PINGRESP_BYTES = Buffer.from([0xd0, 0x00]);
