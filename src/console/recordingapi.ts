// REST: recorded messages: found, thinned out, exported, published again. Called by routes.ts.
import { isShared, isTopicFilter, isTopicName } from '../mqtt/topic.ts';
import { type Answer, data, done, fail, json } from './answer.ts';
import type { ConsoleOptions, Json, JsonObject, RecordingControl, ReplayRequest, ReplayView } from './console.ts';
import { download } from './download.ts';
import { asked } from './pastapi.ts';
import { type Call, get, param, type QueryParameter, type Route, write } from './route.ts';
import { payloadFields } from './text.ts';
import { rangeQuery, readMoment, readRange, readWhole, type TimeRange } from './timerange.ts';

const DEFAULT_MESSAGES = 100;
const MOST_MESSAGES = 10_000;
const DEFAULT_POINTS = 300;
const MOST_POINTS = 2000;
const MOST_TOPICS = 1000;
const EXPORT_ROWS = 1000;
/** Bytes of a payload in a list; a file has all of it. */
const SHOWN_BYTES = 16 * 1024;
const LONGEST_FIELD = 256;
const LONGEST_PREFIX = 256;
const FASTEST = 1_000_000;
const COLUMNS = ['time', 'at', 'topic', 'qos', 'retain', 'payload', 'payload_base64', 'from', 'properties'];

type Row = Awaited<ReturnType<RecordingControl['messages']>>['rows'][number];

interface Extra {
  readonly from?: string;
  readonly username?: string;
  readonly [property: string]: Json | undefined;
}

function messageRow({ time, topic, qos, retain, payload, extra }: Row, shownBytes: number): JsonObject {
  const { from = null, username = null, ...properties } = JSON.parse(extra) as Extra;
  const shown = payload.subarray(0, shownBytes);
  return {
    time,
    at: new Date(time).toISOString(),
    topic,
    qos,
    retain,
    from,
    username,
    properties: properties as JsonObject,
    bytes: payload.length,
    ...(payload.length > shown.length ? { cut: true } : {}),
    ...payloadFields(shown, 'payload'),
  };
}

function readFilter(query: ReadonlyMap<string, string>): string | Answer {
  const filter = query.get('topic') ?? '#';
  return isTopicFilter(filter) && !isShared(filter) ? filter : fail('query', `${filter} is not a topic filter`);
}

/** Filter and time of a call. */
function readAsked(call: Call, nowMs: number): { readonly filter: string; readonly range: TimeRange } | Answer {
  const filter = readFilter(call.query);
  if (typeof filter !== 'string') return filter;
  const range = readRange(call.query, nowMs);
  return 'status' in range ? range : { filter, range };
}

async function status(control: RecordingControl): Promise<Answer> {
  const { topics, keepMs, maxSize, missed, problem, sizes } = await control.status();
  return data({
    topics,
    keep_ms: keepMs,
    max_size: maxSize,
    missed,
    last_error: problem,
    bytes: sizes?.bytes ?? null,
    messages: sizes?.messages ?? null,
    topics_recorded: sizes?.topics ?? null,
    oldest: sizes?.oldest ?? null,
    newest: sizes?.newest ?? null,
  });
}

function messages(control: RecordingControl, call: Call, nowMs: number): Promise<Answer> | Answer {
  const found = readAsked(call, nowMs);
  if ('status' in found) return found;
  const { filter, range } = found;
  const limit = readWhole(call.query, 'limit', DEFAULT_MESSAGES, 1, MOST_MESSAGES);
  if (typeof limit !== 'number') return limit;
  const order = call.query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') return fail('query', 'order must be asc or desc');
  const after = call.query.get('after') ?? null;
  if (after !== null && !/^\d{1,15}-\d{1,15}$/.test(after)) return fail('query', 'after must be meta.next of a page');
  const query = { filter, ...range, limit, newestFirst: order === 'desc', after };
  return asked(async () => {
    const { rows, next } = await control.messages(query);
    return data(
      rows.map((row) => messageRow(row, SHOWN_BYTES)),
      { meta: { next } },
    );
  });
}

function topics(control: RecordingControl, call: Call): Promise<Answer> | Answer {
  const filter = readFilter(call.query);
  if (typeof filter !== 'string') return filter;
  return asked(async () => {
    const { rows, more } = await control.topics(filter, call.query.get('search') ?? '', MOST_TOPICS);
    return data(
      rows.map(({ topic, newest }) => ({ topic, newest })),
      { meta: { more } },
    );
  });
}

function series(control: RecordingControl, call: Call, nowMs: number): Promise<Answer> | Answer {
  const found = readAsked(call, nowMs);
  if ('status' in found) return found;
  const points = readWhole(call.query, 'points', DEFAULT_POINTS, 1, MOST_POINTS);
  if (typeof points !== 'number') return points;
  const field = call.query.get('field') ?? '';
  if (field.length > LONGEST_FIELD) return fail('query', `field must be at most ${LONGEST_FIELD} characters`);
  const query = { filter: found.filter, field, ...found.range, points };
  return asked(async () => {
    const lines = await control.series(query);
    return data(lines.map(({ topic, points, cut }) => ({ topic, cut, points: points.map((point) => ({ ...point })) })));
  });
}

function exported(control: RecordingControl, call: Call, nowMs: number): Answer {
  const found = readAsked(call, nowMs);
  if ('status' in found) return found;
  const { filter, range } = found;
  let after: string | null = null;
  return download('recording', call.query.get('format') ?? 'jsonl', COLUMNS, async () => {
    const page = await control.messages({ filter, ...range, limit: EXPORT_ROWS, newestFirst: false, after });
    after = page.next;
    return { rows: page.rows.map((row) => messageRow(row, Number.POSITIVE_INFINITY)), more: after !== null };
  });
}

function replayRow({ filter, position, error, ...view }: ReplayView): JsonObject {
  return { ...view, topic: filter, position, last_error: error };
}

const REPLAY_KEYS = new Set(['topic', 'from', 'to', 'prefix', 'speed', 'retain']);

/** The body of a replay, or what is wrong with it. */
function readReplay(body: Json, nowMs: number): ReplayRequest | Answer {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return fail('value', 'a JSON object is expected');
  const document = body as JsonObject;
  const unknown = Object.keys(document).find((key) => !REPLAY_KEYS.has(key));
  if (unknown !== undefined) return fail('value', `unknown key ${unknown}`);
  const { topic = '#', from = '-1h', to = nowMs, prefix = 'replay/', speed = 1, retain = false } = document;
  if (typeof topic !== 'string' || !isTopicFilter(topic) || isShared(topic))
    return fail('value', 'topic must be a topic filter');
  const [first, last] = [readMoment(String(from), nowMs), readMoment(String(to), nowMs)];
  if (first === null || last === null) return fail('value', 'from and to must be times');
  if (
    typeof prefix !== 'string' ||
    prefix.length > LONGEST_PREFIX ||
    (prefix !== '' && !isTopicName(prefix)) ||
    prefix.startsWith('$')
  )
    return fail('value', 'prefix must be the beginning of a topic, without wildcards');
  if (typeof speed !== 'number' || !(speed >= 0 && speed <= FASTEST))
    return fail('value', `speed must be a number from 0 (no waiting) to ${FASTEST}`);
  if (typeof retain !== 'boolean') return fail('value', 'retain must be true or false');
  // What is recorded from here on is not played: with an empty prefix it is what the replay itself publishes.
  return { filter: topic, from: first, to: Math.min(last, nowMs), prefix, speed, retain };
}

function replay(control: RecordingControl, call: Call, nowMs: number): Answer {
  const request = readReplay(call.body, nowMs);
  if ('status' in request) return request;
  const view = control.replay(request, call.caller.username);
  return view === null
    ? fail('unavailable', 'too many replays are running')
    : json({ code: 0, data: replayRow(view) }, 201);
}

function stop(control: RecordingControl, call: Call): Answer {
  const id = param(call, 'id');
  return /^\d{1,15}$/.test(id) && control.stopReplay(Number(id)) ? done() : fail('replay');
}

const TOPIC: QueryParameter = { name: 'topic', text: 'topic filter, # unless given', type: 'string' };

export function recordingRoutes({ past, clock }: ConsoleOptions): Route[] {
  const control = past?.()?.recording ?? null;
  const using =
    (handle: (control: RecordingControl, call: Call, nowMs: number) => Promise<Answer> | Answer): Route['handle'] =>
    (call) =>
      control === null ? fail('recording') : handle(control, call, clock.now());
  const path = '/api/v4/recording';
  return [
    get(path, 'what is recorded, and how much there is', using(status)),
    get(`${path}/topics`, 'topics with recorded messages', using(topics), 'operator', [
      TOPIC,
      { name: 'search', text: 'part of the topic, upper or lower case', type: 'string' },
    ]),
    get(`${path}/messages`, 'recorded messages', using(messages), 'operator', [
      TOPIC,
      ...rangeQuery(),
      { name: 'limit', text: `rows, ${DEFAULT_MESSAGES} unless given, at most ${MOST_MESSAGES}`, type: 'integer' },
      { name: 'order', text: 'desc (newest first, the default) or asc', type: 'string' },
      { name: 'after', text: 'meta.next of the page before', type: 'string' },
    ]),
    get(
      `${path}/series`,
      'numbers of recorded payloads, thinned out: count, min, max, mean and last of each step, at most 10 topics',
      using(series),
      'operator',
      [
        TOPIC,
        ...rangeQuery(),
        {
          name: 'field',
          text: 'path into JSON payloads such as data.temperature; absent: the payload is a number',
          type: 'string',
        },
        { name: 'points', text: `steps, ${DEFAULT_POINTS} unless given, at most ${MOST_POINTS}`, type: 'integer' },
      ],
    ),
    get(`${path}/export`, 'recorded messages as a file, oldest first', using(exported), 'operator', [
      TOPIC,
      ...rangeQuery(),
      { name: 'format', text: 'jsonl (the default) or csv', type: 'string' },
    ]),
    get(
      `${path}/replays`,
      'replays that run or have ended',
      using((one) => data(one.replays().map(replayRow))),
    ),
    write('POST', `${path}/replays`, 'publishes recorded messages again', 'json', 'operator', using(replay)),
    write('DELETE', `${path}/replays/{id}`, 'stops a replay', 'none', 'operator', using(stop)),
  ];
}
