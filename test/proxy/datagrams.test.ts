// Sessions of datagrams with stand-ins for sockets and a clock of our own: when they begin, where they go, what ends them.
import { afterEach, describe, expect, it } from 'vitest';
import { Proxies } from '../../src/proxy/proxies.ts';
import type { ProxyOptions } from '../../src/proxy/proxy.ts';
import type { DatagramSocket } from '../../src/transport/transport.ts';
import { memoryParts, proxyOptions, serverOptions, settled, upstreamOptions } from '../harness/proxyparts.ts';

class SocketStandIn implements DatagramSocket {
  readonly local = '127.0.0.1:1';
  readonly port = 1;
  readonly sent: string[] = [];
  closed = false;
  /** A datagram arrives. */
  receive: (bytes: Buffer, address: string, port: number) => void = () => {};
  fail: (error: Error) => void = () => {};

  send(bytes: Buffer, port?: number, address?: string): void {
    this.sent.push(port === undefined ? bytes.toString() : `${address}:${port} ${bytes}`);
  }
  onMessage(handler: (bytes: Buffer, address: string, port: number) => void): void {
    this.receive = handler;
  }
  onError(handler: (error: Error) => void): void {
    this.fail = handler;
  }
  close(): void {
    this.closed = true;
  }
}

let running: Proxies | null = null;
afterEach(async () => {
  await running?.stop(0);
  running = null;
});

async function datagrams(fields: Partial<ProxyOptions> = {}) {
  const memory = memoryParts();
  const door = new SocketStandIn();
  const servers: { readonly at: string; readonly socket: SocketStandIn }[] = [];
  const transports = {
    ...memory.parts.transports,
    bindDatagrams: async () => door,
    connectDatagrams: async (address: string, port: number) => {
      const socket = new SocketStandIn();
      servers.push({ at: `${address}:${port}`, socket });
      return socket;
    },
  };
  const options = proxyOptions({ protocol: 'udp', preread: false, udpTimeoutMs: 5000, ...fields });
  const pool = upstreamOptions('pool', [serverOptions('10.0.0.1:1'), serverOptions('10.0.0.2:1')]);
  running = new Proxies({ ...memory.parts, transports }, { proxies: [options], upstreams: [pool] });
  await running.start();
  const send = async (text: string, port: number): Promise<void> => {
    door.receive(Buffer.from(text), '127.0.0.1', port);
    await settled();
  };
  const value = (name: string, labels: Record<string, string> = {}): number | undefined =>
    memory.metrics.value(`tidegate_proxy_${name}`, { proxy: 'p', ...labels });
  return { clock: memory.clock, door, servers, send, value, pool };
}

describe('a session of datagrams', () => {
  it('is that of an address and port, with one server for all of it', async () => {
    const { door, servers, send } = await datagrams();
    await send('a', 1001);
    await send('b', 1002);
    await send('c', 1001);
    expect(servers.map(({ at, socket }) => [at, socket.sent])).toEqual([
      ['10.0.0.1:1', ['a', 'c']],
      ['10.0.0.2:1', ['b']],
    ]);
    servers[1].socket.receive(Buffer.from('back'), '10.0.0.2', 1);
    expect(door.sent).toEqual(['127.0.0.1:1002 back']);
  });

  it('goes on until it is silent after a reload that removes its proxy; nobody else is taken', async () => {
    const { clock, door, servers, send, pool } = await datagrams();
    await send('a', 1001);
    await running?.apply({ proxies: [], upstreams: [pool] });
    await send('b', 1002);
    await send('c', 1001);
    servers[0].socket.receive(Buffer.from('back'), '10.0.0.1', 1);
    expect(servers.map(({ socket }) => socket.sent)).toEqual([['a', 'c']]);
    expect([door.sent, door.closed]).toEqual([['127.0.0.1:1001 back'], false]);
    await clock.advanceAsync(6000);
    expect([servers[0].socket.closed, door.closed]).toEqual([true, true]);
  });

  it('ends after udp_timeout of silence on both sides, and not before', async () => {
    const { clock, servers, send, value } = await datagrams();
    await send('a', 1001);
    await clock.advanceAsync(4000);
    servers[0].socket.receive(Buffer.from('back'), '10.0.0.1', 1);
    await clock.advanceAsync(4000);
    expect(value('active')).toBe(1);
    await clock.advanceAsync(1500);
    expect([value('active'), servers[0].socket.closed]).toEqual([0, true]);
    expect(value('closed_total', { reason: 'idle' })).toBe(1);
  });

  it('ends when its server is not there, and the next datagram goes to another one', async () => {
    const { servers, send, value } = await datagrams();
    await send('a', 1001);
    servers[0].socket.fail(new Error('ECONNREFUSED'));
    expect(value('refused_total', { status: '502' })).toBe(1);
    await send('b', 1001);
    expect(servers.map(({ at }) => at)).toEqual(['10.0.0.1:1', '10.0.0.2:1']);
    expect(value('active')).toBe(1);
  });

  it('is not begun above the limit of its address', async () => {
    const { servers, send, value } = await datagrams({ limitConn: { perIp: 1, perClientId: 0, perUsername: 0 } });
    await send('a', 1001);
    await send('b', 1002);
    expect(servers).toHaveLength(1);
    expect(value('refused_total', { status: '503' })).toBe(1);
  });
});
