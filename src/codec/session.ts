// The packets that keep and end a connection: PINGREQ, PINGRESP, DISCONNECT, AUTH (MQTT 5.0 sections 3.12 to 3.15).
// Called by packet.ts, session/ and proxy/. Must not decide what a DISCONNECT means for the will: that is session/'s.
//
//   PINGREQ, PINGRESP   nothing behind the fixed header
//   DISCONNECT          before 5.0 nothing; 5.0: byte reason code (none: 0x00), properties (none if the length is 1)
//   AUTH                5.0 only, the same layout
import { ProtocolError } from '../base/errors.ts';
import {
  AUTH,
  type AuthPacket,
  DISCONNECT,
  type DisconnectPacket,
  PINGREQ,
  PINGRESP,
  type PingreqPacket,
  type PingrespPacket,
  type Version,
} from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { isReasonCode, MALFORMED_PACKET, PROTOCOL_ERROR } from '../mqtt/reason.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import type { Frame, Sender } from './codec.ts';
import { decodeProperties, propertiesBytes, writeProperties } from './property.ts';

/** Throws ProtocolError 0x81 when anything follows the fixed header. */
export function decodePing(frame: Frame): PingreqPacket | PingrespPacket {
  if (frame.end !== frame.bodyStart) throw new ProtocolError(MALFORMED_PACKET, 'PINGREQ or PINGRESP with a body');
  return { type: frame.type === PINGREQ ? PINGREQ : PINGRESP };
}

/** PINGREQ or PINGRESP. */
export function encodePing(type: typeof PINGREQ | typeof PINGRESP): Buffer {
  return Buffer.from([type << 4, 0]);
}

interface Reasoned {
  reasonCode: number;
  properties: Properties | null;
}

function decodeReasoned(buffer: Buffer, frame: Frame, type: number): Reasoned {
  if (frame.end === frame.bodyStart) return { reasonCode: 0, properties: null };
  const reasonCode = buffer[frame.bodyStart];
  // [MQTT-3.14.2-1]
  if (!isReasonCode(5, type, reasonCode)) throw new ProtocolError(MALFORMED_PACKET, `reason code ${reasonCode}`);
  if (frame.end === frame.bodyStart + 1) return { reasonCode, properties: null };
  const { properties, end } = decodeProperties(buffer, frame.bodyStart + 1, frame.end, type);
  if (end !== frame.end) throw new ProtocolError(MALFORMED_PACKET, `${frame.end - end} bytes too many`);
  return { reasonCode, properties };
}

/** Throws ProtocolError when the packet is malformed for `version`, or holds a property that `from` may not send. */
export function decodeDisconnect(buffer: Buffer, frame: Frame, version: Version, from: Sender): DisconnectPacket {
  if (version < 5) {
    if (frame.end !== frame.bodyStart) throw new ProtocolError(MALFORMED_PACKET, 'DISCONNECT with a body');
    return { type: DISCONNECT, reasonCode: 0, properties: null };
  }
  const { reasonCode, properties } = decodeReasoned(buffer, frame, DISCONNECT);
  if (properties !== null) {
    // Session Expiry Interval comes from clients only [MQTT-3.14.2-2], Server Reference from servers only (section
    // 3.14.2.2.5).
    const foreign = from === 'client' ? properties.serverReference : properties.sessionExpiryInterval;
    if (foreign !== undefined)
      throw new ProtocolError(PROTOCOL_ERROR, `DISCONNECT with a property no ${from} may send`);
  }
  return { type: DISCONNECT, reasonCode, properties };
}

/** The whole packet in its shortest form; before 5.0 reason code and properties are left out. */
export function encodeDisconnect(version: Version, packet: DisconnectPacket): Buffer {
  return version < 5 ? Buffer.from([DISCONNECT << 4, 0]) : encodeReasoned(DISCONNECT, packet);
}

/** Throws ProtocolError when the packet is malformed or goes on without naming its method (section 3.15.2.2.2). */
export function decodeAuth(buffer: Buffer, frame: Frame): AuthPacket {
  const { reasonCode, properties } = decodeReasoned(buffer, frame, AUTH); // [MQTT-3.15.2-1]
  const method = properties?.authenticationMethod;
  if (method === undefined && (reasonCode !== 0 || properties !== null)) {
    throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an authentication method');
  }
  return { type: AUTH, reasonCode, properties };
}

/** The whole packet in its shortest form. */
export function encodeAuth(packet: AuthPacket): Buffer {
  return encodeReasoned(AUTH, packet);
}

function encodeReasoned(type: number, packet: Reasoned): Buffer {
  const { reasonCode, properties } = packet;
  if (properties === null)
    return reasonCode === 0 ? Buffer.from([type << 4, 0]) : Buffer.from([type << 4, 1, reasonCode]);
  const remaining = 1 + propertiesBytes(properties, type);
  const buffer = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  buffer[0] = type << 4;
  const at = writeVarint(buffer, 1, remaining);
  buffer[at] = reasonCode;
  writeProperties(buffer, at + 1, properties, type);
  return buffer;
}
