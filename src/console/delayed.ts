// REST: delayed messages ($delayed/<seconds>/<topic>): list, and take one back. Called by routes.ts.
import type { DelayedView } from '../broker/broker.ts';
import { type Answer, data, done, fail } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { collect, PAGE_QUERY, readPage } from './page.ts';
import { type Call, get, param, type Route, write } from './route.ts';

function row({ clock }: ConsoleOptions, message: DelayedView): Json {
  const { id, topic, qos, retain, bytes, clientId, inMs } = message;
  return { id, topic, qos, retain, bytes, from_client_id: clientId, due_at: clock.now() + inMs };
}

async function list(options: ConsoleOptions, call: Call): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const search = call.query.get('search')?.toLowerCase();
  const { rows, meta } = await collect(
    options.broker.delayedMessages?.() ?? [],
    ({ topic }) => search === undefined || topic.toLowerCase().includes(search),
    (message) => row(options, message),
    page,
  );
  return data(rows, { meta });
}

function remove({ broker }: ConsoleOptions, call: Call): Answer {
  const id = param(call, 'id');
  const known = /^\d{1,15}$/.test(id) && broker.removeDelayed?.(Number(id)) === true;
  return known ? done() : fail('message');
}

export function delayedRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/delayed', 'messages that are published later', (call) => list(options, call), 'viewer', [
      { name: 'search', text: 'part of the topic, upper or lower case', type: 'string' },
      ...PAGE_QUERY,
    ]),
    write('DELETE', '/api/v4/delayed/{id}', 'takes a delayed message back', 'none', 'operator', (call) =>
      remove(options, call),
    ),
  ];
}
