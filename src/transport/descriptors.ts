// How near this process is to the end of its file descriptors. Asked by acceptor.ts for each connection, by
// gateway/transports.ts before a proxy dials, and at the start. When none is left the event loop closes new connections
// unseen; that must not happen: some are kept back, so that whoever comes too late is refused and counted, and files
// can still be opened. Source: getrlimit(2), open(2): a new descriptor is the lowest number that is free.
import { closeSync, openSync, readFileSync } from 'node:fs';

/**
 * Kept back when a connection is accepted: it may need another one towards a server, and so may the others that were
 * just accepted.
 */
export const ACCEPT_RESERVE = 64;
/** Kept back when a server is dialled: logs, the store, name lookups. */
export const DIAL_RESERVE = 32;

/**
 * While more than half are free, so many questions go by before the system is asked again: a tenth of the cost of an
 * accept otherwise.
 */
const UNASKED = 8;

export class Descriptors {
  /**
   * How many there may be, null where the system does not tell. Node.js has raised it to the hard limit when it
   * started.
   */
  readonly limit: number | null;
  private unasked = 0;

  constructor(limit: number | null = systemLimit()) {
    this.limit = limit;
  }

  /** How many are left about now, null where the system does not tell. Costs two system calls. */
  get free(): number | null {
    const { limit } = this;
    try {
      const lowest = openSync('/dev/null', 'r');
      closeSync(lowest);
      return limit === null ? null : Math.max(0, limit - lowest);
    } catch (error) {
      return ranOut(error) ? 0 : null;
    }
  }

  /** Whether fewer than `reserve` are left. Costs two system calls when it asks. */
  short(reserve: number): boolean {
    if (this.unasked > 0) {
      this.unasked--;
      return false;
    }
    try {
      // The lowest free number: were it as high as this, all below are taken.
      const lowest = openSync('/dev/null', 'r');
      closeSync(lowest);
      const { limit } = this;
      if (limit === null) return false;
      if (lowest * 2 < limit) this.unasked = UNASKED;
      return lowest >= limit - reserve;
    } catch (error) {
      return ranOut(error);
    }
  }
}

function ranOut(error: unknown): boolean {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code === 'EMFILE' || code === 'ENFILE';
}

function systemLimit(): number | null {
  try {
    const found = /^Max open files +([0-9]+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    return found === null ? null : Number(found[1]);
  } catch {
    return null;
  }
}
