// From the text of a configuration file to who gets in: the keys of `auth` reach the chain, and wrong ones are told with their place.
import { createSecretKey } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AccessControl } from '../../src/auth/chain.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { authOptions } from '../../src/gateway/options.ts';
import { credentials, deps, Folder, identity, line7, word } from './support.ts';

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.done());

const SECRET = 'a secret that is long enough for all of it';
const LISTEN = 'listeners.tcp { bind = "127.0.0.1:1883" }\n';

function configured(text: string): Promise<AccessControl> {
  const { config } = loadConfig({ file: folder.put('a.conf', LISTEN + text), env: {} });
  return AccessControl.build(authOptions(config), deps());
}

function login(control: AccessControl, username: string | null, password: string | null, more = {}): Promise<string> {
  return word(control.access('tcp').authenticator.authenticate(credentials(username, password, more)));
}

/** The problems as `line key`. */
function problems(text: string): string[] {
  try {
    loadConfig({ file: folder.put('a.conf', LISTEN + text), env: {} });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => `${problem.at?.line ?? 0} ${problem.key}`);
  }
}

describe('auth in a configuration file', () => {
  it('takes users of a file and of itself', async () => {
    const pw = folder.put('pw', `${line7('ann', 'p')}\n`);
    const control = await configured(`auth { password_file = "${pw}", password { "bob" : "q#1" } }`);
    expect(await login(control, 'ann', 'p')).toBe('ok');
    expect(await login(control, 'bob', 'q#1')).toBe('ok');
    expect(await login(control, null, null)).toBe('anonymous');
  });

  it('takes tokens', async () => {
    const control = await configured(`auth { allow_anonymous = false, jwt { secret = "${SECRET}", issuer = me } }`);
    const sign = (issuer: string): Promise<string> =>
      new SignJWT({ sub: 'dev' })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer(issuer)
        .setExpirationTime('1m')
        .sign(createSecretKey(Buffer.from(SECRET)));
    expect(await login(control, 'dev', await sign('me'))).toBe('ok');
    expect(await login(control, 'dev', await sign('you'))).toBe('token-invalid');
  });

  it('takes a token source for a source of users when it decides on anonymous clients', async () => {
    const control = await configured(`auth { jwt { secret = "${SECRET}" } }`);
    expect(await login(control, null, null)).toBe('anonymous');
  });

  it('limits guesses, but not from loopback', async () => {
    const control = await configured('auth { password { u : p }, limits { per_user_and_address = 2 } }');
    for (const remoteAddress of ['10.0.0.1', '127.0.0.1']) {
      for (let i = 0; i < 2; i++) expect(await login(control, 'u', 'x', { remoteAddress })).toBe('bad-password');
    }
    expect(await login(control, 'u', 'p', { remoteAddress: '10.0.0.1' })).toBe('locked');
    expect(await login(control, 'u', 'p')).toBe('ok');
  });

  it('takes acl.rules with what they say of clients', async () => {
    const rules =
      '{ permit = deny, ipaddr = "10.0.0.0/8" }, { permit = allow, or = [ { username = a }, { clientid = x } ], topics = ["t/#"] }';
    const control = await configured(`auth { acl { rules = [ ${rules} ] }, no_match = deny }`);
    const { authorizer } = control.access('tcp');
    expect(authorizer.publish(identity('a'), 't/1', 0, false)).toBe(true);
    expect(authorizer.publish(identity('b'), 't/1', 0, false)).toBe(false);
    expect(authorizer.publish(identity('a', { remoteAddress: '10.1.1.1' }), 't/1', 0, false)).toBe(false);
    expect(authorizer.explain(identity('a'), 'publish', 't/1').rule).toMatch(/a\.conf:2: auth\.acl\.rules\[1\]$/);
  });

  it('refuses a web server that does not answer', async () => {
    const request = 'auth_req { url = "http://127.0.0.1:1/", params { u = "%u" } }';
    const control = await configured(`auth { allow_anonymous = false, http_auth { timeout = 1s, ${request} } }`);
    expect(await login(control, 'u', 'p')).toBe('source-down');
    control.close();
  });

  it.each([
    ['auth { jwt { } }', '2 auth.jwt'],
    ['auth { jwt { secret = a, keyfile = b } }', '2 auth.jwt'],
    ['auth { jwt { keyfile = b, jwks_url = "https://a/keys" } }', '2 auth.jwt'],
    ['auth { jwt { jwks_url = "https://a/keys", issuer = "https://a", issuer_discovery = true } }', '2 auth.jwt'],
    ['auth { jwt { jwks_url = "file:///keys" } }', '2 auth.jwt.jwks_url'],
    ['auth { jwt { issuer = me, issuer_discovery = true } }', '2 auth.jwt.issuer'],
    ['auth { jwt { jwks_url = "https://a/keys", jwks_certfile = c } }', '2 auth.jwt'],
    ['auth {\n limits { exempt = ["10.0.0.0/33"] } }', '3 auth.limits.exempt[0]'],
    ['auth { limits { per_usr = 3 } }', '2 auth.limits.per_usr'],
    ['auth { jwt { secrt = x } }', '2 auth.jwt.secrt'],
  ])('refuses "%s" at %s', (text, wanted) => {
    expect(problems(text)).toContain(wanted);
  });
});
