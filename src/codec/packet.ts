// Any Control Packet but PUBLISH by its type: the one switch between bytes and packets.
// Called by session/ for what is not hot, by bridge/ and tests. Must not hold knowledge of any packet's inside.
import { ProtocolError } from '../base/errors.ts';
import {
  AUTH,
  CONNACK,
  CONNECT,
  type ControlPacket,
  DISCONNECT,
  PINGREQ,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
  type Version,
} from '../mqtt/packet.ts';
import { MALFORMED_PACKET, PROTOCOL_ERROR } from '../mqtt/reason.ts';
import { decodeAck, encodeAck } from './ack.ts';
import type { Frame, Sender } from './codec.ts';
import { decodeConnack, decodeConnect, encodeConnack, encodeConnect } from './connect.ts';
import { decodeAuth, decodeDisconnect, decodePing, encodeAuth, encodeDisconnect, encodePing } from './session.ts';
import {
  decodeSuback,
  decodeSubscribe,
  decodeUnsuback,
  decodeUnsubscribe,
  encodeSuback,
  encodeSubscribe,
  encodeUnsuback,
  encodeUnsubscribe,
} from './subscribe.ts';

/** Packet types a side may send, as bits (MQTT 5.0 section 2.1.2, "Direction of flow"). */
const BOTH =
  (1 << PUBLISH) | (1 << PUBACK) | (1 << PUBREC) | (1 << PUBREL) | (1 << PUBCOMP) | (1 << DISCONNECT) | (1 << AUTH);
const SENT_BY: Readonly<Record<Sender, number>> = {
  client: BOTH | (1 << CONNECT) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE) | (1 << PINGREQ),
  server: BOTH | (1 << CONNACK) | (1 << SUBACK) | (1 << UNSUBACK) | (1 << PINGRESP),
};
/** Packet types whose flags are 2; all others but PUBLISH have 0. */
const FLAGS_2 = (1 << PUBREL) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE);

/**
 * Checks type and flags of a fixed header. Throws ProtocolError 0x81 for reserved types and wrong flags, 0x82 for a
 * packet that `from` may not send. MQTT 3.1 gives the flags no fixed values (a packet sent again may carry DUP), so
 * there they are not looked at.
 */
export function checkFrame(version: Version, frame: Frame, from: Sender): void {
  const { type, flags } = frame;
  if (type === 0 || (type === AUTH && version < 5))
    throw new ProtocolError(MALFORMED_PACKET, `reserved packet type ${type}`);
  if ((SENT_BY[from] & (1 << type)) === 0)
    throw new ProtocolError(PROTOCOL_ERROR, `packet type ${type} from a ${from}`);
  if (version < 5 && from === 'server' && type === DISCONNECT)
    throw new ProtocolError(PROTOCOL_ERROR, 'DISCONNECT from a server');
  if (version === 3 || type === PUBLISH || type === CONNECT) return; // CONNECT tells its version itself.
  if (flags !== ((FLAGS_2 >> type) & 1) * 2) {
    // [MQTT-2.1.3-1] [MQTT-2.2.2-2] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1] [MQTT-3.14.1-1] [MQTT-3.15.1-1]
    throw new ProtocolError(MALFORMED_PACKET, `packet type ${type} with flags ${flags}`);
  }
}

/**
 * Decodes the packet in `frame` that `from` has sent. PUBLISH has decoders of its own (publish.ts) and is refused here.
 * Throws ProtocolError and nothing else.
 */
export function decodePacket(version: Version, buffer: Buffer, frame: Frame, from: Sender = 'client'): ControlPacket {
  checkFrame(version, frame, from);
  switch (frame.type) {
    case CONNECT:
      return decodeConnect(buffer, frame);
    case CONNACK:
      return decodeConnack(buffer, frame, version);
    case PUBACK:
    case PUBREC:
    case PUBREL:
    case PUBCOMP:
      return decodeAck(buffer, frame, version);
    case SUBSCRIBE:
      return decodeSubscribe(buffer, frame, version);
    case SUBACK:
      return decodeSuback(buffer, frame, version);
    case UNSUBSCRIBE:
      return decodeUnsubscribe(buffer, frame, version);
    case UNSUBACK:
      return decodeUnsuback(buffer, frame, version);
    case PINGREQ:
    case PINGRESP:
      return decodePing(frame);
    case DISCONNECT:
      return decodeDisconnect(buffer, frame, version, from);
    case AUTH:
      return decodeAuth(buffer, frame);
    default:
      throw new ProtocolError(PROTOCOL_ERROR, 'PUBLISH where none may be');
  }
}

/** The whole packet. Throws ProtocolError when it cannot be said in `version`; a CONNECT goes by its own version. */
export function encodePacket(version: Version, packet: ControlPacket): Buffer {
  switch (packet.type) {
    case CONNECT:
      return encodeConnect(packet);
    case CONNACK:
      return encodeConnack(version, packet);
    case PUBACK:
    case PUBREC:
    case PUBREL:
    case PUBCOMP:
      return encodeAck(version, packet.type, packet.packetId, packet.reasonCode, packet.properties);
    case SUBSCRIBE:
      return encodeSubscribe(version, packet);
    case SUBACK:
      return encodeSuback(version, packet);
    case UNSUBSCRIBE:
      return encodeUnsubscribe(version, packet);
    case UNSUBACK:
      return encodeUnsuback(version, packet);
    case PINGREQ:
    case PINGRESP:
      return encodePing(packet.type);
    case DISCONNECT:
      return encodeDisconnect(version, packet);
    case AUTH:
      if (version < 5) throw new ProtocolError(PROTOCOL_ERROR, 'AUTH before MQTT 5.0');
      return encodeAuth(packet);
  }
}
