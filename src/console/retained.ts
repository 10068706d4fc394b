// REST: retained messages: list, read, clear. Called by routes.ts. Clearing is what MQTT does: an empty retained
// publish. Source: MQTT 5.0 section 3.3.1.3 [MQTT-3.3.1-6].
import type { Message } from '../mqtt/message.ts';
import { type Answer, data, done, fail } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { collect, PAGE_QUERY, readPage } from './page.ts';
import { type Call, get, param, type Route, write } from './route.ts';
import { payloadFields } from './text.ts';

/** Bytes of a payload that a list shows; one message shows all up to the second figure. */
const SHOWN_IN_LIST = 256;
const SHOWN_ALONE = 1024 * 1024;

function messageRow({ clock }: ConsoleOptions, message: Message, shown: number): Json {
  const { payload } = message;
  return {
    topic: message.topic,
    qos: message.qos,
    bytes: payload.length,
    ...(payload.length <= shown ? payloadFields(payload, 'payload') : { cut: true }),
    expires_at: message.expiresAt === 0 ? null : clock.now() + message.expiresAt - clock.steady(),
    from_client_id: message.origin.clientId,
    from_username: message.origin.username,
  };
}

/** `#` does not match topics that begin with $ [MQTT-4.7.2-1]; they are asked for by their own filter. */
async function list(options: ConsoleOptions, call: Call): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const filter = call.query.get('filter') ?? '#';
  const search = call.query.get('search')?.toLowerCase();
  const { rows, meta } = await collect(
    options.broker.retained(filter),
    (message) => search === undefined || message.topic.toLowerCase().includes(search),
    (message) => messageRow(options, message, SHOWN_IN_LIST),
    page,
  );
  return data(rows, { meta });
}

/** A topic is a filter that matches itself, unless it holds wildcards. */
function find({ broker }: ConsoleOptions, topic: string): Message | undefined {
  if (topic === '' || topic.includes('#') || topic.includes('+')) return undefined;
  for (const message of broker.retained(topic)) if (message.topic === topic) return message;
  return undefined;
}

function clear(options: ConsoleOptions, call: Call): Answer {
  const topic = param(call, 'topic');
  if (find(options, topic) === undefined) return fail('topic');
  const client = options.broker.attach({
    clientId: 'tidegate-http',
    username: call.caller.username,
    kind: 'api',
    bridge: null,
    trusted: true,
  });
  const outcome = client.publish(topic, new Uint8Array(0), 0, 0, 0, true);
  client.close();
  return outcome === 'accepted' || outcome === 'no-subscribers' ? done() : fail('unavailable', `publish ${outcome}`);
}

export function retainedRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/retained', 'retained messages', (call) => list(options, call), 'viewer', [
      { name: 'filter', text: 'topic filter, # unless told', type: 'string' },
      { name: 'search', text: 'part of the topic, upper or lower case', type: 'string' },
      ...PAGE_QUERY,
    ]),
    get('/api/v4/retained/{topic}', 'one retained message with its payload', (call) => {
      const message = find(options, param(call, 'topic'));
      return message === undefined ? fail('topic') : data(messageRow(options, message, SHOWN_ALONE));
    }),
    write('DELETE', '/api/v4/retained/{topic}', 'clears a retained message', 'none', 'operator', (call) =>
      clear(options, call),
    ),
  ];
}
