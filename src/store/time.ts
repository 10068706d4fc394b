// The time that expiries are measured with, over restarts: how much of it has passed while the gateway was down. Called
// by the writer thread (worker.ts) with what an earlier process noted in the store. Pure. The wall clock is believed
// only as far as it can be: boards without a battery start in 1970, and clocks are set. Within one boot the uptime of
// the machine tells exactly; across boots it is the least that has passed, and the wall clock may say more, up to a
// bound.
import type { Boot } from '../base/clock.ts';

/** A moment on all clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly boot: Boot;
}

/** A moment as noted in the store, with the steady time of then. */
export interface Noted extends Moment {
  readonly steadyMs: number;
}

/** Wall clocks that say less have not been set (1 January 2023). */
const PLAUSIBLE_MS = Date.UTC(2023, 0, 1);
/** Longer rests are not believed: the clock was wrong then or is wrong now. */
export const LONGEST_REST_MS = 366 * 24 * 3600 * 1000;

/** Steady milliseconds now, given what was noted last; without a note the wall clock is all there is. */
export function resumedMs(noted: Noted | null, now: Moment): number {
  return noted === null ? now.wallMs : noted.steadyMs + restMs(noted, now);
}

function restMs(noted: Noted, now: Moment): number {
  const sinceMs = now.boot.uptimeMs - noted.boot.uptimeMs;
  if (now.boot.id !== null && now.boot.id === noted.boot.id && sinceMs >= 0) return sinceMs;
  // Another boot: the machine has been up for this long without the gateway.
  const leastMs = Math.min(now.boot.uptimeMs, LONGEST_REST_MS);
  if (noted.wallMs < PLAUSIBLE_MS || now.wallMs < PLAUSIBLE_MS) return leastMs;
  return Math.min(Math.max(leastMs, now.wallMs - noted.wallMs), LONGEST_REST_MS);
}
