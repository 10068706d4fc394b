// One connection that speaks MQTT: hands each packet to the phase it is in, and is the one place where a ProtocolError
// becomes bytes. Made by broker/native/engine.ts for every accepted connection. Bytes become packets in reader.ts; on
// its way in a client is an Admission (admission.ts), from CONNACK on it has what Served (served.ts) holds.
import { errorText, ProtocolError } from '../base/errors.ts';
import { Writer } from '../base/writer.ts';
import type { ListenerContext } from '../broker/broker.ts';
import type { Frame } from '../codec/codec.ts';
import { ConnectError, encodeRefusal } from '../codec/connect.ts';
import { hintFor } from '../codec/hint.ts';
import { decodePacket } from '../codec/packet.ts';
import { encodeDisconnect } from '../codec/session.ts';
import type { Hold } from '../mqtt/message.ts';
import { type ConnectPacket, DISCONNECT } from '../mqtt/packet.ts';
import {
  IMPLEMENTATION_SPECIFIC_ERROR,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  SESSION_TAKEN_OVER,
  UNSPECIFIED_ERROR,
} from '../mqtt/reason.ts';
import type { CloseReason, Connection } from '../transport/transport.ts';
import { Admission } from './admission.ts';
import type { Opened } from './opening.ts';
import type { Arriving, ServedPeer } from './peer.ts';
import { type PacketHandler, Reader } from './reader.ts';
import type { Registry } from './registry.ts';
import { Served } from './served.ts';
import type { Core } from './session.ts';
import { Stall } from './stall.ts';
import type { Session } from './state.ts';

/** Reasons may quote a topic of 64 KB, and a string can hold no more than that. */
const REASON_CHARACTERS = 200;

export class Client implements Arriving, ServedPeer, PacketHandler {
  readonly connection: Connection;
  readonly listener: ListenerContext;
  readonly writer: Writer;
  /** Called when the client is in. */
  onOpened: ((session: Session) => void) | null = null;
  /** Called once for every client that had been let in. */
  onClosed: ((session: Session, reason: string, reasonCode: number) => void) | null = null;
  private state: 'connect' | 'open' | 'closed' = 'connect';
  private readonly core: Core;
  private readonly registry: Registry;
  private readonly forget: (client: Client) => void;
  private readonly reader: Reader;
  private readonly stall = new Stall();
  private startedMs: number;
  /** Between CONNECT and CONNACK. */
  private admission: Admission | null = null;
  /** From CONNACK on. */
  private served: Served | null = null;
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
    this.reader = new Reader(core, connection, this);
  }

  start(): void {
    this.connection.onClose((reason) => this.closed(reason));
    this.reader.start();
  }

  isOpen(): boolean {
    return this.state === 'open';
  }

  isClosed(): boolean {
    return this.state === 'closed';
  }

  /** Reads no more. Resolves when what was read is answered, or the connection has gone. */
  lastAnswers(): Promise<void> {
    this.reader.close();
    this.connection.pause();
    return this.served?.acks.emptied() ?? Promise.resolve();
  }

  /** The gateway itself was away: silence before now proves nothing, and every interval begins again. */
  excuse(nowMs: number): void {
    this.startedMs = nowMs;
    this.reader.heardMs = nowMs;
    this.stall.excuse();
  }

  /** Called about once a second: closes what is silent or stuck for too long. */
  check(nowMs: number): void {
    if (this.served === null) {
      const limitMs = this.listener.connectTimeoutMs;
      if (limitMs > 0 && nowMs - this.startedMs > limitMs) this.refuse('no CONNECT in time');
      return;
    }
    const due = this.served.due(this.reader.suspended ? 0 : nowMs - this.reader.heardMs);
    if (due !== null) {
      this.disconnect(due.reasonCode, due.why);
      return;
    }
    const { outbox, sendTimeoutMs } = this.core.limits;
    if (this.stall.lasts(nowMs, this.writer, this.connection, outbox.writeBuffer, sendTimeoutMs))
      this.disconnect(QUOTA_EXCEEDED, 'the client does not read');
  }

  suspend<T>(promise: Promise<T>, then: (value: T) => void): void {
    this.reader.suspend(promise, then);
  }

  /**
   * An answer that is larger than the client takes cannot be given, and what asked for it cannot go on [MQTT-3.1.2-24].
   */
  send(packet: Buffer): void {
    if (this.writer.closed) return;
    if (packet.length <= this.maximumPacketSize) this.writer.append(packet, 0, packet.length);
    else if (this.state === 'open')
      this.disconnect(IMPLEMENTATION_SPECIFIC_ERROR, 'the answer is larger than the client takes');
  }

  private get maximumPacketSize(): number {
    return (this.served ?? this.admission)?.maximumPacketSize ?? Number.POSITIVE_INFINITY;
  }

  private roomCame(): void {
    if (this.state === 'closed') return;
    this.served?.session.outbox.pump();
    this.stall.moved(this.writer, this.core.limits.outbox.writeBuffer);
  }

  // ---- from admission.ts

  opened({ session }: Opened, connack: Buffer): void {
    const { admission, core } = this;
    if (admission === null) return;
    this.served = new Served(this, admission);
    this.admission = null;
    this.state = 'open';
    this.send(connack);
    core.stats.connects++;
    core.stats.connected++;
    this.reader.inbound = this.served.taker();
    const { version, cleanStart } = admission.packet;
    core.log('info', 'CLI-CONNECT', {
      clientId: session.clientId,
      username: session.identity.username,
      remote: this.connection.remote,
      listener: this.listener.name,
      version,
      cleanStart,
      keepAlive: session.keepAlive,
    });
    this.onOpened?.(session);
    this.served.attach(admission);
  }

  /** Other quotas hold from now on. */
  meter(): void {
    if (this.served !== null) this.reader.inbound = this.served.taker();
  }

  turnedAway(): void {
    this.withWill = false;
    this.finish();
  }

  // ---- ends

  disconnect(reasonCode: number, why: string, withWill = true): void {
    if (this.state === 'closed') return;
    this.closeReason = why;
    this.closeCode = reasonCode;
    this.withWill = withWill;
    if (this.served?.version === 5) {
      // A reason string is always allowed in DISCONNECT (MQTT 5.0 section 3.1.2.11.7), where it fits [MQTT-3.14.2-3].
      const properties = reasonCode >= 0x80 ? { reasonString: why.slice(0, REASON_CHARACTERS) } : null;
      const told = encodeDisconnect(5, { type: DISCONNECT, reasonCode, properties });
      const bare = encodeDisconnect(5, { type: DISCONNECT, reasonCode, properties: null });
      const packet = told.length > this.maximumPacketSize ? bare : told;
      if (packet.length <= this.maximumPacketSize) this.writer.append(packet, 0, packet.length);
    }
    this.finish();
  }

  takeOver(continued: boolean): void {
    this.takenOver = continued;
    this.disconnect(SESSION_TAKEN_OVER, 'another connection has the same client id');
  }

  leaves(reasonCode: number, withWill: boolean, until: Hold | null): void {
    this.closeReason = 'disconnected';
    this.closeCode = reasonCode;
    this.withWill = withWill;
    if (until === null) this.finish();
    else this.reader.suspend(new Promise<number>((resolve) => until.whenDone(resolve)), () => this.finish());
  }

  private finish(): void {
    const { served } = this;
    const session = served?.session ?? this.admission?.session ?? null;
    this.state = 'closed';
    this.writer.flush();
    this.writer.close();
    served?.close();
    this.reader.close();
    this.connection.end();
    this.forget(this);
    if (session === null || session.client !== this) return;
    if (served === null) {
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
    this.onClosed?.(session, this.closeReason, this.closeCode);
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

  // ---- from reader.ts

  /** A packet that is no PUBLISH, or one that comes before the client is in. */
  packet(buffer: Buffer, frame: Frame): void {
    const { served, admission } = this;
    if (served !== null) served.packet(buffer, frame);
    else if (admission !== null) admission.early(buffer, frame);
    else this.connect(decodePacket(4, buffer, frame) as ConnectPacket);
  }

  private connect(packet: ConnectPacket): void {
    this.reader.fresh = false;
    this.admission = new Admission(this.core, this.registry, this, packet);
    this.admission.run();
  }

  maxBytes(): number {
    const { maxPacketSize, maxConnectSize } = this.core.limits;
    const packet = maxPacketSize === 0 ? Number.POSITIVE_INFINITY : maxPacketSize;
    if (this.state === 'open') return packet;
    return maxConnectSize === 0 ? packet : Math.min(packet, maxConnectSize);
  }

  notMqtt(buffer: Buffer, at: number, end: number): never {
    const hint = hintFor(buffer, at, end);
    this.core.log('warn', 'CON-NOT-MQTT', { remote: this.connection.remote, listener: this.listener.name, hint });
    throw new ProtocolError(PROTOCOL_ERROR, `the first packet is not CONNECT: ${hint}`); // [MQTT-3.1.0-1]
  }

  /** Resolves when the client has taken what it is owed so far; null while that is not too much. */
  room(): Promise<void> | null {
    return this.stall.room(this.writer, this.core.limits.outbox.writeBuffer);
  }

  held(ms: number): void {
    this.core.stats.held++;
    this.core.log('warn', 'CLI-HELD', {
      clientId: this.served?.session.clientId,
      remote: this.connection.remote,
      ms: Math.round(ms),
    });
  }

  fail(error: unknown): void {
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
    if (this.served !== null) {
      this.core.log('info', 'CLI-PROTOCOL', {
        clientId: this.served.session.clientId,
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
}
