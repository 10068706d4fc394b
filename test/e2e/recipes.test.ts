// The recipes of docs/local-analytics.md and etc/examples as they stand there, but for their addresses: eKuiper's and Neuron's side is played
// by libnng, the workers are the page's own code in Python, C and Node.js.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import mqtt, { type MqttClient } from 'mqtt';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { createGateway, type EmbeddedGateway } from '../../src/index.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { NngPeers } from '../harness/nngpeer.ts';

const page = readFileSync(new URL('../../docs/local-analytics.md', import.meta.url), 'utf8');
const block = (language: string, nth = 0): string =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map((found) => found[1])[nth] ?? '';
const example = (name: string): string =>
  readFileSync(new URL(`../../etc/examples/${name}.conf`, import.meta.url), 'utf8');
const folder = mkdtempSync(path.join(tmpdir(), 'recipes-'));
const url = `ipc://${folder}/w.ipc`;
const peers = new NngPeers();
let gateway: TestGateway | null = null;
let client: MqttClient | null = null;
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await peers.clear();
  await client?.endAsync(true);
  await gateway?.stop();
  client = null;
  gateway = null;
});
afterAll(async () => {
  await peers.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts an example with its socket here and a free port; what comes on `filter` is kept. */
async function start(
  conf: string,
  filter: string,
): Promise<{ client: MqttClient; next: (count: number) => Promise<string[]> }> {
  const here = conf.replace(/pair_url = ".*?"/, `pair_url = "${url}"`).replace('127.0.0.1:1883', '127.0.0.1:0');
  gateway = await testGateway(`${here}\npersistence { enable = false }\n`);
  const connected = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`);
  client = connected;
  const seen: string[] = [];
  let look = (): void => {};
  connected.on('message', (topic, payload) => {
    seen.push(`${topic} ${payload}`);
    look();
  });
  await connected.subscribeAsync(filter, { qos: 1 });
  const next = (count: number): Promise<string[]> =>
    new Promise((resolve) => {
      look = () => seen.length >= count && resolve(seen);
      look();
    });
  return { client: connected, next };
}
/** What both recipe and example say of the bridge. */
const bridgeOf = (text: string): string => /bridges\.nng\.pair[\s\S]*?\n\}/.exec(text)?.[0] ?? '';

describe.skipIf(peers.missing !== null)(`recipes${peers.missing === null ? '' : ` (${peers.missing})`}`, () => {
  test('eKuiper gets JSON and gives JSON', async () => {
    expect(bridgeOf(example('ekuiper'))).toBe(bridgeOf(block('hocon', 0)));
    const { client: mqttClient, next } = await start(example('ekuiper'), 'ekuiper/#');
    const ekuiper = peers.start('pair0', 'dial', url, '--json');
    await ekuiper.line('up');
    await mqttClient.publishAsync('sensor/k1', '{"t":1}', { qos: 1 });
    await ekuiper.line('ok {"t":1}');
    ekuiper.send('[{"avg":2}]');
    expect(await next(1)).toEqual(['ekuiper/result [{"avg":2}]']);
  });
  test('Neuron brings data by node and group, and gets write commands', async () => {
    expect(bridgeOf(example('neuron'))).toBe(bridgeOf(block('hocon', 1)));
    const neuron = peers.start('pair0', 'listen', url, '--json', '--trace');
    await neuron.line('ready');
    const { client: mqttClient, next } = await start(example('neuron'), 'neuron/+/+');
    await neuron.line('up');
    const data = '{"node_name":"plc1","group_name":"g/1","timestamp":1,"values":{"t":1},"errors":{},"metas":{}}';
    neuron.send(data);
    expect(await next(1)).toEqual([`neuron/plc1/g_1 ${data}`]);
    const command = '{"node_name":"plc1","group_name":"g","tag_name":"setpoint","value":21}';
    await mqttClient.publishAsync('write/neuron', command, { qos: 1 });
    await neuron.line(`ok ${command}`);
  });

  async function throughWorker(device: string, expected: string): Promise<void> {
    const { client: mqttClient, next } = await start(example('worker'), 'result/#');
    await expect
      .poll(() => gateway?.gateway.bridges.get('pair', 'worker')?.peers.length ?? 0, { interval: 5, timeout: 15_000 })
      .toBe(1);
    await mqttClient.publishAsync(`sensor/${device}/data`, '{"temp":10}', { qos: 1 });
    await mqttClient.publishAsync(`sensor/${device}/data`, '{"temp":25}', { qos: 1 });
    expect(await next(1)).toEqual([expected]);
  }

  test('the worker in Python', async () => {
    const file = path.join(folder, 'worker.py');
    writeFileSync(file, block('python').replaceAll('ipc:///tmp/tidegate-worker.ipc', url));
    const PYTHONPATH = path.join(import.meta.dirname, '../harness');
    children.push(spawn('python3', ['-B', file], { env: { ...process.env, PYTHONPATH }, stdio: 'ignore' }));
    await throughWorker('k1', 'result/k1 {"device": "k1", "temp": 25, "fahrenheit": 77.0}');
  });
  test('the worker in C', async () => {
    writeFileSync(path.join(folder, 'worker.c'), block('c'));
    execFileSync('gcc', ['-o', path.join(folder, 'worker'), path.join(folder, 'worker.c'), '-lnng'], { stdio: 'pipe' });
    children.push(spawn(path.join(folder, 'worker'), [url], { stdio: 'ignore' }));
    await throughWorker('k2', 'result/c {"device":"c","got":{"device":"k2","temp":25}}');
  });
});

describe('recipe of this library', () => {
  test('the worker in Node.js', async () => {
    const body = block('js').replace(/^import .*$/m, '');
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
      ...args: string[]
    ) => (...args: unknown[]) => Promise<void>;
    let made: EmbeddedGateway | null = null;
    const make = (source: Parameters<typeof createGateway>[0]): EmbeddedGateway => {
      made = createGateway(source);
      return made;
    };
    await new AsyncFunction('createGateway', 'process', 'Buffer', body)(make, { env: { WORKER_URL: url } }, Buffer);
    const { client: mqttClient, next } = await start(example('worker'), 'result/#');
    await expect.poll(() => gateway?.gateway.bridges.get('pair', 'worker')?.peers.length ?? 0, { interval: 5 }).toBe(1);
    await mqttClient.publishAsync('sensor/k3/data', '{"temp":25}', { qos: 1 });
    expect(await next(1)).toEqual(['result/k3 {"device":"k3","temp":25,"fahrenheit":77}']);
    await (made as EmbeddedGateway | null)?.stop(100);
  });
});
