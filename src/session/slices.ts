// Work that one packet asks for in many steps: as many as fit into the client's share of the loop at once, the rest
// behind everybody else. Used by subscribe.ts, where a packet may hold thousands of filters and each may have to wait
// for a source of rights.
import type { Pace } from './pace.ts';

/** Steps between two looks at the clock. */
const STEPS = 16;

/**
 * Does step(0) to step(count - 1) in order. A step that gives a promise is waited for before the next one. True when
 * all is done at once; else a promise of true, or of false when `goOn` said no in between. Rejects with what a step
 * rejects with or throws later.
 */
export function inSlices(
  pace: Pace,
  count: number,
  step: (i: number) => Promise<void> | undefined,
  goOn: () => boolean,
): true | Promise<boolean> {
  let endMs = 0;
  for (let i = 0; i < count; i++) {
    if (i > 0 && i % STEPS === 0) {
      if (endMs === 0) endMs = pace.begin();
      else if (pace.isOver(endMs)) return later(pace, i, count, step, goOn);
    }
    const waiting = step(i);
    if (waiting !== undefined) return waiting.then(() => goOn() && later(pace, i + 1, count, step, goOn));
  }
  return true;
}

async function later(
  pace: Pace,
  from: number,
  count: number,
  step: (i: number) => Promise<void> | undefined,
  goOn: () => boolean,
): Promise<boolean> {
  let i = from;
  while (i < count) {
    await pace.turn();
    if (!goOn()) return false;
    for (const endMs = pace.begin(); i < count; ) {
      const waiting = step(i++);
      if (waiting !== undefined) {
        await waiting;
        break;
      }
      if (i % STEPS === 0 && pace.isOver(endMs)) break;
    }
  }
  return goOn();
}
