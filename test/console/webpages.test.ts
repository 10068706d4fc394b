// Pages as the server gives them: packed for whoever takes it, and a clear word where they are not built.

import { request } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import type { Page } from '../../src/console/console.ts';
import { ask } from './request.ts';
import { ConsoleStage } from './standins.ts';

let stage: ConsoleStage;
afterEach(() => stage.stop());

const body = Buffer.from('<!doctype html>'.repeat(50));
const PAGE: Page = { body, contentType: 'text/html', etag: '"1"', immutable: false, gzip: gzipSync(body) };

/** The head and the bytes of the body as they came. */
function fetchBytes(accepts: string | null): Promise<{ encoding: string | undefined; vary: unknown; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = accepts === null ? {} : { 'accept-encoding': accepts };
    const sent = request(
      { host: '127.0.0.1', port: stage.server.port, path: '/', headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => {
          const { 'content-encoding': encoding, vary } = response.headers;
          resolve({ encoding, vary, bytes: Buffer.concat(chunks) });
        });
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

test.each([
  ['gzip', true],
  ['br, GZIP;q=0.5', true],
  ['gzip;q=0', false],
  ['identity', false],
  [null, false],
])('a page for Accept-Encoding %s is packed: %s', async (accepts, packed) => {
  stage = await new ConsoleStage({ pages: { page: (path) => (path === '/' ? PAGE : undefined) } }).start();
  const { encoding, vary, bytes } = await fetchBytes(accepts);
  expect([encoding, vary]).toEqual([packed ? 'gzip' : undefined, 'accept-encoding']);
  expect(packed ? gunzipSync(bytes) : bytes).toEqual(body);
});

test('without built pages / says so, and everything else is as unknown as ever', async () => {
  stage = await new ConsoleStage({ pages: null }).start();
  const reply = await ask(stage.server.port, 'GET', '/', { user: null });
  expect([reply.status, reply.headers['content-type']]).toEqual([404, 'text/plain; charset=utf-8']);
  expect(reply.text).toContain('make build');
  expect((await ask(stage.server.port, 'GET', '/assets/x.js', { user: null })).status).toBe(401);
});
