// SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK (MQTT 5.0 sections 3.8 to 3.11, 3.1.1 the same). Called by packet.ts,
// session/, proxy/ and cli/. Checks what the bytes alone can tell; whether a Topic Filter is valid or granted is told
// per filter in the SUBACK, so it is session/'s.
//
//   SUBSCRIBE     two bytes Packet Identifier, 5.0: properties, then string Topic Filter + byte options, once or more
//   options       QoS 0x03, No Local 0x04, Retain As Published 0x08, Retain Handling 0x30, reserved 0xC0;
//                 before 5.0 only QoS
//   UNSUBSCRIBE   two bytes Packet Identifier, 5.0: properties, then string Topic Filter, once or more
//   SUBACK        two bytes Packet Identifier, 5.0: properties, then one reason code a filter
//   UNSUBACK      the same; before 5.0 only the Packet Identifier
import { ProtocolError } from '../base/errors.ts';
import {
  type Qos,
  SUBACK,
  SUBSCRIBE,
  type SubackPacket,
  type SubscribePacket,
  type SubscriptionRequest,
  UNSUBACK,
  UNSUBSCRIBE,
  type UnsubackPacket,
  type UnsubscribePacket,
  type Version,
} from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { isReasonCode, MALFORMED_PACKET, PROTOCOL_ERROR, QUOTA_EXCEEDED, UNSPECIFIED_ERROR } from '../mqtt/reason.ts';
import { isShared } from '../mqtt/topic.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import type { Frame } from './codec.ts';
import { decodeProperties, propertiesBytes, writeProperties } from './property.ts';
import { Reader } from './reader.ts';
import { textBytes, writeText, writeUint16 } from './text.ts';

/** Topic Filters in one packet: each may be four bytes on the wire and is a hundred and more in memory. */
export const MAX_FILTERS = 16_384;

interface Head {
  reader: Reader;
  packetId: number;
  properties: Properties | null;
}

/** Packet Identifier and properties, with which all four begin; the fixed header's flags are packet.ts's. */
function readHead(buffer: Buffer, frame: Frame, version: Version): Head {
  const reader = new Reader(buffer, frame.bodyStart, frame.end);
  const packetId = reader.uint16('packet identifier');
  if (packetId === 0) throw new ProtocolError(PROTOCOL_ERROR, 'packet identifier 0'); // [MQTT-2.2.1-3] [MQTT-2.3.1-1]
  if (version < 5) return { reader, packetId, properties: null };
  const { properties, end } = decodeProperties(buffer, reader.at, reader.end, frame.type);
  reader.at = end;
  return { reader, packetId, properties };
}

/**
 * Throws ProtocolError when the packet is malformed for `version`, holds no filter, or asks for what may not be asked.
 */
export function decodeSubscribe(buffer: Buffer, frame: Frame, version: Version): SubscribePacket {
  const { reader, packetId, properties } = readHead(buffer, frame, version);
  const subscriptions: SubscriptionRequest[] = [];
  do {
    // [MQTT-3.8.3-2]
    if (reader.left === 0) throw new ProtocolError(PROTOCOL_ERROR, 'SUBSCRIBE without a topic filter');
    if (subscriptions.length === MAX_FILTERS)
      throw new ProtocolError(QUOTA_EXCEEDED, `more than ${MAX_FILTERS} topic filters`);
    const topicFilter = reader.text('topic filter'); // [MQTT-3.8.3-1]
    subscriptions.push(decodeOptions(topicFilter, reader.byte('subscription options'), version));
  } while (reader.left > 0);
  return { type: SUBSCRIBE, packetId, subscriptions, properties };
}

function decodeOptions(topicFilter: string, options: number, version: Version): SubscriptionRequest {
  const qos = options & 3;
  if (qos === 3) throw new ProtocolError(PROTOCOL_ERROR, 'subscription with QoS 3'); // [MQTT-3-8.3-4 of 3.1.1]
  if (version < 5) {
    // 3.1.1: the upper six bits are reserved and must be 0 [MQTT-3-8.3-4]; 3.1 says only that they are not used.
    if (version === 4 && options > 2) throw new ProtocolError(MALFORMED_PACKET, 'reserved bits in the requested QoS');
    return { topicFilter, qos: qos as Qos, noLocal: false, retainAsPublished: false, retainHandling: 0 };
  }
  // [MQTT-3.8.3-5]
  if ((options & 0xc0) !== 0) throw new ProtocolError(MALFORMED_PACKET, 'reserved bits in the subscription options');
  const retainHandling = (options >> 4) & 3;
  if (retainHandling === 3) throw new ProtocolError(PROTOCOL_ERROR, 'retain handling 3'); // section 3.8.3.1
  const noLocal = (options & 4) !== 0;
  // [MQTT-3.8.3-4]
  if (noLocal && isShared(topicFilter)) throw new ProtocolError(PROTOCOL_ERROR, 'No Local on a shared subscription');
  return {
    topicFilter,
    qos: qos as Qos,
    noLocal,
    retainAsPublished: (options & 8) !== 0,
    retainHandling: retainHandling as 0 | 1 | 2,
  };
}

/** Throws ProtocolError when the packet is malformed for `version` or holds no filter. */
export function decodeUnsubscribe(buffer: Buffer, frame: Frame, version: Version): UnsubscribePacket {
  const { reader, packetId, properties } = readHead(buffer, frame, version);
  const topicFilters: string[] = [];
  do {
    // [MQTT-3.10.3-2]
    if (reader.left === 0) throw new ProtocolError(PROTOCOL_ERROR, 'UNSUBSCRIBE without a topic filter');
    if (topicFilters.length === MAX_FILTERS)
      throw new ProtocolError(QUOTA_EXCEEDED, `more than ${MAX_FILTERS} topic filters`);
    topicFilters.push(reader.text('topic filter')); // [MQTT-3.10.3-1]
  } while (reader.left > 0);
  return { type: UNSUBSCRIBE, packetId, topicFilters, properties };
}

/** Throws ProtocolError when the packet is malformed for `version` or has a reason code that may not be. */
export function decodeSuback(buffer: Buffer, frame: Frame, version: Version): SubackPacket {
  const { reader, packetId, properties } = readHead(buffer, frame, version);
  return { type: SUBACK, packetId, reasonCodes: readCodes(reader, version, SUBACK), properties };
}

/** Throws ProtocolError when the packet is malformed for `version` or has a reason code that may not be. */
export function decodeUnsuback(buffer: Buffer, frame: Frame, version: Version): UnsubackPacket {
  const { reader, packetId, properties } = readHead(buffer, frame, version);
  if (version === 5) return { type: UNSUBACK, packetId, reasonCodes: readCodes(reader, version, UNSUBACK), properties };
  reader.finish('UNSUBACK');
  return { type: UNSUBACK, packetId, reasonCodes: [], properties };
}

function readCodes(reader: Reader, version: Version, type: number): number[] {
  if (reader.left === 0) throw new ProtocolError(MALFORMED_PACKET, 'acknowledgement without reason codes');
  const codes: number[] = [];
  while (reader.left > 0) {
    const code = reader.byte('reason code');
    // [MQTT-3.9.3-2]
    if (!isReasonCode(version, type, code)) throw new ProtocolError(MALFORMED_PACKET, `reason code ${code}`);
    codes.push(code);
  }
  return codes;
}

/** Bytes of Packet Identifier and properties. */
function headBytes(version: Version, properties: Properties | null, type: number): number {
  return version === 5 ? 2 + propertiesBytes(properties, type) : 2;
}

/** A buffer for the whole packet with everything up to the payload written; `at` is where the payload begins. */
function begin(
  version: Version,
  packet: { type: number; packetId: number; properties: Properties | null },
  payloadBytes: number,
): { buffer: Buffer; at: number } {
  const { type, packetId, properties } = packet;
  const remaining = headBytes(version, properties, type) + payloadBytes;
  const buffer = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  buffer[0] = (type << 4) | (type === SUBSCRIBE || type === UNSUBSCRIBE ? 2 : 0); // [MQTT-3.8.1-1] [MQTT-3.10.1-1]
  let at = writeVarint(buffer, 1, remaining);
  at = writeUint16(buffer, at, packetId);
  if (version === 5) at = writeProperties(buffer, at, properties, type);
  return { buffer, at };
}

/** The whole packet; before 5.0 options and properties are left out. */
export function encodeSubscribe(version: Version, packet: SubscribePacket): Buffer {
  if (packet.subscriptions.length === 0) throw new ProtocolError(PROTOCOL_ERROR, 'SUBSCRIBE without a topic filter');
  let payloadBytes = 0;
  for (const { topicFilter } of packet.subscriptions) payloadBytes += textBytes(topicFilter) + 1;
  const { buffer, at: payloadAt } = begin(version, packet, payloadBytes);
  let at = payloadAt;
  for (const one of packet.subscriptions) {
    at = writeText(buffer, at, one.topicFilter);
    const extra = version < 5 ? 0 : (one.noLocal ? 4 : 0) | (one.retainAsPublished ? 8 : 0) | (one.retainHandling << 4);
    buffer[at++] = one.qos | extra;
  }
  return buffer;
}

/** The whole packet; before 5.0 properties are left out. */
export function encodeUnsubscribe(version: Version, packet: UnsubscribePacket): Buffer {
  if (packet.topicFilters.length === 0) throw new ProtocolError(PROTOCOL_ERROR, 'UNSUBSCRIBE without a topic filter');
  let payloadBytes = 0;
  for (const topicFilter of packet.topicFilters) payloadBytes += textBytes(topicFilter);
  const { buffer, at: payloadAt } = begin(version, packet, payloadBytes);
  let at = payloadAt;
  for (const topicFilter of packet.topicFilters) at = writeText(buffer, at, topicFilter);
  return buffer;
}

/** The whole packet; before 5.0 every failure is 0x80 [MQTT-3.9.3-2 of 3.1.1] and properties are left out. */
export function encodeSuback(version: Version, packet: SubackPacket): Buffer {
  const { buffer, at } = begin(version, packet, packet.reasonCodes.length);
  for (let i = 0; i < packet.reasonCodes.length; i++) {
    const code = packet.reasonCodes[i];
    buffer[at + i] = version < 5 && code > 2 ? UNSPECIFIED_ERROR : code;
  }
  return buffer;
}

/** The whole packet; before 5.0 it has no reason codes and no properties. */
export function encodeUnsuback(version: Version, packet: UnsubackPacket): Buffer {
  const { buffer, at } = begin(version, packet, version === 5 ? packet.reasonCodes.length : 0);
  if (version === 5) for (let i = 0; i < packet.reasonCodes.length; i++) buffer[at + i] = packet.reasonCodes[i];
  return buffer;
}
