// Proxies over WebSocket: in front, towards servers, with and without TLS; CONNECT is read and rewritten within.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';

/** CONNECT of 3.1.1, client id "dev". */
const CONNECT = Buffer.from('100f00044d515454040200000003646576', 'hex');

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function gateway(conf: string): Promise<TestGateway> {
  const made = await testGateway(`persistence { enable = false }\nauth.allow_anonymous = true\n${conf}`);
  undo.push(() => made.stop());
  return made;
}

async function client(url: string, options: IClientOptions = {}): Promise<MqttClient> {
  const made = await connectAsync(url, { reconnectPeriod: 0, connectTimeout: 5000, ...options });
  undo.push(() => made.endAsync(true));
  return made;
}

/** Publishes on one client what another has subscribed to; gives topic and payload as they arrive. */
async function across(from: MqttClient, to: MqttClient, payload: string | Buffer): Promise<Buffer> {
  await to.subscribeAsync('a/b', { qos: 1 });
  const came = new Promise<Buffer>((resolve) => to.once('message', (_, bytes) => resolve(bytes)));
  await from.publishAsync('a/b', payload, { qos: 1 });
  return came;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the proxy
const SET = 'set { clientid = "ws-${clientid}" }';

describe('WebSocket in front', () => {
  it.each([4, 5] as const)(
    'carries MQTT of version %i to a TCP server; CONNECT is rewritten',
    async (protocolVersion) => {
      const [inner, port] = [await freePort(), await freePort()];
      const made = await gateway(`listeners.tcp { bind = "127.0.0.1:${inner}" }
upstreams.u { servers = [ { addr = "127.0.0.1:${inner}" } ] }
proxy.p { bind = "127.0.0.1:${port}", protocol = ws, default = u, ${SET} }`);
      const web = await client(`ws://127.0.0.1:${port}/mqtt`, { clientId: 'c', protocolVersion });
      const plain = await client(`mqtt://127.0.0.1:${inner}`);
      expect([...made.gateway.broker.clients()].map((one) => one.clientId)).toContain('ws-c');
      const large = Buffer.alloc(300_000, 'x');
      expect((await across(plain, web, large)).equals(large)).toBe(true);
      expect((await across(web, plain, 'back')).toString()).toBe('back');
    },
  );

  it('leads to the built-in broker', async () => {
    const port = await freePort();
    await gateway(
      `listeners.tcp { bind = "127.0.0.1:0" }\nproxy.p { bind = "127.0.0.1:${port}", protocol = ws, default = local }`,
    );
    const web = await client(`ws://127.0.0.1:${port}/mqtt`);
    expect((await across(web, web, 'local')).toString()).toBe('local');
  });

  it('serves the paths, subprotocols and origins of its configuration and refuses others', async () => {
    const port = await freePort();
    await gateway(`listeners.tcp { bind = "127.0.0.1:0" }
proxy.p { bind = "127.0.0.1:${port}", protocol = ws, default = local, websocket { path = "/in", origins = ["https://panel.example"] } }`);
    const status = (where: string, options: object = {}): Promise<number> =>
      new Promise((resolve) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}${where}`, ['mqtt'], options);
        socket.once('open', () => resolve(101));
        socket.once('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
        socket.on('error', () => {});
        undo.push(async () => socket.terminate());
      });
    expect(await status('/in')).toBe(101);
    expect(await status('/in', { origin: 'https://panel.example' })).toBe(101);
    expect(await status('/in', { origin: 'https://other.example' })).toBe(403);
    expect(await status('/mqtt')).toBe(404);
  });

  it('ends a message that is too large', async () => {
    const port = await freePort();
    await gateway(`listeners.tcp { bind = "127.0.0.1:0" }
proxy.p { bind = "127.0.0.1:${port}", protocol = ws, default = local, websocket.max_message_size = 1KB }`);
    const web = await client(`ws://127.0.0.1:${port}/mqtt`);
    const closed = new Promise<string>((resolve) => web.once('close', () => resolve('closed')));
    web.publish('a', Buffer.alloc(5000), { qos: 0 });
    expect(await closed).toBe('closed');
  });
});

describe('WebSocket to the servers', () => {
  it('is spoken with their path', async () => {
    const [inner, port] = [await freePort(), await freePort()];
    await gateway(`listeners.ws { bind = "127.0.0.1:${inner}/deep/mqtt" }
upstreams.u { servers = [ { addr = "127.0.0.1:${inner}" } ], protocol = ws, path = "/deep/mqtt" }
proxy.p { bind = "127.0.0.1:${port}", default = u }`);
    const one = await client(`mqtt://127.0.0.1:${port}`);
    const two = await client(`ws://127.0.0.1:${inner}/deep/mqtt`);
    const large = Buffer.alloc(200_000, 'y');
    expect((await across(one, two, large)).equals(large)).toBe(true);
    expect((await across(two, one, 'back')).toString()).toBe('back');
  });
});

describe.skipIf(!hasOpenssl())('with TLS (skipped without openssl)', () => {
  it('is wss in front and wss to the servers, whose name is verified', async () => {
    const authority = new Authority();
    undo.push(async () => authority.remove());
    const { cert, key } = authority.issue({ name: 'localhost', alt: ['DNS:localhost'] });
    const { ca } = authority;
    const [inner, port, wrong] = [await freePort(), await freePort(), await freePort()];
    const made =
      await gateway(`listeners.wss { bind = "127.0.0.1:${inner}/mqtt", keyfile = "${key}", certfile = "${cert}" }
upstreams.u { servers = [ { addr = "localhost:${inner}" } ], protocol = ws, tls { ca = "${ca}" } }
upstreams.w { servers = [ { addr = "127.0.0.1:${inner}" } ], protocol = ws, tls { ca = "${ca}", servername = "other.example" } }
proxy.p { bind = "127.0.0.1:${port}", protocol = wss, tls { keyfile = "${key}", certfile = "${cert}" }, default = u }
proxy.w { bind = "127.0.0.1:${wrong}", default = w, connect_timeout = 2s }`);
    const web = await client(`wss://localhost:${port}/mqtt`, { wsOptions: { ca: readFileSync(ca) } });
    expect((await across(web, web, 'secret')).toString()).toBe('secret');
    const refused = connect(wrong, '127.0.0.1');
    refused
      .on('error', () => {})
      .resume()
      .write(CONNECT);
    await once(refused, 'close');
    expect(made.gateway.metrics.value('tidegate_proxy_upstream_failures_total', { upstream: 'w' })).toBe(1);
  });
});
