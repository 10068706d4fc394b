// What a session weighs in the ledger, and how much clients may make the gateway hold while they are connected. Used by
// registry.ts, checks.ts, reader.ts and named.ts: one place for what is counted, so that nothing a client can grow is
// left out.
import type { Identity } from '../auth/auth.ts';
import { BUFFER_BYTES, OBJECT_BYTES, textBytes } from '../base/ledger.ts';
import type { Will } from '../mqtt/packet.ts';
import { propertiesMemory } from '../mqtt/property.ts';
import type { SessionLimits } from './session.ts';
import type { Session } from './state.ts';

/** A session without a client: its record, outbox, lists and closures. */
export const SESSION_BYTES = 3200;
/** A connection: socket, client, reader and writer. */
export const CONNECTION_BYTES = 9000;
/** A packet identifier of a QoS 2 message that is not released. */
export const EXCHANGE_BYTES = 48;
/** Longer names of a connection's last topic and aliases are counted. */
export const LONG_CHARACTERS = 256;

export function willBytes(will: Will | null): number {
  if (will === null) return 0;
  const { topicName, payload, properties } = will;
  return OBJECT_BYTES + textBytes(topicName) + payload.length + BUFFER_BYTES + propertiesMemory(properties);
}

/** What a source of users has said of a client. O(claims). */
function claimsBytes({ claims }: Identity): number {
  let bytes = 0;
  for (const [name, value] of claims ?? []) bytes += textBytes(name) + 2 * (JSON.stringify(value)?.length ?? 0) + 64;
  return bytes;
}

/** Memory of a session of this client with this will, its subscriptions and messages left out. */
export function sessionBytes(identity: Identity, will: Will | null, pending: Will | null): number {
  const { clientId, username } = identity;
  const names = textBytes(clientId) + (username === null ? 0 : textBytes(username));
  return SESSION_BYTES + names + claimsBytes(identity) + willBytes(will) + (pending === will ? 0 : willBytes(pending));
}

export function bytesOf(session: Session): number {
  return sessionBytes(session.identity, session.will, session.pendingWill);
}

/**
 * Bytes of packets that have come in part, all connections together: half for those that are not let in. 0 = no limit.
 */
export function inputLimit({ memoryBudget, maxPacketSize }: SessionLimits, letIn: boolean): number {
  if (memoryBudget === 0) return 0;
  return letIn ? Math.max(memoryBudget / 2, 2 * maxPacketSize) : memoryBudget / 4;
}

/** Bytes of connections; 0 = no limit. */
export function connectionLimit({ memoryBudget }: SessionLimits): number {
  return 2 * memoryBudget;
}

/** Bytes of topics and aliases that connections remember; 0 = no limit. */
export function namesLimit({ memoryBudget }: SessionLimits): number {
  return memoryBudget / 2;
}

/** Bytes of everything that is counted: what each kind may have by itself is more than all may have at once. */
export function totalLimit({ memoryBudget }: SessionLimits): number {
  return 2.5 * memoryBudget;
}
