// How a client came (Arrival) as one JSON text and back: in the rows of sessions and publishers, and in the lines of
// `tidegate store`. Called by store/, cli/store and broker/aedes. What cannot be read is not known (null), and what is
// not known is denied by auth/.
import type { Arrival, Via } from './message.ts';

const VIAS: readonly Via[] = ['anonymous', 'unchecked', 'users', 'token', 'http', 'certificate', 'hook'];

/** What packArrival() writes; claims as an object. */
export interface ArrivalFields {
  readonly listener: string;
  readonly address: string;
  readonly realm: string;
  readonly via: Via | null;
  readonly claims: Readonly<Record<string, unknown>> | null;
}

export function arrivalFields(arrival: Arrival): ArrivalFields {
  const { listener, remoteAddress, realm, via, claims } = arrival;
  return {
    listener,
    address: remoteAddress,
    realm: realm ?? '',
    via: via ?? null,
    claims: claims === null ? null : Object.fromEntries(claims),
  };
}

/** The arrival of these fields, or null where they are none. */
export function arrivalOf(fields: unknown): Arrival | null {
  if (!isRecord(fields)) return null;
  const { listener, address, realm, via, claims } = fields;
  if (typeof listener !== 'string' || typeof address !== 'string' || typeof realm !== 'string') return null;
  if (claims !== null && !isRecord(claims)) return null;
  const known = VIAS.find((one) => one === via);
  if (known === undefined && via !== null) return null;
  const map = claims === null ? null : new Map(Object.entries(claims));
  return { listener, remoteAddress: address, realm, ...(known !== undefined && { via: known }), claims: map };
}

export function packArrival(arrival: Arrival): string {
  return JSON.stringify(arrivalFields(arrival));
}

export function unpackArrival(text: string): Arrival | null {
  try {
    return arrivalOf(JSON.parse(text));
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
