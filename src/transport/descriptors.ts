// How near this process is to the end of its file descriptors. Asked by acceptor.ts for each connection and by src/transports.ts before a
// proxy dials. When none is left the event loop closes new connections unseen; that must not happen: some are kept back, so that whoever
// comes too late is refused and counted, and files can still be opened.
// Source: getrlimit(2), open(2): a new descriptor is the lowest number that is free.
import { closeSync, openSync, readFileSync } from 'node:fs';

/** Kept back when a connection is accepted: it may need another one towards a server, and so may the others that were just accepted. */
export const ACCEPT_RESERVE = 64;
/** Kept back when a server is dialled: logs, the store, name lookups. */
export const DIAL_RESERVE = 32;

export class Descriptors {
  /** How many there may be, null where the system does not tell. Node.js has raised it to the hard limit when it started. */
  readonly limit: number | null;

  constructor(limit: number | null = systemLimit()) {
    this.limit = limit;
  }

  /** Whether fewer than `reserve` are left. Costs two system calls. */
  short(reserve: number): boolean {
    try {
      // The lowest free number: were it as high as this, all below are taken.
      const lowest = openSync('/dev/null', 'r');
      closeSync(lowest);
      return this.limit !== null && lowest >= this.limit - reserve;
    } catch (error) {
      const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
      return code === 'EMFILE' || code === 'ENFILE';
    }
  }
}

function systemLimit(): number | null {
  try {
    const found = /^Max open files +([0-9]+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    return found === null ? null : Number(found[1]);
  } catch {
    return null;
  }
}
