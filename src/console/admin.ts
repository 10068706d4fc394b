// REST beyond NanoMQ for people who run the gateway: who may do what, store, proxy, log lines, audit. Called by
// routes.ts.
import { type Answer, data, fail } from './answer.ts';
import type { Audit } from './audit.ts';
import type { CertificateView, ConsoleOptions, Json, JsonObject } from './console.ts';
import { type Call, get, type Route } from './route.ts';

/** Log lines of one answer. */
const MAX_LINES = 1000;

/** An address without its port and brackets. */
function addressOf(remote: string): string {
  return remote.replace(/:\d{1,5}$/, '').replace(/^\[|\]$/g, '');
}

function explain(options: ConsoleOptions, call: Call): Answer {
  const clientId = call.query.get('clientid');
  const action = call.query.get('action') ?? 'publish';
  const topic = action === 'connect' ? '' : call.query.get('topic');
  if (clientId === undefined) return fail('missing', 'the query parameter clientid');
  if (topic === undefined || (topic === '' && action !== 'connect'))
    return fail('missing', 'the query parameter topic');
  if (action !== 'publish' && action !== 'subscribe' && action !== 'deliver' && action !== 'connect') {
    return fail('query', 'action is publish, subscribe, deliver or connect');
  }
  // What is not said is taken from the client if it is known.
  const known = options.broker.client(clientId);
  const connected = known?.connected === true;
  const username = call.query.get('username') ?? known?.username ?? null;
  const address = call.query.get('address') ?? addressOf(known?.remote ?? '');
  const listener = call.query.get('listener') ?? known?.listener ?? '';
  const { allowed, rule } = options.explain({ clientId, username, remoteAddress: address, listener, action, topic });
  return data({ allowed, rule, connected, as: { username, address, listener } });
}

/** Dates as numbers of milliseconds, names as in the other answers. */
function certificateRow({ validFrom, validTo, ...rest }: CertificateView): JsonObject {
  const dates = validFrom === undefined || validTo === undefined ? {} : { valid_from: validFrom, valid_to: validTo };
  return JSON.parse(JSON.stringify({ ...rest, ...dates })) as JsonObject;
}

function logLines({ logTail }: ConsoleOptions, call: Call): Answer {
  const asked = call.query.get('limit') ?? '200';
  if (!/^\d{1,4}$/.test(asked)) return fail('query', `limit has to be a number up to ${MAX_LINES}`);
  const lines = logTail?.recent(Math.min(MAX_LINES, Number(asked))) ?? [];
  return data(lines.map((line): Json => ({ ...line })));
}

export function adminRoutes(options: ConsoleOptions, audit: Audit): Route[] {
  return [
    get(
      '/api/v4/access/explain',
      'whether a client may publish, subscribe, receive or take its client id, and which rule says so',
      (call) => explain(options, call),
      'admin',
      [
        { name: 'clientid', text: 'the client', type: 'string' },
        { name: 'topic', text: 'topic name, or topic filter for subscribe; not for connect', type: 'string' },
        {
          name: 'action',
          text: 'publish (default), subscribe, deliver, or connect: whether the client id is free for the user',
          type: 'string',
        },
        { name: 'username', text: 'its user name, where the client is not connected', type: 'string' },
        { name: 'address', text: 'its address', type: 'string' },
        { name: 'listener', text: 'the listener it comes through', type: 'string' },
      ],
    ),
    get('/api/v4/store', 'the store: size, state, waiting commits', () => data(options.store?.() ?? { enable: false })),
    get('/api/v4/certificates', 'certificates of the configuration: names, dates, what is wrong with them', () =>
      data((options.certificates?.() ?? []).map(certificateRow)),
    ),
    get('/api/v4/log', 'the last log lines', (call) => logLines(options, call), 'admin', [
      { name: 'limit', text: `lines, 200 unless told, at most ${MAX_LINES}`, type: 'integer' },
    ]),
    get('/api/v4/audit', 'the last changes made through this API, newest first', () => data(audit.recent()), 'admin'),
  ];
}
