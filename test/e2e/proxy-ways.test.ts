// Whole gateways whose proxies lead to servers of our own: plain bytes, several proxies and pools, PROXY protocol in and out, TLS on both sides.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { connectAsync } from 'mqtt';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth.allow_anonymous = true\n';
const V1 = 'PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n';
/** CONNECT of 3.1.1, client id "dev". */
const CONNECT = Buffer.from('100f00044d515454040200000003646576', 'hex');

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function gateway(conf: string): Promise<TestGateway> {
  const made = await testGateway(BASE + conf);
  undo.push(() => made.stop());
  return made;
}

/** Sends back what comes, with its name before it; gives its port. */
async function echo(name: string): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('data', (bytes) => socket.write(`${name} ${bytes.toString('latin1')}`, 'latin1'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** What comes back for these bytes: the first chunk, "" for a connection that is closed. */
async function ask(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  undo.push(async () => socket.destroy());
  socket.on('error', () => {});
  const came = new Promise<string>((resolve) => {
    socket.once('data', (chunk) => resolve(chunk.toString('latin1')));
    socket.once('close', () => resolve(''));
  });
  socket.write(bytes);
  return came;
}

describe('a proxy without preread', () => {
  it('passes any bytes on to its default', async () => {
    const server = await echo('a');
    const port = await freePort();
    await gateway(`upstreams.a { servers = [ { addr = "127.0.0.1:${server}" } ] }
proxy.p { bind = "127.0.0.1:${port}", preread = false, default = a }`);
    expect(await ask(port, 'GET / HTTP/1.0')).toBe('a GET / HTTP/1.0');
  });
});

describe('a proxy with several addresses', () => {
  it('takes clients at each, counts them together, and opens all of them or none', async () => {
    const server = await echo('a');
    const ports = [await freePort(), await freePort()];
    const text = (binds: readonly number[]): string =>
      `upstreams.a { servers = [ { addr = "127.0.0.1:${server}" } ] }
proxy.p { bind = [ ${binds.map((port) => `"127.0.0.1:${port}"`).join(', ')} ], preread = false, default = a, max_connections = 2 }`;
    const made = await gateway(text(ports));
    expect([await ask(ports[0], 'x'), await ask(ports[1], 'y'), await ask(ports[0], 'z')]).toEqual(['a x', 'a y', '']);
    expect(made.gateway.metrics.value('tidegate_proxy_refused_total', { proxy: 'p', status: '503' })).toBe(1);
    const [taken, free] = [createServer(), await freePort()];
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    undo.push(async () => taken.close());
    await expect(gateway(text([free, (taken.address() as AddressInfo).port]))).rejects.toMatchObject({
      code: 'TRANSPORT-BIND',
    });
    await expect(ask(free, 'x')).resolves.toBe('');
  });
});

describe('several proxies', () => {
  it('lead each to its own pool, and may share one with its checks', async () => {
    const [a, b] = [await echo('a'), await echo('b')];
    const ports = [await freePort(), await freePort(), await freePort()];
    const made = await gateway(`upstreams.a { servers = [ { addr = "127.0.0.1:${a}" } ] }
upstreams.b { servers = [ { addr = "127.0.0.1:${b}" } ], health { type = tcp, interval = 100ms } }
proxy.one { bind = "127.0.0.1:${ports[0]}", preread = false, default = a }
proxy.two { bind = "127.0.0.1:${ports[1]}", preread = false, default = b }
proxy.three { bind = "127.0.0.1:${ports[2]}", preread = false, default = b }`);
    expect(await Promise.all(ports.map((port) => ask(port, 'x')))).toEqual(['a x', 'b x', 'b x']);
    expect(made.gateway.metrics.value('tidegate_proxy_upstream_connects_total', { upstream: 'b' })).toBe(2);
  });
});

describe('the PROXY protocol', () => {
  it.each(['v1', 'v2'])('tells a server where its client is, %s', async (version) => {
    const server = await echo('a');
    const port = await freePort();
    await gateway(`upstreams.a { servers = [ { addr = "127.0.0.1:${server}" } ], send_proxy_protocol = ${version} }
proxy.p { bind = "127.0.0.1:${port}", preread = false, proxy_protocol = true, proxy_protocol_from = "127.0.0.0/8", default = a }`);
    const got = await ask(port, `${V1}x`);
    if (version === 'v1') expect(got).toMatch(/^a PROXY TCP4 203\.0\.113\.7 /);
    else expect(got.slice(2, 14)).toBe('\r\n\r\n\0\r\nQUIT\n');
  });

  it('is believed at a proxy from named networks only, and a reload changes which', async () => {
    const server = await echo('a');
    const port = await freePort();
    const text = (from: string): string => `${BASE}upstreams.a { servers = [ { addr = "127.0.0.1:${server}" } ] }
proxy.p { bind = "127.0.0.1:${port}", preread = false, proxy_protocol = true, proxy_protocol_from = "${from}", default = a }`;
    const made = await testGateway(text('192.0.2.0/24'));
    undo.push(() => made.stop());
    expect(await ask(port, `${V1}x`)).toBe('');
    expect(made.gateway.metrics.value('tidegate_proxy_refused_total', { proxy: 'p', status: '403' })).toBe(1);
    writeFileSync(path.join(made.folder, 'test.conf'), text('127.0.0.1'));
    await made.gateway.reload();
    expect(await ask(port, `${V1}x`)).toBe('a x');
  });

  it('is believed at a listener from named networks only', async () => {
    const [strict, open] = [await freePort(), await freePort()];
    const made =
      await gateway(`listeners.tcp.strict { bind = "127.0.0.1:${strict}", proxy_protocol = true, proxy_protocol_from = [ "192.0.2.1" ] }
listeners.tcp.open { bind = "127.0.0.1:${open}", proxy_protocol = true, proxy_protocol_from = [ "192.0.2.1", "127.0.0.1" ] }`);
    const bytes = Buffer.concat([Buffer.from(V1), CONNECT]);
    expect(await ask(strict, bytes)).toBe('');
    const rejected = { listener: 'tcp.strict', reason: 'proxy-untrusted' };
    expect(made.gateway.metrics.value('tidegate_listener_rejected_total', rejected)).toBe(1);
    expect(Buffer.from(await ask(open, bytes), 'latin1').toString('hex')).toBe('20020000');
    expect(made.gateway.broker.client('dev')?.listener).toBe('tcp.open');
  });
});

describe.skipIf(!hasOpenssl())('TLS on both sides of a proxy', () => {
  it('leaves CONNECT to be read between, and servers are verified', async () => {
    const [ours, theirs] = [new Authority(), new Authority('Others')];
    undo.push(async () => [ours, theirs].map((authority) => authority.remove()));
    const [good, bad] = [ours, theirs].map((by) => by.issue({ name: 'broker.test', alt: ['DNS:broker.test'] }));
    const [goodPort, badPort, port] = [await freePort(), await freePort(), await freePort()];
    const broker =
      await gateway(`listeners.ssl.good { bind = "127.0.0.1:${goodPort}", keyfile = "${good.key}", certfile = "${good.cert}" }
listeners.ssl.bad { bind = "127.0.0.1:${badPort}", keyfile = "${bad.key}", certfile = "${bad.cert}" }`);
    const tls = `tls { ca = "${ours.ca}", servername = "broker.test" }`;
    const made = await gateway(`upstreams.good { servers = [ { addr = "127.0.0.1:${goodPort}" } ], ${tls} }
upstreams.bad { servers = [ { addr = "127.0.0.1:${badPort}" } ], ${tls} }
proxy.p { bind = "127.0.0.1:${port}", default = bad, reject = connack, tls { keyfile = "${good.key}", certfile = "${good.cert}" }
  routes = [ { match = "clientid =~ ^ok-", upstream = good } ] }`);
    const join = (clientId: string) =>
      connectAsync(`mqtts://127.0.0.1:${port}`, { clientId, rejectUnauthorized: false, reconnectPeriod: 0 });
    const client = await join('ok-1');
    undo.push(() => client.endAsync(true));
    expect(broker.gateway.broker.client('ok-1')?.listener).toBe('ssl.good');
    await expect(join('other')).rejects.toMatchObject({ code: 3 });
    await vi.waitFor(() =>
      expect(made.gateway.metrics.value('tidegate_proxy_upstream_failures_total', { upstream: 'bad' })).toBe(1),
    );
  });
});
