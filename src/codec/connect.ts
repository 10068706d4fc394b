// CONNECT and CONNACK (MQTT 5.0 sections 3.1 and 3.2, 3.1.1 the same, 3.1 sections 3.1 and 3.2). Called by session/ for
// the first packet of a connection, by packet.ts, proxy/ and cli/. Decides only what the packet alone can tell:
// credentials, empty client ids and limits are session/'s.
//
//   CONNECT   string Protocol Name, byte Protocol Level, byte flags, two bytes Keep Alive, 5.0: properties,
//             string Client Identifier, [5.0: Will Properties, string Will Topic, binary Will Payload],
//             [string User Name], [binary Password]
//   flags     User Name 0x80, Password 0x40, Will Retain 0x20, Will QoS 0x18, Will 0x04, Clean Start 0x02,
//             reserved 0x01
//   CONNACK   byte Session Present, byte reason, 5.0: properties
import { ProtocolError } from '../base/errors.ts';
import {
  CONNACK,
  CONNECT,
  type ConnackPacket,
  type ConnectPacket,
  type Qos,
  type Version,
  type Will,
} from '../mqtt/packet.ts';
import { type Properties, WILL } from '../mqtt/property.ts';
import {
  CLIENT_IDENTIFIER_NOT_VALID,
  isReasonCode,
  MALFORMED_PACKET,
  PROTOCOL_ERROR,
  returnCode,
  TOPIC_NAME_INVALID,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../mqtt/reason.ts';
import { isTopicName } from '../mqtt/topic.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import type { Frame } from './codec.ts';
import { decodeProperties, propertiesBytes, writeProperties } from './property.ts';
import { Reader } from './reader.ts';
import { binaryBytes, textBytes, writeBinary, writeText, writeUint16 } from './text.ts';

const USERNAME_FLAG = 0x80;
const PASSWORD_FLAG = 0x40;
const WILL_RETAIN_FLAG = 0x20;
const WILL_QOS_FLAGS = 0x18;
const WILL_FLAG = 0x04;
const CLEAN_START_FLAG = 0x02;
const RESERVED_FLAG = 0x01;

/** Bit 7 of the Protocol Level in 3.1 and 3.1.1: set by bridges, a convention of mosquitto that others follow. */
const BRIDGE_BIT = 0x80;

/**
 * A CONNECT that is refused for what is in it. `version` is the form an answer has to have, null when the peer may not
 * be answered.
 */
export class ConnectError extends ProtocolError {
  readonly version: Version | null;

  constructor(version: Version | null, reasonCode: number, text: string) {
    super(reasonCode, text);
    this.name = 'ConnectError';
    this.version = version;
  }
}

/**
 * The CONNACK that tells a peer why its CONNECT was refused; null where the connection is just closed: an unknown
 * protocol, and before 5.0 everything but an unacceptable protocol level [MQTT-3.1.2-2 of 3.1.1].
 */
export function encodeRefusal(error: ConnectError): Buffer | null {
  if (error.version === null) return null;
  if (error.version < 5 && error.reasonCode !== UNSUPPORTED_PROTOCOL_VERSION) return null;
  return encodeConnack(error.version, {
    type: CONNACK,
    sessionPresent: false,
    reasonCode: error.reasonCode,
    properties: null,
  });
}

/** Decodes the CONNECT in `frame`. Throws ConnectError, which is a ProtocolError, and nothing else. */
export function decodeConnect(buffer: Buffer, frame: Frame): ConnectPacket {
  const reader = new Reader(buffer, frame.bodyStart, frame.end);
  let version: Version | null = null;
  try {
    const name = reader.text('protocol name');
    // Another name is not MQTT at all: nothing can be answered that the peer would understand [MQTT-3.1.2-1].
    if (name !== 'MQTT' && name !== 'MQIsdp')
      throw new ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, 'unknown protocol name');
    const level = reader.byte('protocol level');
    // The answer to a level that is not known is 5.0's above 5, else 3.1.1's.
    version = level > 4 && level < BRIDGE_BIT && name === 'MQTT' ? 5 : 4;
    version = versionOf(name, level);
    return decodeBody(reader, frame.flags, version, (level & BRIDGE_BIT) !== 0);
  } catch (error) {
    if (error instanceof ProtocolError) throw new ConnectError(version, error.reasonCode, error.message);
    throw error;
  }
}

function versionOf(name: string, level: number): Version {
  if (name === 'MQIsdp' && (level & ~BRIDGE_BIT) === 3) return 3;
  if (name === 'MQTT' && (level & ~BRIDGE_BIT) === 4) return 4;
  if (name === 'MQTT' && level === 5) return 5;
  throw new ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, `protocol level ${level}`); // [MQTT-3.1.2-2]
}

function decodeBody(reader: Reader, headerFlags: number, version: Version, bridge: boolean): ConnectPacket {
  // MQTT 3.1 gives these flags no meaning and its clients may set them.
  // [MQTT-2.1.3-1]
  if (version > 3 && headerFlags !== 0) throw new ProtocolError(MALFORMED_PACKET, 'CONNECT with fixed header flags');
  const flags = reader.byte('connect flags');
  checkFlags(flags, version);
  const keepAlive = reader.uint16('keep alive');
  const properties = version === 5 ? readProperties(reader, CONNECT) : null;
  if (
    properties !== null &&
    properties.authenticationData !== undefined &&
    properties.authenticationMethod === undefined
  ) {
    throw new ProtocolError(PROTOCOL_ERROR, 'authentication data without a method'); // section 3.1.2.11.10
  }
  const clientId = reader.text('client identifier'); // [MQTT-3.1.3-3] [MQTT-3.1.3-4]
  checkClientId(clientId, version);
  const will = (flags & WILL_FLAG) === 0 ? null : decodeWill(reader, flags, version);
  let username: string | null = null;
  let password: Uint8Array | null = null;
  if ((flags & USERNAME_FLAG) !== 0) {
    // 3.1: the Remaining Length counts, not the flag, and the name need not be UTF-8 (3.1 section 3.1).
    if (version > 3)
      username = reader.text('user name'); // [MQTT-3.1.3-11 of 3.1.1] [MQTT-3.1.2-17]
    else if (reader.left > 0) username = reader.looseText('user name');
  }
  // [MQTT-3.1.2-19]
  if ((flags & PASSWORD_FLAG) !== 0 && (version > 3 || reader.left > 0)) password = reader.binary('password');
  reader.finish('CONNECT');
  const cleanStart = (flags & CLEAN_START_FLAG) !== 0;
  return { type: CONNECT, version, bridge, clientId, cleanStart, keepAlive, username, password, will, properties };
}

function checkFlags(flags: number, version: Version): void {
  // [MQTT-3.1.2-12]
  if ((flags & WILL_QOS_FLAGS) === WILL_QOS_FLAGS) throw new ProtocolError(MALFORMED_PACKET, 'will with QoS 3');
  // A password needs a user name before 5.0 [MQTT-3.1.2-22 of 3.1.1].
  if (version < 5 && (flags & (USERNAME_FLAG | PASSWORD_FLAG)) === PASSWORD_FLAG) {
    throw new ProtocolError(PROTOCOL_ERROR, 'password without user name');
  }
  if (version === 3) return; // 3.1 leaves the rest open.
  // [MQTT-3.1.2-3]
  if ((flags & RESERVED_FLAG) !== 0) throw new ProtocolError(MALFORMED_PACKET, 'reserved connect flag is set');
  if ((flags & WILL_FLAG) === 0 && (flags & (WILL_QOS_FLAGS | WILL_RETAIN_FLAG)) !== 0) {
    // [MQTT-3.1.2-11] [MQTT-3.1.2-13]
    throw new ProtocolError(MALFORMED_PACKET, 'will QoS or will retain without a will');
  }
}

/**
 * Client ids become topic levels, log fields and file lines: control characters are refused in them, unlike in topics.
 */
function checkClientId(clientId: string, version: Version): void {
  for (let i = 0; i < clientId.length; i++) {
    const unit = clientId.charCodeAt(i);
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f)) {
      const reason = version === 5 ? CLIENT_IDENTIFIER_NOT_VALID : MALFORMED_PACKET;
      throw new ProtocolError(reason, 'client identifier with a control character');
    }
  }
}

function decodeWill(reader: Reader, flags: number, version: Version): Will {
  let properties = version === 5 ? readProperties(reader, WILL) : null;
  let delayInterval = 0;
  if (properties?.willDelayInterval !== undefined) {
    delayInterval = properties.willDelayInterval;
    delete properties.willDelayInterval;
    if (Object.keys(properties).length === 0) properties = null;
  }
  const topicName = reader.text('will topic'); // [MQTT-3.1.3-11]
  if (!isTopicName(topicName)) throw new ProtocolError(TOPIC_NAME_INVALID, 'will topic is not a topic name');
  const payload = reader.binary('will payload');
  const qos = ((flags & WILL_QOS_FLAGS) >> 3) as Qos;
  return { topicName, payload, qos, retain: (flags & WILL_RETAIN_FLAG) !== 0, properties, delayInterval };
}

function readProperties(reader: Reader, packet: number): Properties | null {
  const decoded = decodeProperties(reader.buffer, reader.at, reader.end, packet);
  reader.at = decoded.end;
  return decoded.properties;
}

/** The Will Properties as they are on the wire. */
function willProperties(will: Will): Properties | null {
  return will.delayInterval === 0 ? will.properties : { ...will.properties, willDelayInterval: will.delayInterval };
}

/**
 * The whole packet for `packet.version`. Throws ProtocolError when it cannot be said in that version, or a field is too
 * long.
 */
export function encodeConnect(packet: ConnectPacket): Buffer {
  const { version, will, username, password } = packet;
  const name = version === 3 ? 'MQIsdp' : 'MQTT';
  if (version < 5 && password !== null && username === null)
    throw new ProtocolError(PROTOCOL_ERROR, 'password without user name');
  let remaining = textBytes(name) + 4 + textBytes(packet.clientId);
  if (version === 5) remaining += propertiesBytes(packet.properties, CONNECT);
  const ofWill = will === null ? null : willProperties(will);
  if (will !== null) {
    if (!isTopicName(will.topicName)) throw new ProtocolError(TOPIC_NAME_INVALID, 'will topic is not a topic name');
    if (version === 5) remaining += propertiesBytes(ofWill, WILL);
    remaining += textBytes(will.topicName) + binaryBytes(will.payload);
  }
  if (username !== null) remaining += textBytes(username);
  if (password !== null) remaining += binaryBytes(password);
  const buffer = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  buffer[0] = CONNECT << 4;
  let at = writeVarint(buffer, 1, remaining);
  at = writeText(buffer, at, name);
  buffer[at++] = version | (packet.bridge && version < 5 ? BRIDGE_BIT : 0);
  buffer[at++] = connectFlags(packet);
  at = writeUint16(buffer, at, packet.keepAlive);
  if (version === 5) at = writeProperties(buffer, at, packet.properties, CONNECT);
  at = writeText(buffer, at, packet.clientId);
  if (will !== null) {
    if (version === 5) at = writeProperties(buffer, at, ofWill, WILL);
    at = writeText(buffer, at, will.topicName);
    at = writeBinary(buffer, at, will.payload);
  }
  if (username !== null) at = writeText(buffer, at, username);
  if (password !== null) writeBinary(buffer, at, password);
  return buffer;
}

function connectFlags(packet: ConnectPacket): number {
  let flags = packet.cleanStart ? CLEAN_START_FLAG : 0;
  if (packet.will !== null) flags |= WILL_FLAG | (packet.will.qos << 3) | (packet.will.retain ? WILL_RETAIN_FLAG : 0);
  if (packet.username !== null) flags |= USERNAME_FLAG;
  if (packet.password !== null) flags |= PASSWORD_FLAG;
  return flags;
}

/** Decodes the CONNACK in `frame`. Throws ProtocolError 0x81 when it is malformed for `version`. */
export function decodeConnack(buffer: Buffer, frame: Frame, version: Version): ConnackPacket {
  const reader = new Reader(buffer, frame.bodyStart, frame.end);
  const flags = reader.byte('connect acknowledge flags');
  // 3.1 has no Session Present and says nothing of the byte.
  // [MQTT-3.2.2-1]
  if (version > 3 && flags > 1) throw new ProtocolError(MALFORMED_PACKET, 'reserved flags in CONNACK');
  const reasonCode = reader.byte('reason code');
  if (!isReasonCode(version, CONNACK, reasonCode))
    throw new ProtocolError(MALFORMED_PACKET, `CONNACK with code ${reasonCode}`); // [MQTT-3.2.2-8]
  const sessionPresent = version > 3 && flags === 1;
  // [MQTT-3.2.2-6]
  if (sessionPresent && reasonCode !== 0) throw new ProtocolError(PROTOCOL_ERROR, 'session present in a refusal');
  const properties = version === 5 ? readProperties(reader, CONNACK) : null;
  reader.finish('CONNACK');
  return { type: CONNACK, sessionPresent, reasonCode, properties };
}

/** The whole packet. Before 5.0 a reason code of 5.0 becomes the nearest return code, and properties are left out. */
export function encodeConnack(version: Version, packet: ConnackPacket): Buffer {
  // Session Present only with success [MQTT-3.2.2-6], and not in 3.1.
  const flags = packet.sessionPresent && packet.reasonCode === 0 && version > 3 ? 1 : 0;
  if (version < 5) {
    const code = packet.reasonCode > 5 ? returnCode(packet.reasonCode) : packet.reasonCode;
    return Buffer.from([CONNACK << 4, 2, flags, code]);
  }
  const remaining = 2 + propertiesBytes(packet.properties, CONNACK);
  const buffer = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  buffer[0] = CONNACK << 4;
  const at = writeVarint(buffer, 1, remaining);
  buffer[at] = flags;
  buffer[at + 1] = packet.reasonCode;
  writeProperties(buffer, at + 2, packet.properties, CONNACK);
  return buffer;
}
