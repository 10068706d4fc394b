// Outgoing connections that fail: refused, silent, given up, nonsense.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { dial, printableTarget } from '../../src/transport/dial.ts';
import type { DialTarget } from '../../src/transport/transport.ts';
import { Catch } from '../contract/transport.ts';
import { clientTls } from '../harness/certificates.ts';

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** A server that accepts and does what `then` says. */
async function server(then: (socket: Socket) => void = () => {}): Promise<number> {
  const made = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    then(socket);
  }).listen(0, '127.0.0.1');
  servers.push(made);
  await once(made, 'listening');
  return (made.address() as AddressInfo).port;
}

const every = (port: number): DialTarget[] => [
  { kind: 'tls', host: '127.0.0.1', port, tls: clientTls(null) },
  { kind: 'ws', url: `ws://127.0.0.1:${port}/mqtt`, subprotocol: 'mqtt' },
  { kind: 'wss', url: `wss://127.0.0.1:${port}/mqtt`, subprotocol: 'mqtt' },
];

describe('dial', () => {
  it('fails with the place and the reason where nobody listens', async () => {
    const port = await server();
    servers.splice(0).forEach((one) => {
      one.close();
    });
    for (const target of [{ kind: 'tcp', host: '127.0.0.1', port } as const, ...every(port)]) {
      const failed = dial(target);
      await expect(failed).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
      await expect(failed).rejects.toThrow('ECONNREFUSED');
      await expect(failed).rejects.toThrow(String(port));
    }
  });

  it('fails for a name that does not exist', async () => {
    await expect(dial({ kind: 'tcp', host: 'no-such-host.invalid', port: 1 })).rejects.toMatchObject({
      code: 'TRANSPORT-DIAL',
    });
  });

  it('fails for a Unix socket that is not there', async () => {
    await expect(dial({ kind: 'unix', path: '/nowhere/x.sock' })).rejects.toThrow('ENOENT');
    await expect(dial({ kind: 'unix', path: '\0tidegate-nobody' })).rejects.toThrow('@tidegate-nobody');
  });

  it('gives up a handshake that gets no answer in time, and closes the socket', async () => {
    for (const [i] of every(0).entries()) {
      const gone = new Promise<void>((resolve) => {
        void server((socket) => socket.resume().on('close', () => resolve())).then(async (port) => {
          await expect(dial(every(port)[i], { timeoutMs: 50 })).rejects.toThrow('no answer within 50 ms');
        });
      });
      await gone;
    }
  });

  it('gives up when it is told to', async () => {
    for (const [i] of every(0).entries()) {
      const controller = new AbortController();
      const port = await server(() => controller.abort());
      await expect(dial(every(port)[i], { signal: controller.signal })).rejects.toThrow('given up');
    }
    await expect(
      dial({ kind: 'tcp', host: '127.0.0.1', port: await server() }, { signal: AbortSignal.abort() }),
    ).rejects.toThrow('given up');
  });

  it('fails when the peer closes or resets within the handshake', async () => {
    for (const [i] of every(0).entries())
      for (const then of [(s: Socket) => s.end(), (s: Socket) => s.once('data', () => s.resetAndDestroy())]) {
        const port = await server(then);
        await expect(dial(every(port)[i])).rejects.toMatchObject({ name: 'GatewayError' });
      }
  });

  it('fails when the peer answers in another language', async () => {
    for (const [i] of every(0).entries()) {
      const port = await server((socket) =>
        socket.once('data', () => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')),
      );
      await expect(dial(every(port)[i])).rejects.toMatchObject({ name: 'GatewayError' });
    }
  });

  it('sends the preface before anything else', async () => {
    let got = '';
    const port = await server((socket) =>
      socket.on('data', (chunk) => (got += chunk.toString('latin1')) && socket.write('x')),
    );
    const near = new Catch(await dial({ kind: 'tcp', host: '127.0.0.1', port }, { preface: Buffer.from('PROXY\r\n') }));
    near.connection.write(Buffer.from('mine'), () => {});
    await near.when(() => got.length === 11);
    expect(got).toBe('PROXY\r\nmine');
    near.connection.destroy();
  });

  it('takes the local address of an interface', async () => {
    const port = await server();
    const near = await dial({ kind: 'tcp', host: '127.0.0.1', port, interface: 'lo' });
    expect(near.local).toMatch(/^127\.0\.0\.1:/);
    near.destroy();
    await expect(dial({ kind: 'tcp', host: '127.0.0.1', port, interface: 'nosuch0' })).rejects.toThrow('nosuch0');
  });

  it('refuses what is no WebSocket URL', async () => {
    for (const url of ['', 'x', 'http://127.0.0.1/', 'wss://127.0.0.1/', 'ws:'])
      await expect(dial({ kind: 'ws', url, subprotocol: 'mqtt' })).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
  });
});

describe('printableTarget', () => {
  it('shows every kind', () => {
    expect(printableTarget({ kind: 'tcp', host: '::1', port: 1 })).toBe('[::1]:1');
    expect(printableTarget({ kind: 'unix', path: '\0x' })).toBe('@x');
    expect(printableTarget({ kind: 'memory', name: 'x' })).toBe('memory:x');
  });
});
