// REST: figures over time, and what happened. Called by routes.ts.
import { type Answer, data, fail } from './answer.ts';
import type { ConsoleOptions, JsonObject, PastControl } from './console.ts';
import { download } from './download.ts';
import { type Call, get, type QueryParameter, type Route } from './route.ts';
import { rangeQuery, readRange, readWhole, type TimeRange } from './timerange.ts';

const EVENT_KINDS = ['gateway', 'configuration', 'bridge', 'alarm', 'login', 'clients'];
const MOST_FIGURES = 40;
const FIGURE_NAME = /^[a-z0-9_]{1,40}$/;
/** What is shown unless asked for. */
const FIGURES = [
  'received',
  'sent',
  'dropped',
  'received_bytes',
  'sent_bytes',
  'clients',
  'sessions',
  'queued',
  'memory',
  'cpu',
  'lag_p50',
  'lag_p99',
  'latency_p50',
  'latency_p99',
];
const DEFAULT_EVENTS = 100;
const MOST_EVENTS = 1000;
const EVENTS_SINCE = '-30d';
const LONGEST_STEP_MS = 3_600_000;
const EVENT_COLUMNS = ['time', 'at', 'kind', 'level', 'text', 'fields'];

type EventQuery = Parameters<PastControl['events']>[0];
type EventOf = Awaited<ReturnType<PastControl['events']>>['rows'][number];

/** Runs `work`; what the file of the past has against it is an answer for people. */
export async function asked(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    return fail('unavailable', (error as Error).message);
  }
}

function history(past: PastControl, nowMs: number, call: Call): Promise<Answer> | Answer {
  const range = readRange(call.query, nowMs);
  if ('status' in range) return range;
  const stepMs = readWhole(call.query, 'step', 10_000, 1, LONGEST_STEP_MS);
  if (typeof stepMs !== 'number') return stepMs;
  const names = call.query.get('figures')?.split(',', MOST_FIGURES + 1) ?? FIGURES;
  if (names.length > MOST_FIGURES || !names.every((name) => FIGURE_NAME.test(name)))
    return fail('query', `figures must be at most ${MOST_FIGURES} names with commas`);
  return asked(async () => {
    const { times, values } = await past.figures(names, range.from, range.to, stepMs);
    return data({ times, values });
  });
}

function eventRow({ id, time, kind, level, text, fields }: EventOf): JsonObject {
  const at = new Date(time).toISOString();
  return { id, time, at, kind, level, text, fields: JSON.parse(fields) as JsonObject };
}

function readEvents(query: ReadonlyMap<string, string>, { from, to }: TimeRange): EventQuery | Answer {
  const limit = readWhole(query, 'limit', DEFAULT_EVENTS, 1, MOST_EVENTS);
  if (typeof limit !== 'number') return limit;
  const before = readWhole(query, 'before', 0, 0, Number.MAX_SAFE_INTEGER);
  if (typeof before !== 'number') return before;
  const kinds = query.get('kinds')?.split(',', EVENT_KINDS.length + 1) ?? [];
  if (!kinds.every((kind) => EVENT_KINDS.includes(kind))) return fail('query', `kinds are ${EVENT_KINDS.join(', ')}`);
  return { from, to, kinds, search: query.get('search') ?? '', limit, before };
}

function events(past: PastControl, nowMs: number, call: Call): Promise<Answer> | Answer {
  const range = readRange(call.query, nowMs, EVENTS_SINCE);
  if ('status' in range) return range;
  const query = readEvents(call.query, range);
  if ('status' in query) return query;
  const format = call.query.get('format');
  if (format === undefined)
    return asked(async () => {
      const { rows, next } = await past.events(query);
      return data(rows.map(eventRow), { meta: { next } });
    });
  let { before } = query;
  return download('events', format, EVENT_COLUMNS, async () => {
    const { rows, next } = await past.events({ ...query, limit: MOST_EVENTS, before });
    before = next ?? 0;
    return { rows: rows.map(eventRow), more: next !== null };
  });
}

const HISTORY_QUERY: readonly QueryParameter[] = [
  ...rangeQuery(),
  {
    name: 'step',
    text: 'shortest step in milliseconds; 10 s are kept for an hour, 1 min for a day, 10 min for 30 days',
    type: 'integer',
  },
  { name: 'figures', text: `names with commas; ${FIGURES.join(', ')} unless given`, type: 'string' },
];

const EVENTS_QUERY: readonly QueryParameter[] = [
  ...rangeQuery(EVENTS_SINCE),
  { name: 'kinds', text: `any of ${EVENT_KINDS.join(', ')}, with commas; all unless given`, type: 'string' },
  { name: 'search', text: 'part of the text or its fields, upper or lower case', type: 'string' },
  { name: 'limit', text: `at most this many, ${DEFAULT_EVENTS} unless given, at most ${MOST_EVENTS}`, type: 'integer' },
  { name: 'before', text: 'only older ones than the event of this id: meta.next of the page before', type: 'integer' },
  { name: 'format', text: 'jsonl or csv: all of them as a file', type: 'string' },
];

export function pastRoutes({ past, clock }: ConsoleOptions): Route[] {
  const control = past?.() ?? null;
  const none = (): Answer => fail('past');
  return [
    get(
      '/api/v4/history',
      'figures over time: rates of counters and means of values, for each step',
      (call) => (control === null ? none() : history(control, clock.now(), call)),
      'viewer',
      HISTORY_QUERY,
    ),
    get(
      '/api/v4/happenings',
      'what happened: starts, changes and by whom, bridges, alarms, clients in sums; newest first',
      (call) => (control === null ? none() : events(control, clock.now(), call)),
      'viewer',
      EVENTS_QUERY,
    ),
  ];
}
