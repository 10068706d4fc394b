// What is checked at CONNECT before anything of an older connection is touched: each check gives a refusal, or null.
// Called by the steps of connect.ts; broker/aedes/engine.ts and broker/aedes/sessions.ts ask some of them for clients
// of aedes. Changes nothing. Sources: MQTT 5.0 section 3.1.4, 3.1.1 section 3.1.4.
import type { Identity } from '../auth/auth.ts';
import type { ClientRules } from '../broker/broker.ts';
import type { ConnectPacket, Qos } from '../mqtt/packet.ts';
import {
  CLIENT_IDENTIFIER_NOT_VALID,
  NOT_AUTHORIZED,
  PACKET_TOO_LARGE,
  QOS_NOT_SUPPORTED,
  QUOTA_EXCEEDED,
  RETAIN_NOT_SUPPORTED,
  TOPIC_NAME_INVALID,
} from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import { sessionExpiry } from './opening.ts';
import type { Registry } from './registry.ts';
import type { Core, SessionLimits } from './session.ts';
import { sessionBytes } from './weight.ts';

/** A CONNECT that is not accepted. */
export interface Refusal {
  readonly reasonCode: number;
  readonly why: string;
  /** The connection is closed without a CONNACK. */
  readonly silent?: boolean;
}

/** Checks that need nobody else. Gives the refusal, or null. */
export function checkLimits(
  limits: SessionLimits,
  packet: ConnectPacket,
  rules: ClientRules | undefined,
): Refusal | null {
  if (packet.clientId === '') {
    if (rules?.allowEmptyClientId === false) return { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: 'empty client id' };
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
 * Whether the client id that was asked for, or given, begins as all have to; asked before anybody is authenticated, as
 * in mosquitto.
 */
export function checkPrefix(limits: SessionLimits, clientId: string): Refusal | null {
  if (clientId.startsWith(limits.clientIdPrefix)) return null;
  return { reasonCode: NOT_AUTHORIZED, why: 'the client id begins with something else' };
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

/** Whether its names fit the mount point of its listener. */
export function checkPlace(core: Core, identity: Identity): Refusal | null {
  const unfit = core.policies?.of(identity)?.unfit ?? null;
  return unfit === null ? null : { reasonCode: CLIENT_IDENTIFIER_NOT_VALID, why: unfit };
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
