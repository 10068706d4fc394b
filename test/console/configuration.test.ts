// REST: the configuration without secrets, limits at run time, reloading.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask } from './request.ts';
import { ConsoleStage } from './standins.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
  const config = { server: 'mqtt-tcp://127.0.0.1:9', password: 'Bridge-Secret-2', keepalive: 60_000 };
  stage.bridges.put({ kind: 'mqtt', direction: null, name: 'up' }, config);
});
afterEach(() => stage.stop());

describe('GET /configuration', () => {
  test("has NanoMQ's sections", async () => {
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/configuration')).json;
    expect(Object.keys(data)).toEqual([
      'basic',
      'tls',
      'auth',
      'auth_http',
      'websocket',
      'http_server',
      'sqlite',
      'bridge',
    ]);
    expect(data.basic).toMatchObject({ url: 'nmq-tcp://127.0.0.1:1883', max_packet_size: 10 * 1024 * 1024 });
    expect(data.http_server).toMatchObject({ port: 8081, username: 'admin', password: '***' });
    expect(data.auth).toEqual([{ login: 'carol', password: '***' }]);
    expect(data.auth_http.auth_req).toEqual({ url: 'http://127.0.0.1:8000/auth', method: 'POST' });
  });

  test('no answer holds a secret', async () => {
    const sections = ['', '/auth', '/auth_http', '/http_server', '/bridge', '/basic', '/tls'];
    const paths = [...sections.map((s) => `/configuration${s}`), '/config', '/bridges', '/bridges/up', '/reload'];
    for (const where of paths) {
      const { text, status } = await ask(stage.server.port, 'GET', `/api/v4${where}`);
      expect([where, status, /Secret|s3cr3t/.test(text)]).toEqual([where, 200, false]);
    }
  });

  test('a section that does not exist is 404 with code 101', async () => {
    const reply = await ask(stage.server.port, 'GET', '/api/v4/configuration/nope');
    expect([reply.status, reply.json.code]).toEqual([404, 101]);
  });

  test('a name of Object is no section', async () => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect((await ask(stage.server.port, 'GET', `/api/v4/configuration/${name}`)).status).toBe(404);
    }
  });
});

describe('/reload', () => {
  test('GET tells the limits in kilobytes', async () => {
    const { data } = (await ask(stage.server.port, 'GET', '/api/v4/reload')).json;
    expect(data).toMatchObject({
      max_packet_size: 10240,
      client_max_packet_size: 10240,
      msq_len: 1024,
      keepalive_backoff: 1.5,
      allow_anonymous: true,
    });
  });

  test('POST sets limits by the keys of the configuration', async () => {
    const data = {
      max_packet_size: 2048,
      client_max_packet_size: 2048,
      msq_len: 7,
      qos_duration: 10,
      keepalive_backoff: 1.25,
      allow_anonymous: false,
      property_size: 32,
    };
    expect((await ask(stage.server.port, 'POST', '/api/v4/reload', { body: { data } })).json).toEqual({ code: 0 });
    expect([...stage.config.sets[0]]).toEqual([
      ['mqtt.max_packet_size', 2048 * 1024],
      ['mqtt.max_mqueue_len', 7],
      ['mqtt.retry_interval', '10s'],
      ['mqtt.keepalive_multiplier', 1.25],
      ['auth.allow_anonymous', false],
    ]);
  });

  test.each([
    [{ data: { max_packet_size: 'big' } }, '/data/max_packet_size'],
    [{ data: { max_packet_size: 0 } }, '/data/max_packet_size'],
    [{ data: { max_packet_size: 1.5 } }, '/data/max_packet_size'],
    [{ data: { keepalive_backoff: 'x' } }, '/data/keepalive_backoff'],
    [{ data: { allow_anonymous: 7 } }, '/data/allow_anonymous'],
    [{ data: { max_packet_size: 1, client_max_packet_size: 2 } }, '/data/client_max_packet_size'],
    [{ data: { colour: 1 } }, '/data/colour'],
    [{ data: 5 }, '/data'],
    [{}, '/data'],
    [[], '/data'],
  ])('POST %j is refused and sets nothing', async (body, pointer) => {
    const reply = await ask(stage.server.port, 'POST', '/api/v4/reload', { body });
    expect([reply.status, reply.json.code, reply.json.pointer]).toEqual([400, 108, pointer]);
    expect(stage.config.sets).toEqual([]);
  });

  test('POST without a body reads the file again', async () => {
    expect((await ask(stage.server.port, 'POST', '/api/v4/reload')).status).toBe(200);
    expect(stage.config.reloads).toBe(1);
  });

  test.each([
    [{ failed: ['listeners.ssl: certificate'], needRestart: [] }, /could not be applied: listeners\.ssl: certificate$/],
    [{ failed: [], needRestart: ['log', 'metrics'] }, /needs a restart: log, metrics$/],
  ])('a reload that leaves something as it was says so in its code: %j', async (report, text) => {
    stage.config.result = { ok: true, report };
    const { status, json } = await ask(stage.server.port, 'POST', '/api/v4/reload');
    expect([status, json.code, json.data]).toEqual([200, 209, report]);
    expect(json.message).toMatch(text);
  });

  test('a file that is wrong is answered with what is wrong', async () => {
    const problems = [{ pointer: '/mqtt/max_packet_size', message: 'mqtt.max_packet_size: is no size' }];
    stage.config.result = { ok: false, why: 'invalid', problems };
    const reply = await ask(stage.server.port, 'POST', '/api/v4/reload');
    expect([reply.status, reply.json.code, reply.json.problems]).toEqual([400, 108, problems]);
  });
});
