// REST: what is published topic by topic, with rates. Called by routes.ts. The engine counts; nothing is kept here and
// nothing is looked at while nobody asks.
import type { TopicView } from '../broker/broker.ts';
import { isTopicFilter, matches } from '../mqtt/topic.ts';
import { type Answer, data, fail } from './answer.ts';
import type { ConsoleOptions, JsonObject } from './console.ts';
import { collectSorted, PAGE_QUERY, readPage } from './page.ts';
import { type Call, get, type QueryParameter, type Route } from './route.ts';

type Order = (a: TopicView, b: TopicView) => number;

/** What rows can be ordered by besides the topic. */
const NUMBERS: ReadonlyMap<string, (view: TopicView) => number> = new Map<string, (view: TopicView) => number>([
  ['messages', (view) => view.messages],
  ['bytes', (view) => view.bytes],
  ['messages_rate', (view) => view.messageRate],
  ['bytes_rate', (view) => view.byteRate],
]);

function byTopic(a: TopicView, b: TopicView): number {
  return a.topic < b.topic ? -1 : 1;
}

/**
 * The order that `sort` asks for; of equal numbers the topic that came first is first: most are 0, and comparing topics
 * is what takes time.
 */
function readOrder(sort = 'topic'): Order | Answer {
  const sign = sort.startsWith('-') ? -1 : 1;
  const name = sign < 0 ? sort.slice(1) : sort;
  if (name === 'topic') return (a, b) => sign * byTopic(a, b);
  const by = NUMBERS.get(name);
  if (by === undefined) return fail('query', `sort has to be one of topic, ${[...NUMBERS.keys()].join(', ')}`);
  return (a, b) => sign * (by(a) - by(b));
}

/**
 * The test that the query asks for; topics that begin with $ are asked for by their own filter or prefix
 * [MQTT-4.7.2-1].
 */
function readTest(query: ReadonlyMap<string, string>): ((view: TopicView) => boolean) | Answer {
  const prefix = query.get('prefix') ?? '';
  const search = query.get('search')?.toLowerCase() ?? '';
  const filter = query.get('filter') ?? '#';
  if (!isTopicFilter(filter)) return fail('query', `${filter} is no topic filter`);
  const hidden = filter === '#' && !prefix.startsWith('$');
  return ({ topic }) => {
    if (hidden && topic.startsWith('$')) return false;
    if (!topic.startsWith(prefix) || (filter !== '#' && !matches(filter, topic))) return false;
    return search === '' || topic.toLowerCase().includes(search);
  };
}

/** Rates with three digits behind the point: a message in a quarter of an hour is still more than none. */
function rate(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function numbers(view: TopicView): JsonObject {
  return {
    messages: view.messages,
    bytes: view.bytes,
    messages_rate: rate(view.messageRate),
    bytes_rate: rate(view.byteRate),
  };
}

async function list({ broker, past }: ConsoleOptions, call: Call): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const order = readOrder(call.query.get('sort'));
  if (typeof order !== 'function') return order;
  const test = readTest(call.query);
  if (typeof test !== 'function') return test;
  const traffic = broker.traffic?.();
  if (traffic === undefined) return fail('unavailable', 'this broker engine does not count topic by topic');
  const sum = { topic: '', messages: 0, bytes: 0, messageRate: 0, byteRate: 0 };
  const keep = (view: TopicView): boolean => {
    if (!test(view)) return false;
    sum.messages += view.messages;
    sum.bytes += view.bytes;
    sum.messageRate += view.messageRate;
    sum.byteRate += view.byteRate;
    return true;
  };
  const row = (view: TopicView): JsonObject => ({ topic: view.topic, ...numbers(view) });
  const { rows, meta } = await collectSorted(traffic.topics, keep, order, row, page);
  return data(rows, {
    meta: {
      ...meta,
      window_ms: Math.round(traffic.windowMs),
      sum: numbers(sum),
      topics_limit: traffic.limit,
      others: numbers(traffic.others),
      recording: (past?.()?.recording ?? null) !== null,
    },
  });
}

const QUERY: readonly QueryParameter[] = [
  { name: 'filter', text: 'topic filter, # unless told', type: 'string' },
  { name: 'prefix', text: 'topics that begin with it', type: 'string' },
  { name: 'search', text: 'part of the topic, upper or lower case', type: 'string' },
  {
    name: 'sort',
    text: 'topic, messages, bytes, messages_rate or bytes_rate, - before it for the highest first',
    type: 'string',
  },
  ...PAGE_QUERY,
];

export function topicRoutes(options: ConsoleOptions): Route[] {
  return [
    get(
      '/api/v4/topics',
      'topics that are published to, with counts and rates',
      (call) => list(options, call),
      'viewer',
      QUERY,
    ),
  ];
}
