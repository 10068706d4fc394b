// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// A proxy where TLS ends, and what it knows of certificates: identities, routes, and lines of the log made of them, compared with openssl.
// Skipped without openssl.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Authority, hasOpenssl, type KeyPair } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth.allow_anonymous = true\n';
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

interface Place {
  readonly made: TestGateway;
  readonly port: number;
  join(pair: KeyPair | null, clientId?: string): Promise<MqttClient>;
}

/** A proxy before the built-in broker that asks for certificates and takes clients without one. */
async function proxy(authority: Authority, body: string, pool = 'local'): Promise<Place> {
  const port = await freePort();
  const own = authority.issue({ name: 'proxy.test', alt: ['DNS:proxy.test'] });
  const made = await testGateway(`${BASE}proxy.p { bind = "127.0.0.1:${port}", default = ${pool}, reject = connack
  tls { keyfile = "${own.key}", certfile = "${own.cert}", cacertfile = "${authority.ca}", verify_peer = true, alpn = [ mqtt ] }
  ${body} }`);
  undo.push(() => made.stop());
  const join = async (pair: KeyPair | null, clientId = 'mine'): Promise<MqttClient> => {
    const shown = pair === null ? {} : { key: readFileSync(pair.key), cert: readFileSync(pair.cert) };
    const options = {
      clientId,
      rejectUnauthorized: false,
      reconnectPeriod: 0,
      servername: 'proxy.test',
      ALPNProtocols: ['mqtt'],
      ...shown,
    };
    const client = await connectAsync(`mqtts://127.0.0.1:${port}`, options, false);
    undo.push(() => client.endAsync(true));
    return client;
  };
  return { made, port, join };
}

function authority(): Authority {
  const made = new Authority('Devices, all');
  undo.push(async () => made.remove());
  return made;
}

/** What openssl says of a certificate, without the name before it. */
function openssl(pair: KeyPair, ...args: string[]): string {
  const text = execFileSync('openssl', ['x509', '-noout', '-in', pair.cert, ...args], { encoding: 'utf8' });
  return text.slice(text.indexOf('=') + 1).trim();
}
/** The one line of the log, once the client has gone. */
async function lineOf({ folder }: Authority): Promise<unknown> {
  return vi.waitFor(() => JSON.parse(readFileSync(path.join(folder, 'access.log'), 'utf8')));
}

const NAMES =
  'serial s_dn i_dn fingerprint fingerprint_sha256 v_start v_end san san_dns san_uri san_email san_ip verify';
const KEYS = [
  'clientid',
  ...NAMES.split(' ').map((name) => `ssl_client_${name}`),
  'ssl_protocol',
  'ssl_server_name',
  'ssl_alpn_protocol',
];
const logged = ({ folder }: Authority): string =>
  `access_log { file = "${folder}/access.log", format = [ ${KEYS.join(', ')} ] }`;
const hex = (text: string): string => text.replaceAll(':', '').toLowerCase();

describe.skipIf(!hasOpenssl())('the certificate of a client', () => {
  it('gives the client id its serial, and one without a certificate is refused', async () => {
    const devices = authority();
    const { made, join } = await proxy(
      devices,
      'set { clientid = "${ssl_client_serial}", username = "${ssl_client_cn}" }',
    );
    const pair = devices.issue({ name: 'pump-7' });
    await join(pair, 'anything');
    expect(made.gateway.broker.client(openssl(pair, '-serial'))?.username).toBe('pump-7');
    await expect(join(null)).rejects.toMatchObject({ code: 5 });
    expect(made.gateway.broker.client('')).toBeUndefined();
  });

  it('has in the log what openssl says of it', async () => {
    const devices = authority();
    const alt = ['DNS:pump.test', 'URI:urn:dev:7', 'email:a@b.test', 'IP:10.0.0.7', 'DNS:other.test'];
    const pair = devices.issue({ name: 'pump-7', subject: '/C=FR/O=Some, Inc', alt });
    const { join } = await proxy(devices, logged(devices));
    const client = await join(pair);
    await client.endAsync();
    const line = await lineOf(devices);
    expect(line).toEqual({
      clientid: 'mine',
      ssl_client_serial: openssl(pair, '-serial'),
      ssl_client_s_dn: 'CN=pump-7,O=Some\\, Inc,C=FR',
      ssl_client_i_dn: openssl(pair, '-issuer', '-nameopt', 'RFC2253'),
      ssl_client_fingerprint: hex(openssl(pair, '-fingerprint', '-sha1')),
      ssl_client_fingerprint_sha256: hex(openssl(pair, '-fingerprint', '-sha256')),
      ssl_client_v_start: openssl(pair, '-startdate'),
      ssl_client_v_end: openssl(pair, '-enddate'),
      ssl_client_san: 'DNS:pump.test,URI:urn:dev:7,email:a@b.test,IP Address:10.0.0.7,DNS:other.test',
      ssl_client_san_dns: 'pump.test',
      ssl_client_san_uri: 'urn:dev:7',
      ssl_client_san_email: 'a@b.test',
      ssl_client_san_ip: '10.0.0.7',
      ssl_client_verify: 'SUCCESS',
      ssl_protocol: 'TLSv1.3',
      ssl_server_name: 'proxy.test',
      ssl_alpn_protocol: 'mqtt',
    });
  });

  it('has nothing in the log of a client that shows none', async () => {
    const devices = authority();
    const { join } = await proxy(devices, logged(devices));
    const client = await join(null);
    await client.endAsync();
    const line = await lineOf(devices);
    expect(line).toMatchObject({ ssl_client_verify: 'NONE', ssl_client_serial: null, ssl_client_san: null });
  });

  it('decides over routes and who may come, by any of its names', async () => {
    const devices = authority();
    const [pump, fan] = ['pump', 'fan'].map((name) => devices.issue({ name, alt: [`URI:urn:site:${name}`] }));
    const { made, join } = await proxy(
      devices,
      'allow = [ "ssl_client_san_uri =~ ^urn:site:p" ], set { username = "${ssl_client_fingerprint_sha256}" }',
    );
    await join(pump, 'one');
    expect(made.gateway.broker.client('one')?.username).toBe(hex(openssl(pump, '-fingerprint', '-sha256')));
    await expect(join(fan, 'two')).rejects.toMatchObject({ code: 5 });
    await expect(join(null, 'three')).rejects.toMatchObject({ code: 5 });
  });

  it('is told to a server in the PROXY header, which takes its common name as user name and refuses who has none', async () => {
    const authorityOfAll = authority();
    const behind = await testGateway(`listeners.tcp { bind = "127.0.0.1:0", proxy_protocol = true,
      proxy_protocol_from = "127.0.0.1", proxy_protocol_certificate = username }
      persistence { enable = false }\nauth.allow_anonymous = false`);
    undo.push(() => behind.stop());
    const place = await proxy(
      authorityOfAll,
      `}\nupstreams.behind { servers = [ { addr = "127.0.0.1:${behind.port}" } ], send_proxy_protocol = v2`,
      'behind',
    );
    const pump = authorityOfAll.issue({ name: 'pump-7' });
    await place.join(pump, 'a');
    expect([...behind.gateway.broker.clients()].map(({ clientId, username }) => [clientId, username])).toEqual([
      ['a', 'pump-7'],
    ]);
    await expect(place.join(null, 'b')).rejects.toThrow();
    const direct = connectAsync(
      `mqtt://127.0.0.1:${behind.port}`,
      { reconnectPeriod: 0, username: 'pump-7', password: 'x' },
      false,
    );
    await expect(direct).rejects.toThrow();
  });
});
