// From an HTTP request to an Answer and back: target, route, who is calling, query, body, handler, headers. Called by
// http.ts. Routing is hono's, loaded here and only here; the response is written by this file, so that every byte of
// its head is ours. Every failure leaves as {code, message, pointer}; nothing of an internal error is shown to the
// caller.
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { errorText } from '../base/errors.ts';
import { type Answer, fail } from './answer.ts';
import { type BodyFault, bodyLimit, discardBody, parseJson, readBody } from './body.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { HeldBody } from './heldbody.ts';
import { ownerOf } from './limiter.ts';
import { OpenStreams } from './openstreams.ts';
import { Rooms } from './rooms.ts';
import type { Asking, Call, Caller, Route } from './route.ts';
import type { RouteParts } from './routes.ts';
import { readQuery, readTarget, type Target } from './target.ts';

/** Sent with every answer. The pages are all of one origin and hold no inline script. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/** What stands at / where the pages were left out of the build. */
const NO_PAGES: Answer = {
  status: 404,
  contentType: 'text/plain; charset=utf-8',
  body: 'The pages of the console are not built: `make build` makes them. The REST API is at /api/v4.\n',
};

/** Links between pages of the documentation are relative to its folder. */
const TO_DOCS: Answer = {
  status: 308,
  contentType: 'text/plain; charset=utf-8',
  body: '',
  headers: { location: 'docs/' },
};

/** Whether an Accept-Encoding names gzip and does not refuse it (RFC 9110 section 12.5.3). */
function takesGzip(header: string | string[] | undefined): boolean {
  if (typeof header !== 'string' || header.length > 512) return false;
  return header.split(',').some((part) => {
    const [coding, weight] = part.split(';', 2);
    return coding.trim().toLowerCase() === 'gzip' && !/^\s*q=0(\.0*)?\s*$/i.test(weight ?? '');
  });
}

/** Body and time of a call that nobody has to log in for: credentials are short and sent at once. */
const PUBLIC_BODY_BYTES = 16 * 1024;
const PUBLIC_BODY_MS = 5000;

const BUSY = fail('unavailable', 'too many requests at once', '', { 'retry-after': '1' });

/** A route as the server looks it up: its query names ready, its answer to a wrong method. */
interface Served {
  readonly route: Route;
  readonly known: ReadonlySet<string>;
}

function askingOf({ socket, headers }: IncomingMessage, locals: WeakSet<Socket>): Asking {
  const secure = socket instanceof TLSSocket;
  if (locals.has(socket)) return { headers, remote: 'local', secure, local: true };
  const address = socket.remoteAddress ?? '';
  return { headers, remote: address.startsWith('::ffff:') ? address.slice(7) : address, secure };
}

/** Writes an answer. HEAD gets the head only (Node leaves the body out). */
export function send(response: ServerResponse, answer: Answer, lastEventId: string | null): void {
  if (response.headersSent || response.destroyed) return;
  const headers: Record<string, string | number> = {
    ...SECURITY_HEADERS,
    'cache-control': 'no-store',
    'content-type': answer.contentType,
    ...answer.headers,
  };
  if (answer.stream !== undefined) {
    response.writeHead(answer.status, headers);
    response.flushHeaders();
    answer.stream(response, lastEventId);
    return;
  }
  if (answer.status === 304) response.writeHead(304, headers).end();
  else {
    headers['content-length'] = Buffer.byteLength(answer.body);
    response.writeHead(answer.status, headers).end(answer.body);
  }
}

export class App {
  private readonly parts: RouteParts;
  private readonly options: ConsoleOptions;
  /** Requests whose answer has not left yet, event streams left out: what has to be held in memory at once. */
  private readonly rooms = new Rooms();
  private readonly counted = new WeakMap<ServerResponse, () => void>();
  private readonly streams: OpenStreams;
  /** Sockets that came in by the control socket. */
  readonly locals = new WeakSet<Socket>();

  constructor(parts: RouteParts) {
    this.parts = parts;
    this.options = parts.options;
    this.streams = new OpenStreams(parts.options.clock);
    parts.options.metrics.read(
      { name: 'tidegate_http_requests_running', text: 'Requests being worked on.', type: 'gauge', unit: 'items' },
      () => this.rooms.running,
    );
  }

  /** Loads the router and gives the function that a node:http server calls. */
  async listener(routes: readonly Route[]): Promise<RequestListener> {
    const { Hono } = await import('hono');
    const { getRequestListener } = await import('@hono/node-server');
    const { RESPONSE_ALREADY_SENT } = await import('@hono/node-server/utils/response');
    type Bindings = { Bindings: { incoming: IncomingMessage; outgoing: ServerResponse } };
    const app = new Hono<Bindings>({ strict: false });
    const methods = new Map<string, string[]>();
    for (const route of routes) {
      const served = { route, known: new Set(route.query.map(({ name }) => name)) };
      const path = route.path.replaceAll('{', ':').replaceAll('}', '');
      methods.set(path, [...(methods.get(path) ?? []), route.method]);
      app.on(route.method, path, async (c) => {
        const params = new Map<string, string>(Object.entries(c.req.param()));
        await this.serve(served, params, c.env.incoming, c.env.outgoing);
        return RESPONSE_ALREADY_SENT;
      });
    }
    for (const [path, allowed] of methods) {
      const answer = fail('method', undefined, '', { allow: allowed.join(', ') });
      app.all(path, async (c) => {
        await this.turnAway(answer, c.env.incoming, c.env.outgoing);
        return RESPONSE_ALREADY_SENT;
      });
    }
    app.notFound(async (c) => {
      await this.serveOther(c.env.incoming, c.env.outgoing);
      return RESPONSE_ALREADY_SENT;
    });
    const toApp = getRequestListener((request, env) => app.fetch(request, env as Bindings['Bindings']), {
      hostname: 'localhost',
      overrideGlobalObjects: false,
      autoCleanupIncoming: false,
      errorHandler: () => undefined,
    });
    return (incoming, outgoing) => this.receive(toApp, incoming, outgoing);
  }

  /** The gate in front of the router: well-formed targets only, and not too many at once. */
  private receive(toApp: RequestListener, incoming: IncomingMessage, outgoing: ServerResponse): void {
    outgoing.on('error', () => {});
    const target = readTarget(incoming.url ?? '');
    if (target === null) {
      this.finish(fail('escape'), incoming, outgoing);
      return;
    }
    const leave = this.rooms.enter(target.path, this.options.settings().maxRequests);
    if (leave === null) {
      this.finish(BUSY, incoming, outgoing);
      return;
    }
    this.counted.set(outgoing, leave);
    outgoing.once('close', () => this.release(outgoing));
    Promise.resolve(toApp(incoming, outgoing))
      .catch((error: unknown) => this.finish(this.internal(error), incoming, outgoing))
      .finally(() => {
        // Nobody has answered: the router could not make a request of it (a Host that is no host).
        if (!outgoing.headersSent) this.finish(fail('escape'), incoming, outgoing);
      });
  }

  private release(outgoing: ServerResponse): void {
    const leave = this.counted.get(outgoing);
    if (leave !== undefined && this.counted.delete(outgoing)) leave();
  }

  private async serve(
    { route, known }: Served,
    params: ReadonlyMap<string, string>,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    const asking = askingOf(incoming, this.locals);
    let caller: Caller = { username: '', role: 'viewer', via: 'open' };
    let answer: Answer;
    const body = new HeldBody(this.options.ledger);
    try {
      const admitted = await this.admit(asking, route);
      if ('status' in admitted) {
        this.finish(admitted, incoming, outgoing);
        return;
      }
      caller = admitted;
      answer = await this.answer(route, known, params, asking, caller, incoming, body);
    } catch (error) {
      answer = this.internal(error);
    } finally {
      body.letGo();
    }
    if (route.method !== 'GET' && route.quiet !== true) {
      const path = readTarget(incoming.url ?? '')?.path ?? route.path;
      const kind = route.role === 'admin' ? 'setup' : 'use';
      this.parts.audit.note(kind, caller.username, asking.remote, route.method, path, answer.status);
    }
    if (answer.stream !== undefined) this.streams.watch(outgoing, this.parts.access.ticket(asking, caller));
    this.finish(answer, incoming, outgoing);
  }

  private async admit(asking: Asking, route: Route): Promise<Caller | Answer> {
    if (route.role !== 'public') return this.parts.access.admit(asking, route.role, route.method !== 'GET');
    // Logging in is a write too: a page of somebody else may not do it for the user.
    if (route.method !== 'GET') return this.parts.access.admitPublic(asking);
    return { username: '', role: 'viewer', via: 'open' };
  }

  private async answer(
    route: Route,
    known: ReadonlySet<string>,
    params: ReadonlyMap<string, string>,
    asking: Asking,
    caller: Caller,
    incoming: IncomingMessage,
    held: HeldBody,
  ): Promise<Answer> {
    const query = readQuery(readTarget(incoming.url ?? '')?.query ?? '', known);
    if (typeof query === 'string') return fail('query', query);
    let body: Json = null;
    if (route.body !== 'none') {
      const bytes = await this.bodyOf(route, asking, incoming, held);
      if (bytes === 'busy' || bytes === 'no-memory') return BUSY;
      if (bytes === 'too-large') return fail('tooLarge');
      if (bytes === 'slow') return fail('slow');
      if (bytes === 'gone') return fail('json', 'the connection ended before the body did');
      if (bytes.length > 0 || route.body === 'json') {
        const parsed = parseJson(bytes);
        if ('problem' in parsed) return fail('json', parsed.problem);
        body = parsed.value;
      }
    }
    const call: Call = { params, query, body, caller, asking };
    return route.handle(call);
  }

  /** Who has not logged in gets a small body, little time and a share of the places. */
  private async bodyOf(
    { role }: Route,
    { remote }: Asking,
    incoming: IncomingMessage,
    held: HeldBody,
  ): Promise<Buffer | BodyFault | 'busy'> {
    const { clock, settings } = this.options;
    const limit = bodyLimit(settings());
    if (role !== 'public') return readBody(incoming, limit, { clock, ms: 0 }, held.room);
    const leave = this.rooms.enterUnknown(ownerOf(remote), settings().maxRequests);
    if (leave === null) return 'busy';
    try {
      const time = { clock, ms: PUBLIC_BODY_MS };
      return await readBody(incoming, Math.min(limit, PUBLIC_BODY_BYTES), time, held.room);
    } finally {
      leave();
    }
  }

  /** A known path with a method it does not take: only callers who may see the API learn that. */
  private async turnAway(answer: Answer, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const admitted = await this.parts.access.admit(askingOf(incoming, this.locals), 'viewer', false);
    this.finish('status' in admitted ? admitted : answer, incoming, outgoing);
  }

  /**
   * Pages of the console and its documentation, open to all as they hold nothing; everything else
   * is an unknown path, told after the credentials.
   */
  private async serveOther(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const target = readTarget(incoming.url ?? '');
    if (target !== null && (incoming.method === 'GET' || incoming.method === 'HEAD')) {
      const page = await this.page(target, incoming.headers);
      if (page !== null) {
        this.finish(page, incoming, outgoing);
        return;
      }
    }
    await this.turnAway(fail('path'), incoming, outgoing);
  }

  private async page({ decoded }: Target, asked: IncomingHttpHeaders): Promise<Answer | null> {
    const { pages } = this.options;
    if (pages === null && decoded === '/') return NO_PAGES;
    if (decoded === '/docs' && (await pages?.page('/docs/')) !== undefined) return TO_DOCS;
    const page = await pages?.page(decoded);
    if (page === undefined) return null;
    const packed = page.gzip !== undefined && takesGzip(asked['accept-encoding']) ? page.gzip : null;
    const headers: Record<string, string> = {
      etag: page.etag,
      'cache-control': page.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    };
    if (page.gzip !== undefined) headers.vary = 'accept-encoding';
    if (packed !== null) headers['content-encoding'] = 'gzip';
    const same = asked['if-none-match'] === page.etag;
    return { status: same ? 304 : 200, contentType: page.contentType, body: packed ?? page.body, headers };
  }

  private finish(answer: Answer, incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (answer.stream !== undefined) this.release(outgoing);
    const { method, headers } = incoming;
    const lastEventId = headers['last-event-id'];
    // HEAD of a stream is its head.
    const sent = method === 'HEAD' ? { ...answer, stream: undefined } : answer;
    send(outgoing, sent, typeof lastEventId === 'string' ? lastEventId : null);
    discardBody(incoming, this.options.clock);
  }

  private internal(error: unknown): Answer {
    this.options.log('error', 'WEB-FAILED', { error: errorText(error) });
    return fail('internal');
  }
}
