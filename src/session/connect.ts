// CONNECT as a list of named steps (MQTT 5.0 section 3.1.4, 3.1.1 section 3.1.4). Called by client.ts for the first
// packet, and by enhanced.ts for those that authenticate with AUTH.
//
//   limits -> identify -> authenticate -> owner -> room -> (take over, open session) -> stored -> answer
//      \----------\-------------\----------\-------\-----------------------\--> refuse: CONNACK, close; no will is kept
//
// Nothing of a client that is not let in has any effect: authentication comes before takeover, the will counts after
// CONNACK 0.
import { randomBytes } from 'node:crypto';
import type { Credentials, Identity } from '../auth/auth.ts';
import type { ClientRules } from '../broker/broker.ts';
import { encodeConnack } from '../codec/connect.ts';
import { CONNACK, type ConnectPacket, type Qos, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import {
  CLIENT_IDENTIFIER_NOT_VALID,
  NOT_AUTHORIZED,
  PACKET_TOO_LARGE,
  QOS_NOT_SUPPORTED,
  QUOTA_EXCEEDED,
  RETAIN_NOT_SUPPORTED,
  returnCode,
  SUCCESS,
  TOPIC_NAME_INVALID,
} from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { TlsInfo } from '../transport/transport.ts';
import type { Client } from './client.ts';
import type { Registry } from './registry.ts';
import type { Core, SessionLimits } from './session.ts';
import { NEVER, type Session } from './state.ts';
import { sessionBytes } from './weight.ts';

/** A CONNECT that is not accepted. */
export interface Refusal {
  readonly reasonCode: number;
  readonly why: string;
}

/** Checks that need nobody else. Gives the refusal, or null. */
export function checkLimits(
  limits: SessionLimits,
  packet: ConnectPacket,
  rules: ClientRules | undefined,
): Refusal | null {
  if (packet.clientId === '') {
    if (rules?.emptyClientId === false) return { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: 'empty client id' };
    // 3.1 wants 1 to 23 characters; 3.1.1 a clean session [MQTT-3.1.3-8]; 5.0 gives one [MQTT-3.1.3-6].
    if (packet.version === 3 || (packet.version === 4 && !packet.cleanStart)) {
      return { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: 'empty client id' };
    }
  }
  const will = packet.will;
  if (will === null) return null;
  if (will.qos > mostQos(limits, rules)) return { reasonCode: QOS_NOT_SUPPORTED, why: 'will QoS' }; // [MQTT-3.2.2-12]
  // [MQTT-3.2.2-13]
  if (will.retain && !limits.retainAvailable) return { reasonCode: RETAIN_NOT_SUPPORTED, why: 'will retain' };
  if (limits.maxPayloadSize > 0 && will.payload.length > limits.maxPayloadSize)
    return { reasonCode: PACKET_TOO_LARGE, why: 'will payload' };
  const levels = limits.maxTopicLevels;
  if (!isTopicName(will.topicName) || (levels > 0 && exceedsLevels(will.topicName, levels))) {
    return { reasonCode: TOPIC_NAME_INVALID, why: 'will topic' };
  }
  return null;
}

/**
 * Whether the client id is free for this user: a session that is kept is that of one user of one realm, and nobody else
 * may continue or end it. One that ends with its connection keeps nothing for anybody: it is taken over as ever. To be
 * asked before anything of an older connection is touched.
 */
export function checkOwner(core: Core, registry: Registry, identity: Identity): Refusal | null {
  const known = registry.get(identity.clientId);
  return known === undefined ? null : foreignOwner(core, known, identity);
}

/**
 * The refusal of somebody whose client id has a session of another user, or null. The two are told apart in the log,
 * not by the peer.
 */
export function foreignOwner(core: Core, known: Owned, identity: Identity): Refusal | null {
  if (core.limits.sessionOwner === 'client_id' || !known.kept || known.isFor(identity)) return null;
  core.contests.foreign(core.log, core.clock.mono(), {
    clientId: identity.clientId,
    username: identity.username,
    listener: identity.listener,
    owner: known.identity.username,
    ownerListener: known.identity.listener,
  });
  return { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: 'the client id has a session of another user' };
}

/** A session, whichever engine keeps it. */
interface Owned {
  readonly identity: Identity;
  /** It outlives its connection. */
  readonly kept: boolean;
  isFor(identity: Identity): boolean;
}

/**
 * Whether there is room for the session that is asked for. To be asked before anything of an older connection is
 * touched.
 */
export function checkRoom(core: Core, registry: Registry, packet: ConnectPacket, identity: Identity): Refusal | null {
  const { clientId } = identity;
  const { maxSessions } = core.limits;
  const known = registry.get(clientId);
  if (known === undefined && maxSessions > 0 && registry.size >= maxSessions) {
    core.caps.refused('sessions', clientId);
    return { reasonCode: QUOTA_EXCEEDED, why: 'too many sessions' };
  }
  const more = sessionBytes(identity, packet.will, null) - (known?.bytes ?? 0);
  if (!core.ledger.hasRoom('sessions', more)) {
    core.caps.refused('memory', clientId);
    return { reasonCode: QUOTA_EXCEEDED, why: 'no memory for the session' };
  }
  if (!core.journal.durable || core.journal.accepting || sessionExpiry(core.limits, packet) === 0) return null;
  // One that is stored goes on; a new one would be a promise that cannot be kept.
  if (known?.outbox.durable === true && !packet.cleanStart) return null;
  return notStored(core, clientId);
}

/** The session of a client cannot be stored. */
export function notStored(core: Core, clientId: string): Refusal {
  core.caps.refused('store', clientId);
  return { reasonCode: QUOTA_EXCEEDED, why: 'the session cannot be stored' };
}

/** The highest QoS a client may use. */
export function mostQos(limits: SessionLimits, rules: ClientRules | undefined): Qos {
  return rules !== undefined && rules.maxQos < limits.maxQos ? rules.maxQos : limits.maxQos;
}

/** A client id for a client that has none: a prefix and 16 unguessable characters. */
export function assignClientId(prefix = 'auto-'): string {
  return prefix + randomBytes(12).toString('base64url');
}

/**
 * Whether the client id that was asked for, or given, begins as all have to; asked before anybody is authenticated, as
 * in mosquitto.
 */
export function checkPrefix(limits: SessionLimits, clientId: string): Refusal | null {
  if (clientId.startsWith(limits.clientIdPrefix)) return null;
  return { reasonCode: NOT_AUTHORIZED, why: 'the client id begins with something else' };
}

/** The identity under which a client is served, once it is known who it is: its listener may rule its client id. */
export function checkClientId(identity: Identity, rules: ClientRules | undefined): Identity | Refusal {
  const named = rules?.usernameAsClientId === true;
  if (named && (identity.username ?? '') === '')
    return { reasonCode: NOT_AUTHORIZED, why: 'no username for a client id' };
  return named ? { ...identity, clientId: identity.username ?? '' } : identity;
}

export function credentialsOf(
  packet: ConnectPacket,
  remoteAddress: string,
  listener: string,
  tls: TlsInfo | null,
  gone: () => boolean,
): Credentials {
  const { clientId, username, password, version } = packet;
  return { clientId, username, password, remoteAddress, listener, tls, version, gone };
}

/** Who an enhanced authentication has let in: its methods know local users only. */
export function identityOf(credentials: Credentials, username: string, realm: string): Identity {
  return {
    clientId: credentials.clientId,
    username,
    remoteAddress: credentials.remoteAddress,
    listener: credentials.listener,
    realm,
    via: 'users',
    claims: null,
    internal: false,
  };
}

/**
 * Session Expiry Interval in force, in seconds: asked for, capped; before 5.0 a session without clean start has none of
 * its own.
 */
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

/** The session a client has been given. */
export interface Admitted {
  readonly session: Session;
  /** There was one already and it is continued. */
  readonly present: boolean;
  /** The store was told something that CONNACK has to wait for. */
  readonly waits: boolean;
  /** The store does not know the session yet. */
  readonly fresh: boolean;
}

/**
 * Lets an authenticated client in: ends the connection that has its client id, finds or makes the session and puts the
 * client there.
 */
export function admit(
  core: Core,
  registry: Registry,
  client: Client,
  packet: ConnectPacket,
  identity: Identity,
): Admitted {
  takeOver(core, registry, client, packet, identity);
  const { session, present, discarded } = registry.open(identity, packet.version, packet.cleanStart);
  if (present) registry.cancelWill(session);
  session.client = client;
  // The session outlives the connection: it must not hold on to it.
  const { listener } = client;
  session.setAccess(() => listener.access());
  session.since = core.clock.now();
  session.remote = client.connection.remote;
  session.listener = client.listener.name;
  session.will = packet.will;
  registry.weigh(session);
  session.bridge = packet.bridge;
  session.keepAlive = keepAliveOf(core.limits, packet);
  const stored = session.outbox.durable;
  const told = registry.begin(session, sessionExpiry(core.limits, packet));
  return { session, present, waits: told || discarded, fresh: session.outbox.durable && !stored };
}

/** Another connection with the same client id has to go [MQTT-3.1.4-3]. */
function takeOver(core: Core, registry: Registry, client: Client, packet: ConnectPacket, identity: Identity): void {
  const before = registry.get(identity.clientId);
  if (before === undefined || before.client === null) return;
  core.stats.takeovers++;
  core.log('info', 'SES-TAKEOVER', {
    clientId: identity.clientId,
    remote: client.connection.remote,
    previous: before.client.connection.remote,
  });
  const often = core.contests.note(identity.clientId, core.clock.mono());
  if (often > 0) {
    core.log('warn', 'SES-CONTEST', {
      clientId: identity.clientId,
      remote: client.connection.remote,
      previous: before.client.connection.remote,
      takeovers: often,
    });
  }
  // A session that ends with its connection cannot be continued [MQTT-3.1.2-6 of 3.1.1].
  const continued = !packet.cleanStart && before.expiryInterval > 0;
  before.client.takeOver(continued);
}

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
