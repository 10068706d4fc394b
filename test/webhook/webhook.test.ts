// Webhooks against a server of the test: bodies, order, bounds, a server that is slow or gone.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { nullLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import type { BrokerEvent, ClientView } from '../../src/broker/broker.ts';
import { base62 } from '../../src/webhook/body.ts';
import { Webhook, type WebhookSettings } from '../../src/webhook/webhook.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { StubBroker } from '../harness/stubbroker.ts';

interface Post {
  readonly headers: IncomingHttpHeaders;
  /** Of the one event, empty for a batch. */
  readonly body: Record<string, unknown>;
  /** Payloads of a batch. */
  readonly batch: readonly unknown[] | null;
  /** Which of the connections it came over. */
  readonly connection: number;
}

/** An HTTP service that answers as the test says. */
class Service {
  readonly posts: Post[] = [];
  /** Status codes of the next answers; then 200. null = the connection is cut. */
  readonly answers: (number | null)[] = [];
  /** The status of all other answers, by the body. */
  verdict: (body: string) => number = () => 200;
  /** Set: answers wait here. */
  held: ServerResponse[] | null = null;
  readonly server: Server;
  private wake: (() => void)[] = [];

  constructor() {
    this.server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      request.on('end', () => {
        const body = JSON.parse(text);
        const batch = Array.isArray(body) ? body.map((event) => event.payload) : null;
        const connection = request.socket.remotePort ?? 0;
        this.posts.push({ headers: request.headers, body: batch === null ? body : {}, batch, connection });
        const status = this.answers.length > 0 ? this.answers.shift() : this.verdict(text);
        if (this.held !== null) this.held.push(response);
        else if (status === null || status === undefined) request.socket.destroy();
        else response.writeHead(status).end('ok');
        for (const one of this.wake.splice(0)) one();
      });
    });
  }

  async until(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => this.wake.push(resolve));
  }
}

const services: Service[] = [];
const hooks: Webhook[] = [];
afterEach(async () => {
  for (const service of services.splice(0)) {
    service.server.closeAllConnections();
    service.server.close();
  }
  for (const hook of hooks.splice(0)) await hook.stop(0);
});

interface Bench {
  readonly service: Service;
  readonly broker: StubBroker;
  readonly hook: Webhook;
  readonly metrics: Metrics;
  emit(event: BrokerEvent): void;
}

async function bench(settings: Partial<WebhookSettings> = {}): Promise<Bench> {
  const service = new Service();
  services.push(service);
  service.server.listen(0, '127.0.0.1');
  await once(service.server, 'listening');
  const { port } = service.server.address() as AddressInfo;
  const broker = new StubBroker();
  const metrics = new Metrics();
  let handler: (event: BrokerEvent) => void = () => {};
  const parts = {
    broker: {
      attach: broker.attach.bind(broker),
      onEvent: (wanted: (event: BrokerEvent) => void) => {
        handler = wanted;
        return () => {};
      },
    },
    clock: systemClock,
    log: nullLog,
    metrics,
  };
  const all: WebhookSettings = {
    url: `http://127.0.0.1:${port}/events`,
    headers: [['X-Key', 'abc']],
    body: { encoding: 'plain' },
    poolSize: 4,
    cancelTimeoutMs: 2000,
    batch: { size: 1, intervalMs: 20 },
    tls: null,
    events: [
      { event: 'on_client_connack', topic: null },
      { event: 'on_client_disconnected', topic: null },
      { event: 'on_message_publish', topic: 'a/#' },
    ],
    ...settings,
  };
  const hook = new Webhook(all, parts);
  hooks.push(hook);
  await hook.prepare();
  await hook.start();
  return { service, broker, hook, metrics, emit: (event) => handler(event) };
}

const CLIENT = { clientId: 'c1', username: 'bob', version: 4, keepAlive: 60 } as ClientView;

test('connack and disconnected have the bodies that NanoMQ sends', async () => {
  const b = await bench({ poolSize: 1 });
  b.emit({ kind: 'connected', client: CLIENT });
  b.emit({ kind: 'disconnected', client: CLIENT, reason: 'the client said goodbye', reasonCode: 0 });
  b.emit({ kind: 'disconnected', client: CLIENT, reason: 'keep alive timeout', reasonCode: 0x8d });
  await b.service.until(() => b.service.posts.length === 3);
  expect(b.service.posts.map((post) => post.body)).toEqual([
    { proto_ver: 4, keepalive: 60, conn_ack: 'success', username: 'bob', clientid: 'c1', action: 'client_connack' },
    { reason: 'normal', username: 'bob', clientid: 'c1', action: 'client_disconnected' },
    { reason: 'keep alive timeout', username: 'bob', clientid: 'c1', action: 'client_disconnected' },
  ]);
  expect(b.service.posts[0].headers).toMatchObject({ 'x-key': 'abc', 'content-type': 'application/json' });
});

test('publish has the body that NanoMQ sends, for topics that match', async () => {
  const b = await bench();
  b.broker.publish('b/1', 'other', 1);
  b.broker.publish('a/1', 'hello', 1, true);
  await b.service.until(() => b.service.posts.length === 1);
  const { ts, ...body } = b.service.posts[0].body;
  expect(typeof ts).toBe('number');
  expect(body).toEqual({
    topic: 'a/1',
    retain: true,
    qos: 1,
    action: 'message_publish',
    from_username: 'undefined',
    from_client_id: 'c1',
    payload: 'hello',
  });
});

test('base64 writes bytes, and null for none', async () => {
  const b = await bench({ body: { encoding: 'base64' }, poolSize: 1 });
  b.broker.publish('a/1', '\xff\x00', 0);
  b.broker.publish('a/1', '', 0);
  await b.service.until(() => b.service.posts.length === 2);
  expect(b.service.posts.map((post) => post.body.payload)).toEqual(['/wA=', null]);
});

test('base62 has letters and digits only', () => {
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  expect(base62(all)).toMatch(/^[A-Za-z0-9]+$/);
  expect(base62(Buffer.from('abc'))).toBe('YWJj');
  expect(base62(Uint8Array.of(0xff))).toBe('9CD');
});

test('no more requests are under way than pool_size', async () => {
  const b = await bench({ poolSize: 2 });
  b.service.held = [];
  for (let i = 0; i < 5; i++) b.broker.publish('a/1', String(i), 0);
  await b.service.until(() => b.service.posts.length === 2);
  expect(b.metrics.value('tidegate_webhook_queued')).toBe(5);
  for (let done = 0; done < 5; done++) {
    await b.service.until(() => (b.service.held?.length ?? 0) > 0);
    b.service.held.shift()?.writeHead(200).end();
  }
  expect(b.service.posts.length).toBe(5);
});

test('an event is sent again when the service is away or busy, in order', async () => {
  const b = await bench({ poolSize: 1 });
  b.service.answers.push(null, 503);
  b.broker.publish('a/1', 'first', 0);
  b.broker.publish('a/1', 'second', 0);
  await b.service.until(() => b.service.posts.length === 4);
  expect(b.service.posts.map((post) => post.body.payload)).toEqual(['first', 'first', 'first', 'second']);
  expect(b.metrics.value('tidegate_webhook_failures_total')).toBe(2);
});

test('an event that the service refuses is dropped and counted', async () => {
  const b = await bench({ poolSize: 1 });
  b.service.answers.push(400);
  b.broker.publish('a/1', 'bad', 0);
  b.broker.publish('a/1', 'good', 0);
  await b.service.until(() => b.service.posts.length === 2);
  expect(b.metrics.value('tidegate_webhook_dropped_total', { reason: 'refused' })).toBe(1);
});

test('a full queue drops what is new and counts it, and the broker does not wait', async () => {
  const b = await bench({ poolSize: 1 });
  b.service.held = [];
  for (let i = 0; i < 10_010; i++) b.broker.publish('a/1', 'x', 0);
  expect(b.metrics.value('tidegate_webhook_dropped_total', { reason: 'queue-full' })).toBe(9);
});

test('a stop gives the service time to take what waits', async () => {
  const b = await bench({ poolSize: 1 });
  for (let i = 0; i < 20; i++) b.broker.publish('a/1', String(i), 0);
  await b.hook.stop(5000);
  expect(b.service.posts.length).toBe(20);
});

test('events are sent over connections that stay open', async () => {
  const b = await bench({ poolSize: 2 });
  for (let i = 0; i < 50; i++) b.broker.publish('a/1', String(i), 0);
  await b.service.until(() => b.service.posts.length === 50);
  expect(new Set(b.service.posts.map((post) => post.connection)).size).toBeLessThanOrEqual(2);
});

test('a batch is an array of events in order, full ones at once and the rest after the interval', async () => {
  const b = await bench({ poolSize: 1, batch: { size: 4, intervalMs: 20 } });
  for (let i = 0; i < 10; i++) b.broker.publish('a/1', String(i), 0);
  await b.service.until(() => b.service.posts.length === 3);
  expect(b.service.posts.map((post) => post.batch)).toEqual([
    ['0', '1', '2', '3'],
    ['4', '5', '6', '7'],
    ['8', '9'],
  ]);
  await b.hook.stop(1000);
  expect(b.metrics.value('tidegate_webhook_sent_total')).toBe(10);
});

test('with batches one event alone is an array too', async () => {
  const b = await bench({ batch: { size: 100, intervalMs: 20 } });
  b.broker.publish('a/1', 'x', 0);
  await b.service.until(() => b.service.posts.length === 1);
  expect(b.service.posts[0].batch).toEqual(['x']);
});

test('a batch is sent again whole when the service is away or busy', async () => {
  const b = await bench({ poolSize: 1, batch: { size: 3, intervalMs: 20 } });
  b.service.answers.push(null, 503);
  for (const text of ['a', 'b', 'c', 'd']) b.broker.publish('a/1', text, 0);
  await b.service.until(() => b.service.posts.length === 4);
  expect(b.service.posts.map((post) => post.batch?.join(''))).toEqual(['abc', 'abc', 'abc', 'd']);
  expect(b.metrics.value('tidegate_webhook_dropped_total', { reason: 'failed' }) ?? 0).toBe(0);
});

test.each([
  [422, 'refused'],
  [500, 'failed'],
])(
  'an event that the service answers with %i costs no other event of its batch its place',
  async (status, reason) => {
    const b = await bench({ poolSize: 1, batch: { size: 8, intervalMs: 20 } });
    b.service.verdict = (body) => (body.includes('"bad"') ? status : 200);
    for (const text of ['a', 'b', 'c', 'bad', 'e', 'f', 'g', 'h']) b.broker.publish('a/1', text, 0);
    const taken = (): string =>
      b.service.posts
        .filter((post) => !post.batch?.includes('bad'))
        .flatMap((post) => post.batch)
        .join('');
    await b.service.until(() => taken().length === 7);
    expect([...taken()].sort().join('')).toBe('abcefgh');
    await b.hook.stop(0);
    expect(b.metrics.value('tidegate_webhook_dropped_total', { reason })).toBe(1);
  },
  30_000,
);

test('a large event goes alone', async () => {
  const b = await bench({ poolSize: 1, batch: { size: 10, intervalMs: 20 } });
  for (const text of ['a', 'x'.repeat(1_100_000), 'b']) b.broker.publish('a/1', text, 0);
  await b.service.until(() => b.service.posts.length === 3);
  expect(b.service.posts.map((post) => post.batch?.length)).toEqual([1, 1, 1]);
});

test('a stop sends what waits for its batch', async () => {
  const b = await bench({ batch: { size: 100, intervalMs: 60_000 } });
  for (let i = 0; i < 20; i++) b.broker.publish('a/1', String(i), 0);
  await b.hook.stop(5000);
  expect(b.service.posts.map((post) => post.batch?.length)).toEqual([20]);
});

describe.skipIf(!hasOpenssl())('a service with TLS (openssl is needed)', () => {
  async function served(authority: Authority): Promise<{ url: string; bodies: string[]; server: HttpsServer }> {
    const pair = authority.issue({ name: 'service', alt: ['DNS:localhost'] });
    const bodies: string[] = [];
    const tls = { key: readFileSync(pair.key), cert: readFileSync(pair.cert), ca: readFileSync(authority.ca) };
    const server = createHttpsServer({ ...tls, requestCert: true }, (request, response) => {
      const { CN } = (request.socket as TLSSocket).getPeerCertificate().subject ?? {};
      request.resume().on('end', () => {
        bodies.push(String(CN));
        response.end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return { url: `https://localhost:${port}/`, bodies, server };
  }

  test('it is trusted by the authority of the tls block, and shown our certificate', async () => {
    const authority = new Authority();
    const { url, bodies, server } = await served(authority);
    const own = authority.issue({ name: 'gateway' });
    const client = { keyPassword: null, verify: true, serverName: 'localhost' };
    const b = await bench({ url, tls: { ca: authority.ca, cert: own.cert, key: own.key, ...client } });
    b.broker.publish('a/1', 'x', 0);
    await b.hook.stop(5000);
    expect(bodies).toEqual(['gateway']);
    server.close();
    authority.remove();
  });

  test('it is not trusted without its authority: the event waits', async () => {
    const authority = new Authority();
    const { url, bodies, server } = await served(authority);
    const b = await bench({ url });
    b.broker.publish('a/1', 'x', 0);
    await expect.poll(() => b.metrics.value('tidegate_webhook_failures_total')).toBeGreaterThan(0);
    expect([bodies, b.metrics.value('tidegate_webhook_queued')]).toEqual([[], 1]);
    server.close();
    authority.remove();
  });

  test('a certificate that cannot be read is an error of the start', async () => {
    const tls = { ca: '/nonexistent', cert: null, key: null, keyPassword: null, verify: true, serverName: null };
    await expect(bench({ url: 'https://localhost/', tls })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
  });
});
