// The stream of messages for the console: what it shows, what it counts instead, and when it ends.
import { type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LocalOptions, LocalSubscription } from '../../src/broker/broker.ts';
import type { WebUser } from '../../src/console/console.ts';
import { Publication } from '../../src/mqtt/message.ts';
import { matches } from '../../src/mqtt/topic.ts';
import { FakeClock } from '../harness/clock.ts';
import { ask, basic } from './request.ts';
import { ADMIN, ConsoleStage, OPERATOR, VIEWER } from './standins.ts';

const AT = '/api/v4/mqtt/messages';

/** A stage whose broker keeps what streams subscribe to. */
class MessageStage extends ConsoleStage {
  readonly subscriptions: LocalSubscription[] = [];
  readonly users: LocalOptions[] = [];

  constructor(clock: FakeClock) {
    super({ clock });
    const attach = this.broker.attach.bind(this.broker);
    this.broker.attach = (options) => {
      this.users.push(options);
      return { ...attach(options), subscribe: (subscription) => this.subscriptions.push(subscription) };
    };
  }

  publish(topic: string, payload: Buffer | string): void {
    const publication = new Publication({ kind: 'client', clientId: 'dev', username: null, bridge: null });
    publication.topic = topic;
    publication.buffer = Buffer.from(payload);
    publication.payloadEnd = publication.buffer.length;
    for (const { receiver, topicFilter } of this.subscriptions)
      if (matches(topicFilter, topic)) receiver.receive(publication, 0);
  }
}

class Reader {
  readonly response: IncomingMessage;
  text = '';
  ended = false;
  private wake: () => void = () => {};

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (piece) => {
      this.text += piece;
      this.wake();
    });
    response.on('error', () => {});
    response.on('close', () => {
      this.ended = true;
      this.wake();
    });
  }

  static open(port: number, query: string, user: WebUser = OPERATOR): Promise<Reader> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: basic(user) };
      const sent = request({ host: '127.0.0.1', port, path: `${AT}${query}`, headers, agent: false });
      sent.on('response', (response) => resolve(new Reader(response)));
      sent.on('error', reject);
      sent.end();
    });
  }

  async until(done: () => boolean): Promise<void> {
    while (!done()) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async next(pattern: RegExp): Promise<void> {
    await this.until(() => pattern.test(this.text) || this.ended);
    expect(this.text).toMatch(pattern);
  }

  messages(): Record<string, unknown>[] {
    return [...this.text.matchAll(/event: message\ndata: (.*)\n/g)].map(([, data]) => JSON.parse(data));
  }
}

let clock: FakeClock;
let stage: MessageStage;
beforeEach(async () => {
  clock = new FakeClock();
  stage = new MessageStage(clock);
  await stage.start();
});
afterEach(() => stage.stop());

test('a message comes with topic, sender and payload as text and base64', async () => {
  const reader = await Reader.open(stage.server.port, '?topic=a/%23');
  await reader.next(/event: open/);
  stage.publish('a/b', 'hé');
  await reader.next(/event: message/);
  expect(reader.messages()).toMatchObject([
    { topic: 'a/b', from: 'dev', payload: 'hé', payload_base64: Buffer.from('hé').toString('base64'), bytes: 3 },
  ]);
  expect(stage.subscriptions).toMatchObject([{ topicFilter: 'a/#', qos: 0, retainHandling: 2 }]);
  expect(stage.users).toMatchObject([{ username: OPERATOR.username, kind: 'api' }]);
  reader.response.destroy();
});

test('several filters are one stream, retained messages on request', async () => {
  const reader = await Reader.open(stage.server.port, '?topics=a,b/%2B&retained=true');
  await reader.next(/event: open/);
  expect(stage.subscriptions.map((s) => [s.topicFilter, s.retainHandling])).toEqual([
    ['a', 0],
    ['b/+', 0],
  ]);
  reader.response.destroy();
});

test('a message that several filters take comes once', async () => {
  const reader = await Reader.open(stage.server.port, '?topics=a/%23,a/%2B,%2B/b,a/%23');
  await reader.next(/event: open/);
  for (const topic of ['a/b', 'a/b', 'a/c', 'x/b']) stage.publish(topic, topic);
  await reader.next(/"topic":"x\/b"/);
  expect(reader.messages().map(({ topic }) => topic)).toEqual(['a/b', 'a/b', 'a/c', 'x/b']);
  reader.response.destroy();
});

test('a payload is shown up to a limit and says so', async () => {
  const reader = await Reader.open(stage.server.port, '?topic=a');
  stage.publish('a', Buffer.alloc(20_000, 0xff));
  await reader.next(/event: message/);
  const [message] = reader.messages();
  expect(message).toMatchObject({ bytes: 20_000, cut: true });
  expect(Buffer.from(String(message.payload_base64), 'base64')).toHaveLength(16 * 1024);
  reader.response.destroy();
});

test('messages above the rate are counted, not sent, and the number is told', async () => {
  const reader = await Reader.open(stage.server.port, '?topic=a');
  for (let i = 0; i < 250; i++) stage.publish('a', String(i));
  clock.advance(1000);
  await reader.next(/event: skipped\ndata: \{"count":50\}/);
  expect(reader.messages()).toHaveLength(200);
  stage.publish('a', 'next');
  await reader.next(/"payload":"next"/);
  reader.response.destroy();
});

test('a stream ends after its time, and its client with it', async () => {
  const reader = await Reader.open(stage.server.port, '?topic=a');
  await reader.next(/event: open/);
  expect(stage.broker.attached).toBe(1);
  clock.advance(10 * 60_000);
  await reader.until(() => reader.ended);
  while (stage.broker.attached > 0) await new Promise((resolve) => setImmediate(resolve));
});

test('viewers may not read messages', async () => {
  expect((await ask(stage.server.port, 'GET', `${AT}?topic=a`, { user: VIEWER })).status).toBe(403);
  expect((await ask(stage.server.port, 'GET', `${AT}?topic=a`, { user: null })).status).toBe(401);
});

test.each(['', '?topic=', '?topic=a/%23/b', '?topic=%24share/g/a', '?topic=a&retained=maybe'])(
  'the query "%s" is refused and opens nothing',
  async (query) => {
    expect((await ask(stage.server.port, 'GET', AT + query, { user: ADMIN })).json).toMatchObject({ code: 108 });
    expect(stage.broker.attached).toBe(0);
  },
);

test('more than sixteen streams at once are refused', async () => {
  const readers = await Promise.all(Array.from({ length: 16 }, () => Reader.open(stage.server.port, '?topic=a')));
  expect((await ask(stage.server.port, 'GET', `${AT}?topic=a`, { user: OPERATOR })).json).toMatchObject({ code: 205 });
  for (const reader of readers) reader.response.destroy();
});
