// The server as a peer on the wire meets it: limits, malformed requests, paths, headers, start and stop, TLS.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Ledger } from '../../src/base/ledger.ts';
import type { Page } from '../../src/console/console.ts';
import { Hold } from '../../src/mqtt/message.ts';
import { FakeClock } from '../harness/clock.ts';
import { ask, basic, raw } from './request.ts';
import { ADMIN, ConsoleStage } from './standins.ts';

const PAGE: Page = {
  body: Buffer.from('<p>hi'),
  contentType: 'text/html; charset=utf-8',
  etag: '"1"',
  immutable: false,
};
let stage: ConsoleStage;
beforeEach(async () => {
  const pages = new Map([['/', PAGE]]);
  stage = await new ConsoleStage({ pages: { page: (name) => pages.get(name) } }).start();
});
afterEach(() => stage.stop());

const HEAD = `POST /api/v4/mqtt/publish HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(ADMIN)}\r\n`;
function statusOf(text: string): number {
  return Number(text.split(' ')[1]);
}

describe('bodies', () => {
  test('a length above max_body is refused before the body is sent', async () => {
    expect(statusOf(await raw(stage.server.port, `${HEAD}Content-Length: 100000000\r\n\r\n{`, /"code":201/))).toBe(413);
  });

  test('a length above max_body with Expect: 100-continue is refused without 100', async () => {
    const text = `${HEAD}Content-Length: 100000000\r\nExpect: 100-continue\r\n\r\n`;
    expect(statusOf(await raw(stage.server.port, text, /"code":201/))).toBe(413);
  });

  test('a chunked body is refused when it passes max_body', async () => {
    const chunks = `1000\r\n${' '.repeat(4096)}\r\n`.repeat(4);
    const text = `${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
    expect(statusOf(await raw(stage.server.port, text, /"code":201/))).toBe(413);
  });

  test('a body just below max_body is taken', async () => {
    const body = { topic: 'big', payload: 'x'.repeat(8000) };
    expect((await ask(stage.server.port, 'POST', '/api/v4/mqtt/publish', { body })).status).toBe(200);
  });

  test('a large body is refused with 413 although all of it is sent', async () => {
    const body = { topic: 'big', payload: 'x'.repeat(3_000_000) };
    expect((await ask(stage.server.port, 'POST', '/api/v4/mqtt/publish', { body })).status).toBe(413);
  });

  test('bodies count as memory until they are answered; a large one is refused when there is none', async () => {
    const ledger = new Ledger();
    const sums: number[] = [];
    const counted = {
      add: ledger.add.bind(ledger),
      watch: ledger.watch.bind(ledger),
      isFull: ledger.isFull.bind(ledger),
    };
    counted.add = (kind, bytes) => {
      ledger.add(kind, bytes);
      sums.push(ledger.of(kind));
    };
    const full = await new ConsoleStage({ ledger: counted }).start();
    full.settings = { ...full.settings, maxBodyBytes: 1 << 20 };
    const publish = async (bytes: number): Promise<number> => {
      const body = { topic: 'big', payload: 'x'.repeat(bytes) };
      return (await ask(full.server.port, 'POST', '/api/v4/mqtt/publish', { body })).status;
    };
    try {
      expect(await publish(200_000)).toBe(200);
      expect(Math.max(...sums)).toBeGreaterThan(200_000);
      expect(ledger.of('http')).toBe(0);
      ledger.totalLimit = 1000;
      ledger.add('retained', 1000);
      expect([await publish(200_000), await publish(20_000)]).toEqual([503, 200]);
      expect(ledger.of('http')).toBe(0);
    } finally {
      await full.stop();
    }
  });

  test('a body of a caller without credentials is not read', async () => {
    const text = `${HEAD.replace(/Authorization.*\r\n/, '')}Content-Length: 1000\r\n\r\n{`;
    expect(statusOf(await raw(stage.server.port, text, /"code":104/))).toBe(401);
  });

  test.each([
    ['cut off', '{'],
    ['nothing', ''],
    ['an open list', '[1'],
    ['a word', 'nope'],
    ['more behind it', '{"topic": "a", "payload": "x"} trailing'],
    ['no UTF-8', Buffer.from([0xff, 0xfe])],
    ['nested a hundred deep', `${'['.repeat(100)}${']'.repeat(100)}`],
    ['nested four thousand deep', '['.repeat(4000)],
  ])('a body that is %s is not JSON: code 109', async (_what, body) => {
    const reply = await ask(stage.server.port, 'POST', '/api/v4/mqtt/publish', { body });
    expect([reply.status, reply.json.code]).toEqual([400, 109]);
  });
});

describe('heads', () => {
  test('headers above 16 KB are refused with 431', async () => {
    const text = `GET /api/v4/brokers HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(17_000)}\r\n\r\n`;
    expect(statusOf(await raw(stage.server.port, text))).toBe(431);
  });

  test.each([
    ['no HTTP at all', '\x16\x03\x01\r\n\r\n'],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['a Host that is none', 'GET /api/v4/brokers HTTP/1.1\r\nHost: a b@c\r\n\r\n'],
    ['two lengths', `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`],
    ['length and chunks', `${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['an absolute target', 'GET http://x/api/v4/brokers HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a target without slash', 'GET api HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a NUL', 'GET /\0/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('%s is a bad request', async (_what, text) => {
    expect(statusOf(await raw(stage.server.port, text, /\r\n\r\n/))).toBe(400);
  });

  test('after all of that the server still serves', async () => {
    await raw(stage.server.port, '\x16\x03\x01\r\n\r\n');
    expect((await ask(stage.server.port, 'GET', '/api/v4/brokers')).status).toBe(200);
  });
});

describe('paths', () => {
  test.each([
    ['/../../../../etc/passwd', 400],
    ['/..%2f..%2f..%2fetc%2fpasswd', 404],
    ['/%2e%2e/%2e%2e/etc/passwd', 400],
    ['/%252e%252e/etc/passwd', 404],
    ['/..\\..\\etc\\passwd', 400],
    ['//etc/passwd', 400],
    ['/assets/../../../../etc/passwd', 400],
    ['/api/v4/get_file?path=/etc/hostname', 404],
    ['/package.json', 404],
    ['/.git/config', 404],
    ['/%zz', 400],
    ['/%', 400],
    ['/a%2', 400],
    ['/%ff%fe', 400],
    ['/api/v4/clients/%zz', 400],
    ['/api/v4/clients?search=%zz', 400],
    ['/api/v5/brokers', 404],
    ['/api/v4/brokers/x/y', 404],
  ])('%s is answered with %i', async (where, status) => {
    const text = `GET ${where} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${basic(ADMIN)}\r\n\r\n`;
    expect(statusOf(await raw(stage.server.port, text))).toBe(status);
  });

  test.each([
    ['kick me/1', 'kick%20me%2F1'],
    ['50%', '50%25'],
    ['%41', '%2541'],
    ['a#b?c', 'a%23b%3Fc'],
    ['é', '%C3%A9'],
    ['..', '%2e%2e'],
  ])('the client id %s arrives as it is', async (id, escaped) => {
    stage.broker.addClient(id);
    const reply = await ask(stage.server.port, 'GET', `/api/v4/clients/${escaped}`);
    // Dots alone never stand for an id in a path, however they are written.
    if (id === '..') expect(reply.status).toBe(400);
    else expect(reply.json.data.map((row: { client_id: string }) => row.client_id)).toEqual([id]);
  });

  test('an unknown path below the API has code 102', async () => {
    expect((await ask(stage.server.port, 'GET', '/api/v4/nothing')).json.code).toBe(102);
  });

  test('a known path with another method is 405 and names the right one', async () => {
    const reply = await ask(stage.server.port, 'POST', '/api/v4/brokers', { body: {} });
    expect([reply.status, reply.json.code, reply.headers.allow]).toEqual([405, 102, 'GET']);
  });

  test('a slash at the end changes nothing', async () => {
    expect((await ask(stage.server.port, 'GET', '/api/v4/brokers/')).status).toBe(200);
  });
});

describe('answers', () => {
  test('every answer carries the security headers and is not kept by caches', async () => {
    for (const where of ['/api/v4/brokers', '/api/v4/nothing', '/metrics']) {
      const { headers } = await ask(stage.server.port, 'GET', where);
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'/);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['cache-control']).toBe('no-store');
    }
  });

  test('HEAD gives the head of GET without a body', async () => {
    const reply = await ask(stage.server.port, 'HEAD', '/api/v4/brokers');
    expect([reply.status, reply.text, Number(reply.headers['content-length']) > 50]).toEqual([200, '', true]);
  });

  test('a handler that throws is answered with 500 and nothing of the error', async () => {
    stage.broker.clients = () => {
      throw new Error('inner secret');
    };
    const reply = await ask(stage.server.port, 'GET', '/api/v4/clients');
    expect([reply.status, reply.json.code, reply.text.includes('inner secret')]).toEqual([500, 101, false]);
    expect(stage.logged.filter(({ id }) => id === 'WEB-FAILED')).toHaveLength(1);
  });

  test('a request above the limit of those at once gets 503', async () => {
    stage.settings = { ...stage.settings, maxRequests: 1 };
    const hold = new Hold();
    hold.add();
    stage.broker.hold = hold;
    const published = new Promise<void>((resolve) => {
      stage.broker.onPublish = resolve;
    });
    const body = { topic: 't', payload: 'x', qos: 1 };
    const first = ask(stage.server.port, 'POST', '/api/v4/mqtt/publish', { body });
    await published;
    const reply = await ask(stage.server.port, 'GET', '/api/v4/brokers');
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1']);
    hold.done();
    expect((await first).status).toBe(200);
    expect((await ask(stage.server.port, 'GET', '/api/v4/brokers')).status).toBe(200);
  });

  test('a change is noted with who, what and the outcome, and never its body', async () => {
    const body = { topic: 'a', payload: 'Payload-Secret' };
    await ask(stage.server.port, 'POST', '/api/v4/mqtt/publish', { body });
    const note = stage.logged.find(({ id }) => id === 'WEB-CHANGE');
    expect(note?.fields).toMatchObject({ user: 'admin', method: 'POST', path: '/api/v4/mqtt/publish', status: 200 });
    expect(JSON.stringify(stage.logged)).not.toContain('Payload-Secret');
    const reply = await ask(stage.server.port, 'GET', '/api/v4/audit');
    expect(reply.json.data[0]).toMatchObject({ user: 'admin', path: '/api/v4/mqtt/publish', remote: '127.0.0.1' });
  });

  test('a change that takes an admin is logged at warn and stays in the list whatever scripts publish', async () => {
    await ask(stage.server.port, 'POST', '/api/v4/config', { body: { values: { 'mqtt.max_qos': 1 } } });
    expect(stage.logged.find(({ id }) => id === 'WEB-CHANGE')?.level).toBe('warn');
    const body = Array.from({ length: 4 }, () => ({ topic: 'a', payload: 'x' }));
    for (let i = 0; i < 510; i++) await ask(stage.server.port, 'POST', '/api/v4/mqtt/publish_batch', { body });
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/audit')).json;
    expect(data).toHaveLength(501);
    expect(data.at(-1)).toMatchObject({ user: 'admin', path: '/api/v4/config', status: 200 });
  });

  test('a login is in the list of changes, without a password', async () => {
    const body = { username: ADMIN.username, password: ADMIN.password };
    await ask(stage.server.port, 'POST', '/api/v4/login', { user: null, body });
    const { json, text } = await ask(stage.server.port, 'GET', '/api/v4/audit');
    expect(json.data[0]).toMatchObject({ user: 'admin', path: '/api/v4/login', status: 200 });
    expect(text).not.toContain(ADMIN.password);
  });
});

describe('pages', () => {
  test('a page is served without credentials, with its type and tag', async () => {
    const reply = await ask(stage.server.port, 'GET', '/', { user: null });
    expect([reply.status, reply.text, reply.headers['content-type'], reply.headers.etag]).toEqual([
      200,
      '<p>hi',
      'text/html; charset=utf-8',
      '"1"',
    ]);
  });

  test('a page that the browser has already is not sent again', async () => {
    const headers = { 'if-none-match': '"1"' };
    const reply = await ask(stage.server.port, 'GET', '/', { user: null, headers });
    expect([reply.status, reply.text]).toEqual([304, '']);
  });

  test('what is no page wants credentials', async () => {
    expect((await ask(stage.server.port, 'GET', '/nothing', { user: null })).status).toBe(401);
  });
});

describe('health', () => {
  test('healthz answers without credentials', async () => {
    expect((await ask(stage.server.port, 'GET', '/healthz', { user: null })).status).toBe(200);
  });

  test('readyz tells when the gateway is not ready', async () => {
    stage.ready = false;
    expect((await ask(stage.server.port, 'GET', '/readyz', { user: null })).status).toBe(503);
    stage.ready = true;
    expect((await ask(stage.server.port, 'GET', '/readyz', { user: null })).status).toBe(200);
  });

  test('readyz tells when a bridge that is on is not up, unless bridges are left out', async () => {
    const ref = { kind: 'nng', direction: 'pub', name: 'secret-name' } as const;
    stage.bridges.put(ref, { enable: true }, { state: 'retrying' });
    const { status, json, text } = await ask(stage.server.port, 'GET', '/readyz', { user: null });
    expect([status, json.bridges, json.store, json.listeners]).toEqual([503, 'down', 'ok', 'ok']);
    expect(text).not.toContain('secret-name');
    expect((await ask(stage.server.port, 'GET', '/readyz?bridges=false', { user: null })).status).toBe(200);
    stage.bridges.put(ref, { enable: false });
    expect((await ask(stage.server.port, 'GET', '/readyz', { user: null })).status).toBe(200);
  });

  test('readyz tells when the store takes nothing', async () => {
    stage.metrics.cell({ name: 'tidegate_store_ok', text: 'x', type: 'gauge', unit: 'none' }).value = 0;
    const { status, json } = await ask(stage.server.port, 'GET', '/readyz', { user: null });
    expect([status, json.status, json.store]).toEqual([503, 'unavailable', 'down']);
  });
});

describe('start and stop', () => {
  test('a busy port is an error that names it', async () => {
    const other = new ConsoleStage();
    other.settings = { ...other.settings, port: stage.server.port };
    await expect(other.server.start()).rejects.toMatchObject({
      code: 'TRANSPORT-BIND',
      message: expect.stringContaining(`127.0.0.1:${stage.server.port}`),
    });
  });

  test('stop ends idle connections and event streams at once', async () => {
    const idle = connect(stage.server.port, '127.0.0.1');
    await new Promise((resolve) => idle.once('connect', resolve));
    const streamed = raw(
      stage.server.port,
      `GET /api/v4/events HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(ADMIN)}\r\n\r\n`,
    );
    idle.on('error', () => {});
    const closed = new Promise((resolve) => idle.once('close', resolve));
    await ask(stage.server.port, 'GET', '/healthz');
    await stage.server.stop(1000);
    await closed;
    expect(statusOf(await streamed)).toBe(200);
  });

  test('stop twice is harmless', async () => {
    await stage.server.stop(1000);
    await stage.server.stop(1000);
  });
});

describe('TLS', () => {
  interface Files {
    readonly keyfile: string;
    readonly certfile: string;
  }
  function makeCertificate(): Files {
    const dir = mkdtempSync(path.join(tmpdir(), 'web-'));
    const [keyfile, certfile] = [path.join(dir, 'key.pem'), path.join(dir, 'cert.pem')];
    const words =
      `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext`.split(' ');
    execFileSync('openssl', [...words, 'subjectAltName=DNS:localhost', '-keyout', keyfile, '-out', certfile], {
      stdio: 'ignore',
    });
    return { keyfile, certfile };
  }

  async function startSecure(files: Files, cacertfile: string | null): Promise<ConsoleStage> {
    const secure = new ConsoleStage();
    const verifyPeer = cacertfile !== null;
    const rest = { crlfile: null, keyPassword: null, failIfNoPeerCert: false, alpn: [] };
    secure.settings = { ...secure.settings, tls: { ...files, cacertfile, verifyPeer, ...rest } };
    return secure.start();
  }

  /** Logs in over TLS and gives the cookie. */
  function login(port: number, server: Files, client: Files | null): Promise<string> {
    const shown = client === null ? {} : { key: readFileSync(client.keyfile), cert: readFileSync(client.certfile) };
    const where = {
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      path: '/api/v4/login',
      method: 'POST',
      agent: false,
    };
    return new Promise((resolve, reject) => {
      const sent = request({ ...where, ...shown, ca: readFileSync(server.certfile) }, (response) =>
        resolve(response.resume().headers['set-cookie']?.[0] ?? ''),
      );
      sent.on('error', reject);
      sent.end(JSON.stringify({ username: ADMIN.username, password: ADMIN.password }));
    });
  }

  test('the server speaks TLS and its cookie is Secure, also after its files were read again', async () => {
    const files = makeCertificate();
    const secure = await startSecure(files, null);
    await secure.server.reload();
    const cookie = await login(secure.server.port, files, null);
    await secure.stop();
    expect(cookie).toMatch(/; Secure$/);
  });

  test('with verify_peer a bad client certificate is refused, a good one and none are not', async () => {
    const files = makeCertificate();
    const good = makeCertificate();
    const secure = await startSecure(files, good.certfile);
    expect(await login(secure.server.port, files, null)).toMatch(/Secure/);
    expect(await login(secure.server.port, files, good)).toMatch(/Secure/);
    await expect(login(secure.server.port, files, makeCertificate())).rejects.toThrow();
    await secure.stop();
  });

  test('a certificate that cannot be read is an error that names http_server', async () => {
    const other = new ConsoleStage();
    const tls = {
      keyfile: '/nonexistent/key.pem',
      certfile: '/nonexistent/cert.pem',
      cacertfile: null,
      crlfile: null,
      keyPassword: null,
      verifyPeer: false,
      failIfNoPeerCert: false,
      alpn: [],
    };
    other.settings = { ...other.settings, tls };
    await expect(other.server.start()).rejects.toMatchObject({
      code: 'TRANSPORT-TLS',
      message: expect.stringContaining('http_server'),
    });
  });
});

describe('rooms', () => {
  /** A login that begins and sends its body no further. */
  function slowLogin(): Promise<Socket> {
    return new Promise((resolve) => {
      const socket = connect(stage.server.port, '127.0.0.1', () => {
        socket.write('POST /api/v4/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
        resolve(socket);
      });
      socket.on('error', () => {});
      // The answer is not looked at.
      socket.resume();
    });
  }

  test('slow bodies at the login leave console, health and metrics alone', async () => {
    const slow = await Promise.all(Array.from({ length: 40 }, slowLogin));
    for (const where of ['/healthz', '/metrics', '/api/v4/clients']) {
      expect([where, (await ask(stage.server.port, 'GET', where)).status]).toEqual([where, 200]);
    }
    for (const socket of slow) socket.destroy();
  });

  test('health and metrics are answered while every other place is taken', async () => {
    stage.settings = { ...stage.settings, maxRequests: 1 };
    const hold = await new Promise<Socket>((resolve) => {
      const socket = connect(stage.server.port, '127.0.0.1', () => {
        socket.write(`${HEAD}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`);
        socket.once('data', () => resolve(socket));
      });
    });
    expect((await ask(stage.server.port, 'GET', '/api/v4/clients')).status).toBe(503);
    for (const where of ['/healthz', '/metrics']) expect((await ask(stage.server.port, 'GET', where)).status).toBe(200);
    hold.destroy();
  });

  test('connections that only hold their place make room for new ones', async () => {
    const idle = await Promise.all(
      Array.from(
        { length: 600 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = connect(stage.server.port, '127.0.0.1', () => resolve(socket));
            socket.on('error', () => {});
          }),
      ),
    );
    expect((await ask(stage.server.port, 'GET', '/healthz')).status).toBe(200);
    for (const socket of idle) socket.destroy();
  });
});

test('the body of a login has five seconds', async () => {
  const clock = new FakeClock();
  const timed = await new ConsoleStage({ clock }).start();
  const before = clock.waiting;
  const answer = raw(
    timed.server.port,
    'POST /api/v4/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
    /"code":208/,
  );
  // One timer more: the body is waited for.
  while (clock.waiting === before) await new Promise((resolve) => setImmediate(resolve));
  clock.advance(5001);
  expect(statusOf(await answer)).toBe(408);
  await timed.stop();
});
