// What the servers of an exchange send, packet by packet: each to the part that deals with it. Made by exchange.ts.
// Sources: MQTT 5.0 sections 3.2, 3.14, 3.15, 4.3.
import { ProtocolError } from '../../base/errors.ts';
import { ackPacketId } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import { decodeDisconnect } from '../../codec/session.ts';
import {
  AUTH,
  DISCONNECT,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBACK,
  UNSUBACK,
} from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR, SERVER_BUSY, SERVER_SHUTTING_DOWN } from '../../mqtt/reason.ts';
import type { Arrivals } from './arrivals.ts';
import { copyOf } from './clientpackets.ts';
import type { Ends } from './ends.ts';
import type { Leg } from './leg.ts';
import type { Publishes } from './publishes.ts';
import type { Requests } from './requests.ts';

export class ServerPackets {
  private readonly ends: Ends;
  private readonly publishes: Publishes;
  private readonly requests: Requests;
  private readonly arrivals: Arrivals;

  constructor(ends: Ends, publishes: Publishes, requests: Requests, arrivals: Arrivals) {
    this.ends = ends;
    this.publishes = publishes;
    this.requests = requests;
    this.arrivals = arrivals;
  }

  /**
   * False = not now: the client has to acknowledge others first. Throws ProtocolError for what a server may not send.
   */
  take(leg: Leg, bytes: Buffer, frame: Frame): boolean {
    switch (frame.type) {
      case PUBLISH:
        return this.arrivals.publish(leg, bytes, frame);
      case PUBREL:
        this.arrivals.release(leg, bytes, frame);
        return true;
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.acknowledged(leg, bytes, frame);
        return true;
      case SUBACK:
      case UNSUBACK:
        this.requests.answered(leg, bytes, frame);
        return true;
      case AUTH:
        return this.early(leg, bytes, frame);
      case PINGRESP:
        leg.ponged();
        return true;
      case DISCONNECT:
        this.disconnected(bytes, frame);
        return true;
      default:
        throw new ProtocolError(PROTOCOL_ERROR, 'CONNACK twice');
    }
  }

  /** What may come before CONNACK: AUTH, of the server of the route alone; false = all else has to wait. */
  early(leg: Leg, bytes: Buffer, frame: Frame): boolean {
    if (frame.type !== AUTH) return false;
    if (leg.index === 0) this.ends.toClient(copyOf(bytes, frame));
    return true;
  }

  /**
   * The client has gone; a server is still given what it sent, and gets the end of an exchange of QoS 2 if it asks for
   * it.
   */
  late(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { type } = frame;
    if (type === PUBACK || type === PUBREC || type === PUBCOMP)
      leg.acknowledged(type, ackPacketId(bytes, frame), codeOf(bytes, frame));
  }

  private acknowledged(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { type } = frame;
    const packetId = ackPacketId(bytes, frame);
    const code = this.ends.version === 5 ? codeOf(bytes, frame) : 0;
    leg.acknowledged(type, packetId, code);
    if (type === PUBCOMP && this.requests.completed(leg, packetId, code)) return;
    if (type !== PUBREC || code >= 0x80) this.publishes.done(packetId);
    this.ends.passToClient(bytes, frame.packetStart, frame.end);
  }

  /** A server that only goes away is lost when its connection ends; what else it says is for the client. */
  private disconnected(bytes: Buffer, frame: Frame): void {
    const { reasonCode } = decodeDisconnect(bytes, frame, this.ends.version, 'server');
    if (reasonCode === SERVER_SHUTTING_DOWN || reasonCode === SERVER_BUSY || reasonCode === 0) return;
    this.ends.toClient(copyOf(bytes, frame));
    this.ends.over('closed by server', null);
  }
}

function codeOf(bytes: Buffer, frame: Frame): number {
  return frame.end - frame.bodyStart > 2 ? bytes[frame.bodyStart + 2] : 0;
}
