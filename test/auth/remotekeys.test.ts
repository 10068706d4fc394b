// Keys of tokens by URL and by discovery: rotation, unknown key ids, servers that are down, slow, huge or somebody else's.
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import { JWT_DEFAULTS, type JwtOptions } from '../../src/auth/jwt.ts';
import type { RemoteKeyOptions } from '../../src/auth/remotekeys.ts';
import { fetchKeys } from '../../src/gateway/fetchkeys.ts';
import { SERVER_UNAVAILABLE } from '../../src/mqtt/reason.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { FakeClock } from '../harness/clock.ts';
import { build, credentials, deps, OFF, word } from './support.ts';

const MINUTE_MS = 60_000;
const old = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const next = generateKeyPairSync('ec', { namedCurve: 'P-256' });

async function jwk(pair: KeyPairKeyObjectResult, kid: string): Promise<object> {
  return { ...(await exportJWK(pair.publicKey)), kid, use: 'sig' };
}

let clock: FakeClock;
let server: Server;
let origin: string;
/** What /keys answers. */
let answer: (response: ServerResponse) => void;
let discovery: Record<string, unknown>;
let fetches: number;
let control: AccessControl | null;

beforeEach(async () => {
  clock = new FakeClock();
  fetches = 0;
  control = null;
  const keys = [await jwk(old, 'old')];
  answer = (response) => response.end(JSON.stringify({ keys }));
  server = createServer((request, response) => {
    if (request.url === '/keys') {
      fetches += 1;
      answer(response);
    } else if (request.url === '/.well-known/openid-configuration') response.end(JSON.stringify(discovery));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  discovery = { issuer: origin, jwks_uri: `${origin}/keys` };
});
afterEach(async () => {
  control?.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function options(remote: Partial<RemoteKeyOptions> = {}, more: Partial<JwtOptions> = {}): JwtOptions {
  const times = { jwksRefreshMs: 10 * MINUTE_MS, jwksStaleMs: 60 * MINUTE_MS, jwksTimeoutMs: 5000 };
  const files = { jwksCacertfile: null, jwksCertfile: null, jwksCertkeyfile: null };
  const one = { jwksUrl: `${origin}/keys`, issuer: null, ...times, ...files, ...remote };
  return { ...JWT_DEFAULTS, requireExpiry: false, secret: null, keyfile: null, remote: one, ...more };
}

async function start(jwt = options()): Promise<AccessControl> {
  control = await build({ jwt }, deps({ clock, fetchKeys }));
  return control;
}

function sign(pair: KeyPairKeyObjectResult, kid: string, claims = {}): Promise<string> {
  return new SignJWT({ sub: 'ann', ...claims }).setProtectedHeader({ alg: 'ES256', kid }).sign(pair.privateKey);
}

async function login(of: AccessControl, token: string): Promise<string> {
  return word(of.access('tcp').authenticator.authenticate(credentials('ann', token)));
}

async function rotate(): Promise<void> {
  const keys = [await jwk(next, 'next')];
  answer = (response) => response.end(JSON.stringify({ keys }));
}

function broken(response: ServerResponse): void {
  response.writeHead(503).end();
}

describe('fetched keys', () => {
  it('verify tokens and are fetched once for all of them', async () => {
    const of = await start();
    const token = await sign(old, 'old');
    expect(await Promise.all([login(of, token), login(of, token), login(of, token)])).toEqual(['ok', 'ok', 'ok']);
    expect(await login(of, await sign(next, 'old'))).toBe('token-invalid');
    expect(fetches).toBe(1);
  });

  it('follow the issuer to another key at once and drop the old one', async () => {
    const of = await start();
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    await rotate();
    expect(await login(of, await sign(next, 'next'))).toBe('ok');
    expect(await login(of, await sign(old, 'old'))).toBe('token-invalid');
  });

  it('are not fetched for every key id that a stranger makes up', async () => {
    const of = await start();
    for (let n = 0; n < 50; n++) expect(await login(of, await sign(next, `x${n}`))).toBe('token-invalid');
    expect(fetches).toBe(4);
    clock.advance(10_000);
    for (let n = 0; n < 50; n++) expect(await login(of, await sign(next, `y${n}`))).toBe('token-invalid');
    expect(fetches).toBe(5);
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
  });

  it('are fetched again when they are old, and until then the old ones serve', async () => {
    const of = await start();
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    clock.advance(10 * MINUTE_MS + 1);
    await rotate();
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    await expect.poll(async () => login(of, await sign(old, 'old'))).toBe('token-invalid');
  });

  it('bridge a server that is down for jwks_stale, then every token is refused until it is back', async () => {
    const of = await start();
    const token = await sign(old, 'old');
    expect(await login(of, token)).toBe('ok');
    const good = answer;
    answer = broken;
    clock.advance(69 * MINUTE_MS);
    expect(await login(of, token)).toBe('ok');
    clock.advance(2 * MINUTE_MS);
    expect(await login(of, token)).toBe('token-keys-unavailable');
    answer = good;
    clock.advance(2000);
    expect(await login(of, token)).toBe('ok');
  });

  it('do not take a key id that is not known while the server is down for wrong, nor for right', async () => {
    const of = await start();
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    answer = broken;
    expect(await login(of, await sign(next, 'next'))).toBe('token-keys-unavailable');
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
  });

  it('stay over a reload, and over one that fails', async () => {
    const of = await start();
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    answer = broken;
    const same = { ...OFF, jwt: options() };
    expect((await of.reload(same)).ok).toBe(true);
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
    const other = { ...OFF, jwt: options({ jwksUrl: `${origin}/other` }, { algorithms: ['HS256'] }) };
    expect((await of.reload(other)).ok).toBe(false);
    expect(await login(of, await sign(old, 'old'))).toBe('ok');
  });

  it('make no key of a public one: tokens signed with its bytes or with nothing are refused', async () => {
    const of = await start();
    const pem = Buffer.from(old.publicKey.export({ type: 'spki', format: 'pem' }));
    const mac = await new SignJWT({ sub: 'ann' }).setProtectedHeader({ alg: 'HS256', kid: 'old' }).sign(pem);
    const none = `${Buffer.from('{"alg":"none","kid":"old"}').toString('base64url')}.${mac.split('.')[1]}.`;
    expect(await login(of, mac)).toBe('token-invalid');
    expect(await login(of, none)).toBe('token-invalid');
    const strict = await start(options({}, { algorithms: ['RS256'] }));
    expect(await login(strict, await sign(old, 'old'))).toBe('token-invalid');
  });
});

describe('without keys every token is refused with 0x88', () => {
  const oct = { keys: [{ kty: 'oct', kid: 'old', k: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA' }] };
  it.each<[string, (response: ServerResponse) => void]>([
    ['status 503', broken],
    ['a redirect', (response) => response.writeHead(302, { location: '/keys' }).end()],
    ['no JSON', (response) => response.end('<html>')],
    ['no key set', (response) => response.end('{"keys":7}')],
    ['an empty set', (response) => response.end('{"keys":[]}')],
    ['symmetric keys', (response) => response.end(JSON.stringify(oct))],
    ['a huge answer', (response) => response.end(`{"keys":[],"x":"${'x'.repeat(1_000_000)}"}`)],
    ['a connection that ends', (response) => response.destroy()],
    ['an answer that never ends', (response) => response.write('{"keys":[')],
    ['no answer', () => undefined],
  ])('%s', async (_, answers) => {
    answer = answers;
    const of = await start(options({ jwksTimeoutMs: 100 }));
    for (const token of [await sign(old, 'old'), await sign(next, 'next')]) {
      const result = await of.access('tcp').authenticator.authenticate(credentials('ann', token));
      expect(result).toMatchObject({ accepted: false, reasonCode: SERVER_UNAVAILABLE, why: 'token-keys-unavailable' });
    }
    expect(fetches).toBe(1);
  });
});

describe.skipIf(!hasOpenssl())('keys over TLS (needs openssl)', () => {
  it('come from a server of the named authorities only', async () => {
    const authority = new Authority();
    const stranger = new Authority('Stranger');
    const pair = authority.issue({ name: 'localhost', alt: ['IP:127.0.0.1'] });
    const keys = [await jwk(old, 'old')];
    const files = { key: readFileSync(pair.key), cert: readFileSync(pair.cert) };
    const secure = createSecureServer(files, (_, response) => response.end(JSON.stringify({ keys })));
    try {
      await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
      const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/`;
      const token = await sign(old, 'old');
      expect(await login(await start(options({ jwksUrl: url, jwksCacertfile: authority.ca })), token)).toBe('ok');
      for (const caFile of [stranger.ca, null, '/nowhere.pem'])
        expect(await login(await start(options({ jwksUrl: url, jwksCacertfile: caFile })), token)).toBe(
          'token-keys-unavailable',
        );
    } finally {
      secure.close();
      authority.remove();
      stranger.remove();
    }
  });
});

describe('discovery', () => {
  const found = (): JwtOptions => options({ jwksUrl: null, issuer: origin }, { issuer: origin });

  it('finds the keys of the issuer, whose tokens alone are good', async () => {
    const of = await start(found());
    expect(await login(of, await sign(old, 'old', { iss: origin }))).toBe('ok');
    expect(await login(of, await sign(old, 'old', { iss: 'https://other.example' }))).toBe('token-invalid');
    expect(await login(of, await sign(old, 'old'))).toBe('token-invalid');
  });

  it.each<[string, () => Record<string, unknown>]>([
    ['another issuer', () => ({ ...discovery, issuer: 'https://other.example' })],
    ['no issuer', () => ({ jwks_uri: `${origin}/keys` })],
    ['no jwks_uri', () => ({ issuer: origin })],
    ['a file as jwks_uri', () => ({ issuer: origin, jwks_uri: 'file:///etc/passwd' })],
  ])('takes no keys by a document with %s', async (_, document) => {
    discovery = document();
    const of = await start(found());
    expect(await login(of, await sign(old, 'old', { iss: origin }))).toBe('token-keys-unavailable');
    expect(fetches).toBe(0);
  });
});
