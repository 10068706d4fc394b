// MQTT 5.0 properties as data (section 2.2.2.2): one row each with identifier, wire type and the packets that may carry
// it. Read by codec/property.ts, which needs no other knowledge of any property. A new property is one row here.
import { BUFFER_BYTES, OBJECT_BYTES, textBytes } from '../base/ledger.ts';
import {
  AUTH,
  CONNACK,
  CONNECT,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
} from './packet.ts';

/** The Will Properties of a CONNECT are a set of their own; no packet type has this number. */
export const WILL = 16;

/** 'byte' and 'flag' are one byte of 0 or 1; a flag is a boolean in Properties, a byte a number. */
export type PropertyType = 'byte' | 'flag' | 'uint16' | 'uint32' | 'varint' | 'string' | 'binary' | 'pair';

export interface PropertyRow {
  readonly id: number;
  readonly key: keyof Properties;
  readonly type: PropertyType;
  readonly packets: readonly number[];
  /** A value of 0 is a Protocol Error. */
  readonly nonZero?: true;
  /** May occur more than once: user properties everywhere, Subscription Identifier in a PUBLISH. */
  readonly repeats?: true;
}

/** Decoded properties. Absent means not sent. Byte layouts: MQTT 5.0 section 2.2.2.2. */
export interface Properties {
  payloadFormatIndicator?: number;
  /** Seconds. */
  messageExpiryInterval?: number;
  contentType?: string;
  responseTopic?: string;
  correlationData?: Uint8Array;
  /** One or more in a PUBLISH to a client, exactly one in SUBSCRIBE. */
  subscriptionIdentifiers?: number[];
  /** Seconds; 0xFFFFFFFF = never. */
  sessionExpiryInterval?: number;
  assignedClientIdentifier?: string;
  /** Seconds. */
  serverKeepAlive?: number;
  authenticationMethod?: string;
  authenticationData?: Uint8Array;
  requestProblemInformation?: boolean;
  /** Seconds. */
  willDelayInterval?: number;
  requestResponseInformation?: boolean;
  responseInformation?: string;
  serverReference?: string;
  reasonString?: string;
  receiveMaximum?: number;
  topicAliasMaximum?: number;
  topicAlias?: number;
  maximumQos?: number;
  retainAvailable?: boolean;
  /** Name and value, in the order sent. */
  userProperties?: [string, string][];
  /** Bytes. */
  maximumPacketSize?: number;
  wildcardSubscriptionAvailable?: boolean;
  subscriptionIdentifiersAvailable?: boolean;
  sharedSubscriptionAvailable?: boolean;
}

const EVERY_REASON = [CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH];

export const PROPERTIES: readonly PropertyRow[] = [
  { id: 0x01, key: 'payloadFormatIndicator', type: 'byte', packets: [PUBLISH, WILL] },
  { id: 0x02, key: 'messageExpiryInterval', type: 'uint32', packets: [PUBLISH, WILL] },
  { id: 0x03, key: 'contentType', type: 'string', packets: [PUBLISH, WILL] },
  { id: 0x08, key: 'responseTopic', type: 'string', packets: [PUBLISH, WILL] },
  { id: 0x09, key: 'correlationData', type: 'binary', packets: [PUBLISH, WILL] },
  {
    id: 0x0b,
    key: 'subscriptionIdentifiers',
    type: 'varint',
    packets: [PUBLISH, SUBSCRIBE],
    nonZero: true,
    repeats: true,
  },
  { id: 0x11, key: 'sessionExpiryInterval', type: 'uint32', packets: [CONNECT, CONNACK, DISCONNECT] },
  { id: 0x12, key: 'assignedClientIdentifier', type: 'string', packets: [CONNACK] },
  { id: 0x13, key: 'serverKeepAlive', type: 'uint16', packets: [CONNACK] },
  { id: 0x15, key: 'authenticationMethod', type: 'string', packets: [CONNECT, CONNACK, AUTH] },
  { id: 0x16, key: 'authenticationData', type: 'binary', packets: [CONNECT, CONNACK, AUTH] },
  { id: 0x17, key: 'requestProblemInformation', type: 'flag', packets: [CONNECT] },
  { id: 0x18, key: 'willDelayInterval', type: 'uint32', packets: [WILL] },
  { id: 0x19, key: 'requestResponseInformation', type: 'flag', packets: [CONNECT] },
  { id: 0x1a, key: 'responseInformation', type: 'string', packets: [CONNACK] },
  { id: 0x1c, key: 'serverReference', type: 'string', packets: [CONNACK, DISCONNECT] },
  { id: 0x1f, key: 'reasonString', type: 'string', packets: EVERY_REASON },
  { id: 0x21, key: 'receiveMaximum', type: 'uint16', packets: [CONNECT, CONNACK], nonZero: true },
  { id: 0x22, key: 'topicAliasMaximum', type: 'uint16', packets: [CONNECT, CONNACK] },
  { id: 0x23, key: 'topicAlias', type: 'uint16', packets: [PUBLISH], nonZero: true },
  { id: 0x24, key: 'maximumQos', type: 'byte', packets: [CONNACK] },
  { id: 0x25, key: 'retainAvailable', type: 'flag', packets: [CONNACK] },
  {
    id: 0x26,
    key: 'userProperties',
    type: 'pair',
    packets: [CONNECT, WILL, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, ...EVERY_REASON],
    repeats: true,
  },
  { id: 0x27, key: 'maximumPacketSize', type: 'uint32', packets: [CONNECT, CONNACK], nonZero: true },
  { id: 0x28, key: 'wildcardSubscriptionAvailable', type: 'flag', packets: [CONNACK] },
  { id: 0x29, key: 'subscriptionIdentifiersAvailable', type: 'flag', packets: [CONNACK] },
  { id: 0x2a, key: 'sharedSubscriptionAvailable', type: 'flag', packets: [CONNACK] },
];

/** A User Property beside its two strings: the pair, its elements, its place in the list. */
const PAIR_BYTES = 72;

/** Memory of decoded properties, for what is kept with them. O(properties). */
export function propertiesMemory(properties: Properties | null): number {
  if (properties === null) return 0;
  let bytes = 2 * OBJECT_BYTES;
  for (const key in properties) {
    const value = properties[key as keyof Properties];
    if (typeof value === 'string') bytes += textBytes(value);
    else if (value instanceof Uint8Array) bytes += value.length + BUFFER_BYTES;
    else if (Array.isArray(value)) bytes += 32 + 8 * value.length;
  }
  for (const [name, value] of properties.userProperties ?? []) bytes += PAIR_BYTES + textBytes(name) + textBytes(value);
  return bytes;
}
