// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Whole gateways with proxies before real mosquitto processes and real clients: routing, identities, isolation, failure, reload, TLS names, UDP.
// Skipped without mosquitto.
import { pbkdf2Sync } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth.allow_anonymous = true\n';
const hasMosquitto = programPath('mosquitto') !== null;

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function mosquitto(
  lines: string[] = ['allow_anonymous true'],
  files: Record<string, string> = {},
): Promise<Mosquitto> {
  const made = await Mosquitto.start(lines, files);
  undo.push(() => made.stop());
  return made;
}

async function gateway(conf: string): Promise<TestGateway> {
  const made = await testGateway(BASE + conf);
  undo.push(() => made.stop());
  return made;
}

async function client(port: number, options: IClientOptions = {}): Promise<MqttClient> {
  const made = await connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0, connectTimeout: 5000, ...options });
  undo.push(() => made.endAsync(true));
  return made;
}

/** The next `count` messages, as "topic payload". */
function messages(of: MqttClient, count: number): Promise<string[]> {
  const got: string[] = [];
  return new Promise((resolve) => {
    of.on('message', (topic, payload) => {
      got.push(`${topic} ${payload.toString()}`);
      if (got.length === count) resolve(got);
    });
  });
}

const servers = (...list: Mosquitto[]): string => list.map(({ port }) => `{ addr = "127.0.0.1:${port}" }`).join(', ');

describe.skipIf(!hasMosquitto)('a proxy before mosquitto', () => {
  it.each([4, 5] as const)('carries messages of every QoS both ways, protocol version %i', async (protocolVersion) => {
    const broker = await mosquitto();
    const port = await freePort();
    await gateway(
      `upstreams.a { servers = [ ${servers(broker)} ] }\nproxy.p { bind = "127.0.0.1:${port}", default = a }`,
    );
    const subscriber = await client(port, { protocolVersion });
    await subscriber.subscribeAsync('t/#', { qos: 2 });
    const got = messages(subscriber, 4);
    const publisher = await client(port, { protocolVersion });
    const big = 'x'.repeat(300_000);
    for (const qos of [0, 1, 2] as const) await publisher.publishAsync(`t/${qos}`, `m${qos}`, { qos });
    await publisher.publishAsync('t/big', big, { qos: 1 });
    // Messages of different QoS may pass each other.
    expect((await got).sort()).toEqual(['t/0 m0', 't/1 m1', 't/2 m2', `t/big ${big}`]);
  });

  it('logs clients in with what it puts into CONNECT, and routes by client id', async () => {
    const open = await mosquitto();
    const closed = await mosquitto(['allow_anonymous false', 'password_file {dir}/pw'], { pw: `${pw('gw', 's3')}\n` });
    const port = await freePort();
    await gateway(`upstreams.open { servers = [ ${servers(open)} ] }
upstreams.closed { servers = [ ${servers(closed)} ] }
proxy.p { bind = "127.0.0.1:${port}", default = open, routes = [ { match { clientid = "~^sec-" }, upstream = closed } ]
  set { clientid = "ng-\${clientid}", username = "gw", password = "s3" } }`);
    const direct = await client(closed.port, { username: 'gw', password: 's3', clientId: 'direct' });
    await direct.subscribeAsync('#');
    const got = messages(direct, 1);
    await (await client(port, { clientId: 'sec-1', username: 'me', password: 'wrong' })).publishAsync('a', 'secret', {
      qos: 1,
    });
    await (await client(port, { clientId: 'x' })).publishAsync('a', 'other', { qos: 1 });
    expect(await got).toEqual(['a secret']);
  });

  it('keeps tenants apart with inspect', async () => {
    const broker = await mosquitto();
    const port = await freePort();
    await gateway(`upstreams.a { servers = [ ${servers(broker)} ] }
proxy.p { bind = "127.0.0.1:${port}", default = a, inspect = true
  filter { prefix = "tenant/\${username}/", user_properties { via = "edge" } } }`);
    const all = await client(broker.port);
    await all.subscribeAsync('#');
    const outside = messages(all, 2);
    const [ann, bob] = [
      await client(port, { username: 'ann', protocolVersion: 5 }),
      await client(port, { username: 'bob' }),
    ];
    await ann.subscribeAsync('#');
    await bob.subscribeAsync('#');
    const [toAnn, toBob] = [messages(ann, 1), messages(bob, 1)];
    await ann.publishAsync('t', 'from ann', { qos: 1 });
    await bob.publishAsync('t', 'from bob', { qos: 2 });
    expect([await toAnn, await toBob]).toEqual([['t from ann'], ['t from bob']]);
    expect(await outside).toEqual(['tenant/ann/t from ann', 'tenant/bob/t from bob']);
  });

  it('sends new clients elsewhere when a server is killed', async () => {
    const [a, b] = [await mosquitto(), await mosquitto()];
    const port = await freePort();
    const { gateway: running } = await gateway(
      `upstreams.p { servers = [ ${servers(a, b)} ] }\nproxy.p { bind = "127.0.0.1:${port}", default = p }`,
    );
    for (let i = 0; i < 4; i++) await client(port, { clientId: `before-${i}` });
    await a.stop();
    for (let i = 0; i < 6; i++) await client(port, { clientId: `after-${i}` });
    expect(running.metrics.value('tidegate_proxy_upstream_failures_total', { upstream: 'p' })).toBeGreaterThan(0);
    expect(running.metrics.value('tidegate_proxy_upstream_usable', { upstream: 'p' })).toBe(1);
  });

  it('leaves connections alone over a reload that changes their route', async () => {
    const [a, b] = [await mosquitto(), await mosquitto()];
    const port = await freePort();
    const text = (upstream: string, more = ''): string => `${BASE}upstreams.a { servers = [ ${servers(a)} ] }
upstreams.b { servers = [ ${servers(b)} ] }
proxy.p { bind = "127.0.0.1:${port}", default = ${upstream}, ${more} }`;
    const made = await testGateway(text('a'));
    undo.push(() => made.stop());
    const log = path.join(made.folder, 'access.log');
    const old = await client(port, { clientId: 'old' });
    await old.subscribeAsync('#');
    writeFileSync(path.join(made.folder, 'test.conf'), text('b', `access_log { file = "${log}", format = json }`));
    await made.gateway.reload();
    const atB = await client(b.port);
    await atB.subscribeAsync('#');
    const [toOld, toB] = [messages(old, 1), messages(atB, 1)];
    await (await client(port, { clientId: 'new' })).publishAsync('t', 'new', { qos: 1 });
    await old.publishAsync('t', 'old', { qos: 1 });
    expect([await toOld, await toB]).toEqual([['t old'], ['t new']]);
    renameSync(log, `${log}.1`);
    await made.gateway.reload();
    await (await client(port, { clientId: 'last' })).endAsync();
    await vi.waitFor(() => expect(readFileSync(log, 'utf8')).toContain('"clientid":"last"'), {
      timeout: 5000,
      interval: 5,
    });
  });
});

/** A line of mosquitto's password file ($7$, PBKDF2). */
function pw(user: string, password: string): string {
  const salt = Buffer.from('saltsaltsalt');
  return `${user}:$7$101$${salt.toString('base64')}$${pbkdf2Sync(password, salt, 101, 64, 'sha512').toString('base64')}`;
}

describe('a proxy', () => {
  it('leads to the built-in broker, where its clients meet those of listeners', async () => {
    const port = await freePort();
    const made = await gateway(
      `proxy.p { bind = "127.0.0.1:${port}", default = local, set.clientid = "p-\${clientid}" }`,
    );
    const direct = await client(made.port);
    await direct.subscribeAsync('t');
    const got = messages(direct, 1);
    const through = await client(port, { clientId: 'c' });
    await through.publishAsync('t', 'hello', { qos: 2 });
    expect(await got).toEqual(['t hello']);
    expect(made.gateway.broker.client('p-c')?.listener).toBe('proxy.p');
  });

  it.skipIf(!hasOpenssl())('shows the certificate of the name that a client asks for', async () => {
    const authority = new Authority();
    undo.push(async () => authority.remove());
    const [one, two] = ['one.test', 'two.test'].map((name) => authority.issue({ name, alt: [`DNS:${name}`] }));
    const port = await freePort();
    await gateway(`proxy.p { bind = "127.0.0.1:${port}", default = local
  tls { keyfile = "${one.key}", certfile = "${one.cert}", certificates = [ { servername = "two.test", keyfile = "${two.key}", certfile = "${two.cert}" } ] } }`);
    const shown = (servername: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.destroy();
        }).once('error', reject);
      });
    expect([await shown('two.test'), await shown('one.test'), await shown('other.test')]).toEqual([
      'two.test',
      'one.test',
      'one.test',
    ]);
  });

  it.skipIf(!hasOpenssl())('refuses one connection too many of an address before TLS', async () => {
    const authority = new Authority();
    undo.push(async () => authority.remove());
    const { key, cert } = authority.issue({ name: 'one.test' });
    const port = await freePort();
    const made = await gateway(`proxy.p { bind = "127.0.0.1:${port}", default = local, limit_conn.per_ip = 1
  tls { keyfile = "${key}", certfile = "${cert}" } }`);
    const first = await connectAsync(`mqtts://127.0.0.1:${port}`, { rejectUnauthorized: false, reconnectPeriod: 0 });
    undo.push(() => first.endAsync(true));
    const second = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    const secured = vi.fn();
    second.on('secureConnect', secured);
    await new Promise((resolve) => second.once('error', resolve).once('close', resolve));
    expect(secured).not.toHaveBeenCalled();
    expect(made.gateway.metrics.value('tidegate_proxy_refused_total', { proxy: 'p', status: '503' })).toBe(1);
  });

  it('passes datagrams on and answers back, a session for each client', async () => {
    const server = createSocket('udp4');
    server.on('message', (bytes, from) => server.send(`echo ${bytes}`, from.port, from.address));
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
    undo.push(async () => server.close());
    const port = await freePort();
    const made = await gateway(`upstreams.u { servers = [ { addr = "127.0.0.1:${server.address().port}" } ] }
proxy.p { bind = "127.0.0.1:${port}", protocol = udp, preread = false, default = u }`);
    const ask = (text: string): Promise<string> => {
      const socket = createSocket('udp4');
      undo.push(async () => socket.close());
      return new Promise((resolve) => {
        socket.once('message', (bytes) => resolve(bytes.toString()));
        socket.send(text, port, '127.0.0.1');
      });
    };
    expect(await Promise.all([ask('a'), ask('b')])).toEqual(['echo a', 'echo b']);
    expect(made.gateway.metrics.value('tidegate_proxy_active', { proxy: 'p' })).toBe(2);
  });
});
