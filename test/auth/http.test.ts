// NanoMQ's http_auth against a server of the test: requests byte by byte, answers, caches, a server that is down.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import type { HttpAuthOptions } from '../../src/auth/http.ts';
import type { RequestOptions } from '../../src/auth/httprequest.ts';
import type { MsgId } from '../../src/base/messages.ts';
import { build, credentials, deps, Folder, identity, line7, OFF, word } from './support.ts';

interface Seen {
  readonly url: string;
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A web server that answers with `status` and keeps what it was asked. */
class Web {
  status = 200;
  /** When set, answers wait for it. */
  hold: Promise<void> | null = null;
  readonly seen: Seen[] = [];
  most = 0;
  private busy = 0;
  private wake: () => void = () => {};
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => {
      this.most = Math.max(this.most, ++this.busy);
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', async () => {
        this.seen.push({
          url: request.url ?? '',
          method: request.method ?? '',
          headers: request.headers,
          body: Buffer.concat(chunks).toString('latin1'),
        });
        this.wake();
        await this.hold;
        this.busy--;
        response.statusCode = this.status;
        response.end('ok');
      });
    });
  }

  /** Resolves when so many requests have come. */
  async arrived(count: number): Promise<void> {
    while (this.seen.length < count) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  start(): Promise<void> {
    return new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    const address = this.server.address();
    return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : '';
  }

  stop(): Promise<unknown> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }
}

let web: Web;
let folder: Folder;
const controls: AccessControl[] = [];
beforeEach(async () => {
  folder = new Folder();
  web = new Web();
  await web.start();
});
afterEach(async () => {
  for (const control of controls.splice(0)) control.close();
  folder.done();
  await web.stop();
});

const PARAMS = [
  ['clientid', '%c'],
  ['username', '%u'],
  ['password', '%P'],
] as const;

function request(path: string, more: Partial<RequestOptions> = {}): RequestOptions {
  return { url: web.url + path, method: 'post', headers: [], params: PARAMS, ...more };
}

function http(more: Partial<HttpAuthOptions>): HttpAuthOptions {
  return {
    timeoutMs: 2000,
    connectTimeoutMs: 2000,
    poolSize: 4,
    cacheTtlMs: 0,
    authReq: null,
    superReq: null,
    aclReq: null,
    ...more,
  };
}

async function control(
  options: HttpAuthOptions,
  more: Parameters<typeof build>[0] = {},
  parts = {},
): Promise<AccessControl> {
  const made = await build({ http: options, ...more }, parts);
  controls.push(made);
  return made;
}

function login(
  of: AccessControl,
  username: string | null,
  password: string | Uint8Array | null,
  more = {},
): Promise<string> {
  return word(of.access('tcp').authenticator.authenticate(credentials(username, password, more)));
}

const ACL = [
  ['who', '%u/%c@%a'],
  ['access', '%A'],
  ['topic', '%t'],
] as const;

describe('http_auth.auth_req', () => {
  it('lets in on 200 and sends every field as a form value of its own', async () => {
    const of = await control(http({ authReq: request('/auth') }));
    expect(await login(of, 'a&password=x', 'p w%+é', { clientId: 'é=1' })).toBe('ok');
    expect(web.seen).toHaveLength(1);
    const [seen] = web.seen;
    expect([seen.method, seen.url, seen.headers['content-type']]).toEqual([
      'POST',
      '/auth',
      'application/x-www-form-urlencoded',
    ]);
    expect(Object.fromEntries(new URLSearchParams(seen.body))).toEqual({
      clientid: 'é=1',
      username: 'a&password=x',
      password: 'p w%+é',
    });
  });

  it('sends bytes that are no UTF-8 as they are in a form, and refuses them in JSON', async () => {
    const bytes = Buffer.from([0x61, 0xff, 0xfe]);
    const form = await control(http({ authReq: request('/auth') }));
    expect(await login(form, 'u', bytes)).toBe('ok');
    expect(web.seen[0].body).toContain('password=a%FF%FE');
    const json = await control(
      http({ authReq: request('/auth', { headers: [['Content-Type', 'application/json']] }) }),
    );
    expect(await login(json, 'u', bytes)).toBe('http-refused');
    expect(web.seen).toHaveLength(1);
  });

  it('sends JSON where the header says so', async () => {
    const headers = [
      ['content-type', 'application/json'],
      ['x-key', 'k'],
    ] as const;
    const of = await control(http({ authReq: request('/auth', { headers }) }));
    expect(await login(of, 'a"b', 'p\\q')).toBe('ok');
    expect(JSON.parse(web.seen[0].body)).toEqual({ clientid: 'c', username: 'a"b', password: 'p\\q' });
    expect(web.seen[0].headers['x-key']).toBe('k');
  });

  it('puts the values of a GET into the query', async () => {
    const of = await control(
      http({ authReq: request('/auth?k=1', { method: 'get', params: [['u', 'x-%u-%%-%q-%a']] }) }),
    );
    expect(await login(of, 'a b', 'p')).toBe('ok');
    const url = new URL(web.seen[0].url, 'http://h');
    expect([web.seen[0].method, url.searchParams.get('k'), url.searchParams.get('u')]).toEqual([
      'GET',
      '1',
      'x-a b-%-%q-127.0.0.1',
    ]);
    expect(web.seen[0].body).toBe('');
  });

  it.each([401, 403, 404])('refuses on %i', async (status) => {
    web.status = status;
    const of = await control(http({ authReq: request('/auth') }));
    const result = await of.access('tcp').authenticator.authenticate(credentials('u', 'p'));
    expect(result).toMatchObject({ accepted: false, reasonCode: 0x87, why: 'http-refused' });
  });

  it.each([204, 302, 429, 500, 503])('takes %i for a server that is down and refuses', async (status) => {
    web.status = status;
    const of = await control(http({ authReq: request('/auth') }));
    const result = await of.access('tcp').authenticator.authenticate(credentials('u', 'p'));
    expect(result).toMatchObject({ accepted: false, reasonCode: 0x88, why: 'source-down' });
  });

  it('refuses when nobody listens, and says so once when it is over', async () => {
    const lines: MsgId[] = [];
    const options = http({ authReq: request('/auth') });
    await web.stop();
    const of = await control(options, {}, { log: (_level: string, id: MsgId) => lines.push(id) });
    expect(await login(of, 'u', 'p')).toBe('source-down');
    expect(await login(of, 'u', 'p')).toBe('source-down');
    expect(lines).toEqual(['AUTH-SOURCE-DOWN']);
    web = new Web();
    await web.start();
  });

  it('refuses when no answer comes in time', async () => {
    let free = (): void => {};
    web.hold = new Promise((resolve) => (free = resolve));
    const of = await control(http({ authReq: request('/auth'), timeoutMs: 50 }));
    expect(await login(of, 'u', 'p')).toBe('source-down');
    free();
  });

  it('refuses when what answers is no web server', async () => {
    const garbage = createTcpServer((socket) => socket.end('SSH-2.0-x\r\n'));
    await new Promise<void>((resolve) => garbage.listen(0, '127.0.0.1', resolve));
    const address = garbage.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const of = await control(http({ authReq: request('', { url: `http://127.0.0.1:${port}/` }) }));
    expect(await login(of, 'u', 'p')).toBe('source-down');
    garbage.close();
  });

  it('asks at most so many at once and lets the others wait', async () => {
    const of = await control(http({ authReq: request('/auth'), poolSize: 2 }));
    let free = (): void => {};
    web.hold = new Promise((resolve) => (free = resolve));
    const waiting = Array.from({ length: 20 }, (_, i) => login(of, `u${i}`, 'p'));
    await web.arrived(2);
    free();
    const answers = await Promise.all(waiting);
    expect(answers.every((answer) => answer === 'ok')).toBe(true);
    expect(web.most).toBe(2);
  });

  it('refuses at once when too many wait', async () => {
    let free = (): void => {};
    web.hold = new Promise((resolve) => (free = resolve));
    const of = await control(http({ authReq: request('/auth'), poolSize: 1 }));
    const answers = Array.from({ length: 70 }, (_, i) => login(of, `u${i}`, 'p'));
    expect(await answers[69]).toBe('source-busy');
    free();
    expect(await answers[0]).toBe('ok');
    await Promise.all(answers);
  });

  it('remembers answers for cache_ttl and only for the same fields', async () => {
    const of = await control(http({ authReq: request('/auth'), cacheTtlMs: 60_000 }));
    for (const [name, password] of [
      ['u', 'p'],
      ['u', 'p'],
      ['u', 'q'],
      ['v', 'p'],
    ] as const)
      await login(of, name, password);
    expect(web.seen).toHaveLength(3);
  });

  it('is asked only for users that nobody here knows', async () => {
    const of = await control(http({ authReq: request('/auth') }), {
      passwordFile: folder.put('pw', `${line7('ann', 'p')}\n`),
    });
    expect(await login(of, 'ann', 'p')).toBe('ok');
    expect(await login(of, 'ann', 'q')).toBe('bad-password');
    expect(web.seen).toHaveLength(0);
    expect(await login(of, 'bob', 'x')).toBe('ok');
    expect(web.seen).toHaveLength(1);
  });

  it('is not asked for empty passwords, and gets empty fields for a client without user name', async () => {
    const of = await control(http({ authReq: request('/auth') }));
    expect(await login(of, 'u', '')).toBe('no-password');
    expect(await login(of, 'u', null)).toBe('no-password');
    expect(web.seen).toHaveLength(0);
    web.status = 401;
    expect(await login(of, null, null)).toBe('http-refused');
    expect(web.seen[0].body).toBe('clientid=c&username=&password=');
  });

  it.each([
    ['a URL of another kind', { url: 'ftp://h/' }],
    ['no URL', { url: 'nonsense' }],
    ['a header that is none', { headers: [['a b', 'c']] as const }],
    ['a header value with a line feed', { headers: [['a', 'b\nc']] as const }],
  ])('refuses %s at start', async (_name, more) => {
    await expect(build({ http: http({ authReq: request('/', more) }) })).rejects.toThrow('auth.http_auth.auth_req');
  });
});

describe('http_auth.acl_req', () => {
  const rights = (more: Partial<HttpAuthOptions> = {}): HttpAuthOptions =>
    http({ aclReq: request('/acl', { params: ACL }), ...more });

  it('asks for each PUBLISH and SUBSCRIBE with topic and access', async () => {
    const { authorizer } = (await control(rights(), { allowAnonymous: true })).access('tcp');
    expect(await authorizer.publish(identity('u'), 'a&b', 0, false)).toBe(true);
    web.status = 403;
    expect(await authorizer.subscribe(identity('u'), 'a/#', 0)).toBe(false);
    expect(web.seen.map((seen) => Object.fromEntries(new URLSearchParams(seen.body)))).toEqual([
      { who: 'u/c@127.0.0.1', access: '2', topic: 'a&b' },
      { who: 'u/c@127.0.0.1', access: '1', topic: 'a/#' },
    ]);
    expect(authorizer.explain(identity('u'), 'subscribe', 'a/#')).toEqual({
      allowed: false,
      rule: 'auth.http_auth.acl_req',
    });
  });

  it('answers at once what it has just heard, so that who waited can go on', async () => {
    const { authorizer } = (await control(rights(), { allowAnonymous: true })).access('tcp');
    await authorizer.publish(identity('u'), 't', 0, false);
    expect(authorizer.publish(identity('u'), 't', 0, false)).toBe(true);
    expect(web.seen).toHaveLength(1);
  });

  it('asks once for what several wait for', async () => {
    const { authorizer } = (await control(rights(), { allowAnonymous: true })).access('tcp');
    await Promise.all([1, 2, 3].map(() => authorizer.publish(identity('u'), 't', 0, false)));
    expect(web.seen).toHaveLength(1);
  });

  it('is not asked about what another source denies', async () => {
    const acl = folder.put('acl', 'topic write ok\n');
    const { authorizer } = (await control(rights(), { allowAnonymous: true, aclFile: acl })).access('tcp');
    expect(authorizer.publish(identity(null), 'no', 0, false)).toBe(false);
    expect(web.seen).toHaveLength(0);
  });

  it('cannot say while the server is down, which is no denial, unless told to allow', async () => {
    web.status = 500;
    const strict = (await control(rights({ timeoutMs: 300 }), { allowAnonymous: true })).access('tcp').authorizer;
    await expect(strict.publish(identity('u'), 't', 0, false)).rejects.toMatchObject({ reasonCode: 0x89 });
    expect(web.seen.length).toBeGreaterThan(1);
    // It is asked again, and a denial is one again.
    web.status = 403;
    expect(await strict.publish(identity('u'), 't', 0, false)).toBe(false);
    web.status = 500;
    const lenient = (await control(rights({ rightsWhenDown: 'allow' }), { allowAnonymous: true })).access(
      'tcp',
    ).authorizer;
    expect(await lenient.publish(identity('u'), 't', 0, false)).toBe(true);
  });

  it('is not asked for superusers and clients inside the process', async () => {
    const of = await control(rights({ superReq: request('/super') }), {
      passwordFile: folder.put('pw', `${line7('ann', 'p')}\n`),
    });
    const { authenticator, authorizer } = of.access('tcp');
    const result = await authenticator.authenticate(credentials('ann', 'p'));
    if (!result.accepted) throw new Error(result.why);
    expect(authorizer.publish(result.identity, 't', 0, false)).toBe(true);
    expect(authorizer.publish(identity('bridge', { internal: true }), 't', 0, false)).toBe(true);
    expect(web.seen.map((seen) => seen.url)).toEqual(['/super']);
    web.status = 403;
    const plain = await authenticator.authenticate(credentials('ann', 'p'));
    if (!plain.accepted) throw new Error(plain.why);
    expect(await authorizer.publish(plain.identity, 't', 0, false)).toBe(false);
  });

  it('goes on with its answers over a reload that changes nothing about it', async () => {
    const options = rights();
    const of = await control(options, { allowAnonymous: true });
    const { authorizer } = of.access('tcp');
    await authorizer.publish(identity('u'), 't', 0, false);
    const reload = await of.reload({ ...OFF, allowAnonymous: true, http: options });
    expect(reload.ok).toBe(true);
    expect(authorizer.publish(identity('u'), 't', 0, false)).toBe(true);
    expect(web.seen).toHaveLength(1);
  });

  it('raises the version with time, so that verdicts kept elsewhere grow old', async () => {
    const { FakeClock } = await import('../harness/clock.ts');
    const clock = new FakeClock();
    const { authorizer } = (
      await control(rights({ cacheTtlMs: 4000 }), { allowAnonymous: true }, deps({ clock }))
    ).access('tcp');
    const before = authorizer.version;
    clock.advance(1999);
    expect(authorizer.version).toBe(before);
    clock.advance(2);
    expect(authorizer.version).toBeGreaterThan(before);
  });
});

describe('a kept connection that the server has closed', () => {
  /** Answers the first request on each connection and resets it at the second, as a server does whose idle time is over. */
  async function closing(): Promise<{ port: number; requests: () => number; stop: () => void }> {
    let requests = 0;
    const sockets = new Set<Socket>();
    const server = createTcpServer((socket) => {
      sockets.add(socket);
      let answered = false;
      socket.on('error', () => {});
      socket.on('data', () => {
        requests++;
        if (answered) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        answered = true;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const stop = (): void => {
      for (const socket of sockets) socket.destroy();
      server.close();
    };
    return { port, requests: () => requests, stop };
  }

  it('is replaced by a fresh one, once', async () => {
    const { port, requests, stop } = await closing();
    const of = await control(http({ authReq: { ...request('/auth'), url: `http://127.0.0.1:${port}/auth` } }));
    for (let i = 0; i < 6; i++) {
      expect(await login(of, `u${i}`, 'p')).toBe('ok');
      // The connection is kept once its answer has been read.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(requests()).toBeGreaterThan(6);
    stop();
  });
});
