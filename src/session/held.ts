// How much may wait for acknowledgements that something holds back: a commit, or room in the queues of slow SP peers.
// Past these bounds a client is not read any further until half of it is settled, so what holds keeps no more than that
// for each client and all of them together, and nothing has to be refused. Used by acks.ts and publish.ts; one Held for
// a broker.

/** Bytes of one client's publishes. */
export const CLIENT_HELD_BYTES = 4 << 20;

/** All clients together. */
export class Held {
  /** Bytes of publishes whose acknowledgements wait. */
  bytes = 0;
  /** Above it every client waits for its own acknowledgements before it is read on. */
  limit = Number.POSITIVE_INFINITY;

  get exceeded(): boolean {
    return this.bytes > this.limit;
  }
}

/**
 * Publishes of one client that may wait: those before 5.0 know no Receive Maximum and would go on sending. 0 = as many
 * as it likes.
 */
export function heldCount(version: 3 | 4 | 5, maxAwaitingRel: number): number {
  return version === 5 || maxAwaitingRel === 0 ? 65_535 : maxAwaitingRel;
}
