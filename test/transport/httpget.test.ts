// One GET: its answer, its bounds in bytes and time, and what it does not do.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { httpGet } from '../../src/transport/httpget.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const options = (fields: object = {}) => ({
  headers: {},
  timeoutMs: 2000,
  maxBytes: 1000,
  tls: null,
  signal: new AbortController().signal,
  ...fields,
});

it('gives status, headers in lower case and body', async () => {
  const url = await serve((request, response) => {
    response.writeHead(203, { ETag: '"x"' }).end(`${request.url} ${request.headers['x-a']}`);
  });
  const answer = await httpGet(`${url}/p?q=1`, options({ headers: { 'x-a': 'b' } }));
  expect([answer.status, answer.headers.etag, answer.body.toString()]).toEqual([203, '"x"', '/p?q=1 b']);
});

it('does not follow a redirect', async () => {
  const url = await serve((_, response) => response.writeHead(302, { location: 'http://192.0.2.1/' }).end());
  expect((await httpGet(url, options())).status).toBe(302);
});

it('refuses an answer that is too long, before all of it has come', async () => {
  const url = await serve((_, response) => {
    response.write('x'.repeat(2000));
  });
  await expect(httpGet(url, options())).rejects.toThrow('more than 1000 bytes');
});

it('ends a server that is too slow, whether before its answer or within', async () => {
  const silent = await serve(() => {});
  await expect(httpGet(silent, options({ timeoutMs: 50 }))).rejects.toThrow('no answer within 50 ms');
  const slow = await serve((_, response) => {
    response.write('x');
  });
  await expect(httpGet(slow, options({ timeoutMs: 50 }))).rejects.toThrow('no answer within 50 ms');
});

it('says why a server cannot be reached', async () => {
  const url = await serve(() => {});
  open.splice(0).map((server) => server.close());
  await expect(httpGet(url, options())).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
});
