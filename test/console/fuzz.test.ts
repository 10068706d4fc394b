// Whatever comes from outside: the parts that read it never throw, and a server never lets in or breaks.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { printable } from '../../src/cli/ctl/table.ts';
import { parseJson } from '../../src/console/body.ts';
import { ownerOf } from '../../src/console/limiter.ts';
import { readQuery, readTarget } from '../../src/console/target.ts';
import { fromBase64 } from '../../src/console/text.ts';
import { ask, raw } from './request.ts';
import { ConsoleStage } from './standins.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  stage = await new ConsoleStage().start();
});
afterAll(() => stage.stop());

test('a target is read or refused, and what is read holds no dot segment', () => {
  const piece = fc.constantFrom('/', '.', '..', '%2e', '%2F', '%', '%zz', '\\', '\0', 'a', '?', '%ff', 'é', ';', '#');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const target = readTarget(pieces.join(''));
      if (target === null) return;
      expect(target.path.startsWith('/')).toBe(true);
      expect(decodeURIComponent(target.path).split('/')).toEqual(target.decoded.split('/'));
      for (const segment of target.path.split('/')) expect(['.', '..']).not.toContain(decodeURIComponent(segment));
    }),
  );
});

test('queries, addresses, base64 and JSON never throw', () => {
  const known = new Set(['a']);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.uint8Array(), (text, bytes) => {
      readQuery(text, known);
      ownerOf(text);
      fromBase64(text);
      parseJson(bytes);
    }),
  );
});

test('every JSON document of moderate depth is parsed as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 10 }), (text) => {
      expect(parseJson(Buffer.from(text))).toEqual({ value: JSON.parse(text) });
    }),
  );
});

test('nothing printable changes a terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      expect(printable(text)).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
    }),
  );
});

test('no Authorization or Cookie made up by chance is let in, and none breaks the server', async () => {
  const text = fc.string({ unit: fc.constantFrom(...'Basic Bearer=;:,"%/+AZaz09.-_\t'), maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(text, text, async (authorization, cookie) => {
      const headers = { authorization: authorization.trim(), cookie: `tidegate_session=${cookie}` };
      const reply = await ask(stage.server.port, 'GET', '/api/v4/brokers', { user: null, headers });
      expect([401, 429]).toContain(reply.status);
    }),
    { numRuns: 60 },
  );
});

test('no bytes on the port break the server', async () => {
  const line = fc.constantFrom(
    'GET / HTTP/1.1',
    'POST /api/v4/login HTTP/1.1',
    'Host: x',
    'Content-Length: 5',
    'Content-Length: -1',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: x',
    'Expect: 100-continue',
    'Upgrade: websocket',
    'Connection: upgrade',
    '',
    'zz',
    '0',
    '\0',
    'é',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 8 }), async (lines) => {
      await raw(stage.server.port, `${lines.join('\r\n')}\r\n\r\nGARBAGE\r\n\r\n`, /HTTP\/1\.1 \d+/, true);
      expect((await ask(stage.server.port, 'GET', '/healthz', { user: null })).status).toBe(200);
    }),
    { numRuns: 60 },
  );
});
