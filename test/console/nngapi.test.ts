// REST: NNG bridges at run time, and trying a rule.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask, type Reply } from './request.ts';
import { ConsoleStage, OPERATOR, VIEWER } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
});
afterEach(() => stage.stop());

function call(method: string, where: string, body?: unknown): Promise<Reply> {
  return ask(stage.server.port, method, `/api/v4/nng${where}`, { body });
}
const SUB = { kind: 'nng', direction: 'sub', name: 'b1' } as const;
const DOCUMENT = { type: 'sub', name: 'b1', sub_url: 'tcp://127.0.0.1:9900', subscription: [{ remote_topic: 'can' }] };

describe('bridges', () => {
  test('POST creates one that runs, with the keys of the configuration', async () => {
    const reply = await call('POST', '/bridges', DOCUMENT);
    expect([reply.status, reply.json]).toEqual([201, { code: 0 }]);
    const { type: _type, name: _name, ...block } = DOCUMENT;
    expect(stage.bridges.get(SUB)?.config).toEqual({ enable: true, ...block });
  });

  test('GET lists and reads with state and error', async () => {
    const config = { sub_url: 'tcp://127.0.0.1:9900' };
    const more = { state: 'error', lastError: 'address in use', status: { peers: [] } } as const;
    stage.bridges.put(SUB, config, more);
    const expected = {
      name: 'b1',
      type: 'sub',
      enable: true,
      state: 'error',
      last_error: 'address in use',
      peers: [],
      ...config,
    };
    expect((await call('GET', '/bridges')).json.data).toEqual([expected]);
    expect((await call('GET', '/bridges/b1')).json.data).toEqual(expected);
  });

  test('PUT replaces the block and keeps it on or off', async () => {
    stage.bridges.put(SUB, { enable: false, sub_url: 'tcp://127.0.0.1:1' });
    expect((await call('PUT', '/bridges/b1', DOCUMENT)).json).toEqual({ code: 0 });
    expect(stage.bridges.get(SUB)?.config).toMatchObject({ enable: false, sub_url: 'tcp://127.0.0.1:9900' });
  });

  test('what GET shows can be sent back', async () => {
    const config = {
      sub_url: 'tcp://127.0.0.1:1',
      reconnect_max: 30_000,
      clientid: null,
      subscription: [{ remote_topic: 'a', qos: null }],
    };
    stage.bridges.put(SUB, { enable: true, ...config }, { lastError: 'x', status: { peers: [], rules: [] } });
    const document = (await call('GET', '/bridges/b1')).json.data;
    expect(document.reconnect_max).toBe('30s');
    expect((await call('PUT', '/bridges/b1', document)).json).toEqual({ code: 0 });
    expect(stage.bridges.get(SUB)?.config).toEqual({
      enable: true,
      sub_url: 'tcp://127.0.0.1:1',
      reconnect_max: '30s',
      subscription: [{ remote_topic: 'a' }],
    });
  });

  test('disable, enable and DELETE act and are 404 for unknown names', async () => {
    await call('POST', '/bridges', DOCUMENT);
    await call('POST', '/bridges/b1/disable');
    expect(stage.bridges.get(SUB)?.state).toBe('disabled');
    await call('POST', '/bridges/b1/enable');
    expect(stage.bridges.get(SUB)?.state).toBe('listening');
    expect((await call('DELETE', '/bridges/b1')).status).toBe(200);
    for (const [method, where] of [
      ['GET', '/bridges/b1'],
      ['DELETE', '/bridges/b1'],
      ['POST', '/bridges/b1/enable'],
    ]) {
      const reply = await call(method, where);
      expect([reply.status, reply.json.code]).toEqual([404, 115]);
    }
    expect((await call('PUT', '/bridges/b1', DOCUMENT)).status).toBe(404);
  });

  test('a second one of the same name is 409', async () => {
    await call('POST', '/bridges', DOCUMENT);
    expect((await call('POST', '/bridges', DOCUMENT)).status).toBe(409);
  });

  test.each([
    ['type', { ...DOCUMENT, type: 'zzz' }, '/type'],
    ['name', { ...DOCUMENT, name: undefined }, '/name'],
    ['name', { ...DOCUMENT, name: 'a/b' }, '/name'],
    ['name', { ...DOCUMENT, name: '__proto__ ' }, '/name'],
    ['colour', { ...DOCUMENT, colour: 'red' }, '/colour'],
  ])('a document with a wrong %s is refused and names it', async (key, body, pointer) => {
    const reply = await call('POST', '/bridges', body);
    expect([reply.status, reply.json.code, reply.json.pointer]).toEqual([400, 108, pointer]);
    expect(reply.json.message).toContain(key);
    expect([...stage.bridges.list()]).toEqual([]);
  });

  test('a document with __proto__ reaches the schema as a key', async () => {
    const reply = await call('POST', '/bridges', `{"type":"sub","name":"b1","__proto__":{"enable":false}}`);
    expect(reply.json.pointer).toBe('/__proto__');
  });

  test('PUT cannot rename or turn a bridge around', async () => {
    await call('POST', '/bridges', DOCUMENT);
    expect((await call('PUT', '/bridges/b1', { ...DOCUMENT, name: 'b2' })).json.pointer).toBe('/name');
    expect((await call('PUT', '/bridges/b1', { ...DOCUMENT, type: 'pub' })).json.pointer).toBe('/type');
  });

  test('a name that pub and sub share needs ?type', async () => {
    stage.bridges.put(SUB, {});
    stage.bridges.put({ ...SUB, direction: 'pub' }, {});
    expect((await call('GET', '/bridges/b1')).status).toBe(409);
    expect((await call('GET', '/bridges/b1?type=pub')).json.data.type).toBe('pub');
    expect((await call('GET', '/bridges/b1?type=both')).status).toBe(400);
  });

  test('operators switch and do not create', async () => {
    const port = stage.server.port;
    expect((await ask(port, 'POST', '/api/v4/nng/bridges', { user: OPERATOR, body: DOCUMENT })).status).toBe(403);
    stage.bridges.put(SUB, {});
    expect((await ask(port, 'POST', '/api/v4/nng/bridges/b1/disable', { user: OPERATOR })).status).toBe(200);
  });
});

describe('test', () => {
  const rule = { remote_topic: 'can', nng_delimiter: ':' };

  test('a frame that matches shows topic, payload and QoS', async () => {
    const payload = Buffer.from('hello');
    stage.bridges.trialResult = {
      ok: true,
      matched: true,
      direction: 'sub',
      topic: 't',
      payload,
      qos: 1,
      retain: false,
    };
    const { data } = (await call('POST', '/test', { type: 'sub', rule, frame: 'can:hello' })).json;
    expect(data).toMatchObject({ matched: true, topic: 't', payload: 'hello', qos: 1, retain: false });
    expect(Buffer.from(stage.bridges.trials[0].frame).toString()).toBe('can:hello');
    expect(stage.bridges.trials[0].rule).toEqual(rule);
  });

  test('a message that matches shows the frame, in base64 where it is no text', async () => {
    const frame = Buffer.from([0x72, 0x3a, 0xff]);
    stage.bridges.trialResult = { ok: true, matched: true, direction: 'pub', frame };
    const body = { type: 'pub', rule: {}, topic: 'a', payload_base64: '/w==' };
    const { data } = (await call('POST', '/test', body)).json;
    expect(data).toEqual({ matched: true, frame_base64: 'cjr/' });
    expect([...stage.bridges.trials[0].payload]).toEqual([0xff]);
  });

  test('what does not match says so', async () => {
    const { data } = (await call('POST', '/test', { type: 'sub', rule, frame: 'x' })).json;
    expect(data).toEqual({ matched: false, reason: 'no rule matches' });
  });

  test('a rule that the schema refuses is 400 with a pointer into it', async () => {
    stage.bridges.trialResult = {
      ok: false,
      problems: [{ pointer: '/remote_topic', message: 'remote_topic is needed' }],
    };
    const reply = await call('POST', '/test', { type: 'sub', rule: {}, frame: 'x' });
    expect([reply.status, reply.json.pointer]).toEqual([400, '/rule/remote_topic']);
  });

  test.each([
    [{ rule, frame: 'x' }, '/type'],
    [{ type: 'sub', frame: 'x' }, '/rule'],
    [{ type: 'sub', rule }, '/frame'],
    [{ type: 'sub', rule, frame: 5 }, '/frame'],
    [{ type: 'sub', rule, frame_base64: '%' }, '/frame_base64'],
    [{ type: 'pub', rule }, '/topic'],
    [{ type: 'pub', rule, topic: 't', retain: 1 }, '/retain'],
    [5, ''],
  ])('%j is refused', async (body, pointer) => {
    const reply = await call('POST', '/test', body);
    expect([reply.status, reply.json.pointer]).toEqual([400, pointer]);
  });

  test('viewers may try rules', async () => {
    const body = { type: 'sub', rule, frame: 'x' };
    expect((await ask(stage.server.port, 'POST', '/api/v4/nng/test', { user: VIEWER, body })).status).toBe(200);
  });
});
