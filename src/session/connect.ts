// CONNECT as a list of named steps (MQTT 5.0 section 3.1.4, 3.1.1 section 3.1.4). Called by client.ts for the first packet.
//
//   limits -> identify -> authenticate -> (take over, open session) -> answer
//      \----------\-------------\--> refuse: CONNACK with the code, close; nobody else is touched, no will is kept
//
// Nothing of a client that is not let in has any effect: authentication comes before takeover, the will counts after CONNACK 0.
import { randomBytes } from 'node:crypto';
import type { Access, Credentials, EnhancedExchange, Identity } from '../auth/auth.ts';
import { encodeConnack } from '../codec/connect.ts';
import { CONNACK, type ConnectPacket, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import {
  BAD_AUTHENTICATION_METHOD,
  CLIENT_IDENTIFIER_NOT_VALID,
  QOS_NOT_SUPPORTED,
  RETAIN_NOT_SUPPORTED,
  returnCode,
  SUCCESS,
  TOPIC_NAME_INVALID,
} from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { TlsInfo } from '../transport/transport.ts';
import type { Core, SessionLimits } from './session.ts';
import { NEVER } from './state.ts';

/** A CONNECT that is not accepted. */
export interface Refusal {
  readonly reasonCode: number;
  readonly why: string;
}

/** Checks that need nobody else. Gives the refusal, or null. */
export function checkLimits(limits: SessionLimits, packet: ConnectPacket): Refusal | null {
  if (packet.clientId === '') {
    // 3.1 wants 1 to 23 characters; 3.1.1 a clean session [MQTT-3.1.3-8]; 5.0 gives one [MQTT-3.1.3-6].
    if (packet.version === 3 || (packet.version === 4 && !packet.cleanStart)) {
      return { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: 'empty client id' };
    }
  }
  const will = packet.will;
  if (will === null) return null;
  if (will.qos > limits.maxQos) return { reasonCode: QOS_NOT_SUPPORTED, why: 'will QoS' }; // [MQTT-3.2.2-12]
  if (will.retain && !limits.retainAvailable) return { reasonCode: RETAIN_NOT_SUPPORTED, why: 'will retain' }; // [MQTT-3.2.2-13]
  const levels = limits.maxTopicLevels;
  if (!isTopicName(will.topicName) || (levels > 0 && exceedsLevels(will.topicName, levels))) {
    return { reasonCode: TOPIC_NAME_INVALID, why: 'will topic' };
  }
  return null;
}

/** A client id for a client that has none: unguessable, 22 characters. */
export function assignClientId(): string {
  return `auto-${randomBytes(12).toString('base64url')}`;
}

export function credentialsOf(
  packet: ConnectPacket,
  remoteAddress: string,
  listener: string,
  tls: TlsInfo | null,
): Credentials {
  const { clientId, username, password, version } = packet;
  return { clientId, username, password, remoteAddress, listener, tls, version };
}

export function identityOf(credentials: Credentials, username: string | null): Identity {
  return {
    clientId: credentials.clientId,
    username,
    remoteAddress: credentials.remoteAddress,
    listener: credentials.listener,
    claims: null,
    internal: false,
  };
}

/** Begins the enhanced authentication that a 5.0 CONNECT asks for (section 4.12); a refusal when the method is not known. */
export function beginExchange(access: Access, credentials: Credentials, method: string): EnhancedExchange | Refusal {
  const known = access.enhanced.find((m) => m.name === method);
  if (known === undefined) return { reasonCode: BAD_AUTHENTICATION_METHOD, why: 'unknown authentication method' }; // [MQTT-4.12.0-1]
  return known.begin(credentials);
}

/** Session Expiry Interval in force, in seconds: asked for, capped; before 5.0 a session without clean start has none of its own. */
export function sessionExpiry(limits: SessionLimits, packet: ConnectPacket): number {
  const asked = packet.version === 5 ? (packet.properties?.sessionExpiryInterval ?? 0) : packet.cleanStart ? 0 : NEVER;
  return capExpiry(limits, asked);
}

export function capExpiry(limits: SessionLimits, seconds: number): number {
  const most = limits.maxSessionExpiryMs === 0 ? NEVER : Math.floor(limits.maxSessionExpiryMs / 1000);
  return Math.min(seconds, most);
}

/** Keep Alive in force, in seconds; a 5.0 client is told when it differs [MQTT-3.2.2-21]. */
export function keepAliveOf(limits: SessionLimits, packet: ConnectPacket): number {
  const most = limits.maxKeepaliveSeconds;
  if (packet.version < 5 || most === 0 || most >= 65_535) return packet.keepAlive;
  return packet.keepAlive === 0 || packet.keepAlive > most ? most : packet.keepAlive;
}

export interface Accepted {
  readonly packet: ConnectPacket;
  readonly assignedClientId: string | null;
  readonly sessionPresent: boolean;
  readonly expiryInterval: number;
  readonly keepAlive: number;
  readonly authenticationMethod: string | null;
  readonly authenticationData: Uint8Array | null;
}

/** The CONNACK of a client that is in; 5.0 is told every limit that is not the specification's default. */
export function encodeAccepted(core: Core, accepted: Accepted): Buffer {
  const { packet } = accepted;
  return encodeConnack(packet.version, {
    type: CONNACK,
    sessionPresent: accepted.sessionPresent,
    reasonCode: SUCCESS,
    properties: packet.version === 5 ? limitsFor(core.limits, accepted) : null,
  });
}

function limitsFor(limits: SessionLimits, accepted: Accepted): Properties {
  const properties: Properties = {};
  const asked = accepted.packet.properties;
  if (accepted.expiryInterval !== (asked?.sessionExpiryInterval ?? 0))
    properties.sessionExpiryInterval = accepted.expiryInterval;
  if (limits.maxAwaitingRel > 0 && limits.maxAwaitingRel < 65_535) properties.receiveMaximum = limits.maxAwaitingRel;
  if (limits.maxQos < 2) properties.maximumQos = limits.maxQos;
  if (!limits.retainAvailable) properties.retainAvailable = false;
  if (limits.maxPacketSize > 0) properties.maximumPacketSize = limits.maxPacketSize;
  if (accepted.assignedClientId !== null) properties.assignedClientIdentifier = accepted.assignedClientId; // [MQTT-3.1.3-7]
  if (limits.maxTopicAlias > 0) properties.topicAliasMaximum = limits.maxTopicAlias;
  if (!limits.wildcardAvailable) properties.wildcardSubscriptionAvailable = false;
  if (!limits.sharedAvailable) properties.sharedSubscriptionAvailable = false;
  if (accepted.keepAlive !== accepted.packet.keepAlive) properties.serverKeepAlive = accepted.keepAlive;
  // Where a requester may have its responses sent; only for a client that asked [MQTT-3.1.2-28].
  if (asked?.requestResponseInformation === true)
    properties.responseInformation = `response/${accepted.packet.clientId}/`;
  if (accepted.authenticationMethod !== null) properties.authenticationMethod = accepted.authenticationMethod;
  if (accepted.authenticationData !== null) properties.authenticationData = accepted.authenticationData;
  return properties;
}

/** What a will may be wrong in; 3.1.1 has no return code for any of it. */
const UNTELLABLE: ReadonlySet<number> = new Set([QOS_NOT_SUPPORTED, RETAIN_NOT_SUPPORTED, TOPIC_NAME_INVALID]);

/** The CONNACK of a client that is not let in [MQTT-3.2.2-6]; no bytes where no return code fits [MQTT-3.2.2-6 of 3.1.1]. */
export function encodeRefused(version: Version, refusal: Refusal): Buffer {
  if (version < 5 && UNTELLABLE.has(refusal.reasonCode)) return Buffer.alloc(0);
  // Bad user, bad password and refused anonymous look the same to the peer.
  const reasonCode = version === 5 ? refusal.reasonCode : returnCode(refusal.reasonCode);
  return encodeConnack(version, { type: CONNACK, sessionPresent: false, reasonCode, properties: null });
}
