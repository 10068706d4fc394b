// REST: clients and subscriptions in NanoMQ's shapes, and what goes beyond them (search, pages, kick).
// Called by routes.ts. Rows are built only for the page that is shown; the will's payload only for admins.
import type { ClientView, SubscriptionView } from '../broker/broker.ts';
import { isTopicName, matches, parseShare } from '../mqtt/topic.ts';
import { type Answer, data, done, fail } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { collect, collectSorted, PAGE_QUERY, readPage } from './page.ts';
import { type Call, get, param, type QueryParameter, type Route, write } from './route.ts';
import { payloadFields } from './text.ts';

const CLIENT_QUERY: readonly QueryParameter[] = [
  { name: 'clientid', text: 'this client id only', type: 'string' },
  { name: 'username', text: 'this user name only', type: 'string' },
  { name: 'conn_state', text: 'connected or disconnected', type: 'string' },
  { name: 'clean_start', text: 'true or false', type: 'boolean' },
  { name: 'proto_name', text: 'MQTT or MQIsdp', type: 'string' },
  { name: 'proto_ver', text: '3, 4 or 5', type: 'integer' },
  { name: 'search', text: 'part of the client id, user name or address, upper or lower case', type: 'string' },
  { name: 'listener', text: 'this listener only', type: 'string' },
  { name: 'sort', text: 'a number or text of the rows, - before it for the highest first', type: 'string' },
  ...PAGE_QUERY,
];

/** What rows can be ordered by. */
const ORDERS: ReadonlyMap<string, (client: ClientView) => string | number> = new Map<
  string,
  (client: ClientView) => string | number
>([
  ['client_id', (c) => c.clientId],
  ['username', (c) => c.username ?? ''],
  ['remote', (c) => c.remote],
  ['listener', (c) => c.listener],
  ['conn_state', (c) => (c.connected ? 0 : 1)],
  ['proto_ver', (c) => c.version],
  ['since', (c) => c.since],
  ['subscriptions', (c) => c.subscriptions],
  ['inflight', (c) => c.inflight],
  ['queued', (c) => c.queued],
  ['unsent_bytes', (c) => c.unsentBytes],
  ['recv_msg', (c) => c.messagesIn],
  ['send_msg', (c) => c.messagesOut],
  ['dropped', (c) => c.dropped],
]);
type Order = (a: ClientView, b: ClientView) => number;

/** The order that `sort` asks for, null without it; equal rows are in the order of their ids. */
function readOrder(sort: string | undefined): Order | null | Answer {
  if (sort === undefined) return null;
  const down = sort.startsWith('-');
  const by = ORDERS.get(down ? sort.slice(1) : sort);
  if (by === undefined) return fail('query', `sort has to be one of ${[...ORDERS.keys()].join(', ')}`);
  const sign = down ? -1 : 1;
  return (a, b) => {
    const x = by(a);
    const y = by(b);
    if (x !== y) return x < y ? -sign : sign;
    return a.clientId < b.clientId ? -1 : 1;
  };
}

function protocolName(version: number): string {
  return version === 3 ? 'MQIsdp' : 'MQTT';
}

function clientRow(client: ClientView, withPayload: boolean): Json {
  const will = client.will ?? null;
  return {
    client_id: client.clientId,
    username: client.username,
    keepalive: client.keepAlive,
    conn_state: client.connected ? 'connected' : 'disconnected',
    clean_start: client.cleanStart,
    proto_name: protocolName(client.version),
    proto_ver: client.version,
    ...(client.willTopic === null ? {} : { will_topic: client.willTopic }),
    ...(will === null ? {} : { will_qos: will.qos, will_retain: will.retain, will_bytes: will.payload.length }),
    ...(will === null || !withPayload ? {} : payloadFields(will.payload, 'will_msg')),
    remote: client.remote,
    listener: client.listener,
    since: client.since,
    session_expiry_interval: client.sessionExpiryInterval,
    subscriptions: client.subscriptions,
    inflight: client.inflight,
    queued: client.queued,
    queued_bytes: client.queuedBytes,
    unsent_bytes: client.unsentBytes,
    recv_msg: client.messagesIn,
    send_msg: client.messagesOut,
    dropped: client.dropped,
    last_error: client.lastError,
  };
}

type Test = (client: ClientView) => boolean;

/** What a client has to be to pass the query; an answer when a value makes no sense. */
function clientTest(query: ReadonlyMap<string, string>): Test | Answer {
  const tests: Test[] = [];
  for (const [key, value] of query) {
    switch (key) {
      case 'clientid':
        tests.push((c) => c.clientId === value);
        break;
      case 'username':
        tests.push((c) => c.username === value);
        break;
      case 'listener':
        tests.push((c) => c.listener === value);
        break;
      case 'conn_state':
        if (value !== 'connected' && value !== 'disconnected') return fail('query', `conn_state cannot be ${value}`);
        tests.push((c) => c.connected === (value === 'connected'));
        break;
      case 'clean_start':
        if (value !== 'true' && value !== 'false') return fail('query', `clean_start cannot be ${value}`);
        tests.push((c) => c.cleanStart === (value === 'true'));
        break;
      case 'proto_name':
        tests.push((c) => protocolName(c.version) === value);
        break;
      case 'proto_ver':
        tests.push((c) => String(c.version) === value);
        break;
      case 'search': {
        const part = value.toLowerCase();
        tests.push(
          (c) =>
            c.clientId.toLowerCase().includes(part) ||
            c.remote.includes(part) ||
            (c.username?.toLowerCase().includes(part) ?? false),
        );
        break;
      }
    }
  }
  return (client) => tests.every((test) => test(client));
}

async function listClients(options: ConsoleOptions, call: Call, more: Test | null): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const test = clientTest(call.query);
  if (typeof test !== 'function') return test;
  const admin = call.caller.role === 'admin';
  // One id is a look-up, not a walk over all clients.
  const clientId = call.query.get('clientid');
  const one = clientId === undefined ? undefined : options.broker.client(clientId);
  const from = clientId === undefined ? options.broker.clients() : one === undefined ? [] : [one];
  const keep: Test = more === null ? test : (client) => more(client) && test(client);
  const order = readOrder(call.query.get('sort'));
  if (order !== null && typeof order !== 'function') return order;
  const row = (client: ClientView): Json => clientRow(client, admin);
  const { rows, meta } =
    order === null ? await collect(from, keep, row, page) : await collectSorted(from, keep, order, row, page);
  return data(rows, { meta });
}

function oneClient(options: ConsoleOptions, call: Call): Answer {
  const client = options.broker.client(param(call, 'id'));
  return data(client === undefined ? [] : [clientRow(client, call.caller.role === 'admin')]);
}

function kick(options: ConsoleOptions, call: Call): Answer {
  const dropSession = call.query.get('session');
  if (dropSession !== undefined && dropSession !== '1' && dropSession !== '0' && dropSession !== 'true') {
    return fail('query', 'session has to be 0 or 1');
  }
  const gone = options.broker.kick(param(call, 'id'), dropSession === '1' || dropSession === 'true');
  return gone ? done() : fail('client');
}

function subscriptionRow(s: SubscriptionView): Json {
  return {
    clientid: s.clientId,
    topic: s.topicFilter,
    qos: s.qos,
    no_local: s.noLocal,
    retain_as_published: s.retainAsPublished,
    retain_handling: s.retainHandling,
    subscription_identifier: s.subscriptionIdentifier,
  };
}

async function listSubscriptions(options: ConsoleOptions, call: Call, clientId: string | undefined): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const topic = call.query.get('topic');
  const search = call.query.get('search')?.toLowerCase();
  const taken = call.query.get('matches');
  if (taken !== undefined && !isTopicName(taken)) return fail('query', `${taken} is no topic`);
  const { rows, meta } = await collect(
    options.broker.subscriptions(clientId),
    ({ topicFilter }) =>
      (topic === undefined || topicFilter === topic) &&
      (search === undefined || topicFilter.toLowerCase().includes(search)) &&
      (taken === undefined || matches(parseShare(topicFilter)?.topicFilter ?? topicFilter, taken)),
    subscriptionRow,
    page,
  );
  return data(rows, { meta });
}

const SUBSCRIPTION_QUERY: readonly QueryParameter[] = [
  { name: 'clientid', text: 'of this client only', type: 'string' },
  { name: 'topic', text: 'this topic filter only', type: 'string' },
  { name: 'search', text: 'part of the topic filter, upper or lower case', type: 'string' },
  { name: 'matches', text: 'filters that take this topic, shared ones too', type: 'string' },
  ...PAGE_QUERY,
];

export function clientRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/clients', 'clients and sessions', (c) => listClients(options, c, null), 'viewer', CLIENT_QUERY),
    get('/api/v4/clients/{id}', 'one client, or an empty list', (c) => oneClient(options, c)),
    write(
      'DELETE',
      '/api/v4/clients/{id}',
      'ends a connection; MQTT 5.0 clients are told reason 0x98',
      'none',
      'operator',
      (c) => kick(options, c),
      [{ name: 'session', text: '1: ends its session too', type: 'boolean' }],
    ),
    get(
      '/api/v4/clients/username/{username}',
      'clients of one user',
      (c) => listClients(options, c, (client) => client.username === param(c, 'username')),
      'viewer',
      CLIENT_QUERY,
    ),
    get(
      '/api/v4/subscriptions',
      'subscriptions of all clients',
      (c) => listSubscriptions(options, c, c.query.get('clientid')),
      'viewer',
      SUBSCRIPTION_QUERY,
    ),
    get(
      '/api/v4/subscriptions/{id}',
      'subscriptions of one client',
      (c) => listSubscriptions(options, c, param(c, 'id')),
      'viewer',
      PAGE_QUERY,
    ),
  ];
}
