// REST: clients and subscriptions.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask } from './request.ts';
import { ConsoleStage, OPERATOR, subscriptionView, VIEWER } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
});
afterEach(() => stage.stop());

async function ids(query: string): Promise<string[]> {
  const reply = await ask(stage.server.port, 'GET', `/api/v4/clients${query}`);
  expect(reply.json.code).toBe(0);
  return reply.json.data.map((row: { client_id: string }) => row.client_id);
}

describe('GET /clients', () => {
  beforeEach(() => {
    stage.broker.addClient('a', { username: 'Bob', willTopic: 'w/t', remote: '192.0.2.7:1' });
    stage.broker.addClient('b', { version: 4, cleanStart: false, connected: false });
    stage.broker.addClient('c', { version: 3, listener: 'tcp.second' });
  });

  test("rows have NanoMQ's members", async () => {
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/clients')).json;
    expect(data[0]).toMatchObject({
      client_id: 'a',
      username: 'Bob',
      keepalive: 60,
      conn_state: 'connected',
      clean_start: true,
      proto_name: 'MQTT',
      proto_ver: 5,
      will_topic: 'w/t',
    });
    expect(data[1]).not.toHaveProperty('will_topic');
    expect(data[2]).toMatchObject({ proto_name: 'MQIsdp', proto_ver: 3 });
  });

  test.each([
    ['?clientid=b', ['b']],
    ['?clientid=nobody', []],
    ['?username=Bob', ['a']],
    ['?conn_state=disconnected', ['b']],
    ['?conn_state=connected', ['a', 'c']],
    ['?clean_start=false', ['b']],
    ['?proto_ver=4', ['b']],
    ['?proto_name=MQIsdp', ['c']],
    ['?listener=tcp.second', ['c']],
    ['?search=BO', ['a']],
    ['?search=192.0.2', ['a']],
    ['?proto_ver=5&username=Bob', ['a']],
    ['?clientid=a&proto_ver=4', []],
    ['/a', ['a']],
    ['/nobody', []],
    ['/username/Bob', ['a']],
    ['/username/bob', []],
  ])('%s gives %j', async (query, expected) => {
    expect(await ids(query)).toEqual(expected);
  });

  test.each(['?foo=1', '?conn_state=maybe', '?clean_start=1', '?page=0', '?limit=-1', '?limit=1e9', '?page=1&page=2'])(
    '%s is refused with code 108',
    async (query) => {
      const reply = await ask(stage.server.port, 'GET', `/api/v4/clients${query}`);
      expect([reply.status, reply.json.code]).toEqual([400, 108]);
    },
  );

  test("a will's payload is shown to admins only", async () => {
    const will = { payload: Buffer.from('bye'), qos: 1, retain: true } as const;
    stage.broker.addClient('w', { willTopic: 'w', will });
    const [full] = (await ask(stage.server.port, 'GET', '/api/v4/clients/w')).json.data;
    expect(full).toMatchObject({ will_topic: 'w', will_qos: 1, will_retain: true, will_bytes: 3, will_msg: 'bye' });
    const [cut] = (await ask(stage.server.port, 'GET', '/api/v4/clients/w', { user: VIEWER })).json.data;
    expect(cut).toMatchObject({ will_topic: 'w', will_qos: 1 });
    expect(JSON.stringify(cut)).not.toContain('bye');
  });
});

describe('pages', () => {
  test('twenty thousand clients come in pages of a thousand', async () => {
    for (let i = 0; i < 20_000; i++) stage.broker.addClient(`c${i}`);
    const first = (await ask(stage.server.port, 'GET', '/api/v4/clients')).json;
    expect([first.data.length, first.meta]).toEqual([1000, { page: 1, limit: 1000, count: 20_000, hasnext: true }]);
    const last = (await ask(stage.server.port, 'GET', '/api/v4/clients?page=20')).json;
    expect([last.data[999].client_id, last.meta.hasnext]).toEqual(['c19999', false]);
    const after = (await ask(stage.server.port, 'GET', '/api/v4/clients?page=21')).json;
    expect([after.data, after.meta.hasnext]).toEqual([[], false]);
  });

  test('a page of its own size starts where the one before ended', async () => {
    for (let i = 0; i < 10; i++) stage.broker.addClient(`c${i}`);
    expect(await ids('?limit=4&page=2')).toEqual(['c4', 'c5', 'c6', 'c7']);
  });
});

describe('DELETE /clients/{id}', () => {
  test('kicks and keeps the session', async () => {
    stage.broker.addClient('kick me/1');
    const reply = await ask(stage.server.port, 'DELETE', '/api/v4/clients/kick%20me%2F1', { user: OPERATOR });
    expect([reply.status, reply.json.code, stage.broker.kicked]).toEqual([200, 0, [['kick me/1', false]]]);
  });

  test('drops the session when asked to', async () => {
    stage.broker.addClient('k');
    await ask(stage.server.port, 'DELETE', '/api/v4/clients/k?session=1');
    expect(stage.broker.kicked).toEqual([['k', true]]);
  });

  test('an unknown client is 404 with code 112', async () => {
    const reply = await ask(stage.server.port, 'DELETE', '/api/v4/clients/nobody');
    expect([reply.status, reply.json.code]).toEqual([404, 112]);
  });

  test('a session value that is no switch is refused and kicks nobody', async () => {
    stage.broker.addClient('k');
    expect((await ask(stage.server.port, 'DELETE', '/api/v4/clients/k?session=yes')).status).toBe(400);
    expect(stage.broker.kicked).toEqual([]);
  });
});

describe('GET /subscriptions', () => {
  beforeEach(() => {
    stage.broker.subscriptionList.push(
      subscriptionView('x', 't/b', 1),
      subscriptionView('x', '$share/g/t', 2),
      subscriptionView('y', 't/b', 2),
    );
  });

  test.each([
    ['', 3],
    ['/y', 1],
    ['/nobody', 0],
    ['?clientid=x', 2],
    ['?topic=t/b', 2],
    ['?topic=t/b&clientid=y', 1],
  ])('%s gives %i rows', async (query, count) => {
    const { data } = (await ask(stage.server.port, 'GET', `/api/v4/subscriptions${query}`)).json;
    expect(data).toHaveLength(count);
  });

  test("rows have NanoMQ's members", async () => {
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/subscriptions/y')).json;
    expect(data[0]).toMatchObject({ clientid: 'y', topic: 't/b', qos: 2 });
  });
});

describe('GET /topic-tree', () => {
  test('one array for each level, with the clients at the end of their filters', async () => {
    stage.broker.subscriptionList.push(
      subscriptionView('x', 't/b'),
      subscriptionView('x', 't/+/c'),
      subscriptionView('y', 't/b'),
    );
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/topic-tree')).json;
    expect(data).toEqual([
      [{ topic: '', cld_cnt: 1 }],
      [{ topic: 't', cld_cnt: 2 }],
      [
        { topic: 'b', cld_cnt: 0, clientid: ['x', 'y'] },
        { topic: '+', cld_cnt: 1 },
      ],
      [{ topic: 'c', cld_cnt: 0, clientid: ['x'] }],
      [],
    ]);
  });

  test('a tree of more than twenty thousand nodes is cut and says so', async () => {
    for (let i = 0; i < 30_000; i++) stage.broker.subscriptionList.push(subscriptionView('x', `t${i}`));
    const { data, cut } = (await ask(stage.server.port, 'GET', '/api/v4/topic-tree')).json;
    expect([cut, data[1].length]).toEqual([true, 20_000]);
  });
});

test('subscriptions are found by part of their filter and by a topic that they take', async () => {
  for (const filter of ['a/#', 'a/b', 'A/c', '$share/g/+/b', '#'])
    stage.broker.subscriptionList.push(subscriptionView('finder', filter));
  const found = async (query: string): Promise<string[]> => {
    const { data } = (await ask(stage.server.port, 'GET', `/api/v4/subscriptions?clientid=finder&${query}`)).json;
    return data.map(({ topic }: { topic: string }) => topic);
  };
  expect(await found('search=a/')).toEqual(['a/#', 'a/b', 'A/c']);
  expect(await found('matches=a/b')).toEqual(['a/#', 'a/b', '$share/g/+/b', '#']);
  expect(await found('matches=$SYS/x')).toEqual([]);
  expect((await ask(stage.server.port, 'GET', '/api/v4/subscriptions?matches=a/%2B')).status).toBe(400);
});
