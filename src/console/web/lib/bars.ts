// A distribution as bars, one for each bucket, from the first that holds something to the last. Pure; used by
// ui/histogram.tsx.

export interface Bar {
  /** The bucket ends here; the one above the last bound begins here. */
  readonly bound: number;
  readonly over: boolean;
  readonly count: number;
  /** Of all, 0 to 1. */
  readonly share: number;
}

/** `counts` has one more than `bounds`: what is above the last. */
export function barsOf(bounds: readonly number[], counts: readonly number[]): Bar[] {
  const all = counts.reduce((sum, one) => sum + one, 0);
  const first = counts.findIndex((one) => one > 0);
  if (first < 0) return [];
  const last = counts.findLastIndex((one) => one > 0);
  return counts.slice(first, last + 1).map((one, i) => {
    const at = Math.min(first + i, bounds.length - 1);
    return { bound: bounds[at] ?? 0, over: first + i >= bounds.length, count: one, share: one / all };
  });
}
