// The variable header of a PUBLISH, read before its payload is there, and written anew with another topic and other
// properties. Called by inspect.ts for every PUBLISH that has to be looked at. Pure; throws ProtocolError for what is
// malformed. Source: MQTT 5.0 section 3.3.2, 3.1.1 section 3.3.2.
import { ProtocolError } from '../base/errors.ts';
import { decodeProperties, propertiesBytes, writeProperties } from '../codec/property.ts';
import { PUBLISH, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { MALFORMED_PACKET, PACKET_TOO_LARGE } from '../mqtt/reason.ts';
import {
  skipVarint,
  VARINT_CUT,
  VARINT_MAX,
  VARINT_TOO_LONG,
  varintBytes,
  varintWithin,
  writeVarint,
} from '../mqtt/varint.ts';

/** The variable header of a PUBLISH. */
export interface Head {
  readonly qos: number;
  readonly topicStart: number;
  readonly topicEnd: number;
  readonly packetId: number;
  /** 5.0: decoded where they have to be looked at, else undefined. */
  readonly properties: Properties | null | undefined;
  readonly end: number;
}

/** Reads it in [frame.bodyStart, end); null = not all there. With `decode` the properties are decoded. */
export function readHead(
  bytes: Buffer,
  frame: { flags: number; bodyStart: number; end: number },
  end: number,
  version: Version,
  decode: boolean,
): Head | null {
  const qos = (frame.flags >> 1) & 3;
  if (qos === 3) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH with QoS 3'); // [MQTT-3.3.1-4]
  const topicStart = frame.bodyStart + 2;
  if (missing(topicStart, frame.end, end)) return null;
  const topicEnd = topicStart + bytes.readUInt16BE(frame.bodyStart);
  const propertiesAt = topicEnd + (qos > 0 ? 2 : 0);
  if (missing(propertiesAt, frame.end, end)) return null;
  const packetId = qos > 0 ? bytes.readUInt16BE(topicEnd) : 0;
  if (version < 5) return { qos, topicStart, topicEnd, packetId, properties: null, end: propertiesAt };
  const length = varintWithin(bytes, propertiesAt, Math.min(frame.end, end));
  if (length === VARINT_TOO_LONG) throw new ProtocolError(MALFORMED_PACKET, 'Property Length has more than four bytes');
  if (length === VARINT_CUT && missing(end + 1, frame.end, end)) return null;
  const at = skipVarint(bytes, propertiesAt);
  if (missing(at + length, frame.end, end)) return null;
  const properties = decode ? decodeProperties(bytes, propertiesAt, at + length, PUBLISH).properties : undefined;
  return { qos, topicStart, topicEnd, packetId, properties, end: at + length };
}

/** Whether bytes before `needed` have still to come. Throws ProtocolError when the packet ends before. */
function missing(needed: number, packetEnd: number, there: number): boolean {
  if (needed > packetEnd) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH ends in its header');
  return needed > there;
}

/** A PUBLISH up to its payload, with another topic and other properties. */
export function newHead(
  bytes: Buffer,
  frame: { packetStart: number; end: number },
  head: Head,
  topic: readonly Buffer[],
  properties: Properties | null | undefined,
  version: Version,
): Buffer {
  const topicBytes = topic.reduce((sum, part) => sum + part.length, 0);
  const kept = properties === undefined ? head.end - head.topicEnd : head.qos > 0 ? 2 : 0;
  const ofProperties = properties === undefined || version < 5 ? 0 : propertiesBytes(properties, PUBLISH);
  const variable = 2 + topicBytes + kept + ofProperties;
  const remaining = variable + frame.end - head.end;
  if (remaining > VARINT_MAX) throw new ProtocolError(PACKET_TOO_LARGE, 'packet is too large with its new topic');
  const out = Buffer.allocUnsafe(1 + varintBytes(remaining) + variable);
  out[0] = bytes[frame.packetStart];
  let at = writeVarint(out, 1, remaining);
  at = out.writeUInt16BE(topicBytes, at);
  for (const part of topic) {
    out.set(part, at);
    at += part.length;
  }
  at += bytes.copy(out, at, head.topicEnd, head.topicEnd + kept);
  if (ofProperties > 0) writeProperties(out, at, properties ?? null, PUBLISH);
  return out;
}
