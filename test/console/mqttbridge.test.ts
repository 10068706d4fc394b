// REST: bridges to remote brokers in NanoMQ's shapes.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask, type Reply } from './request.ts';
import { ConsoleStage } from './standins.ts';

const UP = { kind: 'mqtt', direction: null, name: 'up' } as const;
let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
  stage.bridges.put(UP, {
    server: 'mqtt-tcp://127.0.0.1:9',
    clientid: 'gw',
    keepalive: 60_000,
    username: 'bu',
    password: '***',
    forwards: [{ local_topic: 'out/#', remote_topic: 'r/out' }],
    subscription: [{ remote_topic: 'in/#', local_topic: '' }],
  });
  stage.bridges.put({ kind: 'nng', direction: 'pub', name: 'n' }, { pub_url: 'tcp://127.0.0.1:1' });
});
afterEach(() => stage.stop());

function call(method: string, where: string, body?: unknown): Promise<Reply> {
  return ask(stage.server.port, method, `/api/v4/bridges${where}`, { body });
}

describe('GET', () => {
  test('shows nodes with keepalive in seconds, without the NNG bridges', async () => {
    const { nodes } = (await call('GET', '')).json.data.bridge;
    expect(nodes).toHaveLength(1);
    expect(nodes[0]).toMatchObject({
      name: 'up',
      enable: true,
      connector: { server: 'mqtt-tcp://127.0.0.1:9', clientid: 'gw', keepalive: 60, username: 'bu', password: '***' },
      forwards: [{ local_topic: 'out/#', remote_topic: 'r/out' }],
      subscription: [{ remote_topic: 'in/#' }],
    });
  });

  test('an unknown name has no nodes', async () => {
    expect((await call('GET', '/nope')).json.data).toEqual({ bridge: { nodes: [] } });
  });
});

describe('PUT', () => {
  test('replaces the block', async () => {
    expect((await call('PUT', '/up', { up: { server: 'mqtt-tcp://127.0.0.1:8' } })).json).toEqual({ code: 0 });
    expect(stage.bridges.get(UP)?.config).toEqual({ enable: true, server: 'mqtt-tcp://127.0.0.1:8' });
  });

  test.each([
    ['{', 400, 109],
    [{}, 400, 108],
    [{ up: 5 }, 400, 108],
    [{ up: { colour: 7 } }, 400, 108],
    [[], 400, 108],
    [{ other: {} }, 400, 108],
    [{ up: {}, other: {} }, 400, 108],
  ])('%j is refused and changes nothing', async (body, status, code) => {
    const before = stage.bridges.get(UP);
    const reply = await call('PUT', '/up', body);
    expect([reply.status, reply.json.code]).toEqual([status, code]);
    expect(stage.bridges.get(UP)).toBe(before);
  });

  test('the pointer of a wrong key goes through the name', async () => {
    expect((await call('PUT', '/up', { up: { colour: 7 } })).json.pointer).toBe('/up/colour');
  });

  test('an unknown bridge is 404 with code 115', async () => {
    const reply = await call('PUT', '/nope', { nope: { server: 'x' } });
    expect([reply.status, reply.json.code]).toEqual([404, 115]);
  });

  test('a name of Object is not found in a body that lacks it', async () => {
    expect((await call('PUT', '/constructor', {})).json.code).toBe(108);
  });
});

describe('POST', () => {
  test('switch disables and enables', async () => {
    await call('POST', '/switch/up', { data: { bridge_switch: false } });
    expect(stage.bridges.get(UP)?.enabled).toBe(false);
    await call('POST', '/switch/up', { data: { bridge_switch: true } });
    expect(stage.bridges.get(UP)?.enabled).toBe(true);
  });

  test('switch without its value is refused', async () => {
    expect((await call('POST', '/switch/up', { data: {} })).json.code).toBe(108);
  });

  test('switch of an unknown bridge is 404', async () => {
    expect((await call('POST', '/switch/nope', { data: { bridge_switch: true } })).status).toBe(404);
  });

  test('sub adds, a rule of the same remote topic is replaced', async () => {
    const rule = { remote_topic: 'in/#', local_topic: 'x', qos: 2 };
    await call('POST', '/sub/up', { data: { subscription: [rule, { remote_topic: 'more' }] } });
    const { config } = stage.bridges.get(UP) ?? {};
    expect(config?.subscription).toEqual([rule, { remote_topic: 'more' }]);
    // The rest of the block goes back as the schema reads it: a bare number would be seconds.
    expect(config?.keepalive).toBe('60s');
  });
});

test('unsub removes the rules of the named topics', async () => {
  await call('POST', '/unsub/up', { data: { unsubscription: [{ topic: 'in/#' }] } });
  expect(stage.bridges.get(UP)?.config.subscription).toEqual([]);
});
