// Bytes through whole proxies on real sockets, where buffers are lent and sockets fill up: nothing is lost or mixed up, memory stays bounded,
// and whoever dawdles before CONNECT is cut off, with TLS and without.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';
import { connectBytes } from '../harness/proxyparts.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';
const CONNACK = Buffer.from('20020000', 'hex');
const undo: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function server(onSocket: (socket: Socket) => void): Promise<number> {
  const made: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    undo.push(() => socket.destroy());
    onSocket(socket);
  }).listen(0, '127.0.0.1');
  await once(made, 'listening');
  undo.push(() => made.close());
  return (made.address() as AddressInfo).port;
}

async function proxyTo(target: number, rules = ''): Promise<{ port: number; gateway: TestGateway }> {
  const port = await freePort();
  const gateway = await testGateway(`${BASE}upstreams.a { servers = [ { addr = "127.0.0.1:${target}" } ] }
proxy.p { bind = "127.0.0.1:${port}", default = a, ${rules} }`);
  undo.push(() => gateway.stop());
  return { port, gateway };
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  undo.push(() => socket.destroy());
  return socket;
}

/** Resolves with the hash of the first `bytes` that come; reads `pieces` of them and then rests for a moment, again and again. */
async function drink(socket: Socket, bytes: number, pieces = Number.POSITIVE_INFINITY): Promise<string> {
  const hash = createHash('sha256');
  let seen = 0;
  let sips = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    hash.update(chunk as Buffer);
    seen += (chunk as Buffer).length;
    if (++sips % pieces === 0) for (let turn = 0; turn < 40; turn++) await new Promise((go) => setImmediate(go));
    if (seen >= bytes) break;
  }
  return hash.digest('hex');
}

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('a session on sockets', () => {
  it.each([
    ['as fast as they can', Number.POSITIVE_INFINITY],
    ['with readers that dawdle', 2],
  ])(
    'carries both ways at once what was sent, %s',
    async (_text, pieces) => {
      const up = randomBytes(8_000_000);
      const down = randomBytes(8_000_000);
      const connectPacket = connectBytes({ keepAlive: 0 });
      const atServer = new Promise<string>((resolve) => {
        void server((socket) => {
          socket.write(CONNACK);
          socket.write(down);
          void drink(socket, connectPacket.length + up.length, pieces).then(resolve);
        }).then(async (target) => {
          const { port } = await proxyTo(target);
          const client = dial(port);
          client.write(connectPacket);
          // In pieces of all sizes, so that small and large buffers, and kept ones, take turns.
          for (let at = 0, size = 1; at < up.length; at += size, size = (size * 7 + 13) % 90_001) {
            if (!client.write(up.subarray(at, at + size))) await once(client, 'drain');
          }
          atClient = drink(client, CONNACK.length + down.length, pieces);
          reading();
        });
      });
      let atClient: Promise<string> = Promise.resolve('');
      let reading = (): void => {};
      await new Promise<void>((resolve) => {
        reading = resolve;
      });
      expect(await atServer).toBe(sha(Buffer.concat([connectPacket, up])));
      expect(await atClient).toBe(sha(Buffer.concat([CONNACK, down])));
    },
    60_000,
  );

  it('of many at once are not mixed up', async () => {
    const target = await server((socket) => {
      // An echo behind CONNACK.
      let first = true;
      socket.on('data', (chunk) => {
        if (first) socket.write(CONNACK);
        if (!first) socket.write(chunk);
        first = false;
      });
    });
    const { port } = await proxyTo(target);
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const client = dial(port);
        client.write(connectBytes({ clientId: `c${i}`, keepAlive: 0 }));
        await once(client, 'data');
        const data = Buffer.alloc(150_000 + i * 977, `client ${i} `);
        client.write(data);
        expect(await drink(client, data.length)).toBe(sha(data));
      }),
    );
  }, 30_000);

  it.each(['client', 'server'])('with half close, the %s ends first and still gets the rest', async (first) => {
    const sockets: Socket[] = [];
    const target = await server((socket) => {
      sockets.push(socket);
      socket.once('data', () => socket.write(CONNACK));
    });
    const { port } = await proxyTo(target, 'half_close = true');
    const client = dial(port);
    client.write(connectBytes({ keepAlive: 0 }));
    await once(client, 'data');
    const [ending, other] = first === 'client' ? [client, sockets[0]] : [sockets[0], client];
    const ended = once(other, 'end');
    other.resume();
    ending.end('last of one');
    await ended;
    other.end('last of the other');
    const got: Buffer[] = [];
    for await (const chunk of ending) got.push(chunk as Buffer);
    expect(Buffer.concat(got).toString()).toBe('last of the other');
  });

  it.skipIf(programPath('ss') === null)(
    'has the kernel look for dead peers on both sides (TCP keep-alive)',
    async () => {
      const target = await server((socket) => socket.once('data', () => socket.write(CONNACK)));
      const { port } = await proxyTo(target);
      const client = dial(port);
      client.write(connectBytes({ keepAlive: 0 }));
      await once(client, 'data');
      // The proxy's own ends: accepted ones have its port here, dialled ones the server's there.
      const timers = (filter: string): string =>
        execFileSync('ss', ['-Htno', 'state', 'established', filter]).toString();
      expect(timers(`sport = :${port}`)).toContain('timer:(keepalive');
      expect(timers(`dport = :${target}`)).toContain('timer:(keepalive');
    },
  );

  it('with a server that takes the connection and hangs ends when its idle time is over', async () => {
    const target = await server((socket) => socket.pause());
    const { port } = await proxyTo(target, 'idle_timeout = 1s');
    const client = dial(port);
    client.write(connectBytes());
    client.resume();
    await once(client, 'end');
  });
});

describe('a client that dawdles', () => {
  it('over its CONNECT is cut off, without a server being asked', async () => {
    let asked = 0;
    const target = await server(() => asked++);
    const { port } = await proxyTo(target, 'preread_timeout = 1s');
    const client = dial(port);
    client.write(connectBytes().subarray(0, 9));
    client.resume();
    await once(client, 'end');
    expect(asked).toBe(0);
  });

  it.skipIf(!hasOpenssl())('over TLS, or over its CONNECT behind it, is cut off', async () => {
    const authority = new Authority();
    undo.push(() => authority.remove());
    const { cert, key } = authority.issue({ name: 'localhost', alt: ['DNS:localhost'] });
    let asked = 0;
    const target = await server(() => asked++);
    const { port } = await proxyTo(target, `preread_timeout = 1s, tls { certfile = "${cert}", keyfile = "${key}" }`);
    const silent = dial(port);
    silent.resume();
    // Half of a ClientHello's record header.
    silent.write(Buffer.from('160301', 'hex'));
    const secured = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    secured.on('error', () => {});
    undo.push(() => secured.destroy());
    await once(secured, 'secureConnect');
    secured.write(connectBytes().subarray(0, 9));
    secured.resume();
    await Promise.all([once(silent, 'end'), once(secured, 'close')]);
    expect(asked).toBe(0);
  });
});
