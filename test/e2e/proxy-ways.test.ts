// Whole gateways whose proxies lead to servers of our own: plain bytes, several proxies and pools, PROXY protocol in and out, TLS on both sides.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connectAsync } from 'mqtt';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { encodeProxyHeader } from '../../src/transport/proxyline.ts';
import type { TlsInfo } from '../../src/transport/transport.ts';
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

  it('gives routes, rewrites and logs what version 2 tells of the TLS of a client, and no certificate that was not verified', async () => {
    const [pumps, rest] = [await echo('pumps'), await echo('rest')];
    const port = await freePort();
    const log = path.join(mkdtempSync(path.join(tmpdir(), 'proxy-ways-')), 'access.log');
    const keys = 'ssl_protocol, ssl_cipher, ssl_alpn_protocol, ssl_client_verify, cert_cn, ssl_client_serial, clientid';
    const made = await testGateway(`${BASE}upstreams.pumps { servers = [ { addr = "127.0.0.1:${pumps}" } ] }
upstreams.rest { servers = [ { addr = "127.0.0.1:${rest}" } ] }
proxy.p { bind = "127.0.0.1:${port}", proxy_protocol = true, proxy_protocol_from = "127.0.0.1", default = rest
  set { clientid = "\${ssl_client_verify}-\${clientid}" }
  routes = [ { match { ssl_client_verify = SUCCESS, ssl_client_cn = "~^pump-", sni = "a.test" }, upstream = pumps } ]
  access_log { file = "${log}", format = [ ${keys} ] } }`);
    const address = (last: string) => ({ host: `192.0.2.${last}`, port: 1000, path: null });
    const peer = { commonName: 'pump-7', subject: '', fingerprint: '', pem: '' };
    const tls = { version: 'TLSv1.3', cipher: 'AES', serverName: 'a.test', alpn: 'mqtt', peer };
    const header = (info: TlsInfo | null) => encodeProxyHeader(2, address('1'), address('2'), info);
    const came = async (info: TlsInfo | null) =>
      (await ask(port, Buffer.concat([header(info), CONNECT]))).split(' ')[0];
    expect([await came(tls), await came({ ...tls, peer: null }), await came(null)]).toEqual(['pumps', 'rest', 'rest']);
    await made.stop();
    const told = { ssl_protocol: 'TLSv1.3', ssl_cipher: 'AES', ssl_alpn_protocol: 'mqtt', ssl_client_serial: null };
    const lines = readFileSync(log, 'utf8').trim().split('\n');
    rmSync(path.dirname(log), { recursive: true });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { ...told, ssl_client_verify: 'SUCCESS', cert_cn: 'pump-7', clientid: 'dev' },
      { ...told, ssl_client_verify: 'NONE', cert_cn: null, clientid: 'dev' },
      expect.objectContaining({ ssl_protocol: null, ssl_client_verify: null, cert_cn: null }),
    ]);
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
