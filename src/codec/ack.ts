// PUBACK, PUBREC, PUBREL, PUBCOMP (MQTT 5.0 sections 3.4 to 3.7): one layout, four meanings.
// Called for every QoS 1 and 2 packet; the four-byte form is read and written in place.
//
//   byte 1       type << 4, PUBREL with flags 2 [MQTT-3.6.1-1]
//   byte 2       Remaining Length
//   bytes 3-4    Packet Identifier
//   5.0 only, when Remaining Length > 2: Reason Code; when > 3: Property Length, properties
import { ProtocolError } from '../base/errors.ts';
import type { AckPacket, Version } from '../mqtt/packet.ts';
import { PUBREL } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { isReasonCode, MALFORMED_PACKET } from '../mqtt/reason.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import type { Frame } from './codec.ts';
import { decodeProperties, encodedPropertiesBytes, writeProperties } from './property.ts';

/** Bytes of an acknowledgement without reason code. */
export const ACK_BYTES = 4;

/** Writes the four-byte form at `at`: reason code 0 in 5.0, the only form before. */
export function writeAck(buffer: Uint8Array, at: number, type: number, packetId: number): void {
  buffer[at] = (type << 4) | (type === PUBREL ? 2 : 0);
  buffer[at + 1] = 2;
  buffer[at + 2] = packetId >> 8;
  buffer[at + 3] = packetId & 255;
}

/** Packet Identifier of an acknowledgement. Throws ProtocolError 0x81 when there is none or it is 0 [MQTT-2.2.1-3]. */
export function ackPacketId(buffer: Uint8Array, frame: Frame): number {
  if (frame.end - frame.bodyStart < 2)
    throw new ProtocolError(MALFORMED_PACKET, 'acknowledgement without packet identifier');
  const packetId = (buffer[frame.bodyStart] << 8) | buffer[frame.bodyStart + 1];
  if (packetId === 0) throw new ProtocolError(MALFORMED_PACKET, 'packet identifier 0');
  return packetId;
}

/** Throws ProtocolError when the packet is malformed for `version`. */
export function decodeAck(buffer: Buffer, frame: Frame, version: Version): AckPacket {
  const type = frame.type as AckPacket['type'];
  const packetId = ackPacketId(buffer, frame);
  const rest = frame.end - frame.bodyStart - 2;
  if (version < 5) {
    if (rest > 0) throw new ProtocolError(MALFORMED_PACKET, 'acknowledgement with bytes too many');
    return { type, packetId, reasonCode: 0, properties: null };
  }
  const reasonCode = rest > 0 ? buffer[frame.bodyStart + 2] : 0;
  if (rest > 0 && !isReasonCode(5, type, reasonCode)) {
    // [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1]
    throw new ProtocolError(MALFORMED_PACKET, `acknowledgement with reason code ${reasonCode}`);
  }
  const properties = rest > 1 ? decodeProperties(buffer, frame.bodyStart + 3, frame.end, type) : null;
  if (properties !== null && properties.end !== frame.end) {
    throw new ProtocolError(MALFORMED_PACKET, 'acknowledgement with bytes too many');
  }
  return { type, packetId, reasonCode, properties: properties === null ? null : properties.properties };
}

/** The whole packet; before 5.0 reason code and properties are left out. */
export function encodeAck(
  version: Version,
  type: AckPacket['type'],
  packetId: number,
  reasonCode = 0,
  properties: Properties | null = null,
): Buffer {
  if (version < 5 || (reasonCode === 0 && properties === null)) {
    const short = Buffer.allocUnsafe(ACK_BYTES);
    writeAck(short, 0, type, packetId);
    return short;
  }
  const propertyBytes = properties === null ? 0 : encodedPropertiesBytes(properties, type);
  const remaining = 3 + (propertyBytes === 0 ? 0 : varintBytes(propertyBytes) + propertyBytes);
  const packet = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  packet[0] = (type << 4) | (type === PUBREL ? 2 : 0);
  let at = writeVarint(packet, 1, remaining);
  packet[at++] = packetId >> 8;
  packet[at++] = packetId & 255;
  packet[at++] = reasonCode;
  if (properties !== null && propertyBytes > 0) writeProperties(packet, at, properties, type);
  return packet;
}
