// What a client has that is let in: its session, the answers it is owed, and a handler for each of its packets. Made by
// client.ts when the CONNACK is due; everything here exists exactly while the client is in. PUBLISH goes past this file
// to publish.ts. Ends nothing itself.
import type { Access, Credentials } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import { ackPacketId, decodeAck } from '../codec/ack.ts';
import type { Frame } from '../codec/codec.ts';
import { checkFrame, decodePacket } from '../codec/packet.ts';
import { Hold } from '../mqtt/message.ts';
import {
  AUTH,
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
  KEEP_ALIVE_TIMEOUT,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  SUCCESS,
} from '../mqtt/reason.ts';
import type { ClientPolicy } from '../policy/policy.ts';
import { Acks } from './acks.ts';
import type { Admission } from './admission.ts';
import { autoSubscribe } from './autosubscribe.ts';
import type { Refusal } from './checks.ts';
import { type EnhancedAuthentication, takeAuth } from './enhanced.ts';
import { Exchanges } from './exchanges.ts';
import { capExpiry } from './opening.ts';
import type { ServedPeer } from './peer.ts';
import { Inbound } from './publish.ts';
import { RELAX_MS, refusals } from './quotas.ts';
import type { Registry } from './registry.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';
import { SubscriptionAnswers } from './suback.ts';
import { subscribe } from './subscribe.ts';
import { type PublishTaker, Throttle } from './throttle.ts';

/** A client whose Maximum Packet Size is below this gets no reason strings: they might not fit [MQTT-3.4.2-2]. */
const ROOMY_BYTES = 256;
const PINGRESP_BYTES = Buffer.from([0xd0, 0x00]);

export class Served {
  readonly session: Session;
  readonly version: Version;
  readonly acks: Acks;
  readonly inbound: Inbound;
  private throttle: Throttle | null = null;
  /** Bytes that a packet to this client may have [MQTT-3.1.2-24]. */
  readonly maximumPacketSize: number;
  private readonly core: Core;
  private readonly registry: Registry;
  private readonly client: ServedPeer;
  /** Set where the client has authenticated with AUTH packets: it may do so again. */
  private readonly enhanced: EnhancedAuthentication | null;
  private readonly answers: SubscriptionAnswers;
  /** Silence after which the connection is closed; 0 = never. */
  private readonly keepAliveMs: number;
  /** As it was at CONNECT. */
  private readonly expiryInterval: number;

  constructor(client: ServedPeer, admission: Admission) {
    const { core, registry, packet, maximumPacketSize } = admission;
    const { session } = admission.opened;
    const { version } = packet;
    this.core = core;
    this.registry = registry;
    this.client = client;
    this.session = session;
    this.version = version;
    this.maximumPacketSize = maximumPacketSize;
    this.enhanced = admission.enhanced;
    this.expiryInterval = session.expiryInterval;
    this.keepAliveMs = session.keepAlive * 1000 * core.limits.keepaliveMultiplier;
    const asksForReasons = version === 5 && packet.properties?.requestProblemInformation !== false;
    const reasonStrings = asksForReasons && maximumPacketSize >= ROOMY_BYTES;
    const failed = (): void => client.disconnect(QUOTA_EXCEEDED, 'the message could not be kept');
    const exchanges = new Exchanges(core, session, version, failed);
    this.acks = new Acks(client.writer, version, exchanges, reasonStrings, core.held);
    this.answers = new SubscriptionAnswers(core, session, version, client, reasonStrings);
    const { acks } = this;
    const { identity } = session;
    const { listener } = client;
    const access = (): Access => listener.access();
    const maxQos = listener.rules?.maxQos ?? 2;
    this.inbound = new Inbound({ core, session, identity, access, acks, exchanges, version, maxQos });
  }

  /** Who takes the publishes of this client, by the quotas of now. */
  taker(): PublishTaker {
    this.throttle?.close();
    const scopes = this.session.scopes.filter((scope) => scope.metered);
    this.throttle = scopes.length === 0 ? null : new Throttle(this.core, this.session, this.inbound, scopes);
    return this.throttle ?? this.inbound;
  }

  /** The outbox sends from here on: the CONNACK has been written [MQTT-3.2.0-1]. */
  attach({ packet }: Admission): void {
    const asked = packet.properties;
    this.session.outbox.attach({
      writer: this.client.writer,
      version: packet.version,
      receiveMaximum: asked?.receiveMaximum ?? 65_535,
      maximumPacketSize: this.maximumPacketSize,
      topicAliasMaximum: asked?.topicAliasMaximum ?? 0,
      mount: this.session.mount,
      alter: this.core.alterFor?.(this.session.identity) ?? null,
      sent: this.core.sentFor?.(this.session.identity) ?? null,
    });
    if (this.core.policies !== null) this.subscribeItself();
  }

  /** Why the client has to go now, null = it may stay. @param silentMs since its last bytes; 0 while it is not read */
  due(silentMs: number): Refusal | null {
    if (this.keepAliveMs > 0 && silentMs > this.keepAliveMs)
      return { reasonCode: KEEP_ALIVE_TIMEOUT, why: 'keep alive timeout' }; // [MQTT-3.1.2-22]
    const { validUntil } = this.session.identity;
    if (validUntil !== undefined && this.core.clock.now() >= validUntil)
      return { reasonCode: NOT_AUTHORIZED, why: 'the token has expired' };
    return null;
  }

  /** The connection has gone. */
  close(): void {
    this.acks.close();
    this.throttle?.close();
    this.inbound.close();
  }

  /** Handles any packet but PUBLISH. Throws ProtocolError. */
  packet(buffer: Buffer, frame: Frame): void {
    const { version } = this;
    switch (frame.type) {
      case PUBACK:
      case PUBREC:
      case PUBREL:
      case PUBCOMP:
        this.ack(buffer, frame);
        return;
      case SUBSCRIBE:
        this.subscribe(decodePacket(version, buffer, frame) as SubscribePacket);
        return;
      case UNSUBSCRIBE: {
        const packet = decodePacket(version, buffer, frame) as UnsubscribePacket;
        const waiting = this.answers.end(packet, this.policy);
        if (waiting !== null) this.client.suspend(waiting, () => {});
        return;
      }
      case PINGREQ:
        decodePacket(version, buffer, frame);
        this.client.send(PINGRESP_BYTES); // [MQTT-3.12.4-1]
        return;
      case DISCONNECT:
        this.leave(decodePacket(version, buffer, frame) as DisconnectPacket);
        return;
      case AUTH:
        takeAuth(this.enhanced, version, buffer, frame, this.credentials());
        return;
      default:
        // Type 0, a second CONNECT [MQTT-3.1.0-2], and packets that only a server sends.
        checkFrame(version, frame, 'client');
        throw new ProtocolError(PROTOCOL_ERROR, `packet type ${frame.type} where none may be`);
    }
  }

  // ---- inside

  private ack(buffer: Buffer, frame: Frame): void {
    checkFrame(this.version, frame, 'client');
    // Two bytes are the usual form; more are looked at only where they may be.
    const short = frame.end - frame.bodyStart === 2;
    const packetId = ackPacketId(buffer, frame);
    const reasonCode = short ? SUCCESS : decodeAck(buffer, frame, this.version).reasonCode;
    const { outbox } = this.session;
    let fitting = true;
    if (frame.type === PUBACK) fitting = outbox.acknowledge(packetId) || !outbox.waits(packetId);
    else if (frame.type === PUBREC) fitting = outbox.received(packetId, reasonCode);
    else if (frame.type === PUBCOMP) fitting = outbox.complete(packetId) || !outbox.waits(packetId);
    else this.inbound.release(packetId);
    // An acknowledgement of another QoS, or a step of QoS 2 before its time [MQTT-4.3.2-3] [MQTT-4.3.3-5].
    if (!fitting)
      throw new ProtocolError(PROTOCOL_ERROR, `acknowledgement of the wrong kind for packet identifier ${packetId}`);
  }

  /** The subscriptions that the configuration gives this client. */
  private subscribeItself(): void {
    const { client } = this;
    const waiting = autoSubscribe(this.core, this.session, client.listener, () => client.isOpen());
    if (waiting !== null) client.suspend(waiting, () => {});
  }

  /** The client asks for more than its quotas leave it. */
  private relax(): void {
    const { clock } = this.core;
    this.client.suspend(new Promise<void>((resolve) => clock.after(RELAX_MS, resolve)), () => {});
  }

  private get policy(): ClientPolicy | null {
    return this.core.policies?.of(this.session.identity) ?? null;
  }

  private subscribe(packet: SubscribePacket): void {
    const { packetId } = packet;
    const { client, answers } = this;
    const refused = refusals(this.session);
    const result = subscribe(this.core, this.session, client.listener, packet, () => client.isOpen(), this.policy);
    if (!(result instanceof Promise)) {
      answers.granted(packetId, result);
      if (refusals(this.session) > refused) this.relax();
      return;
    }
    client.suspend(result, (granted) => {
      if (granted !== null) answers.granted(packetId, granted);
    });
  }

  /** For authenticating again: a password is not asked for. */
  private credentials(): Credentials {
    const { clientId, username } = this.session.identity;
    const { connection, listener } = this.client;
    const { remoteAddress, tls } = connection;
    return { clientId, username, password: null, remoteAddress, listener: listener.name, tls, version: 5 };
  }

  private leave({ properties, reasonCode }: DisconnectPacket): void {
    const expiry = properties?.sessionExpiryInterval;
    let told = false;
    if (expiry !== undefined) {
      // A session that was to end with the connection cannot be prolonged now (MQTT 5.0 section 3.14.2.2.2).
      if (this.expiryInterval === 0 && expiry !== 0)
        throw new ProtocolError(PROTOCOL_ERROR, 'Session Expiry Interval set at DISCONNECT');
      told = this.registry.begin(this.session, capExpiry(this.core.limits, expiry));
    }
    // A normal disconnection ends without the will [MQTT-3.14.4-3].
    const withWill = reasonCode === DISCONNECT_WITH_WILL || reasonCode >= 0x80;
    if (!told) {
      this.client.leaves(reasonCode, withWill, null);
      return;
    }
    // The connection closes when the store has it: a session that was ended is not there again after a crash
    // [MQTT-3.14.4-2].
    const hold = new Hold();
    this.core.journal.barrierAll(hold);
    this.client.leaves(reasonCode, withWill, hold);
  }
}
