// Failed logins by address: after a handful the address has to wait. Called by access.ts. Bounded: the table forgets
// the oldest address; an IPv6 network of /64 counts as one address. Attempts while locked do not lengthen the lock.
import type { Clock } from '../base/clock.ts';

const MAX_FAILURES = 10;
/** Failures older than this are forgotten. */
const WINDOW_MS = 60_000;
const LOCK_MS = 30_000;
const MAX_ADDRESSES = 4096;

interface Entry {
  failures: number;
  /** Monotonic: when the window ends, or the lock. */
  until: number;
  locked: boolean;
}

/** The part of an address one owner controls. */
export function ownerOf(address: string): string {
  const mapped = address.startsWith('::ffff:') ? address.slice(7) : address;
  if (!mapped.includes(':')) return mapped;
  const halves = mapped.split('::');
  const head = halves[0] === '' ? [] : halves[0].split(':');
  const tail = halves.length < 2 || halves[1] === '' ? [] : halves[1].split(':');
  const zeros = halves.length < 2 ? [] : new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

export class LoginLimiter {
  private readonly clock: Clock;
  private readonly entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Seconds this address has to wait, 0 = none. */
  waitSeconds(address: string): number {
    const entry = this.entries.get(ownerOf(address));
    if (entry === undefined || !entry.locked) return 0;
    return Math.max(0, Math.ceil((entry.until - this.clock.mono()) / 1000));
  }

  /** Notes a failure; true when it is the one that locks the address. */
  failed(address: string): boolean {
    const key = ownerOf(address);
    const nowMs = this.clock.mono();
    let entry = this.entries.get(key);
    if (entry === undefined || nowMs >= entry.until) entry = { failures: 0, until: nowMs + WINDOW_MS, locked: false };
    if (entry.locked) return false;
    // Put last, so that the first of the map is the one longest without a failure.
    this.entries.delete(key);
    this.entries.set(key, entry);
    if (this.entries.size > MAX_ADDRESSES) this.forgetOldest();
    entry.failures++;
    if (entry.failures < MAX_FAILURES) return false;
    entry.locked = true;
    entry.until = nowMs + LOCK_MS;
    return true;
  }

  succeeded(address: string): void {
    const key = ownerOf(address);
    const entry = this.entries.get(key);
    if (entry !== undefined && !entry.locked) this.entries.delete(key);
  }

  private forgetOldest(): void {
    for (const key of this.entries.keys()) {
      this.entries.delete(key);
      return;
    }
  }
}
