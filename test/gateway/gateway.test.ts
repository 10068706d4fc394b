// What gateway/gateway.ts makes of configuration keys that no single stage knows: limits at the door, $SYS, origins, a damaged store, reload.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import mqtt, { type MqttClient } from 'mqtt';
import { afterEach, describe, expect, test } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

let gateway: TestGateway | null = null;
let clients: MqttClient[] = [];
afterEach(async () => {
  await Promise.all(clients.map((client) => client.endAsync(true)));
  await gateway?.stop();
  clients = [];
  gateway = null;
});

const TCP = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';

async function client(): Promise<MqttClient> {
  const made = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway?.port}`, { reconnectPeriod: 0 });
  clients.push(made);
  return made;
}

function retainedBelow(prefix: string): string[] {
  return [...(gateway?.gateway.broker.retained(prefix) ?? [])].map((message) => message.topic);
}

/** Writes another configuration and reads it. */
async function reload(conf: string): Promise<unknown> {
  writeFileSync(path.join(gateway?.folder ?? '', 'test.conf'), conf);
  return gateway?.gateway.reload();
}

/** HTTP status of a WebSocket request from a page of this origin. */
async function upgradeStatus(port: number, origin: string | null): Promise<number> {
  const headers: Record<string, string> = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-protocol': 'mqtt',
  };
  if (origin !== null) headers.origin = origin;
  const request = http.request({ port, host: '127.0.0.1', path: '/mqtt', headers });
  request.end();
  const [answer, socket] = await Promise.race([once(request, 'upgrade'), once(request, 'response')]);
  (socket as net.Socket | undefined)?.destroy();
  answer.destroy();
  return answer.statusCode;
}

test('sys_interval = 0 leaves $SYS empty, and a reload turns it on and off', async () => {
  gateway = await testGateway(`${TCP}mqtt.sys_interval = 0`);
  expect(retainedBelow('$SYS/#')).toEqual([]);
  await reload(`${TCP}mqtt.sys_interval = 1h`);
  expect(retainedBelow('$SYS/broker/version')).toEqual(['$SYS/broker/version']);
  await reload(`${TCP}mqtt.sys_interval = 0`);
  expect(retainedBelow('$SYS/#')).toEqual([]);
});

test('max_connect_rate closes connections above it before they say anything', async () => {
  gateway = await testGateway(`${TCP}mqtt.max_connect_rate = 2`);
  const sockets = Array.from({ length: 4 }, () => net.connect(gateway?.port ?? 0, '127.0.0.1'));
  let closed = 0;
  await new Promise<void>((resolve) => {
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.on('close', () => ++closed === 2 && resolve());
    }
  });
  expect(gateway.messages.some(({ fields }) => fields?.reason === 'too many connections a second')).toBe(true);
  for (const socket of sockets) socket.destroy();
});

test('max_pending_connections closes what comes while others are not let in yet', async () => {
  gateway = await testGateway(`${TCP}mqtt.max_pending_connections = 1`);
  const silent = net.connect(gateway.port, '127.0.0.1');
  await once(silent, 'connect');
  const second = net.connect(gateway.port, '127.0.0.1');
  second.on('error', () => {});
  await once(second, 'close');
  silent.destroy();
});

test('pages of other origins are refused, the named one and programs are not', async () => {
  gateway = await testGateway(
    'listeners.ws { bind = "127.0.0.1:0/mqtt", origins = ["https://a.example"] }\npersistence { enable = false }\n',
  );
  expect(await upgradeStatus(gateway.port, 'https://b.example')).toBe(403);
  expect(await upgradeStatus(gateway.port, 'https://a.example')).toBe(101);
  expect(await upgradeStatus(gateway.port, null)).toBe(101);
});

test('on_corrupt = stop ends the start and leaves the damaged database where it is', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'damaged-'));
  const file = path.join(folder, 'x.db');
  writeFileSync(file, Buffer.alloc(8192, 0x5a));
  const conf = (word: string): string =>
    `listeners.tcp { bind = "127.0.0.1:0" }\npersistence { path = "${file}", on_corrupt = ${word} }\n`;
  await expect(testGateway(conf('stop'))).rejects.toMatchObject({ code: 'STORE-OPEN' });
  gateway = await testGateway(conf('start'));
  const publisher = await client();
  await publisher.publishAsync('a', 'x', { qos: 1, retain: true });
  expect(retainedBelow('a')).toEqual(['a']);
  await publisher.endAsync(true);
  await gateway.stop();
  gateway = null;
  rmSync(folder, { recursive: true, force: true });
});

test('explain judges a connected client as it is and an absent one by what is asked', async () => {
  gateway = await testGateway(
    `${TCP}auth { allow_anonymous = true, no_match = deny, acl { rules = [ { permit = allow, username = u, topics = ["a/#"] } ] } }
     http_server { port = 0 }`,
  );
  const named = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, {
    reconnectPeriod: 0,
    clientId: 'here',
    username: 'u',
  });
  clients.push(named);
  const ready = gateway.messages.find(({ id }) => id === 'GW-READY');
  const explain = async (words: string): Promise<boolean> => {
    const answer = await fetch(`http://${ready?.fields?.http}/api/v4/access/explain?${words}`);
    const { data } = (await answer.json()) as { data: { allowed: boolean } };
    return data.allowed;
  };
  expect(await explain('clientid=here&topic=a/1')).toBe(true);
  expect(await explain('clientid=here&topic=b/1')).toBe(false);
  expect(await explain('clientid=away&topic=a/1')).toBe(false);
  expect(await explain('clientid=away&username=u&topic=a/1&action=subscribe')).toBe(true);
});

test('a reload tells what changed, what needs a restart until there is one, and what failed', async () => {
  gateway = await testGateway(TCP);
  const metric = (name: string): number | undefined => gateway?.gateway.metrics.value(name);
  const stored = TCP.replace('enable = false', 'enable = false, interval = 200ms');
  expect(await reload(`${stored}mqtt.max_qos = 1`)).toMatchObject({
    ok: true,
    report: { changed: ['mqtt', 'persistence'], needRestart: ['persistence'], failed: [] },
  });
  expect(await reload(stored)).toMatchObject({ report: { changed: ['mqtt'], needRestart: ['persistence'] } });
  expect(metric('tidegate_config_ok')).toBe(1);

  const { port } = gateway;
  expect(await reload(`${stored}listeners.tcp.second { bind = "127.0.0.1:${port}" }`)).toMatchObject({
    ok: true,
    report: { changed: ['listeners.tcp.second'], failed: ['listeners.tcp.second'] },
  });
  expect(metric('tidegate_config_ok')).toBe(0);
  expect(await reload('mqtt.max_qos = 9')).toMatchObject({ ok: false, why: 'invalid' });
  expect(await reload(stored)).toMatchObject({ ok: true, report: { failed: [] } });
  expect(metric('tidegate_config_ok')).toBe(1);
});

test.skipIf(!hasOpenssl())(
  'a reload whose key does not fit its certificate fails by name at listeners and proxies, and old ones stay',
  async () => {
    const authority = new Authority();
    try {
      const pair = authority.issue({ name: 'localhost' });
      const other = authority.issue({ name: 'localhost' });
      const files = `certfile = "${pair.cert}", keyfile = "${pair.key}"`;
      const conf = `${TCP}listeners.ssl { bind = "127.0.0.1:0", ${files} }
      proxy.edge { bind = "127.0.0.1:0", tls { ${files} }, default = "local" }`;
      gateway = await testGateway(conf);
      writeFileSync(pair.key, readFileSync(other.key));
      expect(await reload(conf)).toMatchObject({
        ok: true,
        report: { failed: ['listeners.ssl: certificate', 'proxy.edge'] },
      });
      writeFileSync(pair.cert, readFileSync(other.cert));
      expect(await reload(conf)).toMatchObject({ report: { failed: [] } });
    } finally {
      authority.remove();
    }
  },
);

test('a reload takes the rights of a removed user away even where something else of it fails', async () => {
  gateway = await testGateway(`${TCP}auth.password { a = "1", b = "2" }`);
  const options = { reconnectPeriod: 0, username: 'a', password: '1', clientId: 'gone' };
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, options);
  clients.push(client);
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const result = await reload(
    `${TCP}auth.password { b = "2" }\nlisteners.tcp.second { bind = "127.0.0.1:${gateway.port}" }`,
  );
  expect(result).toMatchObject({ report: { usersRemoved: 1, clientsDropped: 1, failed: ['listeners.tcp.second'] } });
  await closed;
});

test('a listener with proxy_protocol shows the address of the header, and one without refuses the header', async () => {
  gateway = await testGateway(
    'listeners { tcp { bind = "127.0.0.1:0", proxy_protocol = true }, tcp.plain { bind = "127.0.0.1:0" } }\npersistence { enable = false }\n',
  );
  const [behind, plain] = gateway.gateway.bound;
  const header = 'PROXY TCP4 203.0.113.9 198.51.100.1 40000 1883\r\n';
  const CONNECT = Buffer.from('100d00044d51545404020000000161', 'hex');
  const socket = net.connect(behind.port, '127.0.0.1');
  socket.write(Buffer.concat([Buffer.from(header), CONNECT]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('hex')).toBe('20020000');
  expect(gateway.gateway.broker.client('a')?.remote).toBe('203.0.113.9:40000');
  socket.destroy();

  const refused = net.connect(plain.port, '127.0.0.1');
  refused.on('error', () => {});
  refused.resume();
  refused.write(header);
  await once(refused, 'close');
});

test('a full listener closes what comes above max_connections and counts it', async () => {
  gateway = await testGateway(TCP.replace('"127.0.0.1:0"', '"127.0.0.1:0", max_connections = 1'));
  await client();
  const second = net.connect(gateway.port, '127.0.0.1');
  second.on('error', () => {});
  second.resume();
  await once(second, 'close');
  const labels = { listener: 'tcp', reason: 'full' };
  expect(gateway.gateway.metrics.value('tidegate_listener_rejected_total', labels)).toBe(1);
});

describe.skipIf(!hasOpenssl())('TLS listeners (needs openssl)', () => {
  test('show the certificate of the name that is asked for, over TLS and over WebSocket', async () => {
    const authority = new Authority('names');
    const [first, second] = ['a.example', 'b.example'].map((name) => authority.issue({ name, alt: [`DNS:${name}`] }));
    gateway = await testGateway(
      `listeners { ssl { bind = "127.0.0.1:0", keyfile = "${first.key}", certfile = "${first.cert}"
         certificates = [ { servername = "b.example", keyfile = "${second.key}", certfile = "${second.cert}" } ] }
       wss { bind = "127.0.0.1:0/mqtt" } }\npersistence { enable = false }\n`,
    );
    const ca = readFileSync(authority.ca);
    for (const { port } of gateway.gateway.bound) {
      for (const servername of ['a.example', 'b.example']) {
        const socket = tls.connect({ host: '127.0.0.1', port, servername, ca });
        await once(socket, 'secureConnect');
        expect(socket.getPeerCertificate().subject.CN).toBe(servername);
        socket.destroy();
      }
    }
  });
});

test('a webhook that a reload has brought hears of the clients that a stop disconnects', async () => {
  const bodies: string[] = [];
  const server = http.createServer((request, response) => {
    request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()));
    request.on('end', () => response.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  gateway = await testGateway(TCP);
  const events = 'events = [ { event = on_client_disconnected } ]';
  await reload(`${TCP}webhook { enable = true, url = "http://127.0.0.1:${port}/", ${events} }`);
  await client();
  await gateway.stop();
  gateway = null;
  server.close();
  expect(bodies.map((body) => JSON.parse(body).action)).toEqual(['client_disconnected']);
});
