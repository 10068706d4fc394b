// CONNACK: what a client is told when it is let in, and when it is not (MQTT 5.0 section 3.2, 3.1.1 section 3.2).
// Called by connect.ts and admission.ts; broker/aedes/front.ts refuses with it too. Decides nothing.
import { encodeConnack } from '../codec/connect.ts';
import { CONNACK, type ConnectPacket, type Qos, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { QOS_NOT_SUPPORTED, RETAIN_NOT_SUPPORTED, returnCode, SUCCESS, TOPIC_NAME_INVALID } from '../mqtt/reason.ts';
import type { Refusal } from './checks.ts';
import type { Core, SessionLimits } from './session.ts';

export interface Accepted {
  readonly packet: ConnectPacket;
  readonly maxQos: Qos;
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
  if (accepted.maxQos < 2) properties.maximumQos = accepted.maxQos;
  if (!limits.retainAvailable) properties.retainAvailable = false;
  if (limits.maxPacketSize > 0) properties.maximumPacketSize = limits.maxPacketSize;
  // [MQTT-3.1.3-7]
  if (accepted.assignedClientId !== null) properties.assignedClientIdentifier = accepted.assignedClientId;
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

/**
 * The CONNACK of a client that is not let in [MQTT-3.2.2-6]; no bytes where no return code fits [MQTT-3.2.2-6 of
 * 3.1.1].
 */
export function encodeRefused(version: Version, refusal: Refusal): Buffer {
  if (version < 5 && UNTELLABLE.has(refusal.reasonCode)) return Buffer.alloc(0);
  // Bad user, bad password and refused anonymous look the same to the peer.
  const reasonCode = version === 5 ? refusal.reasonCode : returnCode(refusal.reasonCode);
  return encodeConnack(version, { type: CONNACK, sessionPresent: false, reasonCode, properties: null });
}
