// What a client sends once its exchange is open, packet by packet: each to the part that deals with it. Made by
// exchange.ts. PUBLISH goes straight through; before anything else of the client is written, what runs to the servers
// is flushed, so that order holds. Sources: MQTT 5.0 sections 3.1, 3.12, 3.14.
import { ProtocolError } from '../../base/errors.ts';
import { ackPacketId } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import { checkFrame } from '../../codec/packet.ts';
import { decodeDisconnect, decodePing, encodePing } from '../../codec/session.ts';
import {
  CONNECT,
  DISCONNECT,
  PINGREQ,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../mqtt/packet.ts';
import { DISCONNECT_WITH_WILL, PROTOCOL_ERROR } from '../../mqtt/reason.ts';
import type { Arrivals } from './arrivals.ts';
import type { Ends } from './ends.ts';
import type { Publishes } from './publishes.ts';
import type { Requests } from './requests.ts';

export class ClientPackets {
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

  /** Throws ProtocolError for what a client may not send. */
  take(bytes: Buffer, frame: Frame): void {
    checkFrame(this.ends.version, frame, 'client');
    switch (frame.type) {
      case PUBLISH:
        this.publishes.take(bytes, frame);
        return;
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.arrivals.acknowledged(bytes, frame);
        return;
      case PINGREQ:
        decodePing(frame);
        this.ends.toClient(encodePing(PINGRESP)); // [MQTT-3.12.4-1]
        return;
      default:
        this.ends.flushToServers();
        this.rare(bytes, frame);
    }
  }

  private rare(bytes: Buffer, frame: Frame): void {
    const { requests } = this;
    switch (frame.type) {
      case CONNECT:
        throw new ProtocolError(PROTOCOL_ERROR, 'CONNECT twice'); // [MQTT-3.1.0-2]
      case PUBREL:
        this.release(bytes, frame);
        return;
      case SUBSCRIBE:
        requests.subscribe(bytes, frame);
        return;
      case UNSUBSCRIBE:
        requests.unsubscribe(bytes, frame);
        return;
      case DISCONNECT:
        this.disconnect(bytes, frame);
        return;
      default:
        // AUTH: the server of the route alone takes part in it.
        this.ends.leg(0)?.acknowledge(copyOf(bytes, frame));
    }
  }

  private release(bytes: Buffer, frame: Frame): void {
    const packetId = ackPacketId(bytes, frame);
    const leg = this.publishes.legOf(packetId);
    if (leg === null) this.requests.release(bytes, frame);
    else leg.release(packetId, copyOf(bytes, frame));
  }

  private disconnect(bytes: Buffer, frame: Frame): void {
    const { reasonCode } = decodeDisconnect(bytes, frame, this.ends.version, 'client');
    const withWill = reasonCode === DISCONNECT_WITH_WILL;
    this.ends.over(withWill ? 'closed by client with will' : 'closed by client', copyOf(bytes, frame));
  }
}

export function copyOf(bytes: Buffer, frame: Frame): Buffer {
  return Buffer.from(bytes.subarray(frame.packetStart, frame.end));
}
