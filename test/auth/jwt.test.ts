// Tokens in the password field: keys, claims, rights, expiry, reload; what must never pass.
import { createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { exportJWK, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import { JWT_DEFAULTS, type JwtOptions } from '../../src/auth/jwt.ts';
import { FakeClock } from '../harness/clock.ts';
import { build, credentials, deps, Folder, line7, OFF, word } from './support.ts';

let folder: Folder;
let clock: FakeClock;
beforeEach(() => {
  folder = new Folder();
  clock = new FakeClock();
});
afterEach(() => folder.done());

const SECRET = 'a secret that is long enough for all of it';
const secretKey = createSecretKey(Buffer.from(SECRET));
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

function jwt(more: Partial<JwtOptions>): JwtOptions {
  return { ...JWT_DEFAULTS, requireExpiry: false, secret: null, keyfile: null, ...more };
}

function control(options: Partial<JwtOptions>, more: Parameters<typeof build>[0] = {}): Promise<AccessControl> {
  return build({ jwt: jwt(options), ...more }, deps({ clock }));
}

function sign(
  claims: Record<string, unknown>,
  key: KeyObject = secretKey,
  alg = 'HS256',
  header = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, ...header }).sign(key);
}

function login(of: AccessControl, username: string | null, token: string): Promise<string> {
  return word(of.access('tcp').authenticator.authenticate(credentials(username, token)));
}

function seconds(): number {
  return Math.floor(clock.now() / 1000);
}

async function identityWith(of: AccessControl, claims: Record<string, unknown>) {
  const result = await of.access('tcp').authenticator.authenticate(credentials(null, await sign(claims)));
  if (!result.accepted) throw new Error(result.why);
  return result.identity;
}

describe('token', () => {
  it('without expiry is refused unless the configuration takes such', async () => {
    const strict = await control({ secret: SECRET, requireExpiry: true });
    const token = await sign({ sub: 'u' });
    expect(await login(strict, 'u', token)).toBe('token-no-expiry');
    expect(await login(strict, 'u', await sign({ sub: 'u', exp: seconds() + 60 }))).toBe('ok');
    expect(await login(await control({ secret: SECRET }), 'u', token)).toBe('ok');
  });

  it('names the user', async () => {
    const of = await control({ secret: SECRET });
    expect((await identityWith(of, { username: 'ann', sub: 'x' })).username).toBe('ann');
    expect((await identityWith(of, { sub: 'bob' })).username).toBe('bob');
    expect((await identityWith(of, {})).username).toBeNull();
  });

  it('has to name the user that the client names', async () => {
    const of = await control({ secret: SECRET });
    expect(await login(of, 'ann', await sign({ username: 'ann' }))).toBe('ok');
    expect(await login(of, 'bob', await sign({ username: 'ann' }))).toBe('token-username');
    expect(await login(of, 'bob', await sign({}))).toBe('token-username');
    expect(await login(of, null, await sign({ username: 7 }))).toBe('token-username');
  });

  it('has to name the client id if it names one', async () => {
    const of = await control({ secret: SECRET });
    expect(await login(of, null, await sign({ clientid: 'c' }))).toBe('ok');
    expect(await login(of, null, await sign({ clientid: 'd' }))).toBe('token-clientid');
  });

  it('has to be in time', async () => {
    const of = await control({ secret: SECRET });
    expect(await login(of, null, await sign({ exp: seconds() + 60 }))).toBe('ok');
    expect(await login(of, null, await sign({ exp: seconds() - 60 }))).toBe('token-expired');
    expect(await login(of, null, await sign({ nbf: seconds() + 60 }))).toBe('token-invalid');
  });

  it('has to come from the issuer and be for the audience', async () => {
    const of = await control({ secret: SECRET, issuer: 'me', audience: 'gw' });
    expect(await login(of, null, await sign({ iss: 'me', aud: ['gw', 'x'] }))).toBe('ok');
    expect(await login(of, null, await sign({ iss: 'you', aud: 'gw' }))).toBe('token-invalid');
    expect(await login(of, null, await sign({ iss: 'me' }))).toBe('token-invalid');
  });

  it('is refused with a changed part, another key or no signature', async () => {
    const of = await control({ secret: SECRET });
    const good = await sign({ username: 'ann' });
    const [head, body, mac] = good.split('.');
    const other = await sign({ username: 'root' }, createSecretKey(Buffer.alloc(32, 1)));
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
    for (const token of [`${head}.${body}x.${mac}`, `${head}.${other.split('.')[1]}.${mac}`, other, none]) {
      expect(await login(of, null, token)).toBe('token-invalid');
    }
  });

  it('is checked where anonymous is allowed too', async () => {
    const of = await control({ secret: SECRET }, { allowAnonymous: true });
    expect(await login(of, null, `${(await sign({})).slice(0, -4)}AAAA`)).toBe('token-invalid');
    expect(await login(of, null, 'no token')).toBe('ok');
  });

  it('does not stand in the way of users of the password file', async () => {
    const of = await control({ secret: SECRET }, { passwordFile: folder.put('pw', `${line7('ann', 'p')}\n`) });
    expect(await login(of, 'ann', 'p')).toBe('ok');
    expect(await login(of, 'bob', 'p')).toBe('unknown-user');
    expect(await login(of, 'bob', await sign({ sub: 'bob' }))).toBe('ok');
  });
});

describe('token keys', () => {
  it.each([
    ['ES256', ec],
    ['RS256', rsa],
    ['PS256', rsa],
  ])('verify %s with a PEM key', async (alg, pair) => {
    const keyfile = folder.put('key.pem', pair.publicKey.export({ type: 'spki', format: 'pem' }).toString());
    const of = await control({ keyfile });
    expect(await login(of, null, await sign({}, pair.privateKey, alg))).toBe('ok');
  });

  it('verify with a JWK set, by key id, and never with a symmetric key of it', async () => {
    const oct = { kty: 'oct', k: secretKey.export().toString('base64url'), kid: 's', alg: 'HS256' };
    const keys = [
      { ...(await exportJWK(ec.publicKey)), kid: 'e' },
      { ...(await exportJWK(rsa.publicKey)), kid: 'r' },
      oct,
    ];
    const of = await control({ keyfile: folder.put('set.json', JSON.stringify({ keys })) });
    expect(await login(of, null, await sign({}, ec.privateKey, 'ES256', { kid: 'e' }))).toBe('ok');
    expect(await login(of, null, await sign({}, rsa.privateKey, 'RS256', { kid: 'r' }))).toBe('ok');
    expect(await login(of, null, await sign({}, secretKey, 'HS256', { kid: 's' }))).toBe('token-invalid');
  });

  it('are not mistaken for a shared secret', async () => {
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const of = await control({ keyfile: folder.put('key.pem', pem) });
    expect(await login(of, null, await sign({}, createSecretKey(Buffer.from(pem))))).toBe('token-invalid');
  });

  it.each([
    ['a short secret', { secret: 'short' }],
    ['no key', {}],
    ['an algorithm that does not fit', { secret: SECRET, algorithms: ['RS256'] }],
    ['the algorithm none', { secret: SECRET, algorithms: ['none'] }],
  ])('are refused at start: %s', async (_name, options) => {
    await expect(control(options)).rejects.toThrow('auth.jwt');
  });

  it('are refused at start when the file holds none', async () => {
    for (const text of ['nonsense', '{}', '{"keys":3}']) {
      const keyfile = folder.put('key', text);
      await expect(control({ keyfile }), text).rejects.toThrow(keyfile);
    }
  });
});

describe('token reload', () => {
  it.each([
    ['the same key', SECRET, false],
    ['another key', `${SECRET} changed`, true],
    ['no key', null, true],
  ])('with %s sends clients away: %s', async (_name, secret, gone) => {
    const of = await control({ secret: SECRET });
    const after = secret === null ? null : jwt({ secret });
    const result = await of.reload({ ...OFF, jwt: after });
    if (!result.ok) throw result.error;
    expect([result.revoked('tcp', 'ann'), result.revoked('tcp', null)]).toEqual([gone, gone]);
  });
});

describe('token rights', () => {
  it('are what the acl claim grants and nothing else', async () => {
    const of = await control({ secret: SECRET });
    const acl = { pub: ['p/$' + '{clientid}/#'], sub: ['s/#'], all: ['b'] };
    const who = await identityWith(of, { sub: 'u', acl });
    const { authorizer } = of.access('tcp');
    expect(authorizer.publish(who, 'p/c/1', 0, false)).toBe(true);
    expect(authorizer.publish(who, 'p/d/1', 0, false)).toBe(false);
    expect(authorizer.publish(who, 's/1', 0, false)).toBe(false);
    expect(authorizer.subscribe(who, 's/+', 0)).toBe(true);
    expect(authorizer.subscribe(who, '#', 0)).toBe(false);
    expect(authorizer.deliver(who, 's/1')).toBe(true);
    expect(authorizer.deliver(who, 'p/c/1')).toBe(false);
    expect(authorizer.publish(who, 'b', 0, false)).toBe(true);
    expect(authorizer.explain(who, 'publish', 'x')).toEqual({ allowed: false, rule: 'token acl: no rule matches' });
  });

  it('are nothing for a token with an empty acl claim', async () => {
    const of = await control({ secret: SECRET });
    const who = await identityWith(of, { acl: {} });
    expect(of.access('tcp').authorizer.publish(who, 'x', 0, false)).toBe(false);
  });

  it.each([[['x']], ['all'], [{ pub: 'x' }], [{ pub: [7] }], [{ pub: ['a/#/b'] }], [{ sub: Array(501).fill('t') }]])(
    'refuse a token whose acl claim is %j',
    async (acl) => {
      const of = await control({ secret: SECRET });
      expect(await login(of, null, await sign({ acl }))).toBe('token-acl');
    },
  );

  it('end with the token', async () => {
    const of = await control({ secret: SECRET });
    const who = await identityWith(of, { exp: seconds() + 60 });
    const { authorizer } = of.access('tcp');
    const before = authorizer.version;
    expect(authorizer.publish(who, 'x', 0, false)).toBe(true);
    clock.advance(70_000);
    expect(authorizer.publish(who, 'x', 0, false)).toBe(false);
    expect(authorizer.deliver(who, 'x')).toBe(false);
    expect(authorizer.version).toBeGreaterThan(before);
  });
});
