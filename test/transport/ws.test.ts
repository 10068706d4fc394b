// WebSockets on the wire: requests that are refused, frames of every cut, closing, limits. The client writes its frames by hand.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { dial } from '../../src/transport/dial.ts';
import type { TlsListener } from '../../src/transport/tls.ts';
import { listenWs, MQTT_SUBPROTOCOLS, type WsListenerOptions } from '../../src/transport/ws.ts';
import { Catch, pattern } from '../contract/transport.ts';
import { Door } from '../harness/carrier.ts';
import { Authority, clientTls, hasOpenssl, serverTls } from '../harness/certificates.ts';

const listeners: TlsListener[] = [];
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.destroy();
  for (const listener of listeners.splice(0)) await listener.stop();
});

async function listen(door: Door, more: Partial<WsListenerOptions> = {}): Promise<number> {
  const listener = listenWs({
    ...door.options(),
    host: '127.0.0.1',
    port: 0,
    path: '/mqtt',
    subprotocols: MQTT_SUBPROTOCOLS,
    maxMessageBytes: 1_000_000,
    ...more,
  });
  listeners.push(listener);
  const [{ port }] = await listener.start();
  return port;
}

const BINARY = 2;

/** One masked frame as a client sends it. */
function frame(payload: Buffer | string, opcode = BINARY, fin = true, masked = true): Buffer {
  const body = Buffer.from(payload);
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  const bit = masked ? 0x80 : 0;
  let head: Buffer;
  if (body.length < 126) head = Buffer.from([0, bit | body.length]);
  else if (body.length < 65536) {
    head = Buffer.from([0, bit | 126, 0, 0]);
    head.writeUInt16BE(body.length, 2);
  } else {
    head = Buffer.from([0, bit | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeUInt32BE(body.length, 6);
  }
  head[0] = (fin ? 0x80 : 0) | opcode;
  for (let i = 0; masked && i < body.length; i++) body[i] ^= mask[i & 3];
  return Buffer.concat([head, mask, body]);
}

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

class Client {
  readonly socket: Socket;
  private held = Buffer.alloc(0);
  private state: 'open' | 'closed' = 'open';
  private wake: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    clients.push(this);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.held = Buffer.concat([this.held, chunk]);
      this.wake();
    });
    socket.on('close', () => {
      this.state = 'closed';
      this.wake();
    });
  }

  send(bytes: Buffer | string): void {
    this.socket.write(bytes);
  }

  /** Status and headers of an HTTP answer; null when there is none. */
  async answer(): Promise<{ status: number; headers: Map<string, string> } | null> {
    let end = -1;
    await this.until(() => (end = this.held.indexOf('\r\n\r\n')) >= 0);
    if (end < 0) return null;
    const [line, ...lines] = this.held.toString('latin1', 0, end).split('\r\n');
    this.held = this.held.subarray(end + 4);
    const headers = lines.map((text): [string, string] => {
      const colon = text.indexOf(':');
      return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()];
    });
    return { status: Number(line.split(' ')[1]), headers: new Map(headers) };
  }

  /** The next frame of the server, null when the connection has ended. */
  async next(): Promise<Frame | null> {
    await this.until(() => this.whole() > 0);
    const bytes = this.whole();
    if (bytes === 0) return null;
    expect(this.held[1] & 0x80).toBe(0);
    const { at, length } = this.head();
    const payload = Buffer.from(this.held.subarray(at, at + length));
    const opcode = this.held[0] & 15;
    this.held = this.held.subarray(bytes);
    return { opcode, payload };
  }

  async closed(): Promise<void> {
    await this.until(() => false);
  }

  private head(): { at: number; length: number } {
    const short = this.held[1] & 127;
    if (short < 126) return { at: 2, length: short };
    if (short === 126) return { at: 4, length: this.held.length < 4 ? 0 : this.held.readUInt16BE(2) };
    return { at: 10, length: this.held.length < 10 ? 0 : this.held.readUInt32BE(6) };
  }

  /** Bytes of the first frame, 0 while it is incomplete. */
  private whole(): number {
    if (this.held.length < 2) return 0;
    const { at, length } = this.head();
    return this.held.length >= at + length && this.held.length >= at ? at + length : 0;
  }

  private async until(holds: () => boolean): Promise<void> {
    while (!holds() && this.state === 'open') await new Promise<void>((resolve) => (this.wake = resolve));
  }
}

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

function request(more: { path?: string; protocol?: string | null; method?: string; headers?: string[] } = {}): string {
  const { path = '/mqtt', protocol = 'mqtt', method = 'GET', headers = [] } = more;
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', 'Upgrade: websocket', 'Connection: Upgrade'];
  lines.push(`Sec-WebSocket-Key: ${KEY}`, 'Sec-WebSocket-Version: 13', ...headers);
  if (protocol !== null) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

async function client(port: number, first: Buffer | string = ''): Promise<Client> {
  const socket = connect({ host: '127.0.0.1', port });
  const made = new Client(socket);
  await once(socket, 'connect');
  if (first.length > 0) made.send(first);
  return made;
}

/** A client that is through the handshake, and the connection made of it. */
async function open(port: number, door: Door): Promise<[Client, Catch]> {
  const made = await client(port, request());
  expect((await made.answer())?.status).toBe(101);
  return [made, new Catch(await door.next())];
}

describe('listenWs', () => {
  it('shows its address with the path', async () => {
    const listener = listenWs({
      ...new Door().options(),
      host: '127.0.0.1',
      port: 0,
      path: '/mqtt',
      subprotocols: ['mqtt'],
      maxMessageBytes: 0,
    });
    listeners.push(listener);
    const [bound] = await listener.start();
    expect(bound).toEqual({ kind: 'ws', address: `127.0.0.1:${bound.port}/mqtt`, port: bound.port });
  });

  it.each([
    ['mqtt', 'mqtt'],
    ['mqttv3.1', 'mqttv3.1'],
    ['foo, mqtt', 'mqtt'],
    ['foo,mqttv3.1,mqtt', 'mqttv3.1'],
  ])('picks from the subprotocols %j [MQTT-6.0.0-4]', async (protocol, picked) => {
    const door = new Door();
    const made = await client(await listen(door), request({ protocol }));
    const answer = await made.answer();
    expect(answer?.status).toBe(101);
    expect(answer?.headers.get('sec-websocket-protocol')).toBe(picked);
    const accept = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    expect(answer?.headers.get('sec-websocket-accept')).toBe(accept);
    (await door.next()).destroy();
  });

  it.each<[string, string, number, string]>([
    ['a wrong subprotocol', request({ protocol: 'foo' }), 400, 'ws-subprotocol'],
    ['no subprotocol', request({ protocol: null }), 400, 'ws-subprotocol'],
    ['a wrong path', request({ path: '/other' }), 404, 'ws-path'],
    ['a longer path', request({ path: '/mqtt/' }), 404, 'ws-path'],
    ['a plain GET', 'GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n', 426, 'ws-upgrade'],
    ['a plain GET of another path', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 404, 'ws-path'],
    ['a POST with a body', 'POST /mqtt HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello', 426, 'ws-upgrade'],
    ['a request by another method', request({ method: 'POST' }), 400, 'ws-upgrade'],
    ['a missing key', request().replace(`Sec-WebSocket-Key: ${KEY}\r\n`, ''), 400, 'ws-upgrade'],
    ['a wrong version', request().replace('Version: 13', 'Version: 99'), 400, 'ws-upgrade'],
    ['another upgrade', request().replace('Upgrade: websocket', 'Upgrade: h2c'), 400, 'ws-upgrade'],
    ['no HTTP', 'nonsense\r\n\r\n', 400, 'ws-http'],
    ['a head that is too large', `GET /mqtt HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`, 400, 'ws-http'],
  ])('refuses %s and closes', async (_, bytes, status, reason) => {
    const door = new Door();
    const made = await client(await listen(door), bytes);
    expect((await made.answer())?.status).toBe(status);
    expect(await door.nextReason()).toBe(reason);
    await made.closed();
    expect(door.rejected).toEqual([]);
    expect(door.count).toBe(0);
  });

  it('closes MQTT without WebSocket', async () => {
    const door = new Door();
    const made = await client(await listen(door), Buffer.from('100c00044d5154540402003c0000', 'hex'));
    await made.closed();
    expect(await door.nextReason()).toBe('ws-http');
  });

  it('ignores the query of a path', async () => {
    const door = new Door();
    const made = await client(await listen(door), request({ path: '/mqtt?token=x' }));
    expect((await made.answer())?.status).toBe(101);
    (await door.next()).destroy();
  });

  it('lets in only the origins it knows, and clients without one', async () => {
    const door = new Door();
    const port = await listen(door, { origins: ['https://console.example'] });
    const wrong = await client(port, request({ headers: ['Origin: https://evil.example'] }));
    expect((await wrong.answer())?.status).toBe(403);
    expect(await door.nextReason()).toBe('ws-origin');
    for (const headers of [['Origin: https://console.example'], []]) {
      const right = await client(port, request({ headers }));
      expect((await right.answer())?.status).toBe(101);
      (await door.next()).destroy();
    }
  });

  it('lets in pages of the same host on any port and no others, unless any origin is named', async () => {
    const door = new Door();
    const port = await listen(door);
    for (const origin of ['http://evil.example', 'null', `http://x.evil.example:${port}`, '']) {
      const made = await client(port, request({ headers: [`Origin: ${origin}`] }));
      expect([origin, (await made.answer())?.status]).toEqual([origin, 403]);
    }
    for (const origin of [`http://x:${port}`, 'https://x:8081']) {
      const made = await client(port, request({ headers: [`Origin: ${origin}`] }));
      expect([origin, (await made.answer())?.status]).toEqual([origin, 101]);
      (await door.next()).destroy();
    }
    const open = await client(await listen(door, { origins: ['*'] }), request({ headers: ['Origin: null'] }));
    expect((await open.answer())?.status).toBe(101);
    (await door.next()).destroy();
  });

  it('does not compress', async () => {
    const door = new Door();
    const made = await client(
      await listen(door),
      request({ headers: ['Sec-WebSocket-Extensions: permessage-deflate'] }),
    );
    expect((await made.answer())?.headers.has('sec-websocket-extensions')).toBe(false);
    (await door.next()).destroy();
  });

  it('takes a request in pieces and frames that come with it', async () => {
    const door = new Door();
    const made = await client(await listen(door));
    const bytes = Buffer.concat([Buffer.from(request()), frame('hel'), frame('lo')]);
    for (let at = 0; at < bytes.length; at += 9) {
      made.send(bytes.subarray(at, at + 9));
      await new Promise((next) => setImmediate(next));
    }
    const far = new Catch(await door.next());
    await far.when(() => far.bytes === 5);
    expect(far.all.toString()).toBe('hello');
    far.connection.destroy();
  });

  it('takes frames in one piece with the request', async () => {
    const door = new Door();
    await client(await listen(door), Buffer.concat([Buffer.from(request()), frame('hello')]));
    const far = new Catch(await door.next());
    await far.when(() => far.bytes === 5);
    expect(far.all.toString()).toBe('hello');
    far.connection.destroy();
  });

  it('delivers messages whatever their frames are, and answers a ping between them [MQTT-6.0.0-2]', async () => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    made.send(frame('ab', BINARY, false));
    made.send(frame('are you there', 9));
    made.send(frame('', 0, false));
    made.send(frame('cd', 0, true));
    for (const byte of frame('ef')) made.send(Buffer.from([byte]));
    made.send(Buffer.concat([frame('gh'), frame(''), frame('ij')]));
    await far.when(() => far.bytes === 10);
    expect(far.all.toString()).toBe('abcdefghij');
    expect(await made.next()).toEqual({ opcode: 10, payload: Buffer.from('are you there') });
    far.connection.destroy();
  });

  it('sends each write as one binary message', async () => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    const bodies = [Buffer.from('x'), pattern(200), pattern(70_000)];
    far.connection.cork();
    for (const body of bodies) far.connection.write(body, () => {});
    far.connection.write(Buffer.alloc(0), () => {});
    far.connection.uncork();
    for (const payload of bodies) expect(await made.next()).toEqual({ opcode: BINARY, payload });
    far.connection.end();
    expect((await made.next())?.opcode).toBe(8);
  });

  it('keeps messages apart and empty ones where it is framed', async () => {
    const door = new Door();
    const port = await listen(door, { framed: true, subprotocols: ['pub.sp.nanomsg.org'] });
    const target = { kind: 'ws', url: `ws://127.0.0.1:${port}/mqtt`, subprotocol: 'pub.sp.nanomsg.org' } as const;
    const near = new Catch(await dial(target, { framed: true }));
    const far = new Catch(await door.next());
    const bodies = [pattern(70_000), Buffer.alloc(0), pattern(3)];
    for (const body of bodies) {
      near.connection.write(body, () => {});
      far.connection.write(body, () => {});
    }
    for (const side of [near, far]) {
      await side.when(() => side.chunks.length === 3);
      expect(side.chunks).toEqual(bodies);
      side.connection.destroy();
    }
  });

  it.each<[string, Buffer, number, string]>([
    ['a text frame [MQTT-6.0.0-1]', frame('hello', 1), 1003, 'ws-text'],
    ['a frame without a mask', frame('hello', BINARY, true, false), 1002, 'WS_ERR_EXPECTED_MASK'],
    ['an unknown opcode', frame('x', 3), 1002, 'WS_ERR_INVALID_OPCODE'],
    ['a continuation of nothing', frame('x', 0), 1002, 'WS_ERR_INVALID_OPCODE'],
    [
      'a message over its limit',
      frame(Buffer.alloc(1_000_001)).subarray(0, 14),
      1009,
      'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH',
    ],
    [
      'a length beyond 2^53',
      Buffer.from('82ffffffffffffffffff00000000', 'hex'),
      1009,
      'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH',
    ],
  ])('closes for %s', async (_, bytes, code, error) => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    made.send(bytes);
    const close = await made.next();
    expect(close?.opcode).toBe(8);
    expect(close?.payload.readUInt16BE(0)).toBe(code);
    made.send(frame(Buffer.from([code >> 8, code & 255]), 8));
    made.socket.end();
    expect(await far.closed()).toEqual({ by: 'error', error });
    expect(far.bytes).toBe(0);
  });

  it('answers a close and says that the peer has closed', async () => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    made.send(Buffer.concat([frame('last'), frame(Buffer.from([3, 232]), 8)]));
    expect(await made.next()).toEqual({ opcode: 8, payload: Buffer.from([3, 232]) });
    await made.closed();
    expect(await far.closed()).toEqual({ by: 'peer' });
    expect(far.all.toString()).toBe('last');
  });

  it('closes when the peer ends without a close frame', async () => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    made.socket.end();
    expect(await far.closed()).toEqual({ by: 'peer' });
  });

  it('closes a peer that does not answer a close after the grace', async () => {
    const door = new Door();
    const [made, far] = await open(await listen(door), door);
    far.connection.end(30);
    expect((await made.next())?.opcode).toBe(8);
    expect(await far.closed()).toEqual({ by: 'us' });
    await made.closed();
  });

  it('closes a request that does not come in time, and tells silent peers apart', async () => {
    const door = new Door();
    const port = await listen(door, { handshakeTimeoutMs: 30 });
    const made = await client(port, 'GET /mqtt HT');
    await made.closed();
    expect(await door.nextReason()).toBe('handshake-timeout');
    (await client(port)).socket.end();
    expect(await door.nextReason()).toBe('silent');
    (await client(port, 'GET /mq')).socket.end();
    expect(await door.nextReason()).toMatch(/^ws-(truncated|http)$/);
  });

  it('closes connections above its limit', async () => {
    const door = new Door();
    const port = await listen(door, { maxConnections: 1 });
    const [, far] = await open(port, door);
    await (await client(port, request())).closed();
    expect(await door.nextReason()).toBe('full');
    far.connection.destroy();
  });

  it('reads a PROXY header before the request, also in one piece with it', async () => {
    const door = new Door();
    const port = await listen(door, { proxyProtocol: true });
    const header = 'PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n';
    const [one, two] = [await client(port, `${header}${request()}`), await client(port, header)];
    await new Promise((next) => setImmediate(next));
    two.send(request());
    for (const made of [one, two]) {
      expect((await made.answer())?.status).toBe(101);
      const far = new Catch(await door.next());
      expect(far.connection.remote).toBe('203.0.113.7:51000');
      made.send(frame('hi'));
      await far.when(() => far.bytes === 2);
      far.connection.destroy();
    }
  });

  it('lets connections go on when it stops', async () => {
    const door = new Door();
    const port = await listen(door);
    const [made, far] = await open(port, door);
    await listeners[0].stop();
    made.send(frame('on'));
    await far.when(() => far.bytes === 2);
    far.connection.destroy();
  });
});

describe('dial to a WebSocket', () => {
  it('fails for a subprotocol that the server does not speak', async () => {
    const port = await listen(new Door());
    const failed = dial({ kind: 'ws', url: `ws://127.0.0.1:${port}/mqtt`, subprotocol: 'foo' });
    await expect(failed).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
    await expect(failed).rejects.toThrow('400');
  });

  it('fails for a path that is not served', async () => {
    const port = await listen(new Door());
    await expect(dial({ kind: 'ws', url: `ws://127.0.0.1:${port}/`, subprotocol: 'mqtt' })).rejects.toThrow('404');
  });

  it('closes for a message over its limit', async () => {
    const door = new Door();
    const port = await listen(door);
    const target = { kind: 'ws', url: `ws://127.0.0.1:${port}/mqtt`, subprotocol: 'mqtt' } as const;
    const near = new Catch(await dial(target, { maxMessageBytes: 100 }));
    new Catch(await door.next()).connection.write(pattern(101), () => {});
    expect((await near.closed()).by).toBe('error');
  });
});

function describeSecure(): void {
  const authority = new Authority();
  afterAll(() => authority.remove());
  const pair = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
  const device = authority.issue({ name: 'device-7' });

  it('tells who a verified client is and takes browsers, whatever the configured application protocol', async () => {
    const door = new Door();
    const tls = serverTls(pair, { cacertfile: authority.ca, verifyPeer: true, failIfNoPeerCert: true, alpn: ['mqtt'] });
    const port = await listen(door, { tls });
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca: readFileSync(authority.ca),
      cert: readFileSync(device.cert),
      key: readFileSync(device.key),
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    const made = new Client(socket);
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('http/1.1');
    made.send(request());
    expect((await made.answer())?.status).toBe(101);
    const far = await door.next();
    expect(far.kind).toBe('wss');
    expect(far.tls?.peer?.commonName).toBe('device-7');
    far.destroy();
  });

  it('refuses clear text and clients without a certificate', async () => {
    const door = new Door();
    const tls = serverTls(pair, { cacertfile: authority.ca, verifyPeer: true, failIfNoPeerCert: true });
    const port = await listen(door, { tls });
    await (await client(port, request())).closed();
    expect(await door.nextReason()).toBe('plain-on-tls');
    const url = `wss://127.0.0.1:${port}/mqtt`;
    await expect(dial({ kind: 'wss', url, subprotocol: 'mqtt', tls: clientTls(authority.ca) })).rejects.toMatchObject({
      name: 'GatewayError',
    });
    expect(await door.nextReason()).toBe('tls-no-certificate');
  });

  it('shows a new certificate after reload', async () => {
    const door = new Door();
    const port = await listen(door, { tls: serverTls(pair) });
    const url = `wss://127.0.0.1:${port}/mqtt`;
    const stranger = new Authority('Some Other Authority');
    listeners[0].reload(serverTls(stranger.issue({ name: 'x', alt: ['IP:127.0.0.1'] })));
    await expect(dial({ kind: 'wss', url, subprotocol: 'mqtt', tls: clientTls(authority.ca) })).rejects.toMatchObject({
      code: 'TRANSPORT-TLS',
    });
    (await dial({ kind: 'wss', url, subprotocol: 'mqtt', tls: clientTls(stranger.ca) })).destroy();
    stranger.remove();
  });
}

if (hasOpenssl()) describe('listenWs with TLS', describeSecure);
else describe.skip('listenWs with TLS (needs the openssl program)', () => {});
