// Users of console and API with roles: configured, plain and hashed, added and removed by REST, kept in tidegate.d, changed by a reload; certificates of the console.
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { connect } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { loadArgon2, makeArgon2, makePbkdf2 } from '../../src/auth/hash.ts';
import { ask, type Reply } from '../console/request.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';
let gateway: TestGateway | null = null;
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
});

function address(made: TestGateway): number {
  const ready = made.messages.find(({ id }) => id === 'GW-READY')?.fields as { http: string };
  return Number(ready.http.split(':').at(-1));
}

async function given(http: string): Promise<number> {
  gateway = await testGateway(`${BASE}http_server { port = 0, ${http} }`);
  return address(gateway);
}

function call(
  port: number,
  user: string | null,
  password: string,
  method: string,
  where: string,
  body?: unknown,
): Promise<Reply> {
  const who = user === null ? null : ({ username: user, password, role: 'viewer' } as const);
  return ask(port, method, `/api/v4${where}`, { user: who, body });
}

const role = async (port: number, user: string, password: string): Promise<unknown> =>
  (await call(port, user, password, 'GET', '/me')).json.data?.role;

test('each user has the role of the configuration, viewer where it says none', async () => {
  const port = await given('users { ann { password = "pw-of-ann", role = admin }, vic { password = "pw-of-vic" } }');
  expect(await role(port, 'ann', 'pw-of-ann')).toBe('admin');
  expect(await role(port, 'vic', 'pw-of-vic')).toBe('viewer');
  expect((await call(port, 'vic', 'pw-of-ann', 'GET', '/me')).status).toBe(401);
  expect((await call(port, null, '', 'GET', '/me')).status).toBe(401);
});

test('a hashed password lets its user in, and the hash itself lets nobody in', async () => {
  const pbkdf2 = await makePbkdf2(Buffer.from('pw-of-ann'), 1000);
  const argon2 = await loadArgon2();
  const second = argon2 === null ? pbkdf2 : await makeArgon2(Buffer.from('pw-of-bob'), argon2);
  const port = await given(`username = ann, password = "${pbkdf2}", users.bob { password = "${second}" }`);
  expect(await role(port, 'ann', 'pw-of-ann')).toBe('admin');
  expect(await role(port, 'ann', 'pw-of-ann')).toBe('admin');
  if (argon2 !== null) expect(await role(port, 'bob', 'pw-of-bob')).toBe('viewer');
  for (const wrong of [pbkdf2, 'pw-of-bob', ''])
    expect((await call(port, 'ann', wrong, 'GET', '/me')).status, wrong).toBe(401);
});

test('a user that is added by REST logs in at once, and the answer holds no password', async () => {
  const port = await given('username = ann, password = pw-of-ann');
  const asked = { role: 'operator', password: 'pw-of-eve' };
  expect((await call(port, 'ann', 'pw-of-ann', 'PUT', '/users/eve', asked)).status).toBe(201);
  expect(await role(port, 'eve', 'pw-of-eve')).toBe('operator');
  const { json, text } = await call(port, 'ann', 'pw-of-ann', 'GET', '/users');
  expect(json.data).toEqual([
    { username: 'ann', role: 'admin', hashed: false, fixed: true },
    { username: 'eve', role: 'operator', hashed: true, fixed: false },
  ]);
  const config = await call(port, 'ann', 'pw-of-ann', 'GET', '/config');
  expect(`${text}${config.text}`).not.toMatch(/pw-of|\$7\$/);
});

test('only an admin sees and changes users', async () => {
  const port = await given('username = ann, password = pw-of-ann, users.eve { password = pw-of-eve, role = operator }');
  expect((await call(port, 'eve', 'pw-of-eve', 'GET', '/users')).status).toBe(403);
  expect((await call(port, 'eve', 'pw-of-eve', 'PUT', '/users/eve', { role: 'admin' })).status).toBe(403);
  expect(await role(port, 'eve', 'pw-of-eve')).toBe('operator');
});

test('a kept user stands in tidegate.d as a hash; removed, it is let in no more', async () => {
  const port = await given('username = ann, password = pw-of-ann');
  const put = await call(port, 'ann', 'pw-of-ann', 'PUT', '/users/eve?keep=true', { password: 'pw-of-eve' });
  expect(put.status).toBe(201);
  const file = path.join(gateway?.folder ?? '', 'tidegate.d', '50-console.conf');
  expect(readFileSync(file, 'utf8')).toContain('$7$');
  expect(readFileSync(file, 'utf8')).not.toContain('pw-of-eve');
  await gateway?.gateway.reload();
  expect(await role(port, 'eve', 'pw-of-eve')).toBe('viewer');
  expect((await call(port, 'ann', 'pw-of-ann', 'DELETE', '/users/eve?keep=true')).status).toBe(200);
  expect((await call(port, 'eve', 'pw-of-eve', 'GET', '/me')).status).toBe(401);
  expect((await call(port, 'ann', 'pw-of-ann', 'DELETE', '/users/eve')).json.code).toBe(207);
});

test('what would leave no admin, and what is wrong, changes nothing and says where', async () => {
  const port = await given('users.ann { password = pw-of-ann, role = admin }');
  const put = (name: string, body: unknown): Promise<Reply> =>
    call(port, 'ann', 'pw-of-ann', 'PUT', `/users/${name}`, body);
  for (const [name, body, pointer] of [
    ['ann', { role: 'viewer' }, '/role'],
    ['bob', { role: 'king', password: 'long enough' }, '/role'],
    ['bob', { role: 'viewer' }, '/password'],
    ['bob', { password: 'short' }, '/password'],
    ['bob', { password: 'long enough', pass: 1 }, '/pass'],
    ['b.b', { password: 'long enough' }, ''],
  ] as const) {
    const { status, json } = await put(name, body);
    expect([status, json.pointer], JSON.stringify(body)).toEqual([400, pointer]);
  }
  expect((await call(port, 'ann', 'pw-of-ann', 'DELETE', '/users/ann')).status).toBe(400);
  expect((await call(port, 'ann', 'pw-of-ann', 'GET', '/users')).json.data).toHaveLength(1);
});

test('a reload that removes a user ends his session and needs no restart', async () => {
  const port = await given('username = ann, password = pw-of-ann, users.eve { password = pw-of-eve }');
  const login = await ask(port, 'POST', '/api/v4/login', {
    user: null,
    body: { username: 'eve', password: 'pw-of-eve' },
  });
  const cookie = (login.headers['set-cookie']?.[0] ?? '').split(';')[0];
  const me = (): Promise<Reply> => ask(port, 'GET', '/api/v4/me', { user: null, headers: { cookie } });
  expect((await me()).json.data).toMatchObject({ username: 'eve', role: 'viewer', via: 'session' });
  writeFileSync(
    path.join(gateway?.folder ?? '', 'test.conf'),
    `${BASE}http_server { port = 0, username = ann, password = pw-of-ann }`,
  );
  const reloaded = await gateway?.gateway.reload();
  expect(reloaded).toMatchObject({ ok: true, report: { changed: ['http_server'], needRestart: [] } });
  expect((await me()).status).toBe(401);
});

test('a bridge that only runs outlives a new user and a key that is set, but no reload', async () => {
  const port = await given('username = ann, password = pw-of-ann');
  const ann = (method: string, where: string, body?: unknown): Promise<Reply> =>
    call(port, 'ann', 'pw-of-ann', method, where, body);
  const bridges = async (): Promise<number> => (await ann('GET', '/nng/bridges')).json.data.length;
  await ann('POST', '/nng/bridges', { type: 'pub', name: 'p', pub_url: 'inproc://p', forwards: [] });
  expect((await ann('PUT', '/users/eve', { password: 'pw-of-eve' })).status).toBe(201);
  expect((await ann('POST', '/config?keep=true', { values: { 'mqtt.max_mqueue_len': 77 } })).status).toBe(200);
  expect(await bridges()).toBe(1);
  const added = { 'bridges.nng.sub.s.sub_url': 'inproc://s' };
  expect((await ann('POST', '/config', { values: added })).status).toBe(200);
  expect(await bridges()).toBe(1);
  expect((await ann('GET', '/nng/bridges/s')).status).toBe(200);
  await gateway?.gateway.reload();
  expect((await ann('GET', '/nng/bridges/p')).status).toBe(404);
});

test('a reload without credentials does not open a server that others can reach', async () => {
  gateway = await testGateway(`${BASE}http_server { ip_addr = "0.0.0.0", port = 0, username = ann, password = p }`);
  const port = address(gateway);
  for (const now of ['ip_addr = "0.0.0.0", port = 0', 'port = 0, auth_type = no_auth']) {
    writeFileSync(path.join(gateway.folder, 'test.conf'), `${BASE}http_server { ${now} }`);
    expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
    const headers = { host: `localhost:${port}` };
    expect((await ask(port, 'GET', '/api/v4/brokers', { user: null, headers })).status, now).toBe(401);
  }
});

describe.skipIf(!hasOpenssl())('a console with TLS (openssl is needed)', () => {
  test('a reload takes up renewed certificates, and keeps the old ones when the new are wrong', async () => {
    const authority = new Authority();
    const [first, second] = [authority.issue({ name: 'first' }), authority.issue({ name: 'second' })];
    const [key, cert] = ['key', 'cert'].map((name) => path.join(authority.folder, name));
    const use = (from: { key: string; cert: string }): void => {
      copyFileSync(from.key, key);
      copyFileSync(from.cert, cert);
    };
    use(first);
    const port = await given(`username = ann, password = pw, tls { keyfile = "${key}", certfile = "${cert}" }`);
    const shown = async (): Promise<string> => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      return String(CN);
    };
    expect(await shown()).toBe('first');
    use(second);
    expect(await gateway?.gateway.reload()).toMatchObject({ ok: true, report: { failed: [] } });
    expect(await shown()).toBe('second');
    writeFileSync(cert, 'nonsense');
    expect(await gateway?.gateway.reload()).toMatchObject({ report: { failed: ['http_server: certificate'] } });
    expect(await shown()).toBe('second');
    authority.remove();
  });
});
