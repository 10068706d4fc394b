// Places for requests that are being worked on: health checks and metrics have their own, and callers who have not
// logged in a share. Used by app.ts, which answers 503 to whoever finds none. Counts only; waits for nobody.

/** Paths that monitoring asks for: whatever else is going on, they are answered. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);
const PROBE_PLACES = 16;
/** The part of all places that bodies of unknown callers may take; half of it for one address. */
const UNKNOWN_SHARE = 1 / 4;
const UNKNOWN_PLACES = 8;

/** Gives the place back; to be called once. */
export type Leave = () => void;

export class Rooms {
  /** Requests under way, probes left out. */
  running = 0;
  private probes = 0;
  private unknown = 0;
  private readonly byAddress = new Map<string, number>();

  /**
   * A place for a request of this path; null when there is none. @param most places for all but probes, 0 = no limit
   */
  enter(path: string, most: number): Leave | null {
    if (PROBES.has(path)) {
      if (this.probes >= PROBE_PLACES) return null;
      this.probes++;
      return () => {
        this.probes--;
      };
    }
    if (most > 0 && this.running >= most) return null;
    this.running++;
    return () => {
      this.running--;
    };
  }

  /**
   * A place for the body of a caller who is not known yet; null when all such places, or those of this address, are
   * taken.
   */
  enterUnknown(address: string, most: number): Leave | null {
    const places = most > 0 ? Math.max(2, Math.floor(most * UNKNOWN_SHARE)) : UNKNOWN_PLACES;
    const mine = this.byAddress.get(address) ?? 0;
    if (this.unknown >= places || mine >= Math.ceil(places / 2)) return null;
    this.unknown++;
    this.byAddress.set(address, mine + 1);
    return () => {
      this.unknown--;
      const left = (this.byAddress.get(address) ?? 1) - 1;
      if (left > 0) this.byAddress.set(address, left);
      else this.byAddress.delete(address);
    };
  }
}
