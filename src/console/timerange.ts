// The query parameters `from` and `to` of calls that look back: a moment as milliseconds since the epoch, as ISO 8601,
// or as a time before now ("-10m"). Called by pastapi.ts and recordingapi.ts. Pure.
import { type Answer, fail } from './answer.ts';
import type { QueryParameter } from './route.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

export function rangeQuery(since = '-1h'): QueryParameter[] {
  return [
    {
      name: 'from',
      text: `earliest time: milliseconds since the epoch, ISO 8601, or before now as in -10m, -2h, -7d; ${since} unless given`,
      type: 'string',
    },
    { name: 'to', text: 'latest time, written as from is; now unless given', type: 'string' },
  ];
}

export interface TimeRange {
  /** Wall-clock milliseconds, both included. */
  readonly from: number;
  readonly to: number;
}

/** null: it is none of the three. */
export function readMoment(text: string, nowMs: number): number | null {
  const before = /^-(\d{1,9})([smhd])$/.exec(text);
  if (before !== null) return nowMs - Number(before[1]) * UNITS[before[2]];
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const time = ISO.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

/** @param since `from` where it is absent */
export function readRange(query: ReadonlyMap<string, string>, nowMs: number, since = '-1h'): TimeRange | Answer {
  const from = readMoment(query.get('from') ?? since, nowMs);
  const to = query.has('to') ? readMoment(query.get('to') ?? '', nowMs) : nowMs;
  if (from === null || to === null)
    return fail(
      'query',
      `${from === null ? 'from' : 'to'} must be milliseconds, an ISO 8601 time or a time such as -10m`,
    );
  return from <= to ? { from, to } : fail('query', 'from must not be after to');
}

/** A whole number of the query; an answer when it is wrong. */
export function readWhole(
  query: ReadonlyMap<string, string>,
  name: string,
  fallback: number,
  least: number,
  most: number,
): number | Answer {
  const text = query.get(name);
  if (text === undefined) return fallback;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : fail('query', `${name} must be a number from ${least} to ${most}`);
}
