// The Control Packets of MQTT 3.1, 3.1.1 and 5.0 as plain objects, and their type numbers (MQTT 5.0 section 2.1.2).
// Made and read by codec/, used by session/, bridge/ and proxy/. PUBLISH has a form of its own for the hot path:
// message.ts.
import type { Properties } from './property.ts';

/** Packet types: the high four bits of the first byte. */
export const CONNECT = 1;
export const CONNACK = 2;
export const PUBLISH = 3;
export const PUBACK = 4;
export const PUBREC = 5;
export const PUBREL = 6;
export const PUBCOMP = 7;
export const SUBSCRIBE = 8;
export const SUBACK = 9;
export const UNSUBSCRIBE = 10;
export const UNSUBACK = 11;
export const PINGREQ = 12;
export const PINGRESP = 13;
export const DISCONNECT = 14;
export const AUTH = 15;

/** Protocol Level as in CONNECT: 3 = MQTT 3.1, 4 = 3.1.1, 5 = 5.0. */
export type Version = 3 | 4 | 5;
export type Qos = 0 | 1 | 2;

export interface Will {
  topicName: string;
  payload: Uint8Array;
  qos: Qos;
  retain: boolean;
  /** Will Properties without the Will Delay Interval. */
  properties: Properties | null;
  /** Will Delay Interval in seconds, 0 when absent (section 3.1.3.2.2). */
  delayInterval: number;
}

export interface ConnectPacket {
  readonly type: typeof CONNECT;
  version: Version;
  /** Bit 7 of the Protocol Level in 3.1 and 3.1.1 (0x83, 0x84): the peer is a bridge. */
  bridge: boolean;
  clientId: string;
  cleanStart: boolean;
  /** Seconds; 0 = off. */
  keepAlive: number;
  username: string | null;
  password: Uint8Array | null;
  will: Will | null;
  properties: Properties | null;
}

export interface ConnackPacket {
  readonly type: typeof CONNACK;
  sessionPresent: boolean;
  /** 5.0: reason code; before: return code 0 to 5. */
  reasonCode: number;
  properties: Properties | null;
}

/** PUBACK, PUBREC, PUBREL, PUBCOMP. */
export interface AckPacket {
  readonly type: typeof PUBACK | typeof PUBREC | typeof PUBREL | typeof PUBCOMP;
  packetId: number;
  reasonCode: number;
  properties: Properties | null;
}

export interface SubscriptionRequest {
  topicFilter: string;
  qos: Qos;
  noLocal: boolean;
  retainAsPublished: boolean;
  /** 0 send at subscribe, 1 only for a new subscription, 2 never. */
  retainHandling: 0 | 1 | 2;
}
export interface SubscribePacket {
  readonly type: typeof SUBSCRIBE;
  packetId: number;
  subscriptions: SubscriptionRequest[];
  properties: Properties | null;
}
export interface SubackPacket {
  readonly type: typeof SUBACK;
  packetId: number;
  reasonCodes: number[];
  properties: Properties | null;
}
export interface UnsubscribePacket {
  readonly type: typeof UNSUBSCRIBE;
  packetId: number;
  topicFilters: string[];
  properties: Properties | null;
}
export interface UnsubackPacket {
  readonly type: typeof UNSUBACK;
  packetId: number;
  /** 5.0 only; not on the wire before. */
  reasonCodes: number[];
  properties: Properties | null;
}
export interface PingreqPacket {
  readonly type: typeof PINGREQ;
}
export interface PingrespPacket {
  readonly type: typeof PINGRESP;
}
export interface DisconnectPacket {
  readonly type: typeof DISCONNECT;
  reasonCode: number;
  properties: Properties | null;
}
export interface AuthPacket {
  readonly type: typeof AUTH;
  reasonCode: number;
  properties: Properties | null;
}

/** Every packet but PUBLISH. */
export type ControlPacket =
  | ConnectPacket
  | ConnackPacket
  | AckPacket
  | SubscribePacket
  | SubackPacket
  | UnsubscribePacket
  | UnsubackPacket
  | PingreqPacket
  | PingrespPacket
  | DisconnectPacket
  | AuthPacket;
