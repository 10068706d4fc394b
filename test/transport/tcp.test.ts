// The TCP listener: where it binds, what it refuses, the PROXY protocol on it.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.ts';
import { dial } from '../../src/transport/dial.ts';
import { listenTcp, type TcpListenerOptions } from '../../src/transport/tcp.ts';
import type { Bound, Listener } from '../../src/transport/transport.ts';
import { Catch } from '../contract/transport.ts';
import { Door } from '../harness/carrier.ts';

const toStop: Listener[] = [];
const toDestroy: Socket[] = [];
afterEach(async () => {
  for (const socket of toDestroy.splice(0)) socket.destroy();
  for (const listener of toStop.splice(0)) await listener.stop();
});

function listener(door: Door, more: Partial<TcpListenerOptions> = {}): Listener {
  const made = listenTcp({ ...door.options(), host: '127.0.0.1', port: 0, ...more });
  toStop.push(made);
  return made;
}

async function client(port: number, bytes: string | Buffer = ''): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  toDestroy.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  if (bytes.length > 0) socket.write(bytes);
  return socket;
}

describe('listenTcp', () => {
  it('shows the address and the port that it got', async () => {
    const [bound] = await listener(new Door()).start();
    expect(bound.kind).toBe('tcp');
    expect(bound.port).toBeGreaterThan(0);
    expect(bound.address).toBe(`127.0.0.1:${bound.port}`);
  });

  it('binds a name on every address it means, with one port', async () => {
    const door = new Door();
    const bound = await listener(door, { host: 'localhost' }).start();
    expect(new Set(bound.map(({ port }) => port)).size).toBe(1);
    for (const { address, port } of bound) {
      const host = address.startsWith('[') ? '::1' : '127.0.0.1';
      const near = await dial({ kind: 'tcp', host, port });
      const far = await door.next();
      expect(far.remoteAddress).toBe(host);
      near.destroy();
      far.destroy();
    }
  });

  it('binds every address for "*" and shows IPv4 peers as such', async () => {
    const door = new Door();
    const [bound] = await listener(door, { host: '*' }).start();
    await client(bound.port);
    const far = await door.next();
    expect(far.remoteAddress).toBe('127.0.0.1');
    expect(far.remote).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(far.local).toBe(`127.0.0.1:${bound.port}`);
    far.destroy();
  });

  it('takes an IPv6 address with brackets', async () => {
    const door = new Door();
    let bound: Bound[];
    try {
      bound = await listener(door, { host: '[::1]' }).start();
    } catch {
      return; // no IPv6 on this machine
    }
    expect(bound[0].address).toBe(`[::1]:${bound[0].port}`);
  });

  it('fails with TRANSPORT-BIND for an address in use and leaves it to its owner', async () => {
    const door = new Door();
    const [{ port }] = await listener(door).start();
    const second = listener(new Door(), { port });
    await expect(second.start()).rejects.toMatchObject({ code: 'TRANSPORT-BIND' });
    await expect(second.start()).rejects.toThrow(`127.0.0.1:${port}: address already in use (EADDRINUSE)`);
    await client(port);
    (await door.next()).destroy();
  });

  it('leaves nothing bound when one address of a name is taken', async () => {
    const [{ port }] = await listener(new Door()).start();
    await expect(listener(new Door(), { host: 'localhost', port }).start()).rejects.toBeInstanceOf(GatewayError);
    await expect(dial({ kind: 'tcp', host: '::1', port })).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
  });

  it('fails with TRANSPORT-BIND for foreign addresses and unknown names', async () => {
    for (const host of ['192.0.2.1', 'no-such-host.invalid'])
      await expect(listener(new Door(), { host }).start()).rejects.toMatchObject({ code: 'TRANSPORT-BIND' });
  });

  it('stops accepting while connections go on, and can bind the same port at once', async () => {
    const door = new Door();
    const first = listener(door);
    const [{ port }] = await first.start();
    const socket = await client(port);
    const far = await door.next();
    await first.stop();
    await expect(dial({ kind: 'tcp', host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
    await listener(new Door(), { port }).start();
    far.write(Buffer.from('still here'), () => {});
    expect(String((await once(socket, 'data'))[0])).toBe('still here');
    far.destroy();
  });

  it('closes connections above the limit and takes new ones when there is room again', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { maxConnections: 1 }).start();
    await client(port);
    const first = new Catch(await door.next());
    const refused = await client(port);
    refused.resume();
    await once(refused, 'close');
    expect(await door.nextReason()).toBe('full');
    first.connection.destroy();
    await first.closed();
    await client(port);
    (await door.next()).destroy();
  });

  it('survives a peer that resets at once', async () => {
    const door = new Door();
    const [{ port }] = await listener(door).start();
    for (let i = 0; i < 20; i++) {
      const socket = await client(port);
      socket.resetAndDestroy();
      await once(socket, 'close');
    }
    await client(port, 'x');
    let far = new Catch(await door.next());
    while (far.bytes === 0) {
      await far.when(() => far.bytes > 0 || far.closes.length > 0);
      if (far.bytes === 0) far = new Catch(await door.next());
    }
    expect(far.bytes).toBe(1);
    far.connection.destroy();
  });
});

describe('listenTcp with the PROXY protocol', () => {
  const V1 = 'PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n';

  it('takes the client from the header and delivers what follows first', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    const socket = await client(port, `${V1}hello`);
    const far = new Catch(await door.next());
    expect(far.connection.remote).toBe('203.0.113.7:51000');
    expect(far.connection.remoteAddress).toBe('203.0.113.7');
    socket.write(' world');
    await far.when(() => far.bytes === 11);
    expect(far.all.toString()).toBe('hello world');
    far.connection.destroy();
  });

  it('delivers everything of a large chunk that begins with the header', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    const body = Buffer.alloc(500_000, 'abcdefg');
    await client(port, Buffer.concat([Buffer.from(V1), body]));
    const far = new Catch(await door.next());
    await far.when(() => far.bytes >= body.length);
    expect(far.all.equals(body)).toBe(true);
    far.connection.destroy();
  });

  it('waits for a header that comes byte by byte', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    const socket = await client(port);
    socket.setNoDelay(true);
    for (const byte of Buffer.from(`${V1}!`))
      await new Promise<void>((done) => socket.write(Buffer.from([byte]), () => done()));
    const far = new Catch(await door.next());
    await far.when(() => far.bytes === 1);
    expect(far.connection.remoteAddress).toBe('203.0.113.7');
    far.connection.destroy();
  });

  it('keeps the address of the socket for UNKNOWN', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    await client(port, 'PROXY UNKNOWN\r\n');
    const far = await door.next();
    expect(far.remoteAddress).toBe('127.0.0.1');
    far.destroy();
  });

  it('sees the end of a peer whose header and end came together', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    const socket = await client(port);
    socket.end(`${V1}last`);
    const far = new Catch(await door.next());
    expect((await far.closed()).by).toBe('peer');
    expect(far.all.toString()).toBe('last');
  });

  it.each([
    ['no header', '\x10\x0c\0\x04MQTT', 'proxy-header'],
    ['a wrong header', 'PROXY TCP4 1.2.3.400 5.6.7.8 1 2\r\n', 'proxy-header'],
  ])('closes a peer with %s', async (_, bytes, reason) => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    const socket = await client(port, bytes);
    socket.resume();
    await once(socket, 'close');
    expect(await door.nextReason()).toBe(reason);
    expect(door.count).toBe(0);
  });

  /** A header of version 2 for 192.0.2.9, with an SSL value (section 2.2.7): client bits, verification, common name. */
  function told(client: number, verify: number, commonName: string, cut = 0): Buffer {
    const name = Buffer.from(commonName);
    const inner = Buffer.concat([
      Buffer.from([0x22, 0, name.length]),
      name,
      Buffer.from([0x21, 0, 7]),
      Buffer.from('TLSv1.3'),
    ]);
    const ssl = Buffer.concat([Buffer.from([client, 0, 0, 0, verify]), inner]);
    const addresses = Buffer.from([192, 0, 2, 9, 192, 0, 2, 1, 0x11, 0x11, 0x07, 0x5b]);
    const values = Buffer.concat([Buffer.from([0x20, 0, ssl.length]), ssl]).subarray(0, 3 + ssl.length - cut);
    const body = Buffer.concat([addresses, values]);
    const head = Buffer.from('0d0a0d0a000d0a515549540a2111', 'hex');
    return Buffer.concat([head, Buffer.from([0, body.length]), body]);
  }

  it('a verified certificate that the header tells of is the one of the connection', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true, proxyTls: 'required' }).start();
    await client(port, Buffer.concat([told(7, 0, 'pump-7'), Buffer.from('hello')]));
    const connection = await door.next();
    expect(connection).toMatchObject({ kind: 'tcp', remoteAddress: '192.0.2.9' });
    expect(connection.tls).toMatchObject({ version: 'TLSv1.3', peer: { commonName: 'pump-7' } });
  });

  it.each([
    ['version 1', Buffer.from(V1)],
    ['no values', Buffer.from('0d0a0d0a000d0a515549540a2111000cc0000209c00002011111075b', 'hex')],
    ['a connection of the proxy itself (LOCAL)', Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')],
    ['TLS without a certificate', told(1, 1, '')],
    ['a certificate that was not verified', told(7, 1, 'pump-7')],
    ['no TLS', told(6, 0, 'pump-7')],
    ['values that are cut', told(7, 0, 'pump-7', 3)],
  ])('closes a peer that has to tell of a certificate and sends %s', async (_, header) => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true, proxyTls: 'required' }).start();
    const socket = await client(port, header);
    socket.resume();
    await once(socket, 'close');
    expect(await door.nextReason()).toBe('proxy-certificate');
    expect(door.count).toBe(0);
  });

  it('does not take a certificate from a header where it is not asked to', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    await client(port, told(7, 0, 'pump-7'));
    expect((await door.next()).tls).toBeNull();
  });

  it('closes a peer that ends within the header, and tells a silent one apart', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true }).start();
    (await client(port)).end('PROXY TC');
    expect(await door.nextReason()).toBe('proxy-truncated');
    (await client(port)).end();
    expect(await door.nextReason()).toBe('silent');
  });

  it('closes a peer whose header does not come in time', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true, handshakeTimeoutMs: 30 }).start();
    const socket = await client(port, 'PROXY ');
    socket.resume();
    await once(socket, 'close');
    expect(await door.nextReason()).toBe('handshake-timeout');
  });

  it('closes peers within a handshake when it stops, without blaming them', async () => {
    const door = new Door();
    const made = listener(door, { proxyProtocol: true });
    const [{ port }] = await made.start();
    const socket = await client(port, 'PROXY ');
    socket.resume();
    await new Promise((next) => setImmediate(next));
    await made.stop();
    await once(socket, 'close');
    expect(door.rejected).toEqual([]);
  });

  it('believes only those it is told to, and reads nothing of others [B116]', async () => {
    const door = new Door();
    const strict = { proxyProtocol: true, proxyProtocolFrom: ['192.0.2.0/24', '2001:db8::1'] };
    const [{ port }] = await listener(door, strict).start();
    const socket = await client(port, `${V1}hello`);
    socket.resume();
    await once(socket, 'close');
    expect(await door.nextReason()).toBe('proxy-untrusted');
    expect(door.count).toBe(0);
  });

  it.each([['127.0.0.1'], ['127.0.0.0/8'], ['::ffff:127.0.0.0/104']])(
    'believes a peer that is in %s',
    async (network) => {
      const door = new Door();
      const [{ port }] = await listener(door, {
        proxyProtocol: true,
        proxyProtocolFrom: ['192.0.2.1', network],
      }).start();
      await client(port, V1);
      const far = await door.next();
      expect(far.remoteAddress).toBe('203.0.113.7');
      far.destroy();
    },
  );

  it('judges the address of the socket, not the one that a header tells', async () => {
    const door = new Door();
    const [{ port }] = await listener(door, { proxyProtocol: true, proxyProtocolFrom: ['203.0.113.7'] }).start();
    const socket = await client(port, V1);
    socket.resume();
    await once(socket, 'close');
    expect(await door.nextReason()).toBe('proxy-untrusted');
  });

  it('gives nobody a place who is not believed', async () => {
    const door = new Door();
    const strict = { proxyProtocol: true, proxyProtocolFrom: ['192.0.2.1'], maxConnections: 1 };
    const [{ port }] = await listener(door, strict).start();
    await Promise.all([client(port), client(port)]);
    expect([await door.nextReason(), await door.nextReason()]).toEqual(['proxy-untrusted', 'proxy-untrusted']);
  });

  it('is not opened with what is no network', () => {
    const wrong = { ...new Door().options(), proxyProtocol: true, proxyProtocolFrom: ['10.0.0.0/33'] };
    expect(() => listenTcp({ ...wrong, host: '127.0.0.1', port: 0 })).toThrow(GatewayError);
  });
});
