// PUBLISH (MQTT 5.0 section 3.3, 3.1.1 section 3.3), the packet everything else exists for. scanPublish finds its parts
// in place and allocates nothing; decodePublish fills a Publication for cold paths; encoders write into a given buffer.
// Called by session/ (in), delivery/ (out), bridge/, cli/ and tests. Must not decide what is allowed.
//
//   byte 1    0x30 | DUP 0x08 | QoS 0x06 | RETAIN 0x01
//   ...       Remaining Length
//   2 + n     Topic Name
//   2         Packet Identifier, QoS 1 and 2 only
//   5.0       Property Length, properties
//   rest      payload
import { ProtocolError } from '../base/errors.ts';
import { copyBytes } from '../base/writer.ts';
import type { Publication } from '../mqtt/message.ts';
import { PUBLISH, type Qos, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { MALFORMED_PACKET } from '../mqtt/reason.ts';
import { skipVarint, varintBytes, varintWithin, writeVarint } from '../mqtt/varint.ts';
import type { Frame } from './codec.ts';
import { decodeProperties, encodedPropertiesBytes, writeProperties } from './property.ts';
import { readText } from './text.ts';

/** Where the parts of one PUBLISH are; reused by its reader. */
export interface PublishScan {
  qos: Qos;
  dup: boolean;
  retain: boolean;
  topicStart: number;
  topicEnd: number;
  /** Offset of the Packet Identifier, 0 at QoS 0. */
  packetIdAt: number;
  packetId: number;
  /** Offset of the Property Length, 0 before 5.0. */
  propertiesAt: number;
  /** True when there is at least one property. */
  hasProperties: boolean;
  payloadStart: number;
}

export function newScan(): PublishScan {
  return {
    qos: 0,
    dup: false,
    retain: false,
    topicStart: 0,
    topicEnd: 0,
    packetIdAt: 0,
    packetId: 0,
    propertiesAt: 0,
    hasProperties: false,
    payloadStart: 0,
  };
}

/**
 * Finds the parts of the PUBLISH in `frame`. Throws ProtocolError 0x81 when it is malformed; the topic's text is not
 * looked at.
 */
export function scanPublish(buffer: Uint8Array, frame: Frame, version: Version, scan: PublishScan): void {
  const flags = frame.flags;
  const qos = (flags >> 1) & 3;
  if (qos === 3) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH with QoS 3'); // [MQTT-3.3.1-4]
  scan.qos = qos as Qos;
  scan.dup = (flags & 8) !== 0;
  if (qos === 0 && scan.dup) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH with DUP at QoS 0'); // [MQTT-3.3.1-2]
  scan.retain = (flags & 1) !== 0;
  const end = frame.end;
  let at = frame.bodyStart;
  if (end - at < 2) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH without topic');
  const topicBytes = (buffer[at] << 8) | buffer[at + 1];
  at += 2;
  scan.topicStart = at;
  at += topicBytes;
  scan.topicEnd = at;
  if (qos > 0) {
    if (at + 2 > end) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH ends before its packet identifier');
    scan.packetIdAt = at;
    scan.packetId = (buffer[at] << 8) | buffer[at + 1];
    if (scan.packetId === 0) throw new ProtocolError(MALFORMED_PACKET, 'packet identifier 0'); // [MQTT-2.2.1-3]
    at += 2;
  } else {
    if (at > end) throw new ProtocolError(MALFORMED_PACKET, 'topic reaches past the packet');
    scan.packetIdAt = 0;
    scan.packetId = 0;
  }
  scan.hasProperties = false;
  scan.propertiesAt = 0;
  if (version === 5) {
    if (at >= end) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH without Property Length');
    scan.propertiesAt = at;
    const first = buffer[at];
    if (first === 0) at++;
    else {
      scan.hasProperties = true;
      at = skipProperties(buffer, at, end);
    }
  }
  scan.payloadStart = at;
}

function skipProperties(buffer: Uint8Array, at: number, end: number): number {
  const length = varintWithin(buffer, at, end);
  if (length < 0) throw new ProtocolError(MALFORMED_PACKET, 'malformed Property Length');
  const behind = skipVarint(buffer, at) + length;
  if (behind > end) throw new ProtocolError(MALFORMED_PACKET, 'properties reach past the packet');
  return behind;
}

/**
 * Decodes the whole PUBLISH into `publication` (which becomes a view of `buffer`), for readers that handle few of them.
 * Topic aliases and topic rules are the caller's. Throws ProtocolError when it is malformed.
 */
export function decodePublish(
  buffer: Buffer,
  frame: Frame,
  version: Version,
  scan: PublishScan,
  publication: Publication,
): void {
  scanPublish(buffer, frame, version, scan);
  publication.reset();
  publication.topic = readText(buffer, scan.topicStart, scan.topicEnd);
  publication.qos = scan.qos;
  publication.retain = scan.retain;
  publication.dup = scan.dup;
  publication.packetId = scan.packetId;
  publication.properties = scan.hasProperties
    ? decodeProperties(buffer, scan.propertiesAt, frame.end, PUBLISH).properties
    : null;
  publication.buffer = buffer;
  publication.payloadStart = scan.payloadStart;
  publication.payloadEnd = frame.end;
}

/**
 * Bytes of a whole PUBLISH packet. `topicBytes` is the length of the topic in UTF-8, `propertyBytes` what
 * encodedPropertiesBytes says.
 */
export function publishBytes(
  version: Version,
  qos: Qos,
  topicBytes: number,
  propertyBytes: number,
  payloadBytes: number,
): number {
  const remaining = remainingBytes(version, qos, topicBytes, propertyBytes, payloadBytes);
  return 1 + varintBytes(remaining) + remaining;
}

function remainingBytes(
  version: Version,
  qos: Qos,
  topicBytes: number,
  propertyBytes: number,
  payloadBytes: number,
): number {
  const properties = version === 5 ? varintBytes(propertyBytes) + propertyBytes : 0;
  return 2 + topicBytes + (qos > 0 ? 2 : 0) + properties + payloadBytes;
}

/** What writePublish puts into the buffer. */
export interface PublishParts {
  version: Version;
  qos: Qos;
  dup: boolean;
  retain: boolean;
  packetId: number;
  topic: string;
  /** The same in UTF-8 where it is at hand, else null. */
  topicUtf8: Uint8Array | null;
  /** UTF-8 bytes of `topic`. */
  topicBytes: number;
  properties: Properties | null;
  propertyBytes: number;
  payload: Uint8Array;
  payloadStart: number;
  payloadEnd: number;
}

/**
 * Writes a PUBLISH up to its payload, which is written by the caller or sent from where it lies; returns the offset
 * behind.
 */
export function writePublishHead(target: Buffer, at: number, parts: PublishParts): number {
  const payloadBytes = parts.payloadEnd - parts.payloadStart;
  target[at++] = (PUBLISH << 4) | (parts.dup ? 8 : 0) | (parts.qos << 1) | (parts.retain ? 1 : 0);
  at = writeVarint(
    target,
    at,
    remainingBytes(parts.version, parts.qos, parts.topicBytes, parts.propertyBytes, payloadBytes),
  );
  target[at++] = parts.topicBytes >> 8;
  target[at++] = parts.topicBytes & 255;
  if (parts.topicUtf8 !== null) {
    copyBytes(parts.topicUtf8, 0, target, at, parts.topicBytes);
    at += parts.topicBytes;
  } else if (parts.topicBytes > 0) at += target.write(parts.topic, at, parts.topicBytes, 'utf8');
  if (parts.qos > 0) {
    target[at++] = parts.packetId >> 8;
    target[at++] = parts.packetId & 255;
  }
  if (parts.version === 5) {
    if (parts.properties === null || parts.propertyBytes === 0) target[at++] = 0;
    else at = writeProperties(target, at, parts.properties, PUBLISH);
  }
  return at;
}

/** Writes a whole PUBLISH at `at`, where publishBytes() are free; returns the offset behind it. */
export function writePublish(target: Buffer, at: number, parts: PublishParts): number {
  const payloadAt = writePublishHead(target, at, parts);
  const payloadBytes = parts.payloadEnd - parts.payloadStart;
  copyBytes(parts.payload, parts.payloadStart, target, payloadAt, payloadBytes);
  return payloadAt + payloadBytes;
}

/** A whole PUBLISH in a buffer of its own, for cold paths. */
export function encodePublish(
  version: Version,
  publish: {
    topic: string;
    payload: Uint8Array;
    qos: Qos;
    retain: boolean;
    dup: boolean;
    packetId: number;
    properties: Properties | null;
  },
): Buffer {
  const topicBytes = Buffer.byteLength(publish.topic);
  const properties = version === 5 ? publish.properties : null;
  const propertyBytes = properties === null ? 0 : encodedPropertiesBytes(properties, PUBLISH);
  const packet = Buffer.allocUnsafe(
    publishBytes(version, publish.qos, topicBytes, propertyBytes, publish.payload.length),
  );
  writePublish(packet, 0, {
    version,
    qos: publish.qos,
    dup: publish.dup,
    retain: publish.retain,
    packetId: publish.packetId,
    topic: publish.topic,
    topicUtf8: null,
    topicBytes,
    properties,
    propertyBytes,
    payload: publish.payload,
    payloadStart: 0,
    payloadEnd: publish.payload.length,
  });
  return packet;
}
