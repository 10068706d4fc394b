// How much time a store takes to have passed while the gateway was down.
import { expect, test } from 'vitest';
import { LONGEST_REST_MS, type Noted, resumedMs } from '../../src/store/time.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WALL_MS = Date.UTC(2026, 5, 1);
const noted: Noted = { steadyMs: 1_000_000, wallMs: WALL_MS, boot: { id: 'a', uptimeMs: 5 * HOUR_MS } };

/** Milliseconds believed to have passed. */
function passed(wallMs: number, id: string | null, uptimeMs: number, note: Noted = noted): number {
  return resumedMs(note, { wallMs, boot: { id, uptimeMs } }) - note.steadyMs;
}

test('within one boot the uptime counts, wherever the wall clock has jumped', () => {
  for (const wallMs of [0, WALL_MS - 400 * DAY_MS, WALL_MS, WALL_MS + 9000 * DAY_MS])
    expect(passed(wallMs, 'a', 7 * HOUR_MS)).toBe(2 * HOUR_MS);
});

test('over a reboot the wall clock counts', () => {
  expect(passed(WALL_MS + DAY_MS, 'b', 60_000)).toBe(DAY_MS);
});

test('a wall clock that went back or was never set is not believed: the uptime is what has passed at least', () => {
  for (const wallMs of [0, Date.UTC(1970, 0, 2), WALL_MS - DAY_MS]) expect(passed(wallMs, 'b', 60_000)).toBe(60_000);
});

test('a note made before the wall clock was set tells nothing about now', () => {
  const unset = { ...noted, wallMs: 3000 };
  expect(passed(WALL_MS, 'b', 60_000, unset)).toBe(60_000);
});

test('a rest of many years is cut', () => {
  expect(passed(WALL_MS + 9000 * DAY_MS, 'b', 60_000)).toBe(LONGEST_REST_MS);
});

test('time never goes back', () => {
  expect(passed(WALL_MS - 1, 'b', 0)).toBe(0);
  expect(passed(WALL_MS + 5, 'a', HOUR_MS)).toBeGreaterThanOrEqual(0);
});

test('where a system names no boot the wall clock counts', () => {
  const nameless = { ...noted, boot: { id: null, uptimeMs: 5 } };
  expect(passed(WALL_MS + DAY_MS, null, 60_000, nameless)).toBe(DAY_MS);
});

test('a store without a note begins with the wall clock', () => {
  expect(resumedMs(null, { wallMs: WALL_MS, boot: { id: 'a', uptimeMs: 1 } })).toBe(WALL_MS);
});
