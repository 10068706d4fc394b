// Whose a packet is that carries its origin with it: of another gateway, or the will of a client whose gateway has
// gone. Used by publishing.ts, overrides.ts and rights.ts. What a packet does not say is not known, and what is not
// known is denied.
import type { Absentees, Identity } from '../../auth/auth.ts';
import { packArrival, unpackArrival } from '../../mqtt/arrival.ts';
import type { Origin } from '../../mqtt/message.ts';
import { publisherOf } from '../../session/origin.ts';
import type { AedesPacket } from './parts.ts';

/** The fields with which a will is stored for other gateways. */
export function willFields({ username, arrival }: Origin): Pick<AedesPacket, 'username' | 'arrival'> {
  return { username, arrival: arrival ? packArrival(arrival) : '' };
}

export function foreignOrigin(packet: AedesPacket): Origin {
  const { kind = 'client', clientId = '', username = null, bridge = null, arrival } = packet;
  return { kind, clientId, username, bridge, arrival: typeof arrival === 'string' ? unpackArrival(arrival) : null };
}

/** The client that left this will. */
export function willOwner(packet: AedesPacket, absentees: Absentees): Identity {
  return publisherOf({ ...foreignOrigin(packet), kind: 'client' }, absentees);
}
