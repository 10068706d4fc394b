// REST: publishing.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Hold } from '../../src/mqtt/message.ts';
import { ask, type Reply } from './request.ts';
import { ConsoleStage } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
});
afterEach(() => stage.stop());

function publish(body: unknown, where = 'publish'): Promise<Reply> {
  return ask(stage.server.port, 'POST', `/api/v4/mqtt/${where}`, { body });
}

describe('POST /mqtt/publish', () => {
  test('publishes with QoS and RETAIN as the client id that is named', async () => {
    const reply = await publish({ topic: 't/a', payload: 'hi', qos: 1, retain: true, clientid: 'web' });
    expect(reply.json).toEqual({ code: 0 });
    expect(stage.broker.published[0]).toMatchObject({ topic: 't/a', payload: 'hi', qos: 1, retain: true });
    expect(stage.broker.published[0].options).toMatchObject({ clientId: 'web', username: 'admin', kind: 'api' });
  });

  test('defaults are QoS 0, no RETAIN', async () => {
    await publish({ topic: 't', payload: '' });
    expect(stage.broker.published[0]).toMatchObject({ qos: 0, retain: false, payload: '', properties: null });
  });

  test('topics with commas are each published to', async () => {
    await publish({ topics: 't/1,t/2', payload: 'ü' });
    expect(stage.broker.published.map(({ topic, payload }) => [topic, payload])).toEqual([
      ['t/1', 'ü'],
      ['t/2', 'ü'],
    ]);
  });

  test('decoding base64 publishes the bytes, encoding base64 the text of them', async () => {
    await publish({ topic: 't', payload: 'aGk=', decoding: 'base64' });
    await publish({ topic: 't', payload: 'hi', encoding: 'base64' });
    expect(stage.broker.published.map(({ payload }) => payload)).toEqual(['hi', 'aGk=']);
  });

  test('properties are carried', async () => {
    const properties = {
      payload_format_indicator: 1,
      message_expiry_interval: 100,
      response_topic: 'rt',
      correlation_data: 'cd',
      content_type: 'ct',
      subscription_identifier: 7,
      user_properties: { k: 'v', l: '' },
    };
    await publish({ topic: 't', payload: 'x', properties });
    expect(stage.broker.published[0].properties).toEqual({
      payloadFormatIndicator: 1,
      messageExpiryInterval: 100,
      responseTopic: 'rt',
      correlationData: Buffer.from('cd'),
      contentType: 'ct',
      userProperties: [
        ['k', 'v'],
        ['l', ''],
      ],
    });
  });

  test.each([
    ['no payload', { topic: 't' }, '/payload'],
    ['no topic', { payload: 'x' }, '/topic'],
    ['an empty topic', { topic: '', payload: 'x' }, '/topic'],
    ['a wildcard', { topic: 't/#', payload: 'x' }, '/topic'],
    ['a wildcard among topics', { topics: 'a,b/+', payload: 'x' }, '/topics'],
    ['a NUL in the topic', { topic: 't\0', payload: 'x' }, '/topic'],
    ['QoS 3', { topic: 't', payload: 'x', qos: 3 }, '/qos'],
    ['a QoS in text', { topic: 't', payload: 'x', qos: '1' }, '/qos'],
    ['RETAIN maybe', { topic: 't', payload: 'x', retain: 'maybe' }, '/retain'],
    ['a payload object', { topic: 't', payload: { a: 1 } }, '/payload'],
    ['bad base64', { topic: 't', payload: 'a', decoding: 'base64' }, '/payload'],
    ['an unknown encoding', { topic: 't', payload: 'a', encoding: 'hex' }, '/encoding'],
    ['an unknown key', { topic: 't', payload: 'a', colour: 'red' }, '/colour'],
    ['an unknown property', { topic: 't', payload: 'a', properties: { 'a/b': 1 } }, '/properties/a~1b'],
    [
      'a negative expiry',
      { topic: 't', payload: 'a', properties: { message_expiry_interval: -1 } },
      '/properties/message_expiry_interval',
    ],
    ['a property list', { topic: 't', payload: 'a', properties: [] }, '/properties'],
    ['a list', [], ''],
    ['a text', '"x"', ''],
  ])('%s is refused with code 108 and a pointer', async (_what, body, pointer) => {
    const reply = await publish(body);
    expect([reply.status, reply.json.code, reply.json.pointer]).toEqual([400, 108, pointer]);
    expect(stage.broker.published).toEqual([]);
  });

  test('a topic below $SYS is not allowed', async () => {
    const reply = await publish({ topic: '$SYS/x', payload: 'x' });
    expect([reply.status, stage.broker.published]).toEqual([403, []]);
  });

  test('a document with __proto__ changes nothing but itself', async () => {
    const reply = await publish('{"topic":"t","payload":"x","__proto__":{"qos":2}}');
    expect([reply.status, reply.json.pointer]).toEqual([400, '/__proto__']);
  });

  test.each([
    ['denied', 403],
    ['invalid-topic', 400],
    ['refused', 503],
    ['no-subscribers', 200],
  ] as const)('the outcome %s is answered with %i', async (outcome, status) => {
    stage.broker.outcome = outcome;
    expect((await publish({ topic: 't', payload: 'x' })).status).toBe(status);
  });

  test('at QoS 1 the answer waits until the message is accepted for good', async () => {
    const hold = new Hold();
    hold.add();
    stage.broker.hold = hold;
    const replied = publish({ topic: 't', payload: 'x', qos: 1 });
    let settled = false;
    void replied.then(() => {
      settled = true;
    });
    await ask(stage.server.port, 'GET', '/healthz');
    expect(settled).toBe(false);
    hold.done();
    expect((await replied).json.code).toBe(0);
  });

  test('a message that the store refuses is answered with 503', async () => {
    const hold = new Hold();
    hold.add();
    stage.broker.hold = hold;
    const replied = publish({ topic: 't', payload: 'x', qos: 1 });
    await ask(stage.server.port, 'GET', '/healthz');
    hold.done(0x97);
    expect((await replied).status).toBe(503);
  });

  test('no internal client is left behind', async () => {
    await publish({ topic: 't', payload: 'x' });
    await publish({ topic: 't', payload: 'x', qos: 2 });
    expect(stage.broker.attached).toBe(0);
  });
});

describe('POST /mqtt/publish_batch', () => {
  test('gives one code each, in order', async () => {
    const body = [{ topic: 't/1', payload: '1', qos: 1 }, { topic: 't/2' }, { topic: 't/3', payload: '3' }];
    const { code, data } = (await publish(body, 'publish_batch')).json;
    expect([code, data.map((row: { topic: string; code: number }) => [row.topic, row.code])]).toEqual([
      0,
      [
        ['t/1', 0],
        ['t/2', 108],
        ['t/3', 0],
      ],
    ]);
    expect(data[1].pointer).toBe('/1/payload');
    expect(stage.broker.published.map(({ topic }) => topic)).toEqual(['t/1', 't/3']);
  });

  test('anything but a list is refused with code 108', async () => {
    const reply = await publish({ topic: 't' }, 'publish_batch');
    expect([reply.status, reply.json.code]).toEqual([400, 108]);
  });
});

test.each(['subscribe', 'unsubscribe', 'subscribe_batch'])('POST /mqtt/%s does not exist: code 102', async (where) => {
  const reply = await publish({}, where);
  expect([reply.status, reply.json.code]).toEqual([404, 102]);
});
