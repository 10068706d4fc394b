// REST: what the gateway tells about itself.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { uptimeText } from '../../src/console/text.ts';
import { ask } from './request.ts';
import { ConsoleStage, OPERATOR } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  const upstreams = [{ name: 'pool', servers: [] }];
  stage = await new ConsoleStage({
    proxy: { upstreams: () => upstreams },
    store: () => ({ enable: true, bytes: 5 }),
  }).start();
});
afterEach(() => stage.stop());

test("GET /brokers has NanoMQ's members", async () => {
  const [row] = (await ask(stage.server.port, 'GET', '/api/v4/brokers')).json.data;
  expect(row).toMatchObject({ node_status: 'Running', sysdescr: 'Tidegate', version: '1.2.3' });
  expect(row.datetime).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  expect(row.uptime).toMatch(/^\d+ Hours, \d+ minutes, \d+ seconds$/);
});

test("GET /nodes has NanoMQ's members", async () => {
  const [row] = (await ask(stage.server.port, 'GET', '/api/v4/nodes')).json.data;
  expect(row).toMatchObject({ connections: 0, node_status: 'Running', version: '1.2.3', ready: true });
});

test.each([
  [0, '0 Hours, 0 minutes, 0 seconds'],
  [59_999, '0 Hours, 0 minutes, 59 seconds'],
  [3_661_000, '1 Hours, 1 minutes, 1 seconds'],
  [360_000_000, '100 Hours, 0 minutes, 0 seconds'],
  [-5, '0 Hours, 0 minutes, 0 seconds'],
])('an uptime of %i ms reads %s', (ms, text) => {
  expect(uptimeText(ms)).toBe(text);
});

test('the index lists every call with path, name, method and text', async () => {
  const { data } = (await ask(stage.server.port, 'GET', '/api/v4')).json;
  expect(data).toContainEqual({ path: '/brokers', name: 'get_brokers', method: 'GET', descr: 'version and uptime' });
  expect(new Set(data.map(({ method, path }: { method: string; path: string }) => `${method} ${path}`)).size).toBe(
    data.length,
  );
});

test('GET /rules says that there is no rule engine: code 111', async () => {
  const reply = await ask(stage.server.port, 'GET', '/api/v4/rules');
  expect([reply.status, reply.json.code]).toEqual([200, 111]);
});

test('the store and the proxy are shown as they are', async () => {
  expect((await ask(stage.server.port, 'GET', '/api/v4/store')).json.data).toEqual({ enable: true, bytes: 5 });
  expect((await ask(stage.server.port, 'GET', '/api/v4/proxy/upstreams')).json.data).toEqual([
    { name: 'pool', servers: [] },
  ]);
});

test('explain tells which rule decides, with what is known of the client', async () => {
  stage.broker.addClient('c', { username: 'bob' });
  const no = (await ask(stage.server.port, 'GET', '/api/v4/access/explain?clientid=c&topic=no&action=subscribe')).json;
  const bob = { username: 'bob', address: '127.0.0.1', listener: 'tcp' };
  expect(no.data).toEqual({ allowed: false, rule: 'acl:3', connected: true, as: bob });
  const away = await ask(stage.server.port, 'GET', '/api/v4/access/explain?clientid=x&topic=t&username=eve');
  const eve = { username: 'eve', address: '', listener: '' };
  expect(away.json.data).toMatchObject({ connected: false, as: eve });
  expect((await ask(stage.server.port, 'GET', '/api/v4/access/explain?topic=t')).json.code).toBe(108);
  expect((await ask(stage.server.port, 'GET', '/api/v4/access/explain?clientid=c&topic=t&action=x')).status).toBe(400);
  const path = '/api/v4/access/explain?clientid=c&topic=t';
  expect((await ask(stage.server.port, 'GET', path, { user: OPERATOR })).status).toBe(403);
});

test('log lines are for admins and limited', async () => {
  for (let i = 0; i < 5; i++) {
    stage.logTail.lines.push({ time: i, level: 'info', msgid: 'GW-READY', text: 'ready', fields: {} });
  }
  const { data } = (await ask(stage.server.port, 'GET', '/api/v4/log?limit=2')).json;
  expect(data.map(({ time }: { time: number }) => time)).toEqual([3, 4]);
  expect((await ask(stage.server.port, 'GET', '/api/v4/log', { user: OPERATOR })).status).toBe(403);
});
