// MQTT 5.0 reason codes by name (section 2.4) and what an older client is told instead.
// Used by every stage that answers a client.
import {
  AUTH,
  CONNACK,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBREC,
  PUBREL,
  SUBACK,
  UNSUBACK,
  type Version,
} from './packet.ts';

export const SUCCESS = 0x00;
export const NORMAL_DISCONNECTION = 0x00;
export const GRANTED_QOS_0 = 0x00;
export const GRANTED_QOS_1 = 0x01;
export const GRANTED_QOS_2 = 0x02;
export const DISCONNECT_WITH_WILL = 0x04;
export const NO_MATCHING_SUBSCRIBERS = 0x10;
export const NO_SUBSCRIPTION_EXISTED = 0x11;
export const CONTINUE_AUTHENTICATION = 0x18;
export const RE_AUTHENTICATE = 0x19;
export const UNSPECIFIED_ERROR = 0x80;
export const MALFORMED_PACKET = 0x81;
export const PROTOCOL_ERROR = 0x82;
export const IMPLEMENTATION_SPECIFIC_ERROR = 0x83;
export const UNSUPPORTED_PROTOCOL_VERSION = 0x84;
export const CLIENT_IDENTIFIER_NOT_VALID = 0x85;
export const BAD_USER_NAME_OR_PASSWORD = 0x86;
export const NOT_AUTHORIZED = 0x87;
export const SERVER_UNAVAILABLE = 0x88;
export const SERVER_BUSY = 0x89;
export const BANNED = 0x8a;
export const SERVER_SHUTTING_DOWN = 0x8b;
export const BAD_AUTHENTICATION_METHOD = 0x8c;
export const KEEP_ALIVE_TIMEOUT = 0x8d;
export const SESSION_TAKEN_OVER = 0x8e;
export const TOPIC_FILTER_INVALID = 0x8f;
export const TOPIC_NAME_INVALID = 0x90;
export const PACKET_IDENTIFIER_IN_USE = 0x91;
export const PACKET_IDENTIFIER_NOT_FOUND = 0x92;
export const RECEIVE_MAXIMUM_EXCEEDED = 0x93;
export const TOPIC_ALIAS_INVALID = 0x94;
export const PACKET_TOO_LARGE = 0x95;
export const MESSAGE_RATE_TOO_HIGH = 0x96;
export const QUOTA_EXCEEDED = 0x97;
export const ADMINISTRATIVE_ACTION = 0x98;
export const PAYLOAD_FORMAT_INVALID = 0x99;
export const RETAIN_NOT_SUPPORTED = 0x9a;
export const QOS_NOT_SUPPORTED = 0x9b;
export const USE_ANOTHER_SERVER = 0x9c;
export const SERVER_MOVED = 0x9d;
export const SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9e;
export const CONNECTION_RATE_EXCEEDED = 0x9f;
export const MAXIMUM_CONNECT_TIME = 0xa0;
export const SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xa1;
export const WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xa2;

/** Reason strings for people (section 2.4 names), for failures. */
const TEXTS: ReadonlyMap<number, string> = new Map([
  [UNSPECIFIED_ERROR, 'unspecified error'],
  [MALFORMED_PACKET, 'malformed packet'],
  [PROTOCOL_ERROR, 'protocol error'],
  [IMPLEMENTATION_SPECIFIC_ERROR, 'not possible here'],
  [NOT_AUTHORIZED, 'not authorised'],
  [TOPIC_FILTER_INVALID, 'the topic filter is not valid'],
  [TOPIC_NAME_INVALID, 'the topic name is not valid'],
  [PACKET_IDENTIFIER_IN_USE, 'the packet identifier is in use'],
  [PACKET_IDENTIFIER_NOT_FOUND, 'the packet identifier is not known'],
  [QUOTA_EXCEEDED, 'the message cannot be kept now'],
  [PAYLOAD_FORMAT_INVALID, 'the payload is not UTF-8'],
  [SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, 'shared subscriptions are off'],
  [SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED, 'subscription identifiers are off'],
  [WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED, 'wildcard subscriptions are off'],
]);

export function reasonText(reasonCode: number): string {
  return TEXTS.get(reasonCode) ?? `reason code 0x${reasonCode.toString(16)}`;
}

/**
 * CONNACK return codes of 3.1 and 3.1.1 (3.1.1 section 3.2.2.3) for reason codes of 5.0; everything else is 3, server
 * unavailable.
 */
const RETURN_CODES: ReadonlyMap<number, number> = new Map([
  [SUCCESS, 0],
  [UNSUPPORTED_PROTOCOL_VERSION, 1],
  [CLIENT_IDENTIFIER_NOT_VALID, 2],
  [SERVER_UNAVAILABLE, 3],
  [BAD_USER_NAME_OR_PASSWORD, 4],
  [NOT_AUTHORIZED, 5],
  [BANNED, 5],
  [PACKET_TOO_LARGE, 5],
]);

export function returnCode(reasonCode: number): number {
  return RETURN_CODES.get(reasonCode) ?? 3;
}

/** Failures that both PUBACK and PUBREC know. */
const PUBLISH_FAILURES = [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
/** DISCONNECT: 0x00 and 0x04 by clients, some of the others by servers only; who sends them is not checked. */
const DISCONNECTS = [
  0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
  0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
];
/** Reason codes by the packet that may carry them, MQTT 5.0 (table 2-6 and the tables of chapter 3). */
const REASONS: ReadonlyMap<number, ReadonlySet<number>> = new Map([
  [
    CONNACK,
    new Set([
      0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a, 0x9b,
      0x9c, 0x9d, 0x9f,
    ]),
  ],
  [PUBACK, new Set([0x00, 0x10, ...PUBLISH_FAILURES])],
  [PUBREC, new Set([0x00, 0x10, ...PUBLISH_FAILURES])],
  [PUBREL, new Set([0x00, 0x92])],
  [PUBCOMP, new Set([0x00, 0x92])],
  [SUBACK, new Set([0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2])],
  [UNSUBACK, new Set([0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91])],
  [DISCONNECT, new Set(DISCONNECTS)],
  [AUTH, new Set([0x00, 0x18, 0x19])],
]);

/**
 * True when a packet of this type may carry the code: reason codes in 5.0, return codes of CONNACK and SUBACK before.
 */
export function isReasonCode(version: Version, type: number, code: number): boolean {
  if (version === 5) return REASONS.get(type)?.has(code) ?? false;
  if (type === CONNACK) return code <= 5;
  return code <= 2 || code === 0x80;
}
