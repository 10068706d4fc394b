// The description of the REST API against a gateway: every answer has the shape that is described, documents that the
// schema refuses are refused, and a client made from it by a generator compiles and works.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { transformSync } from 'esbuild';
import mqtt, { type MqttClient } from 'mqtt';
import { generateApi } from 'swagger-typescript-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTE_SHAPES } from '../../src/console/routeshapes.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

type Schema = Record<string, unknown>;
interface Operation {
  readonly requestBody?: { content: Record<string, { schema: Schema }> };
  readonly responses: Record<string, { content: Record<string, { schema: Schema }> }>;
}
interface Description {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, Schema> };
}

const ROOT = path.join(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'openapi-'));
let gateway: TestGateway;
let client: MqttClient;
let base: string;
let description: Description;
let ajv: Ajv2020;

beforeAll(async () => {
  gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "${folder}/store.db" }
auth { allow_anonymous = true, password { a = b }, dynamic_security { enable = true, file = "${folder}/ds.json" } }
http_server { ip_addr = "127.0.0.1", port = 0 }
bridges.nng {
  pub.out { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "sensor/#" } ] }
  pair.both { enable = true, pair_url = "inproc://both", forwards = [ { local_topic = "b" } ] }
}
bridges.mqtt.far { server = "mqtt-tcp://127.0.0.1:1", forwards = [ { local_topic = "up/#" } ] }
rules.r { from = "r/#", to = "s" }
quotas.q { per = client, publishes = 1000 }
upstreams.pool { servers = [ { addr = "127.0.0.1:9" } ] }
proxy.front { bind = "127.0.0.1:0", default = "pool" }
`);
  base = `http://${String(gateway.messages.find(({ id }) => id === 'GW-READY')?.fields?.http)}`;
  description = (await (await fetch(`${base}/openapi.json`)).json()) as Description;
  ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addSchema({ $id: 'doc', ...description });
  await ask('PUT', '/api/v4/mqtt/default_access', { publishClientSend: true, subscribe: true });
  client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { clientId: 'c1', protocolVersion: 5 });
  await client.subscribeAsync('x/#');
  await client.publishAsync('x/1', 'hello', { retain: true, qos: 1 });
});
afterAll(async () => {
  await client.endAsync(true);
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(method: string, target: string, body?: unknown) {
  const answer = await fetch(base + target, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

function compile(schema: Schema): ValidateFunction {
  return ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"doc#/components')));
}

/** What is wrong with an answer by the description; an answer whose status is not described is wrong too. */
function faultsOf(method: string, at: string, status: number, json: unknown): string[] {
  const operation = description.paths[at][method.toLowerCase()];
  const described = operation.responses[String(status)];
  if (described === undefined) return [`${method} ${at}: ${status} is not described`];
  const validate = compile(described.content['application/json'].schema);
  if (validate(json)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${method} ${at}: ${instancePath} ${message}`);
}

describe('the description', () => {
  it('has a shape for every call of the table, and no row without a call', () => {
    const calls = Object.entries(description.paths).flatMap(([at, all]) =>
      Object.keys(all).map((method) => `${method.toUpperCase()} ${at}`),
    );
    expect([...ROUTE_SHAPES.keys()].filter((key) => !calls.includes(key))).toEqual([]);
    expect(ROUTE_SHAPES.size).toBeGreaterThan(80);
  });

  it('names every component that it refers to', () => {
    const found = JSON.stringify(description).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
    const names = [...new Set([...found].map(([, name]) => name))];
    expect(names.filter((name) => description.components.schemas[name] === undefined)).toEqual([]);
  });
});

/** A real name for each gap of a path. */
function filled(at: string): string {
  const names: readonly [RegExp, string][] = [
    [/\/rules\//, 'r'],
    [/\/mqtt\/(?:users|groups|roles)\//, 'one'],
    [/\/(?:mqtt|v4)\/bridges\//, 'far'],
    [/\/nng\/bridges\//, 'out'],
    [/\/clients\/\{id\}|\/subscriptions\//, 'c1'],
    [/\/retained\//, 'x%2F1'],
    [/\/configuration\//, 'basic'],
  ];
  return at.replace(/\{\w+\}/, names.find(([pattern]) => pattern.test(at))?.[1] ?? 'nobody');
}

describe('answers', () => {
  it('have the shapes that are described', async () => {
    const wrong: string[] = [];
    const tell = async (method: string, at: string, target: string, body?: unknown): Promise<void> => {
      const { status, json } = await ask(method, target, body);
      wrong.push(...faultsOf(method, at, status, json));
    };
    const v4 = '/api/v4';
    const named = async (method: string, at: string, name: string, body?: unknown): Promise<void> =>
      tell(method, `${v4}${at}`, v4 + at.replace(/\{\w+\}/, name), body);
    await named('PUT', '/mqtt/roles/{name}', 'one', {
      acls: [{ acltype: 'publishClientSend', topic: 'a', allow: true }],
    });
    await named('PUT', '/mqtt/groups/{name}', 'one', { roles: ['one'] });
    await named('PUT', '/mqtt/users/{name}', 'one', { password: 'p', groups: ['one'], roles: ['one'] });
    for (const [at, all] of Object.entries(description.paths)) {
      const types = Object.keys(all.get?.responses['200'].content ?? {});
      if (!types.includes('application/json')) continue;
      const more = at.endsWith('explain') ? '?clientid=c1&topic=t' : '';
      await tell('GET', at, filled(at) + more);
    }
    const document = { type: 'pub', name: 'n2', pub_url: 'inproc://x' };
    await tell('POST', `${v4}/nng/bridges`, `${v4}/nng/bridges`, document);
    await tell('POST', `${v4}/nng/bridges`, `${v4}/nng/bridges`, document);
    await named('PUT', '/nng/bridges/{name}', 'n2?keep=true', { ...document, pub_url: 'inproc://y' });
    await named('PUT', '/nng/bridges/{name}', 'n2', { ...document, forwards: [{ qos: 7 }] });
    await named('POST', '/nng/bridges/{name}/disable', 'n2');
    await named('DELETE', '/nng/bridges/{name}', 'n2');
    await named('DELETE', '/nng/bridges/{name}', 'n2');
    await named('POST', '/nng/test', '', { type: 'pub', rule: { local_topic: 'a' }, topic: 'a', payload: 'x' });
    await named('POST', '/test_connection', '', { type: 'mqtt', name: 'far' });
    await named('POST', '/test_connection', '', { type: 'nothing' });
    await named('PUT', '/rules/{name}', 'r2', { from: 'a', to: 'b' });
    await named('DELETE', '/rules/{name}', 'r2');
    await named('POST', '/mqtt/publish', '', { topic: 'a', payload: 'x', clientid: 'k' });
    await named('POST', '/mqtt/publish_batch', '', [{ topic: 'a', payload: 'x', clientid: 'k' }]);
    await named('POST', '/config', '', { values: { 'log.level': 'info' }, check: true });
    await named('POST', '/config', '', { values: { 'log.level': 'loud' } });
    await named('POST', '/reload', '');
    await named('POST', '/proxy/upstreams/{name}/drain', 'pool', { server: '127.0.0.1:9', drain: true });
    await named('POST', '/mqtt/dynamic_security/commands', '', { commands: [{ command: 'listClients' }] });
    await named('PUT', '/mqtt/users/{name}', 'one', { textname: 'One' });
    await named('DELETE', '/mqtt/users/{name}', 'one');
    await named('DELETE', '/retained/{topic}', 'x%2F1');
    await named('DELETE', '/clients/{id}', 'nobody');
    await named('DELETE', '/clients/{id}', 'c1');
    expect(wrong).toEqual([]);
  });
});

describe('documents of bridges', () => {
  const schemaOf = (name: string): ValidateFunction => compile({ $ref: `#/components/schemas/${name}` });

  it('that the gateway shows are valid, without what only tells its state', async () => {
    for (const [name, at] of [
      ['MqttBridge', '/api/v4/mqtt/bridges/far'],
      ['NngBridge_pub', '/api/v4/nng/bridges/out'],
      ['NngBridge_pair', '/api/v4/nng/bridges/both'],
      ['Rule', '/api/v4/rules/r'],
    ]) {
      const validate = schemaOf(name);
      const { json } = await ask('GET', at);
      expect([validate(json.data), validate.errors]).toEqual([true, null]);
    }
  });

  const good = { type: 'pub', name: 'n', pub_url: ['inproc://n'], forwards: [{ local_topic: 'a', qos: 1 }] };
  it.each([
    [{}, true],
    [{ pub_url: 'inproc://n' }, true],
    [{ mode: 'sideways' }, false],
    [{ reconnect_max: '5s' }, true],
    [{ reconnect_max: true }, false],
    [{ forwards: [{ local_topic: 'a', qos: 'high' }] }, false],
    [{ forwards: [{ local_topic: 'a', enable: 3 }] }, false],
    [{ tls: 5 }, false],
  ])('with %j are judged by the schema as by the gateway: %j', async (more, expected) => {
    const document = { ...good, ...more };
    expect(schemaOf('NngBridge_pub')(document)).toBe(expected);
    const { status } = await ask('POST', '/api/v4/nng/bridges', document);
    expect(status).toBe(expected ? 201 : 400);
    if (expected) await ask('DELETE', '/api/v4/nng/bridges/n');
  });
});

/** Compiled with the generated client, and run: what it prints is the answer. */
const USE = `import { Api } from './Api.ts';

export async function use(baseUrl: string): Promise<string[]> {
  const { api } = new Api({ baseUrl });
  const added = await api.postApiV4NngBridges({
    type: 'pub', name: 'made', pub_url: ['inproc://made'], forwards: [{ local_topic: 'a/#', qos: 1 }],
  });
  const { data } = await api.getApiV4NngBridges();
  const states: string[] = data.data.map((bridge) => \`\${bridge.name} \${bridge.state}\`);
  const steps = (await api.postApiV4TestConnection({ type: 'mqtt', name: 'far' })).data.data;
  // @ts-expect-error a step has no such outcome
  const never = steps.some((step) => step.outcome === 'perhaps');
  // @ts-expect-error a bridge has no such type
  const wrong = () => api.postApiV4NngBridges({ type: 'sideways' });
  const refused = await api.getApiV4MqttUsersName('nobody').catch((answer) => answer.error.code as number);
  return [String(added.status), ...states, steps[0].outcome, String(refused), String(never), typeof wrong];
}
`;

describe('a client made from the description', () => {
  it('compiles and works', async () => {
    const input = path.join(folder, 'openapi.json');
    writeFileSync(input, JSON.stringify(description));
    await generateApi({ input, output: folder, httpClientType: 'fetch', silent: true });
    writeFileSync(path.join(folder, 'use.ts'), USE);
    writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
    const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom'];
    const tsc = path.join(ROOT, 'node_modules/.bin/tsc');
    const made = spawnSync(tsc, [...flags, '--allowImportingTsExtensions', 'use.ts'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(made.stdout).toBe('');
    for (const name of ['Api', 'use']) {
      const { code } = transformSync(readFileSync(path.join(folder, `${name}.ts`), 'utf8'), { loader: 'ts' });
      writeFileSync(path.join(folder, `${name}.mjs`), code.replaceAll('./Api.ts', './Api.mjs'));
    }
    const { use } = await import(/* @vite-ignore */ pathToFileURL(path.join(folder, 'use.mjs')).href);
    const said: string[] = await use(base);
    expect(said[0]).toBe('201');
    expect(said).toContain('made listening');
    expect(said.slice(-4)).toEqual(['failed', '207', 'false', 'function']);
  }, 60_000);
});
