// Keys of the configuration through REST: listing, checking, setting; who may come in; draining; the order of clients; bridge events.
import { afterEach, describe, expect, test } from 'vitest';
import type { ConfigControl, ConsoleOptions, ProxyControl } from '../../src/console/console.ts';
import { FakeClock } from '../harness/clock.ts';
import { ask, basic } from './request.ts';
import { ADMIN, ConfigStandIn, ConsoleStage, OPERATOR, VIEWER } from './standins.ts';

let stage: ConsoleStage;
afterEach(() => stage.stop());

async function started(more: Partial<ConsoleOptions> = {}): Promise<number> {
  stage = new ConsoleStage(more);
  await stage.start();
  return stage.server.port;
}

const KEY = {
  key: 'mqtt.max_qos',
  type: 'whole number',
  text: 'x',
  default: 2,
  unit: null,
  restart: false,
  secret: false,
};

/** The configuration stand-in with the calls that may be absent. */
function config(more: Partial<ConfigControl>): ConfigControl {
  const plain = new ConfigStandIn();
  return {
    current: () => plain.current(),
    view: () => plain.view(),
    reload: () => plain.reload(),
    set: (values) => plain.set(values),
    ...more,
  };
}

describe('keys', () => {
  test('are listed with text and default', async () => {
    const port = await started({ config: config({ keys: () => [KEY] }) });
    expect((await ask(port, 'GET', '/api/v4/config/keys', { user: VIEWER })).json).toEqual({ code: 0, data: [KEY] });
  });

  test('are set all together', async () => {
    const port = await started();
    const values = { 'mqtt.max_qos': 1, 'log.level': 'debug', 'mqtt.queue_qos0': true };
    expect((await ask(port, 'POST', '/api/v4/config', { body: { values } })).json).toEqual({ code: 0 });
    expect(stage.config.sets.map((set) => Object.fromEntries(set))).toEqual([values]);
  });

  test('that are only checked are not set', async () => {
    const problems = [{ pointer: '', message: 'mqtt.max_qos: 9 is too large' }];
    const sets: unknown[] = [];
    const control = config({
      check: () => ({ ok: false, why: 'invalid', problems }),
      set: async (values) => {
        sets.push(values);
        return { ok: true };
      },
    });
    const port = await started({ config: control });
    const body = { values: { 'mqtt.max_qos': 9 }, check: true };
    expect((await ask(port, 'POST', '/api/v4/config', { body })).json).toMatchObject({ code: 108, problems });
    expect(sets).toEqual([]);
  });

  test.each([
    [{}, '/values'],
    [{ values: {} }, '/values'],
    [{ values: { 'a=b': 1 } }, '/values/a=b'],
    [{ values: { __proto__x: [] } }, '/values/__proto__x'],
    [{ values: { a: { b: 1 } } }, '/values/a'],
    [{ values: { a: 'x'.repeat(8193) } }, '/values/a'],
    [{ values: { a: 1 }, check: 1 }, '/check'],
  ])('of a wrong form are refused with a pointer: %j', async (body, pointer) => {
    const port = await started({});
    stage.settings = { ...stage.settings, maxBodyBytes: 65_536 };
    expect((await ask(port, 'POST', '/api/v4/config', { body })).json).toMatchObject({ code: 108, pointer });
    expect(stage.config.sets).toEqual([]);
  });

  test('are set by admins only', async () => {
    const port = await started();
    const body = { values: { a: 1 } };
    expect((await ask(port, 'POST', '/api/v4/config', { user: OPERATOR, body })).status).toBe(403);
  });
});

describe('who may come in', () => {
  const view = {
    listener: '',
    anonymous: false,
    users: ['a', 'b'],
    sources: ['http'],
    aclFile: 'acl.conf',
    rules: true,
  };

  test('is told to admins', async () => {
    const port = await started({ security: () => [view] });
    expect((await ask(port, 'GET', '/api/v4/access')).json.data).toEqual([
      {
        ...{ listener: '', anonymous: false, users: ['a', 'b'], users_count: 2, sources: ['http'] },
        ...{ acl_file: 'acl.conf', rules: true },
      },
    ]);
    expect((await ask(port, 'GET', '/api/v4/access', { user: OPERATOR })).status).toBe(403);
  });
});

describe('draining', () => {
  const AT = '/api/v4/proxy/upstreams/pool/drain';
  const drained: unknown[] = [];
  const proxy: ProxyControl = {
    upstreams: () => [],
    drain: (upstream, server, on) => {
      drained.push([upstream, server, on]);
      return server === 'known:1' ? { ok: true } : { ok: false, why: 'missing' };
    },
  };

  test('names the server of a pool', async () => {
    const port = await started({ proxy });
    const body = { server: 'known:1', drain: true };
    expect((await ask(port, 'POST', AT, { user: OPERATOR, body })).json).toEqual({ code: 0 });
    expect(drained).toEqual([['pool', 'known:1', true]]);
    const other = { server: 'other:1', drain: false };
    expect((await ask(port, 'POST', AT, { user: OPERATOR, body: other })).json).toMatchObject({ code: 206 });
  });

  test('without a proxy finds nothing, with a wrong body says what', async () => {
    const port = await started();
    expect((await ask(port, 'POST', AT, { body: { server: 'a', drain: true } })).json).toMatchObject({ code: 206 });
    expect((await ask(port, 'POST', AT, { body: { server: 'a' } })).json).toMatchObject({ pointer: '/drain' });
    expect((await ask(port, 'POST', AT, { body: { drain: true } })).json).toMatchObject({ pointer: '/server' });
  });
});

describe('clients in an order', () => {
  async function ids(port: number, query: string): Promise<string[]> {
    const { json } = await ask(port, 'GET', `/api/v4/clients${query}`);
    return json.data.map((row: { client_id: string }) => row.client_id);
  }

  test('come sorted by a number from the highest, page by page', async () => {
    const port = await started();
    for (const [id, queued] of [
      ['a', 1],
      ['b', 9],
      ['c', 5],
      ['d', 5],
    ] as const) {
      stage.broker.addClient(id, { queued });
    }
    expect(await ids(port, '?sort=-queued')).toEqual(['b', 'c', 'd', 'a']);
    expect(await ids(port, '?sort=queued')).toEqual(['a', 'c', 'd', 'b']);
    expect(await ids(port, '?sort=-client_id&limit=2&page=2')).toEqual(['b', 'a']);
  });

  test('that there is not are refused', async () => {
    const port = await started();
    expect((await ask(port, 'GET', '/api/v4/clients?sort=password')).json).toMatchObject({ code: 108 });
  });
});

test('bridges are told with their counters, and a change of state by itself', async () => {
  const clock = new FakeClock();
  const port = await started({ clock });
  const ref = { kind: 'nng', direction: 'pub', name: 'out' } as const;
  stage.bridges.put(ref, {}, { status: { rules: [{ index: 0, forwarded: 3 }] } });
  const { request } = await import('node:http');
  let told = '';
  let wake = (): void => {};
  const headers = { authorization: basic(ADMIN) };
  const sent = request({ host: '127.0.0.1', port, path: '/api/v4/events?kinds=bridge,bridges', headers, agent: false });
  sent.on('response', (response) => {
    response.setEncoding('utf8');
    response.on('error', () => {});
    response.on('data', (piece: string) => {
      told += piece;
      wake();
    });
  });
  sent.on('error', () => {});
  sent.end();
  const until = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(told)) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  await until(/retry/);
  clock.advance(2000);
  await until(/event: bridges\ndata: .*"forwarded":3.*\n\n/);
  expect(told).not.toMatch(/event: bridge\n/);
  stage.bridges.put(ref, {}, { state: 'connected' });
  clock.advance(2000);
  await until(/event: bridge\ndata: .*"state":"connected","before":"listening".*\n\n/);
  stage.bridges.views.clear();
  clock.advance(2000);
  await until(/event: bridge\ndata: .*"state":"removed"/);
  sent.destroy();
});
