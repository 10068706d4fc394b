// Figures of the past and what happened, as the charts draw them. Used by pages/overview.tsx and pages/events.tsx.
import type { Mark } from '../ui/chart.tsx';
import { call, fetchData, query } from './api.ts';

/** What the charts can span; `live` is what this page has seen. */
export const RANGES = ['live', '1h', '6h', '24h', '7d', '30d'] as const;
export type Range = (typeof RANGES)[number];

const HOUR_MS = 3_600_000;
const SPANS: Readonly<Record<Exclude<Range, 'live'>, { readonly ms: number; readonly stepMs: number }>> = {
  '1h': { ms: HOUR_MS, stepMs: 10_000 },
  '6h': { ms: 6 * HOUR_MS, stepMs: 60_000 },
  '24h': { ms: 24 * HOUR_MS, stepMs: 60_000 },
  '7d': { ms: 7 * 24 * HOUR_MS, stepMs: 600_000 },
  '30d': { ms: 30 * 24 * HOUR_MS, stepMs: 600_000 },
};

/** How often a range is asked for again. */
export function refreshMs(range: Range): number {
  return range === 'live' ? 0 : Math.max(10_000, SPANS[range].stepMs / 2);
}

export interface History {
  /** Seconds since the epoch. */
  readonly times: number[];
  readonly values: Readonly<Record<string, (number | null)[]>>;
}

export async function loadHistory(range: Exclude<Range, 'live'>): Promise<History> {
  const { ms, stepMs } = SPANS[range];
  const from = Date.now() - ms;
  const { times, values } = await fetchData<History>(`/history${query({ from, step: stepMs })}`);
  return withGaps(times, values, stepMs);
}

/** Steps that are missing become gaps: the gateway was away. */
function withGaps(times: readonly number[], values: History['values'], stepMs: number): History {
  const names = Object.keys(values);
  const out: Record<string, (number | null)[]> = {};
  for (const name of names) out[name] = [];
  const seconds: number[] = [];
  for (const [i, time] of times.entries()) {
    const before = times[i - 1];
    if (before !== undefined && time - before > 2.5 * stepMs) {
      seconds.push((before + stepMs) / 1000);
      for (const name of names) out[name].push(null);
    }
    seconds.push(time / 1000);
    for (const name of names) out[name].push(values[name][i]);
  }
  return { times: seconds, values: out };
}

export interface PastEvent {
  readonly id: number;
  readonly time: number;
  readonly kind: string;
  readonly level: string;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface EventPage {
  readonly data: readonly PastEvent[];
  readonly meta: { readonly next: number | null };
}

/** The query of events as the REST API takes it. */
export interface EventsAsked {
  readonly from: string;
  readonly kinds?: string;
  readonly search?: string;
  readonly before?: number;
  readonly limit?: number;
}

export function loadEvents(asked: EventsAsked): Promise<EventPage> {
  return call<EventPage>('GET', `/happenings${query({ ...asked })}`);
}

const MARKED = 'gateway,configuration,bridge,alarm';
const COLOURS: Readonly<Record<string, string>> = {
  gateway: 'good',
  configuration: 'accent',
  bridge: 'warn',
  alarm: 'bad',
};

/** Lines for the charts of a range. */
export async function loadMarks(range: Range): Promise<Mark[]> {
  const from = range === 'live' ? '-10m' : `-${range}`;
  const { data } = await loadEvents({ from, kinds: MARKED, limit: 200 });
  return data.map(({ time, kind, text, fields }) => {
    const who = typeof fields.bridge === 'string' ? `${fields.bridge}: ` : '';
    return { time: time / 1000, colour: COLOURS[kind] ?? 'muted', text: who + text };
  });
}
