// What is kept of a client with its messages and session, and what that still allows when the client is away. Pure.
// Used by state.ts (each connection), subscribe.ts (stored messages) and the engine aedes. Must not ask who is
// connected now.
import type { Absentees, Identity, Verdict } from '../auth/auth.ts';
import type { Arrival, Message, Origin } from '../mqtt/message.ts';
import type { Core } from './session.ts';

/** What is kept of a client with its messages: one object for a connection. */
export function originOf(identity: Identity): Origin {
  const { clientId, username, listener, remoteAddress, realm, via, claims, partial } = identity;
  const arrival: Arrival | null =
    partial === true ? null : { listener, remoteAddress, realm: realm ?? '', ...(via && { via }), claims };
  return { kind: 'client', clientId, username, bridge: null, arrival };
}

/**
 * Whether a client has come the same way as before. Claims are compared as objects: those of another token may differ.
 */
export function sameArrival(a: Identity, b: Identity): boolean {
  return (
    a.partial === b.partial &&
    a.listener === b.listener &&
    a.remoteAddress === b.remoteAddress &&
    a.username === b.username &&
    a.realm === b.realm &&
    a.via === b.via &&
    a.claims === b.claims
  );
}

/** The client without the end of what vouched for it: what it left may outlive a token. */
export function lasting(identity: Identity): Identity {
  if (identity.validUntil === undefined) return identity;
  const { validUntil: _, ...rest } = identity;
  return rest;
}

/** Who a stored or foreign message came from, as rights are judged. What is not known of it stays unknown. */
export function publisherOf(origin: Origin, absentees: Absentees): Identity {
  const { kind, clientId, username, arrival } = origin;
  if (arrival) return { ...arrival, clientId, username, internal: false };
  const unknown = { clientId, username, remoteAddress: '', listener: '', claims: null } as const;
  if (kind === 'bridge') return { ...unknown, internal: true };
  return { ...unknown, realm: absentees.realmOf(username), internal: false, partial: true };
}

/**
 * Whether the publisher of a stored message may still write its topic, by the rights of the listener it came through;
 * the gateway's own values always count. What is not known of it is denied.
 */
export function sourceMayWrite({ absentees }: Core, { origin, topic, qos }: Message): Verdict {
  if (origin.kind === 'server' || origin.kind === 'api') return true;
  const identity = publisherOf(origin, absentees);
  return absentees.access(identity).authorizer.publish(identity, topic, qos, true);
}
