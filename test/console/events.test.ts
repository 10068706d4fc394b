// Server-sent events: what is told, to whom, and what happens to readers who do not keep up.
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WebUser } from '../../src/console/console.ts';
import { FakeClock } from '../harness/clock.ts';
import { ask, basic } from './request.ts';
import { ADMIN, ConsoleStage, clientView, OPERATOR, VIEWER } from './standins.ts';

/** One open event stream. */
class Reader {
  readonly response: IncomingMessage;
  private readonly sent: ClientRequest;
  private text = '';
  private wake: (() => void) | null = null;
  ended = false;

  private constructor(sent: ClientRequest, response: IncomingMessage) {
    this.sent = sent;
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (piece) => {
      this.text += piece;
      this.wake?.();
    });
    response.on('error', () => {});
    response.on('close', () => {
      this.ended = true;
      this.wake?.();
    });
  }

  static open(
    port: number,
    query = '',
    headers: Record<string, string> = {},
    user: WebUser | null = ADMIN,
  ): Promise<Reader> {
    return new Promise((resolve, reject) => {
      const path = `/api/v4/events${query}`;
      const sent = request({
        host: '127.0.0.1',
        port,
        path,
        headers: { ...(user === null ? {} : { authorization: basic(user) }), ...headers },
        agent: false,
      });
      sent.on('response', (response) => resolve(new Reader(sent, response)));
      sent.on('error', reject);
      sent.end();
    });
  }

  /** Waits until the text fits. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.text)) {
      if (this.ended) throw new Error(`stream ended: ${this.text}`);
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    return this.text;
  }

  async untilEnd(): Promise<void> {
    while (!this.ended) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  close(): void {
    this.sent.destroy();
  }
}

/** The data of every event in a stream's text. */
function eventsOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)));
}

let clock: FakeClock;
let stage: ConsoleStage;
beforeEach(async () => {
  clock = new FakeClock();
  stage = await new ConsoleStage({ clock }).start();
});
afterEach(() => stage.stop());

function connected(clientId: string): void {
  stage.broker.emit({ kind: 'connected', client: clientView(clientId) });
}

test('connects and disconnects are told in order, as JSON on one line each', async () => {
  const reader = await Reader.open(stage.server.port);
  expect(reader.response.headers['content-type']).toBe('text/event-stream');
  await reader.until(/retry/);
  connected('dev\n1');
  stage.broker.emit({ kind: 'disconnected', client: clientView('dev\n1'), reason: 'normal', reasonCode: 0 });
  const text = await reader.until(/event: disconnected\ndata: .*\n\n/);
  expect(eventsOf(text)).toMatchObject([
    { event: 'connected', client_id: 'dev\n1' },
    { event: 'disconnected', client_id: 'dev\n1', reason: 'normal', reason_code: 0 },
  ]);
  reader.close();
});

test('a reader gets the kinds it names and no others', async () => {
  const reader = await Reader.open(stage.server.port, '?kinds=subscribed,refused');
  await reader.until(/retry/);
  connected('a');
  stage.broker.emit({ kind: 'subscribed', clientId: 'a', topicFilter: 't/#' });
  stage.broker.emit({
    kind: 'refused',
    clientId: 'b',
    username: null,
    remote: 'r',
    reason: 'bad-password',
    reasonCode: 134,
  });
  const text = await reader.until(/event: refused/);
  expect(eventsOf(text).map(({ event }) => event)).toEqual(['subscribed', 'refused']);
  reader.close();
});

test('an unknown kind is refused, log lines are for admins', async () => {
  expect((await ask(stage.server.port, 'GET', '/api/v4/events?kinds=nope')).status).toBe(400);
  expect((await ask(stage.server.port, 'GET', '/api/v4/events?kinds=log', { user: VIEWER })).status).toBe(403);
});

test('log lines are told to who asks for them', async () => {
  const reader = await Reader.open(stage.server.port, '?kinds=log');
  await reader.until(/retry/);
  for (const handler of stage.logTail.handlers) {
    handler({ time: 1, level: 'warn', msgid: 'CLI-SLOW', text: 'slow', fields: { client: 'c' } });
  }
  expect(eventsOf(await reader.until(/CLI-SLOW/))).toMatchObject([{ event: 'log', msgid: 'CLI-SLOW', level: 'warn' }]);
  reader.close();
});

test('a reader that comes back gets what it missed', async () => {
  const first = await Reader.open(stage.server.port);
  await first.until(/retry/);
  connected('one');
  const id = /id: (\d+)/.exec(await first.until(/one"/))?.[1] ?? '';
  first.close();
  connected('two');
  const second = await Reader.open(stage.server.port, '', { 'last-event-id': id });
  expect(eventsOf(await second.until(/two"/)).map(({ client_id }) => client_id)).toEqual(['two']);
  second.close();
});

test('a heartbeat and the counters come with time', async () => {
  const reader = await Reader.open(stage.server.port, '?kinds=stats');
  await reader.until(/retry/);
  clock.advance(15_000);
  const text = await reader.until(/:\n\n/);
  expect(eventsOf(text)[0]).toMatchObject({ event: 'stats', clients: 0, received: 0 });
  reader.close();
});

test('a reader that does not read is cut off and counted, the others go on', async () => {
  const slow = connect(stage.server.port, '127.0.0.1');
  slow.on('error', () => {});
  slow.pause();
  slow.write(`GET /api/v4/events HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(ADMIN)}\r\n\r\n`);
  const quick = await Reader.open(stage.server.port);
  await quick.until(/retry/);
  const dropped = (): number => stage.metrics.value('tidegate_http_event_readers_dropped_total') ?? 0;
  const long = '\u0001'.repeat(512);
  for (let i = 0; dropped() === 0 && i < 200; i++) {
    for (let one = 0; one < 20; one++) {
      stage.broker.emit({ kind: 'connected', client: clientView(long, { username: long, remote: `${i}-${one}-` }) });
    }
    await quick.until(new RegExp(`"${i}-19-"`));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(dropped()).toBe(1);
  connected('after');
  await quick.until(/"after"/);
  expect(stage.metrics.value('tidegate_http_event_readers')).toBe(1);
  quick.close();
  slow.destroy();
});

test('the thirty-third reader is turned away', async () => {
  const readers = await Promise.all(Array.from({ length: 32 }, () => Reader.open(stage.server.port)));
  const reply = await ask(stage.server.port, 'GET', '/api/v4/events');
  expect([reply.status, reply.json.code]).toEqual([503, 205]);
  for (const reader of readers) reader.close();
});

test('HEAD of the stream ends and takes no place', async () => {
  const reply = await ask(stage.server.port, 'HEAD', '/api/v4/events');
  expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/event-stream']);
  expect(stage.metrics.value('tidegate_http_event_readers')).toBe(0);
});

test('open streams do not count as requests that run', async () => {
  stage.settings = { ...stage.settings, maxRequests: 1 };
  const reader = await Reader.open(stage.server.port);
  expect((await ask(stage.server.port, 'GET', '/api/v4/brokers')).status).toBe(200);
  reader.close();
});

test('stop ends the streams and lets go of the broker', async () => {
  const reader = await Reader.open(stage.server.port);
  await stage.server.stop(1000);
  await reader.untilEnd();
  expect([stage.broker.handlers.size, stage.logTail.handlers.size]).toEqual([0, 0]);
});

test('the stream of a user who is removed, or has another role or password, ends; others go on', async () => {
  const { port } = stage.server;
  const readers = await Promise.all([ADMIN, VIEWER, OPERATOR].map((user) => Reader.open(port, '', {}, user)));
  const body = { username: ADMIN.username, password: ADMIN.password };
  const login = await ask(port, 'POST', '/api/v4/login', { user: null, body });
  const cookie = (login.headers['set-cookie']?.[0] ?? '').split(';')[0];
  const session = await Reader.open(port, '', { cookie }, null);
  stage.settings = { ...stage.settings, users: [ADMIN, { ...OPERATOR, role: 'viewer' }] };
  clock.advance(2000);
  await Promise.all([readers[1].untilEnd(), readers[2].untilEnd()]);
  expect([readers[0].ended, session.ended]).toEqual([false, false]);
  stage.settings = { ...stage.settings, users: [{ ...ADMIN, password: 'another one' }] };
  clock.advance(2000);
  await Promise.all([readers[0].untilEnd(), session.untilEnd()]);
});

test('the stream of a session ends with the logout', async () => {
  const { port } = stage.server;
  const body = { username: VIEWER.username, password: VIEWER.password };
  const login = await ask(port, 'POST', '/api/v4/login', { user: null, body });
  const headers = { cookie: (login.headers['set-cookie']?.[0] ?? '').split(';')[0] };
  const reader = await Reader.open(port, '', headers, null);
  const csrf = { ...headers, 'x-csrf-token': login.json.data.csrf };
  expect((await ask(port, 'POST', '/api/v4/logout', { user: null, headers: csrf })).status).toBe(200);
  clock.advance(2000);
  await reader.untilEnd();
});

test('a name of 64 KB of control characters costs its reader a few KB', async () => {
  const reader = await Reader.open(stage.server.port);
  await reader.until(/retry/);
  for (let i = 0; i < 20; i++) connected(`${i}${'\u0001'.repeat(65_000)}`);
  connected('last');
  const text = await reader.until(/"client_id":"last"/);
  expect(eventsOf(text)).toHaveLength(21);
  expect(text.length).toBeLessThan(20 * 8192);
  reader.close();
});

test('what is replayed is bounded in bytes, the newest stay', async () => {
  for (let i = 0; i < 256; i++) connected(`${i}-${'\u0001'.repeat(65_000)}`);
  connected('last');
  const reader = await Reader.open(stage.server.port, '', { 'last-event-id': '0' });
  const text = await reader.until(/"client_id":"last"/);
  expect(text.length).toBeLessThan(256 * 1024);
  expect(eventsOf(text).length).toBeGreaterThan(20);
  reader.close();
});
