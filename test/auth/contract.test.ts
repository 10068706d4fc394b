// Every source of users and rights under the same contract.
import { createSecretKey } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { SignJWT } from 'jose';
import { loadArgon2, makeArgon2, makePbkdf2 } from '../../src/auth/hash.ts';
import type { HttpAuthOptions } from '../../src/auth/http.ts';
import { JWT_DEFAULTS } from '../../src/auth/jwt.ts';
import type { RuleOptions } from '../../src/auth/rules.ts';
import { makeScram } from '../../src/auth/scram.ts';
import { authenticatorContract } from '../contract/authenticator.ts';
import { authorizerContract } from '../contract/authorizer.ts';
import { build, credentials, Folder, identity, line6, line7 } from './support.ts';

const PASSWORD = 'right one, ünd lóng';
const SECRET = 'a secret that is long enough for all of it';

function fileContract(name: string, line: () => Promise<string> | string): void {
  const folder = new Folder();
  authenticatorContract(name, {
    known: 'ann',
    password: () => PASSWORD,
    make: async () => build({ passwordFile: folder.put('pw', `${line7('other', 'p')}\n${await line()}\n`) }),
    done: () => folder.done(),
  });
}

fileContract('a $6$ entry', () => line6('ann', PASSWORD));
fileContract('a $7$ entry', async () => `ann:${await makePbkdf2(Buffer.from(PASSWORD), 1000)}`);
fileContract('an argon2id entry', async () => {
  const argon2 = await loadArgon2();
  if (argon2 === null) throw new Error('@node-rs/argon2 is not installed');
  return `ann:${await makeArgon2(Buffer.from(PASSWORD), argon2)}`;
});
authenticatorContract('auth.password', {
  known: 'ann',
  password: () => PASSWORD,
  make: () => build({ passwords: new Map([['ann', PASSWORD]]) }),
});

const scramFolder = new Folder();
authenticatorContract('a SCRAM file', {
  known: 'ann',
  password: () => PASSWORD,
  make: async () => {
    const keys = await makeScram(Buffer.from(PASSWORD), 4096);
    return build({ scramFile: scramFolder.put('scram', `ann:${keys.text}\n`) });
  },
  done: () => scramFolder.done(),
});

function sign(claims: Record<string, unknown>): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(createSecretKey(Buffer.from(SECRET)));
}
const jwt = { ...JWT_DEFAULTS, requireExpiry: false, secret: SECRET, keyfile: null };
authenticatorContract('a token', {
  known: 'ann',
  password: () => sign({ username: 'ann' }),
  make: () => build({ jwt }),
});

/** A web server that knows ann and the topics below `yes`. */
class Web {
  private readonly server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      const login = form.get('u') === 'ann' && form.get('P') === PASSWORD;
      const topic = /^yes(\/|$)/.test(form.get('t') ?? '');
      response.statusCode = (request.url === '/auth' ? login : topic) ? 200 : 403;
      response.end();
    });
  });

  async options(): Promise<HttpAuthOptions> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    const address = this.server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
    const params = ['u', 'P', 't', 'A'].map((letter) => [letter, `%${letter}`] as const);
    const request = { method: 'post', headers: [], params } as const;
    return {
      timeoutMs: 5000,
      connectTimeoutMs: 5000,
      poolSize: 8,
      cacheTtlMs: 0,
      authReq: { ...request, url: `${url}/auth` },
      superReq: null,
      aclReq: { ...request, url: `${url}/acl` },
    };
  }

  stop(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

const login = new Web();
authenticatorContract('a web server', {
  known: 'ann',
  password: () => PASSWORD,
  make: async () => build({ http: { ...(await login.options()), aclReq: null } }),
  fail: () => login.stop(),
});

const aclFolder = new Folder();
const acl = (): string => aclFolder.put('acl', 'user u\ntopic readwrite yes/#\n');
authorizerContract('an ACL file', {
  make: () => build({ aclFile: acl() }),
  who: () => identity('u'),
  filtersDelivery: true,
  refusesSubscribe: false,
});
authorizerContract('a truthful ACL file', {
  make: () => build({ aclFile: acl(), aclSubscribe: 'truthful' }),
  who: () => identity('u'),
  filtersDelivery: true,
  refusesSubscribe: true,
  done: () => aclFolder.done(),
});

const ALLOW: RuleOptions = {
  permit: 'allow',
  action: 'pubsub',
  topics: ['yes/#'],
  username: 'u',
  clientId: null,
  ipaddrs: [],
  and: [],
  or: [],
};
authorizerContract('acl.rules', {
  make: () => build({ rules: { rules: [ALLOW], noMatch: 'deny' } }),
  who: () => identity('u'),
  filtersDelivery: true,
  refusesSubscribe: true,
});
authorizerContract('a token', {
  make: () => build({ jwt }),
  who: async (control) => {
    const token = await sign({ sub: 'u', acl: { all: ['yes/#'] } });
    const result = await control.access('tcp').authenticator.authenticate(credentials('u', token));
    if (!result.accepted) throw new Error(result.why);
    return result.identity;
  },
  filtersDelivery: true,
  refusesSubscribe: true,
});

const rights = new Web();
authorizerContract('a web server', {
  make: async () => build({ http: { ...(await rights.options()), authReq: null } }),
  who: () => identity('u'),
  filtersDelivery: false,
  refusesSubscribe: true,
  done: () => rights.stop(),
});
