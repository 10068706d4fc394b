// REST: retained messages.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from './request.ts';
import { ConsoleStage, VIEWER } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
  stage.broker.retain('t/a', 'x', 1);
  stage.broker.retain('t/b', 'y'.repeat(1000), 2);
});
afterEach(() => stage.stop());

test('the list shows topic, QoS and size, and long payloads only alone', async () => {
  const { data, meta } = (await ask(stage.server.port, 'GET', '/api/v4/retained')).json;
  expect(data).toMatchObject([
    { topic: 't/a', qos: 1, bytes: 1, payload: 'x' },
    { topic: 't/b', qos: 2, bytes: 1000, cut: true },
  ]);
  expect(meta.count).toBe(2);
  const one = (await ask(stage.server.port, 'GET', '/api/v4/retained/t%2Fb')).json.data;
  expect(one.payload).toHaveLength(1000);
});

test('the list can be narrowed by filter and by text', async () => {
  expect((await ask(stage.server.port, 'GET', '/api/v4/retained?filter=t/a')).json.data).toHaveLength(1);
  expect((await ask(stage.server.port, 'GET', '/api/v4/retained?search=/B')).json.data).toMatchObject([
    { topic: 't/b' },
  ]);
});

test('a message that is not there is 404 with code 204', async () => {
  for (const [method, topic] of [
    ['GET', 'nope'],
    ['DELETE', 'nope'],
    ['DELETE', '%23'],
    ['GET', 't%2F+'],
  ]) {
    const reply = await ask(stage.server.port, method, `/api/v4/retained/${topic}`);
    expect([reply.status, reply.json.code]).toEqual([404, 204]);
  }
});

test('DELETE clears by an empty retained publish', async () => {
  expect((await ask(stage.server.port, 'DELETE', '/api/v4/retained/t%2Fa')).json).toEqual({ code: 0 });
  expect(stage.broker.published).toMatchObject([{ topic: 't/a', payload: '', retain: true }]);
  expect(stage.broker.attached).toBe(0);
});

test('viewers do not clear', async () => {
  expect((await ask(stage.server.port, 'DELETE', '/api/v4/retained/t%2Fa', { user: VIEWER })).status).toBe(403);
});
