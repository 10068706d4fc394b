// REST: topics with counts and rates.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Broker } from '../../src/broker/broker.ts';
import { ask } from './request.ts';
import { BrokerStandIn, ConsoleStage, VIEWER } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
  stage.broker.topicList.push(
    { topic: 'plant/2', messages: 10, bytes: 100, messageRate: 1 / 3, byteRate: 3 },
    { topic: 'plant/1', messages: 20, bytes: 60, messageRate: 2, byteRate: 6 },
    { topic: 'office', messages: 5, bytes: 900, messageRate: 2, byteRate: 80 },
    { topic: '$SYS/uptime', messages: 1, bytes: 1, messageRate: 0, byteRate: 0 },
  );
});
afterEach(() => stage.stop());

const topics = async (query: string): Promise<string[]> => {
  const { data } = (await ask(stage.server.port, 'GET', `/api/v4/topics${query}`)).json;
  return data.map(({ topic }: { topic: string }) => topic);
};

test('the list has counts and rates by topic, and the sums of what fits and of what is not counted by itself', async () => {
  const { data, meta } = (await ask(stage.server.port, 'GET', '/api/v4/topics', { user: VIEWER })).json;
  expect(data).toEqual([
    { topic: 'office', messages: 5, bytes: 900, messages_rate: 2, bytes_rate: 80 },
    { topic: 'plant/1', messages: 20, bytes: 60, messages_rate: 2, bytes_rate: 6 },
    { topic: 'plant/2', messages: 10, bytes: 100, messages_rate: 0.333, bytes_rate: 3 },
  ]);
  expect(meta).toEqual({
    page: 1,
    limit: 1000,
    count: 3,
    hasnext: false,
    window_ms: 6000,
    sum: { messages: 35, bytes: 1060, messages_rate: 4.333, bytes_rate: 89 },
    topics_limit: 20_000,
    recording: false,
    others: { messages: 7, bytes: 70, messages_rate: 0.5, bytes_rate: 5 },
  });
});

test.each([
  ['?sort=-messages_rate', ['plant/1', 'office', 'plant/2']],
  ['?sort=messages_rate', ['plant/2', 'plant/1', 'office']],
  ['?sort=-bytes', ['office', 'plant/2', 'plant/1']],
  ['?sort=-topic', ['plant/2', 'plant/1', 'office']],
])('the list is ordered by %s, equal rows as they came', async (query, expected) => {
  expect(await topics(query)).toEqual(expected);
});

test.each([
  ['?prefix=plant/', ['plant/1', 'plant/2']],
  ['?filter=%2B/2', ['plant/2']],
  ['?search=OFF', ['office']],
  ['?filter=$SYS/%23', ['$SYS/uptime']],
  ['?prefix=$', ['$SYS/uptime']],
  ['?search=uptime', []],
])('the list is narrowed by %s', async (query, expected) => {
  expect(await topics(query)).toEqual(expected);
});

test('the list comes in pages, and sums are of all of them', async () => {
  const { data, meta } = (await ask(stage.server.port, 'GET', '/api/v4/topics?limit=1&page=2')).json;
  expect(data).toMatchObject([{ topic: 'plant/1' }]);
  expect(meta).toMatchObject({ count: 3, hasnext: true, sum: { messages: 35 } });
});

test.each(['?sort=rate', '?sort=', '?filter=a/%23/b', '?limit=0'])('%s is refused', async (query) => {
  const reply = await ask(stage.server.port, 'GET', `/api/v4/topics${query}`);
  expect([reply.status, reply.json.code]).toEqual([400, 108]);
});

test('an engine that does not count topic by topic is said so', async () => {
  await stage.stop();
  const broker: Broker = Object.assign(new BrokerStandIn(), { traffic: undefined });
  stage = await new ConsoleStage({ broker }).start();
  const reply = await ask(stage.server.port, 'GET', '/api/v4/topics');
  expect(reply.status).toBe(503);
  expect(reply.json.message).toContain('does not count');
});
