// Who gets into the HTTP API: Basic, open on loopback, sessions with their cookie, bearer tokens, roles, pages of other origins.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SignJWT } from 'jose';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { HttpSettings } from '../../src/console/console.ts';
import { FakeClock } from '../harness/clock.ts';
import { ask, basic, type Reply } from './request.ts';
import { ADMIN, ConsoleStage, OPERATOR, VIEWER } from './standins.ts';

const stages: ConsoleStage[] = [];
async function stage(settings: Partial<HttpSettings> = {}): Promise<ConsoleStage> {
  const made = new ConsoleStage();
  made.settings = { ...made.settings, ...settings };
  stages.push(made);
  return made.start();
}
afterEach(async () => {
  for (const made of stages.splice(0)) await made.stop();
});

/** The session cookie that an answer sets. */
function cookieOf(reply: Reply): string {
  return (reply.headers['set-cookie']?.[0] ?? '').split(';')[0];
}

describe('Basic credentials', () => {
  test('a request without credentials is asked for them with code 104', async () => {
    const { server } = await stage();
    for (const [method, where] of [
      ['GET', '/api/v4/brokers'],
      ['POST', '/api/v4/mqtt/publish'],
      ['DELETE', '/api/v4/clients/x'],
      ['PUT', '/api/v4/nng/bridges/x'],
      ['GET', '/api/v4/nothing'],
      ['GET', '/metrics'],
      ['GET', '/api/v4/events'],
      ['PATCH', '/api/v4/brokers'],
    ]) {
      const reply = await ask(server.port, method, where, { user: null });
      expect([reply.status, reply.json.code, reply.headers['www-authenticate']], where).toEqual([
        401,
        104,
        'Basic realm="tidegate", charset="UTF-8"',
      ]);
    }
  });

  test.each([
    ['no base64', 'Basic %%%'],
    ['no value', 'Basic'],
    ['no colon', `Basic ${Buffer.from('admin').toString('base64')}`],
    ['another scheme', 'Bearer x'],
    ['a NUL in the password', `Basic ${Buffer.from('admin:bad\0').toString('base64')}`],
    ['no UTF-8', `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString('base64')}`],
    ['far too long', `Basic ${'A'.repeat(3000)}`],
  ])('a header with %s is refused with code 103', async (_what, authorization) => {
    const { server } = await stage();
    const reply = await ask(server.port, 'GET', '/api/v4/brokers', { user: null, headers: { authorization } });
    expect([reply.status, reply.json.code]).toEqual([401, 103]);
  });

  test.each([
    ['an empty password', 'admin', ''],
    ['an empty name', '', 's3cr3t-Pw!'],
    ['a longer password', 'admin', 's3cr3t-Pw!x'],
    ['another case', 'ADMIN', 's3cr3t-Pw!'],
    ["somebody else's password", 'admin', 'op-Pw'],
  ])('%s is refused', async (_what, username, password) => {
    const { server } = await stage();
    const user = { username, password, role: 'admin' } as const;
    expect((await ask(server.port, 'GET', '/api/v4/brokers', { user })).status).toBe(401);
  });

  test('a user whose configured password is empty never gets in', async () => {
    const user = { username: 'x', password: '', role: 'admin' } as const;
    const { server } = await stage({ users: [user] });
    expect((await ask(server.port, 'GET', '/api/v4/brokers', { user })).status).toBe(401);
  });

  test('a script that names itself is not answered with a challenge the browser acts on', async () => {
    const { server } = await stage();
    const headers = { 'x-requested-with': 'console' };
    const reply = await ask(server.port, 'GET', '/api/v4/brokers', { user: null, headers });
    expect(reply.headers['www-authenticate']).toBe('Session');
  });

  test('an address that fails ten times has to wait, even with the right password, and is logged once', async () => {
    const made = await stage();
    const wrong = { ...ADMIN, password: 'no' };
    for (let i = 0; i < 10; i++) await ask(made.server.port, 'GET', '/api/v4/brokers', { user: wrong });
    const reply = await ask(made.server.port, 'GET', '/api/v4/brokers');
    expect([reply.status, reply.json.code, Number(reply.headers['retry-after']) > 0]).toEqual([429, 202, true]);
    expect(made.logged.filter(({ id }) => id === 'WEB-LOCKED')).toHaveLength(1);
    expect(made.metrics.value('tidegate_http_login_failures_total')).toBe(10);
  });

  test('a changed password holds for the next request', async () => {
    const made = await stage();
    made.settings = { ...made.settings, users: [{ ...ADMIN, password: 'new' }] };
    expect((await ask(made.server.port, 'GET', '/api/v4/brokers')).status).toBe(401);
    const user = { ...ADMIN, password: 'new' };
    expect((await ask(made.server.port, 'GET', '/api/v4/brokers', { user })).status).toBe(200);
  });
});

describe('roles', () => {
  test('a viewer reads and does not act', async () => {
    const made = await stage();
    const { port } = made.server;
    expect((await ask(port, 'GET', '/api/v4/clients', { user: VIEWER })).status).toBe(200);
    const body = { topic: 'a', payload: 'x' };
    const reply = await ask(port, 'POST', '/api/v4/mqtt/publish', { user: VIEWER, body });
    expect([reply.status, reply.json.code]).toEqual([403, 105]);
    expect(made.broker.published).toEqual([]);
  });

  test('an operator acts and does not change the configuration', async () => {
    const made = await stage();
    const { port } = made.server;
    const body = { topic: 'a', payload: 'x' };
    expect((await ask(port, 'POST', '/api/v4/mqtt/publish', { user: OPERATOR, body })).status).toBe(200);
    expect((await ask(port, 'POST', '/api/v4/reload', { user: OPERATOR })).status).toBe(403);
    expect(made.config.reloads).toBe(0);
  });
});

describe('a server without credentials', () => {
  test('lets everybody on loopback in as admin', async () => {
    const { server } = await stage({ users: [] });
    const reply = await ask(server.port, 'GET', '/api/v4/me', { user: null });
    expect(reply.json.data).toEqual({ username: 'local', role: 'admin', via: 'open', csrf: null });
  });

  test('refuses a Host that names another machine', async () => {
    const { server } = await stage({ users: [] });
    const headers = { host: 'evil.example:80' };
    expect((await ask(server.port, 'GET', '/api/v4/brokers', { user: null, headers })).status).toBe(403);
  });

  test.each([
    ['0.0.0.0', 'basic'],
    ['::', 'basic'],
    ['192.0.2.1', 'no_auth'],
  ] as const)('does not start on %s with %s', async (host, authType) => {
    const made = new ConsoleStage();
    made.settings = { ...made.settings, users: [], host, authType };
    await expect(made.server.start()).rejects.toMatchObject({
      code: 'CFG-INVALID',
      message: expect.stringContaining('http_server'),
    });
  });
});

describe('pages of other origins', () => {
  test.each([
    ['another Origin', { origin: 'http://evil.example' }],
    ['the Origin null', { origin: 'null' }],
    ['Sec-Fetch-Site cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['Sec-Fetch-Site same-site', { 'sec-fetch-site': 'same-site' }],
  ])('a change with %s is refused although the credentials are right', async (_what, headers) => {
    const made = await stage();
    const body = { topic: 'a', payload: 'x' };
    const reply = await ask(made.server.port, 'POST', '/api/v4/mqtt/publish', { body, headers });
    expect([reply.status, reply.json.code]).toEqual([403, 106]);
    expect(made.broker.published).toEqual([]);
  });

  test('a change from the own origin is taken', async () => {
    const { server } = await stage();
    const headers = { origin: `http://127.0.0.1:${server.port}`, 'sec-fetch-site': 'same-origin' };
    const body = { topic: 'a', payload: 'x' };
    expect((await ask(server.port, 'POST', '/api/v4/mqtt/publish', { body, headers })).status).toBe(200);
  });

  test('a change from the own page through a proxy that changes Host is taken', async () => {
    const { server } = await stage();
    const headers = { origin: 'https://gateway.example', 'sec-fetch-site': 'same-origin' };
    const body = { topic: 'a', payload: 'x' };
    expect((await ask(server.port, 'POST', '/api/v4/mqtt/publish', { body, headers })).status).toBe(200);
  });

  test('a login from another origin is refused', async () => {
    const { server } = await stage();
    const body = { username: ADMIN.username, password: ADMIN.password };
    const headers = { origin: 'http://evil.example' };
    expect((await ask(server.port, 'POST', '/api/v4/login', { user: null, body, headers })).status).toBe(403);
  });
});

describe('sessions', () => {
  async function login(made: ConsoleStage): Promise<{ cookie: string; csrf: string; reply: Reply }> {
    const body = { username: ADMIN.username, password: ADMIN.password };
    const reply = await ask(made.server.port, 'POST', '/api/v4/login', { user: null, body });
    return { cookie: cookieOf(reply), csrf: reply.json.data.csrf, reply };
  }

  test('a login sets a cookie that scripts and other sites do not get', async () => {
    const { reply } = await login(await stage());
    expect(reply.headers['set-cookie']?.[0]).toMatch(
      /^tidegate_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
  });

  test('the cookie lets its owner read', async () => {
    const made = await stage();
    const { cookie, csrf } = await login(made);
    const reply = await ask(made.server.port, 'GET', '/api/v4/me', { user: null, headers: { cookie } });
    expect(reply.json.data).toEqual({ username: 'admin', role: 'admin', via: 'session', csrf });
  });

  test('a change needs the token of the session too', async () => {
    const made = await stage();
    const { cookie, csrf } = await login(made);
    const publish = (headers: Record<string, string>): Promise<Reply> =>
      ask(made.server.port, 'POST', '/api/v4/mqtt/publish', { user: null, body: { topic: 'a', payload: '' }, headers });
    expect((await publish({ cookie })).status).toBe(403);
    expect((await publish({ cookie, 'x-csrf-token': 'x' })).status).toBe(403);
    expect((await publish({ cookie, 'x-csrf-token': csrf })).status).toBe(200);
  });

  test('a wrong password opens none', async () => {
    const { server } = await stage();
    const body = { username: 'admin', password: 'no' };
    const reply = await ask(server.port, 'POST', '/api/v4/login', { user: null, body });
    expect([reply.status, reply.headers['set-cookie']]).toEqual([401, undefined]);
  });

  test('logging out ends it', async () => {
    const made = await stage();
    const { cookie, csrf } = await login(made);
    const headers = { cookie, 'x-csrf-token': csrf };
    expect((await ask(made.server.port, 'POST', '/api/v4/logout', { user: null, headers })).status).toBe(200);
    expect((await ask(made.server.port, 'GET', '/api/v4/me', { user: null, headers })).status).toBe(401);
  });

  test('a changed password ends it', async () => {
    const made = await stage();
    const { cookie } = await login(made);
    made.settings = { ...made.settings, users: [{ ...ADMIN, password: 'new' }] };
    expect((await ask(made.server.port, 'GET', '/api/v4/me', { user: null, headers: { cookie } })).status).toBe(401);
  });
});

describe('bearer tokens', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  async function jwtStage(): Promise<ConsoleStage> {
    const file = path.join(await mkdtemp(path.join(tmpdir(), 'jwt-')), 'key.pem');
    await writeFile(file, publicKey.export({ type: 'spki', format: 'pem' }));
    return stage({ authType: 'jwt', users: [], jwt: { publicKeyFile: file, issuer: null, audience: null } });
  }

  function token(claims: Record<string, unknown>, lifeSeconds: number | null = 60): Promise<string> {
    const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).setSubject('ann');
    if (lifeSeconds !== null) jwt.setExpirationTime(Math.floor(systemClock.now() / 1000) + lifeSeconds);
    return jwt.sign(privateKey);
  }

  async function me(made: ConsoleStage, authorization: string): Promise<Reply> {
    return ask(made.server.port, 'GET', '/api/v4/me', { user: null, headers: { authorization } });
  }

  test('a signed token lets its owner in with its role', async () => {
    const made = await jwtStage();
    const reply = await me(made, `Bearer ${await token({ role: 'operator' })}`);
    expect(reply.json.data).toMatchObject({ username: 'ann', role: 'operator', via: 'jwt' });
  });

  test('a token without a role only reads', async () => {
    const made = await jwtStage();
    expect((await me(made, `Bearer ${await token({})}`)).json.data.role).toBe('viewer');
  });

  test('a token with an unknown role, without exp, or expired is refused', async () => {
    const made = await jwtStage();
    for (const bad of [await token({ role: 'root' }), await token({}, null), await token({}, -3600)]) {
      const reply = await me(made, `Bearer ${bad}`);
      expect([reply.status, reply.json.code]).toEqual([401, 116]);
    }
  });

  test('a token that uses the public key as a shared secret is refused', async () => {
    const made = await jwtStage();
    const secret = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }));
    const forged = await new SignJWT({ role: 'admin' })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(secret);
    expect((await me(made, `Bearer ${forged}`)).status).toBe(401);
  });

  test('neither Basic nor a login with a password is taken where tokens are asked for', async () => {
    const made = await jwtStage();
    made.settings = { ...made.settings, users: [ADMIN] };
    expect((await me(made, basic(ADMIN))).status).toBe(401);
    const body = { username: ADMIN.username, password: ADMIN.password };
    expect((await ask(made.server.port, 'POST', '/api/v4/login', { user: null, body })).status).toBe(401);
  });

  test('issuer and audience have to fit where they are configured', async () => {
    const made = await jwtStage();
    const { jwt } = made.settings;
    if (jwt !== null) made.settings = { ...made.settings, jwt: { ...jwt, issuer: 'https://id', audience: 'tidegate' } };
    const right = { iss: 'https://id', aud: ['other', 'tidegate'] };
    expect((await me(made, `Bearer ${await token(right)}`)).status).toBe(200);
    for (const wrong of [{}, { ...right, iss: 'https://other' }, { ...right, aud: 'other' }])
      expect((await me(made, `Bearer ${await token(wrong)}`)).status, JSON.stringify(wrong)).toBe(401);
  });

  test('a token opens a console session no longer than it lasts itself', async () => {
    const made = await jwtStage();
    const body = { token: await token({ role: 'admin' }) };
    const reply = await ask(made.server.port, 'POST', '/api/v4/login', { user: null, body });
    const found = await ask(made.server.port, 'GET', '/api/v4/me', {
      user: null,
      headers: { cookie: cookieOf(reply) },
    });
    expect(found.json.data).toMatchObject({ username: 'ann', via: 'session' });
  });

  test('a server does not start when the key cannot be read', async () => {
    const made = new ConsoleStage();
    const jwt = { publicKeyFile: '/nonexistent/key.pem', issuer: null, audience: null };
    made.settings = { ...made.settings, authType: 'jwt', users: [], jwt };
    await expect(made.server.start()).rejects.toMatchObject({ code: 'AUTH-SOURCE' });
  });
});

describe('time', () => {
  test('a session that is not used for half an hour ends, one in use does not', async () => {
    const clock = new FakeClock();
    const { LoginSessions } = await import('../../src/console/login.ts');
    const sessions = new LoginSessions(clock);
    const { token } = sessions.open('a', 'admin', 'c');
    clock.advance(29 * 60_000);
    expect(sessions.find(token)).toBeDefined();
    clock.advance(29 * 60_000);
    expect(sessions.find(token)).toBeDefined();
    clock.advance(31 * 60_000);
    expect(sessions.find(token)).toBeUndefined();
  });

  test('a session ends after twelve hours, used or not', async () => {
    const clock = new FakeClock();
    const { LoginSessions } = await import('../../src/console/login.ts');
    const sessions = new LoginSessions(clock);
    const { token } = sessions.open('a', 'admin', 'c');
    for (let i = 0; i < 12 * 3; i++) {
      clock.advance(20 * 60_000);
      if (i < 35) expect(sessions.find(token)).toBeDefined();
    }
    clock.advance(1000);
    expect(sessions.find(token)).toBeUndefined();
  });

  test('one user who logs in again and again ends his own sessions, never those of others', async () => {
    const clock = new FakeClock();
    const { LoginSessions } = await import('../../src/console/login.ts');
    const sessions = new LoginSessions(clock);
    const other = sessions.open('b', 'admin', 'c').token;
    clock.advance(1);
    const first = sessions.open('a', 'admin', 'c').token;
    clock.advance(1);
    let last = '';
    for (let i = 0; i < 300; i++) last = sessions.open('a', 'admin', 'c').token;
    expect([other, first, last].map((token) => sessions.find(token) !== undefined)).toEqual([true, false, true]);
  });

  test('where all places are taken, the user with the most sessions loses the one longest unused', async () => {
    const clock = new FakeClock();
    const { LoginSessions } = await import('../../src/console/login.ts');
    const sessions = new LoginSessions(clock);
    const alone = sessions.open('alone', 'admin', 'c').token;
    for (let user = 0; user < 300; user++) {
      clock.advance(1);
      sessions.open(`u${user % 20}`, 'admin', 'c');
    }
    clock.advance(1);
    const next = sessions.open('next', 'admin', 'c').token;
    expect([alone, next].map((token) => sessions.find(token) !== undefined)).toEqual([true, true]);
  });
});
