// ?keep=true: who may keep, what is passed on, and what is said where nothing can be kept.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from './request.ts';
import { ConsoleStage, OPERATOR } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
  stage.bridges.put({ kind: 'nng', direction: 'pub', name: 'b' }, { pub_url: 'inproc://b' });
  stage.bridges.put({ kind: 'mqtt', direction: null, name: 'm' }, { server: 'mqtt-tcp://h:1' });
});
afterEach(() => stage.stop());

test('an operator switches a bridge and cannot keep it so', async () => {
  const operator = { user: OPERATOR };
  const { port } = stage.server;
  expect((await ask(port, 'POST', '/api/v4/nng/bridges/b/disable', operator)).status).toBe(200);
  const refused = await ask(port, 'POST', '/api/v4/nng/bridges/b/enable?keep=true', operator);
  expect([refused.status, refused.json]).toEqual([403, expect.objectContaining({ code: 105 })]);
  const body = { data: { bridge_switch: false } };
  expect((await ask(port, 'POST', '/api/v4/bridges/switch/m?keep=true', { ...operator, body })).status).toBe(403);
  expect(stage.bridges.kept).toEqual([]);
  expect(stage.bridges.get({ kind: 'nng', direction: 'pub', name: 'b' })?.enabled).toBe(false);
});

test('an admin keeps changes of every kind', async () => {
  const { port } = stage.server;
  const block = { pub_url: 'inproc://n' };
  const calls = [
    ['POST', '/nng/bridges', { type: 'pub', name: 'n', ...block }],
    ['PUT', '/nng/bridges/n', block],
    ['POST', '/nng/bridges/n/disable', undefined],
    ['DELETE', '/nng/bridges/n', undefined],
    ['PUT', '/bridges/m', { m: { server: 'mqtt-tcp://h:2' } }],
    ['POST', '/bridges/switch/m', { data: { bridge_switch: false } }],
    ['POST', '/bridges/sub/m', { data: { subscription: [{ remote_topic: 'a' }] } }],
    ['POST', '/bridges/unsub/m', { data: { unsubscription: [{ remote_topic: 'a' }] } }],
  ] as const;
  for (const [method, path, body] of calls) {
    expect((await ask(port, method, `/api/v4${path}?keep=true`, { body })).status, path).toBeLessThan(300);
  }
  expect(stage.bridges.kept).toEqual(['n', 'n', 'n', 'n', 'm', 'm', 'm', 'm']);
});

test('keep takes true and false only', async () => {
  const reply = await ask(stage.server.port, 'DELETE', '/api/v4/nng/bridges/b?keep=yes');
  expect([reply.status, reply.json]).toEqual([400, expect.objectContaining({ code: 108 })]);
  expect(stage.bridges.get({ kind: 'nng', direction: 'pub', name: 'b' })).toBeDefined();
});

test('a disk that does not take it is 503, not a mistake of the caller', async () => {
  stage.config.result = { ok: false, why: 'unavailable', message: 'it cannot be kept: no space' };
  const body = { values: { 'mqtt.max_qos': 1 } };
  const reply = await ask(stage.server.port, 'POST', '/api/v4/config?keep=true', { body });
  expect([reply.status, reply.json]).toEqual([503, expect.objectContaining({ code: 101 })]);
});

test('where nothing can be kept the file is null', async () => {
  const reply = await ask(stage.server.port, 'GET', '/api/v4/config/kept');
  expect(reply.json).toEqual({ code: 0, data: { file: null } });
});
