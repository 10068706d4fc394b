// Native sockets over TLS and WebSocket: src/sp/ with the transports of src/transport/tls.ts and ws.ts.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { Authority, clientTls, hasOpenssl, serverTls } from '../harness/certificates.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

const able = hasOpenssl();
let sockets: SpSocket[] = [];

function open(protocol: Protocol, options: Partial<SpOptions> = {}): { socket: SpSocket; watch: Watch } {
  const socket = testDriver().open(protocol, { ...SP_DEFAULTS, ...options });
  sockets.push(socket);
  const watch = new Watch(socket);
  if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
  return { socket, watch };
}

afterEach(async () => {
  await Promise.all(sockets.map((socket) => socket.stop(500)));
  sockets = [];
});

describe('WebSocket', () => {
  const url = 'ws://127.0.0.1:0/sp';
  test('pub0 sends messages as they are, the empty one too, and sub0 takes them', async () => {
    const pub = open('pub0');
    pub.socket.listen(url);
    const sub = open('sub0');
    sub.socket.dial(await pub.watch.state(url, 'listening'));
    await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
    const big = 'x'.repeat(200_000);
    for (const text of ['one', '', big, 'a\x00\xff']) sendText(pub.socket, text);
    await sub.watch.until(() => sub.watch.bodies.length === 4);
    expect(sub.watch.bodies).toEqual(['one', '', big, 'a\x00\xff']);
  });
  test('a slow reader finds the newest messages, the others are counted', async () => {
    const pub = open('pub0', { sendBuffer: 256 << 10 });
    pub.socket.listen(url);
    const sub = open('sub0');
    sub.socket.dial(await pub.watch.state(url, 'listening'));
    await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
    sub.socket.pause();
    const total = 3000;
    for (let i = 0; i < total; i++) {
      sendText(pub.socket, String(i).padStart(8192, '0'));
      if (i % 8 === 7) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const { dropped } = pub.socket.stats;
    expect(dropped).toBeGreaterThan(0);
    sub.socket.resume();
    await sub.watch.until(() => sub.watch.bodies.length + dropped >= total);
    expect(Number(sub.watch.bodies.at(-1))).toBe(total - 1);
  });
  test('a peer that asks for another protocol gets no WebSocket', async () => {
    const pub = open('pub0');
    pub.socket.listen(url);
    const other = open('pub0');
    const bound = await pub.watch.state(url, 'listening');
    other.socket.dial(bound);
    await other.watch.state(bound, 'retrying');
    await pub.watch.until(() => pub.watch.refused().length > 0);
    expect(pub.watch.refused()[0]).toBe('ws-subprotocol');
  });
  test('a message above recv_max_size closes the pipe', async () => {
    const pub = open('pub0');
    pub.socket.listen(url);
    const sub = open('sub0', { recvMaxSize: 1000 });
    sub.socket.dial(await pub.watch.state(url, 'listening'));
    await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
    sendText(pub.socket, 'x'.repeat(1001));
    await pub.watch.until(() => pub.watch.count('pipe-down') === 1);
    expect(sub.watch.bodies).toEqual([]);
  });
});

describe.skipIf(!able)(able ? 'TLS' : 'TLS (skipped: openssl is not installed)', () => {
  let authority: Authority;
  let server: SpOptions['tlsServer'];
  beforeAll(() => {
    authority = new Authority();
    const pair = authority.issue({ name: 'server', alt: ['IP:127.0.0.1'] });
    server = serverTls(pair);
  });
  afterAll(() => authority.remove());

  for (const url of ['tls+tcp://127.0.0.1:0', 'wss://127.0.0.1:0/sp']) {
    test(`pub0 sends to sub0 over ${url}`, async () => {
      const pub = open('pub0', { tlsServer: server });
      pub.socket.listen(url);
      const sub = open('sub0', { tlsClient: clientTls(authority.ca) });
      sub.socket.dial(await pub.watch.state(url, 'listening'));
      await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
      const texts = Array.from({ length: 1000 }, (_, i) => `message ${i}`);
      for (const text of texts) sendText(pub.socket, text);
      await sub.watch.until(() => sub.watch.bodies.length === 1000);
      expect(sub.watch.bodies).toEqual(texts);
    });
    test(`a dialer does not trust an unknown certificate over ${url}`, async () => {
      const pub = open('pub0', { tlsServer: server });
      pub.socket.listen(url);
      const bound = await pub.watch.state(url, 'listening');
      const sub = open('sub0', { tlsClient: clientTls(null) });
      sub.socket.dial(bound);
      await sub.watch.state(bound, 'retrying');
      expect(pub.watch.count('pipe-up')).toBe(0);
    });
  }
  test('a TLS listener without a certificate says so and keeps trying', async () => {
    const pub = open('pub0');
    pub.socket.listen('tls+tcp://127.0.0.1:0');
    await pub.watch.state('tls+tcp://127.0.0.1:0', 'retrying');
    expect(pub.socket.endpoints()[0].lastError).toMatch(/certfile/);
  });
});
