// The CONNECT that each server of a client gets, and the one CONNACK that the client gets for all their answers. Pure;
// called by exchange.ts. Sources: MQTT 5.0 sections 3.1 and 3.2. No topic aliases are taken from servers: each of them
// would count for itself.
import { CONNACK, type ConnackPacket, type ConnectPacket } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';

const NEVER = 0;

/** Whether the servers keep the session when the connection ends. */
export function outlives(packet: ConnectPacket): boolean {
  if (packet.version < 5) return !packet.cleanStart;
  return (packet.properties?.sessionExpiryInterval ?? NEVER) > 0;
}

export interface ConnectFor {
  /** That of the route: it alone may take part in an exchange of AUTH packets. */
  readonly home: boolean;
  readonly clientId: string;
  /** The will is published here. */
  readonly will: boolean;
  /** Largest packet that is passed on. */
  readonly maxPacketBytes: number;
}

export function connectFor(packet: ConnectPacket, { home, clientId, will, maxPacketBytes }: ConnectFor): ConnectPacket {
  return {
    ...packet,
    clientId,
    will: will ? packet.will : null,
    properties: packet.version === 5 ? propertiesFor(packet.properties, home, maxPacketBytes) : null,
  };
}

function propertiesFor(properties: Properties | null, home: boolean, maxPacketBytes: number): Properties {
  const made: Properties = { ...properties };
  delete made.topicAliasMaximum;
  if (!home) {
    delete made.authenticationMethod;
    delete made.authenticationData;
  }
  made.maximumPacketSize = Math.min(properties?.maximumPacketSize ?? maxPacketBytes, maxPacketBytes);
  return made;
}

/** What a server may take less of than another; the client has to keep to the least. */
const LEAST = [
  'receiveMaximum',
  'maximumPacketSize',
  'maximumQos',
  'serverKeepAlive',
  'sessionExpiryInterval',
] as const;
const FLAGS = [
  'retainAvailable',
  'wildcardSubscriptionAvailable',
  'subscriptionIdentifiersAvailable',
  'sharedSubscriptionAvailable',
] as const;

/** `properties` narrowed to what another server takes as well. */
function narrow(properties: Properties, other: Properties | null): void {
  if (other === null) return;
  for (const key of LEAST) {
    const value = other[key];
    if (value !== undefined) properties[key] = Math.min(properties[key] ?? value, value);
  }
  for (const key of FLAGS) if (other[key] === false) properties[key] = false;
}

/**
 * The CONNACK for all: that of the route's upstream, narrowed. `answers` holds null for an upstream that was asked and
 * is away; `known` is what upstreams that are not asked yet have said to others.
 */
export function mergeConnacks(
  first: ConnackPacket,
  answers: readonly (ConnackPacket | null)[],
  known: readonly Properties[],
  maxPacketBytes: number,
): ConnackPacket {
  const properties: Properties = { ...first.properties };
  for (const answer of answers) narrow(properties, answer?.properties ?? null);
  for (const one of known) narrow(properties, { ...one, serverKeepAlive: undefined, sessionExpiryInterval: undefined });
  narrow(properties, { maximumPacketSize: maxPacketBytes });
  // One that is away is taken to have the session: told otherwise the client would drop what it has under way with the
  // others.
  const sessionPresent = answers.every((answer) => answer === null || answer.sessionPresent);
  return { type: CONNACK, sessionPresent, reasonCode: first.reasonCode, properties };
}
