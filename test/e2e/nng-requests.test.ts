// Bridges of the types req and rep: MQTT 5 clients ask a local process, local processes ask for retained values and publish. The peers are
// sockets of the library; test/sp/requests.test.ts shows that these are libnng's requests to the byte.
import mqtt, { type IClientPublishOptions, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, test } from 'vitest';
import type { OnRequest, SpSocket } from '../../src/sp/sp.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { HEAD } from '../harness/nnggateway.ts';
import { SP_DEFAULTS, testDriver, Watch } from '../harness/spsockets.ts';

let gateway: TestGateway;
const clients: MqttClient[] = [];
const sockets: SpSocket[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.endAsync(true)));
  await Promise.all(sockets.splice(0).map((socket) => socket.stop(50)));
  await gateway.stop();
});

interface Reply {
  readonly topic: string;
  readonly text: string;
  readonly correlation: string;
  readonly status: string;
}
async function requester(): Promise<{
  ask: (topic: string, text: string, properties?: IClientPublishOptions['properties']) => Promise<Reply>;
  client: MqttClient;
}> {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { protocolVersion: 5 });
  clients.push(client);
  await client.subscribeAsync('answers/#', { qos: 1 });
  const ask = async (
    topic: string,
    text: string,
    properties: IClientPublishOptions['properties'] = {},
  ): Promise<Reply> => {
    const came = new Promise<Reply>((resolve) => {
      client.once('message', (at, payload, { properties: given }) => {
        const status = String(given?.userProperties?.status ?? 'ok');
        const correlation = given?.correlationData?.toString() ?? '';
        resolve({ topic: at, text: payload.toString(), correlation, status });
      });
    });
    await client.publishAsync(topic, text, { qos: 1, properties });
    return came;
  };
  return { ask, client };
}
async function peer(type: 'req' | 'rep', name: string, handler: OnRequest | null = null): Promise<SpSocket> {
  const socket = testDriver().open(type === 'req' ? 'rep0' : 'req0', SP_DEFAULTS);
  sockets.push(socket);
  const watch = new Watch(socket);
  if (handler !== null) socket.onRequest?.(handler);
  socket.dial(String(gateway.gateway.bridges.get(type, name)?.endpoints[0]?.bound));
  await watch.until(() => watch.count('pipe-up') === 1);
  return socket;
}
function request(socket: SpSocket, body: string): Promise<unknown> {
  return new Promise((resolve) => {
    socket.request?.(Buffer.from(body), 2000, {
      reply: (bytes, start, end) => {
        const text = Buffer.from(bytes.subarray(start, end)).toString();
        resolve(text.startsWith('{') ? JSON.parse(text) : text);
      },
      ended: (how) => resolve(how),
    });
  });
}

describe('type req', () => {
  const CONF = `${HEAD}bridges.nng.req.r { enable = true, req_url = "tcp://127.0.0.1:0", requests = [
    { local_topic = "rpc/+/ask", timeout = 200ms, qos = 1, response_topic = "answers/{1}" },
    { local_topic = "framed/#", frame = topic, nng_delimiter = ":" } ] }`;

  test('a reply goes to the Response Topic with the Correlation Data', async () => {
    gateway = await testGateway(CONF);
    await peer('req', 'r', (bytes, start, end, answer) => answer(Buffer.from(`re:${bytes.subarray(start, end)}`)));
    const { ask } = await requester();
    const properties = { responseTopic: 'answers/mine', correlationData: Buffer.from('c-1') };
    expect(await ask('rpc/k/ask', 'what', properties)).toEqual({
      topic: 'answers/mine',
      text: 're:what',
      correlation: 'c-1',
      status: 'ok',
    });
    expect(await ask('rpc/k/ask', 'again')).toMatchObject({ topic: 'answers/k', text: 're:again', correlation: '' });
    expect(await ask('framed/x', 'body', properties)).toMatchObject({ text: 're:framed/x:body' });
    expect(
      gateway.gateway.bridges.get('req', 'r')?.rules.map(({ matched, forwarded }) => [matched, forwarded]),
    ).toEqual([
      [2, 2],
      [1, 1],
    ]);
  });
  test('without a reply in time the requester gets an error with its Correlation Data', async () => {
    gateway = await testGateway(CONF);
    await peer('req', 'r', () => {});
    const { ask } = await requester();
    const properties = { responseTopic: 'answers/mine', correlationData: Buffer.from('c-2') };
    expect(await ask('rpc/k/ask', 'what', properties)).toEqual({
      topic: 'answers/mine',
      text: '{"error":"timeout"}',
      correlation: 'c-2',
      status: 'error',
    });
    expect(gateway.gateway.bridges.get('req', 'r')?.rules[0].dropped).toEqual({ timeout: 1 });
  });
  test('a request that nobody can be told the answer of is dropped and counted', async () => {
    gateway = await testGateway(CONF);
    const { client } = await requester();
    await client.publishAsync('framed/x', 'y', { qos: 1 });
    expect(gateway.gateway.bridges.get('req', 'r')?.rules[1].dropped).toEqual({ 'no-response-topic': 1 });
  });
});

describe('type rep', () => {
  const CONF = `${HEAD}bridges.nng.rep.r { enable = true, rep_url = "tcp://127.0.0.1:0", topics = ["state/#"], publish = true }
    bridges.nng.rep.reader { enable = true, rep_url = "tcp://127.0.0.1:0", topics = "state/a" }`;

  test('a topic gives its retained payload, a filter a list', async () => {
    gateway = await testGateway(CONF);
    const { client } = await requester();
    await client.publishAsync('state/a', '21.5', { qos: 1, retain: true });
    await client.publishAsync('state/b', Buffer.from([0, 255]), { qos: 1, retain: true });
    await client.publishAsync('secret/c', 'hidden', { qos: 1, retain: true });
    const socket = await peer('rep', 'r');
    expect(await request(socket, 'state/a')).toBe('21.5');
    expect(await request(socket, 'state/none')).toEqual({ error: 'not found' });
    expect(await request(socket, 'secret/c')).toEqual({ error: 'not found' });
    const { messages } = (await request(socket, '{"topic":"#"}')) as { messages: { topic: string }[] };
    expect(messages.sort((a, b) => a.topic.localeCompare(b.topic))).toEqual([
      { topic: 'state/a', payload: '21.5', qos: 1 },
      { topic: 'state/b', payload_base64: 'AP8=', qos: 1 },
    ]);
    const reader = await peer('rep', 'reader');
    expect(await request(reader, '{"topic":"state/+"}')).toEqual({
      messages: [{ topic: 'state/a', payload: '21.5', qos: 1 }],
    });
  });
  test('a request publishes where that is allowed and hears what became of it', async () => {
    gateway = await testGateway(CONF);
    const { client } = await requester();
    await client.subscribeAsync('state/#', { qos: 1 });
    const came = new Promise<string>((resolve) => {
      client.once('message', (topic, payload) => resolve(`${topic} ${payload}`));
    });
    const socket = await peer('rep', 'r');
    expect(await request(socket, '{"topic":"state/x","payload":{"on":true},"qos":1,"retain":true}')).toEqual({
      ok: true,
    });
    expect(await came).toBe('state/x {"on":true}');
    expect(await request(socket, 'state/x')).toEqual({ on: true });
    expect(await request(socket, '{"topic":"other","payload":"x"}')).toEqual({ error: 'the topic is not allowed' });
    expect(await request(socket, '{"topic":"state/#","payload":"x"}')).toEqual({ error: 'the topic is not allowed' });
    const reader = await peer('rep', 'reader');
    expect(await request(reader, '{"topic":"state/a","payload":"x"}')).toEqual({ error: 'publishing is not allowed' });
  });
  test.each([
    ['\0', 'the request is neither a topic nor a JSON object'],
    ['{"topic":1}', 'topic, a text, is required'],
    ['{broken', 'topic, a text, is required'],
    ['{"topic":"a/#/b"}', 'topic is not a topic filter'],
    ['{"topic":"state/a","payload":"","qos":3}', 'qos has to be 0, 1 or 2, retain true or false'],
  ])('%j is answered with what is wrong', async (body, error) => {
    gateway = await testGateway(CONF);
    expect(await request(await peer('rep', 'r'), body)).toEqual({ error });
  });
});
