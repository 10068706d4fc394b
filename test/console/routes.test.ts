// The list of routes as a whole: the description, the guide and the server agree with it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CODES } from '../../src/console/answer.ts';
import { ask } from './request.ts';
import { ConsoleStage, NO_RULES } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage({ rules: NO_RULES }).start();
});
afterEach(() => stage.stop());

const GUIDE = readFileSync(path.join(import.meta.dirname, '../../docs/rest-api.md'), 'utf8');

function served(): string[] {
  return stage.server.routes.map(({ method, path }) => `${method} ${path}`).sort();
}

test('the description has every route and no other', async () => {
  const { json } = await ask(stage.server.port, 'GET', '/openapi.json');
  const described = Object.entries<object>(json.paths).flatMap(([where, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${where}`),
  );
  expect(described.sort()).toEqual(served());
  expect(json.openapi).toMatch(/^3\./);
  expect(json.info).toMatchObject({ title: expect.any(String), version: '1.2.3' });
});

test('the description names each operation once and every path parameter', async () => {
  const { json } = await ask(stage.server.port, 'GET', '/openapi.json');
  const operations = Object.entries<
    Record<string, { operationId: string; parameters: { name: string; in: string }[] }>
  >(json.paths).flatMap(([where, byMethod]) => Object.values(byMethod).map((operation) => ({ where, operation })));
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
  for (const { where, operation } of operations) {
    const named = operation.parameters.filter((p) => p.in === 'path').map((p) => `{${p.name}}`);
    expect(named, where).toEqual(where.match(/\{[^}]+\}/g) ?? []);
  }
});

test('the guide lists every route and no other', () => {
  const listed = [...GUIDE.matchAll(/^\| (GET|POST|PUT|DELETE) \| `([^`?]+)/gm)].map(
    ([, method, where]) => `${method} ${where}`,
  );
  expect(listed.sort()).toEqual(served());
});

test('the guide names the role of every route', () => {
  for (const { method, path: where, role } of stage.server.routes) {
    const line = GUIDE.split('\n').find((text) => text.startsWith(`| ${method} | \`${where}\``));
    expect(line?.split('|')[3].trim(), `${method} ${where}`).toBe(role);
  }
});

test('the guide lists every code with its status', () => {
  const listed = [...GUIDE.matchAll(/^\| (\d{3}) \| (\d{3}) \|/gm)].map(([, code, status]) => `${code} ${status}`);
  const known = Object.values(CODES).map(({ code, status }) => `${code} ${status}`);
  expect([...new Set(listed)].sort()).toEqual([...new Set(known)].sort());
});

test('every route that is not public refuses a caller without credentials', async () => {
  for (const { method, path: where, role } of stage.server.routes) {
    if (role === 'public') continue;
    const reply = await ask(stage.server.port, method, where.replaceAll(/\{[^}]+\}/g, 'x'), { user: null });
    expect([where, reply.status]).toEqual([where, 401]);
  }
});

test('every route answers an odd body or query without an internal error', async () => {
  for (const { method, path: where } of stage.server.routes) {
    if (where.endsWith('/events')) continue;
    const at = where.replaceAll(/\{[^}]+\}/g, '%F0%9F%92%A9');
    for (const body of method === 'GET'
      ? [undefined]
      : ['{', 'null', '[]', '{"data":null}', '{"type":{"a":[1]}}', '""']) {
      const reply = await ask(stage.server.port, method, at, { body });
      expect(reply.status, `${method} ${where} ${body}`).toBeLessThan(500);
    }
    expect((await ask(stage.server.port, method, `${at}?__proto__=1`)).status, where).toBe(400);
  }
});
