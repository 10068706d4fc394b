// MQTT 5.0 properties (section 2.2.2): a Property Length, then identifier and value, any number of times. Works by the
// table of mqtt/property.ts and knows nothing else of any property. Called by every decoder and encoder of 5.0 packets.
// Must not decide whether a value suits the session (limits, aliases): that is session/'s.
//
//   Property Length   Variable Byte Integer, of what follows
//   identifier        Variable Byte Integer, in fact one byte: the largest is 0x2A
//   value             byte | two bytes | four bytes | Variable Byte Integer | string | binary data | string pair
import { ProtocolError } from '../base/errors.ts';
import { PUBLISH } from '../mqtt/packet.ts';
import { PROPERTIES, type Properties, type PropertyRow } from '../mqtt/property.ts';
import { MALFORMED_PACKET, PROTOCOL_ERROR, QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { isTopicName } from '../mqtt/topic.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import { Reader } from './reader.ts';
import { binaryBytes, textBytes, writeBinary, writeText, writeUint16 } from './text.ts';

/**
 * User Properties and Subscription Identifiers in one packet: each is a few bytes on the wire and a hundred in memory.
 */
export const MAX_REPEATED = 1000;

export interface DecodedProperties {
  /** Null when there are none. */
  properties: Properties | null;
  /** Offset behind the properties. */
  end: number;
}

type Value = number | boolean | string | Uint8Array | number[] | [string, string][];
type Table = Record<string, Value | undefined>;

const RESPONSE_TOPIC = 0x08;

/** What a store keeps is no packet: any property may be among them, any number of times where it repeats. */
const STORED = 30;

/** Rows by identifier; the identifiers lie close together. */
const BY_ID: readonly (PropertyRow | undefined)[] = tableById();
const BY_KEY: ReadonlyMap<string, PropertyRow> = new Map(PROPERTIES.map((row) => [row.key, row]));

/** Packets that may carry a property, as bits, by identifier. */
const HOMES: readonly number[] = BY_ID.map(
  (row) => row?.packets.reduce((bits, packet) => bits | (1 << packet), 1 << STORED) ?? 0,
);

function tableById(): (PropertyRow | undefined)[] {
  const most = Math.max(...PROPERTIES.map((row) => row.id));
  return Array.from({ length: most + 1 }, (_, id) => PROPERTIES.find((row) => row.id === id));
}

/**
 * Decodes the properties whose Property Length is at `at`; `packet` is a packet type, or WILL. Values are copies.
 * Throws ProtocolError 0x81 (cut short, unknown or misplaced identifier), 0x82 (twice, or a value that may not be),
 * 0x97 (too many).
 */
export function decodeProperties(buffer: Buffer, at: number, end: number, packet: number): DecodedProperties {
  const reader = new Reader(buffer, at, end);
  const bytes = reader.varint('Property Length');
  if (bytes > reader.left) throw new ProtocolError(MALFORMED_PACKET, 'properties reach past the packet');
  reader.end = reader.at + bytes;
  return { properties: bytes === 0 ? null : decodeValues(reader, packet), end: reader.end };
}

function decodeValues(reader: Reader, packet: number): Properties {
  const properties: Properties = {};
  const table = properties as Table;
  const listed = packet === PUBLISH || packet === STORED;
  const most = packet === STORED ? Number.POSITIVE_INFINITY : MAX_REPEATED;
  while (reader.at < reader.end) {
    // All identifiers are one byte; a longer form would not be the shortest, and so is no identifier [MQTT-1.5.5-1].
    const id = reader.buffer[reader.at++];
    const row = BY_ID[id];
    if (row === undefined) throw new ProtocolError(MALFORMED_PACKET, 'unknown property');
    if (((HOMES[id] >> packet) & 1) === 0)
      throw new ProtocolError(MALFORMED_PACKET, `${row.key} may not be in this packet`);
    if (row.type === 'pair') {
      addPair(properties, reader, most);
      continue;
    }
    const value = readValue(row, reader);
    if (packet !== STORED) refuse(row, value);
    if (row.type === 'varint' && listed) addIdentifier(properties, value, most);
    else if (table[row.key] !== undefined) throw new ProtocolError(PROTOCOL_ERROR, `${row.key} occurs twice`);
    else table[row.key] = row.type === 'varint' ? [value as number] : row.type === 'flag' ? value === 1 : value;
  }
  return properties;
}

function addPair(properties: Properties, reader: Reader, most: number): void {
  const list = (properties.userProperties ??= []);
  if (list.length === most) throw new ProtocolError(QUOTA_EXCEEDED, `more than ${MAX_REPEATED} user properties`);
  const name = reader.text('user property');
  list.push([name, reader.text('user property')]); // [MQTT-1.5.7-1]
}

function addIdentifier(properties: Properties, value: Value, most: number): void {
  const list = (properties.subscriptionIdentifiers ??= []);
  if (list.length === most)
    throw new ProtocolError(QUOTA_EXCEEDED, `more than ${MAX_REPEATED} subscription identifiers`);
  list.push(value as number);
}

/** The next value, in the form it has in Properties. */
function readValue(row: PropertyRow, reader: Reader): Value {
  switch (row.type) {
    case 'byte':
    case 'flag':
      return reader.byte(row.key);
    case 'uint16':
      return reader.uint16(row.key);
    case 'uint32':
      return reader.uint32(row.key);
    case 'varint':
      return reader.varint(row.key);
    case 'binary':
      return reader.binary(row.key);
    default:
      return reader.text(row.key);
  }
}

/** Refuses what no packet may carry; all properties of one byte are 0 or 1 (3.1.2.11.6, 3.2.2.3.4 and so on). */
function refuse(row: PropertyRow, value: Value): void {
  if ((row.type === 'byte' || row.type === 'flag') && (value as number) > 1)
    throw new ProtocolError(PROTOCOL_ERROR, `${row.key} is neither 0 nor 1`);
  if (value === 0 && row.nonZero === true) throw new ProtocolError(PROTOCOL_ERROR, `${row.key} is 0`);
  if (row.id === RESPONSE_TOPIC && !isTopicName(value as string))
    throw new ProtocolError(PROTOCOL_ERROR, 'responseTopic is not a topic name'); // [MQTT-3.3.2-14]
}

function rowFor(key: string, packet: number): PropertyRow {
  const row = BY_KEY.get(key);
  if (row === undefined || ((HOMES[row.id] >> packet) & 1) === 0) {
    throw new ProtocolError(PROTOCOL_ERROR, `property ${key} may not be in this packet`);
  }
  return row;
}

/**
 * Bytes of the properties without their Property Length. Keys that are undefined do not count.
 * Throws ProtocolError 0x82 when one may not be in `packet` (a packet type, or WILL).
 */
export function encodedPropertiesBytes(properties: Properties, packet: number): number {
  let bytes = 0;
  for (const key in properties) {
    const value = (properties as Table)[key];
    if (value !== undefined) bytes += valueBytes(rowFor(key, packet), value);
  }
  return bytes;
}

/** Bytes of one property with its identifiers. */
function valueBytes(row: PropertyRow, value: Value): number {
  switch (row.type) {
    case 'byte':
    case 'flag':
      return 2;
    case 'uint16':
      return 3;
    case 'uint32':
      return 5;
    case 'varint': {
      let bytes = 0;
      for (const one of value as number[]) bytes += 1 + varintBytes(one);
      return bytes;
    }
    case 'string':
      return 1 + textBytes(value as string);
    case 'binary':
      return 1 + binaryBytes(value as Uint8Array);
    case 'pair': {
      let bytes = 0;
      for (const pair of value as [string, string][]) bytes += 1 + textBytes(pair[0]) + textBytes(pair[1]);
      return bytes;
    }
  }
}

/** Writes Property Length and properties at `at`, in the order of the object's keys; returns the offset behind them. */
export function writeProperties(buffer: Buffer, at: number, properties: Properties | null, packet: number): number {
  if (properties === null) {
    buffer[at] = 0;
    return at + 1;
  }
  at = writeVarint(buffer, at, encodedPropertiesBytes(properties, packet));
  return writeValues(buffer, at, properties, packet);
}

function writeValues(buffer: Buffer, at: number, properties: Properties, packet: number): number {
  for (const key in properties) {
    const value = (properties as Table)[key];
    if (value !== undefined) at = writeValue(buffer, at, rowFor(key, packet), value);
  }
  return at;
}

function writeValue(buffer: Buffer, at: number, row: PropertyRow, value: Value): number {
  if (row.type === 'pair') {
    for (const pair of value as [string, string][]) {
      buffer[at] = row.id;
      at = writeText(buffer, at + 1, pair[0]);
      at = writeText(buffer, at, pair[1]);
    }
    return at;
  }
  if (row.type === 'varint') {
    for (const one of value as number[]) {
      buffer[at] = row.id;
      at = writeVarint(buffer, at + 1, one);
    }
    return at;
  }
  buffer[at++] = row.id;
  switch (row.type) {
    case 'byte':
    case 'flag':
      buffer[at] = Number(value);
      return at + 1;
    case 'uint16':
      return writeUint16(buffer, at, value as number);
    case 'uint32':
      return buffer.writeUInt32BE(value as number, at);
    case 'binary':
      return writeBinary(buffer, at, value as Uint8Array);
    default:
      return writeText(buffer, at, value as string);
  }
}

/** Bytes of the properties with their Property Length. */
export function propertiesBytes(properties: Properties | null, packet: number): number {
  if (properties === null) return 1;
  const bytes = encodedPropertiesBytes(properties, packet);
  return varintBytes(bytes) + bytes;
}

/** Property Length and properties in a buffer of their own. */
export function encodeProperties(properties: Properties | null, packet: number): Buffer {
  const buffer = Buffer.allocUnsafe(propertiesBytes(properties, packet));
  writeProperties(buffer, 0, properties, packet);
  return buffer;
}

/** The properties as a store keeps them: as on the wire, without their Property Length. */
export function packProperties(properties: Properties): Buffer {
  const buffer = Buffer.allocUnsafe(encodedPropertiesBytes(properties, STORED));
  writeValues(buffer, 0, properties, STORED);
  return buffer;
}

/** The properties of stored bytes; null when the bytes are none: the file they lie in may be damaged. */
export function unpackProperties(stored: Uint8Array): Properties | null {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  try {
    return decodeValues(new Reader(bytes, 0, bytes.length), STORED);
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
