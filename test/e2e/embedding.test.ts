// The examples of docs/embedding.md, as they stand there, against the library.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import mqtt from 'mqtt';
import { afterEach, describe, expect, it } from 'vitest';
import { Aedes } from '../../src/aedes.ts';
import { createGateway, type EmbeddedGateway, GatewayError } from '../../src/index.ts';

const page = readFileSync(new URL('../../docs/embedding.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]);

/** Runs an example: what it imports is the library under test and an MQTT client, what it prints is collected. */
async function run(example: string): Promise<string[]> {
  const printed: string[] = [];
  const body = example.replace(/^import .*$/gm, '');
  const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
    ...args: string[]
  ) => (...args: unknown[]) => Promise<void>;
  const console = { log: (...words: unknown[]) => printed.push(words.join(' ')) };
  const servers: net.Server[] = [];
  const createServer = (handle: (socket: net.Socket) => void): net.Server => {
    servers.push(net.createServer(handle));
    return servers[servers.length - 1];
  };
  const given = { createGateway, mqtt, console, Buffer, Aedes, net, createServer };
  await new AsyncFunction(...Object.keys(given), body)(...Object.values(given));
  for (const server of servers) if (server.listening) await once(server, 'close');
  return printed;
}

/** The example that holds this text. */
function exampleOf(text: string): string {
  const found = examples.filter((example) => example.includes(text));
  expect(found).toHaveLength(1);
  return found[0];
}

describe('documentation of the library', () => {
  it('has a first example that prints an address and a message', async () => {
    const [address, message] = await run(examples[0]);
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(message).toBe('sensor/1/temp 21.5');
  });

  it('has a second example whose hooks let a client in and one of its messages through', async () => {
    expect(await run(examples[1])).toEqual(['connected m1', 'm1 meter-1/power 230']);
  });

  it('has an example for programs of aedes, and one of a transport for NNG, that run to their ends', async () => {
    expect(await run(exampleOf('tidegate/aedes'))).toEqual([]);
    expect(await run(exampleOf('program://line'))).toEqual([]);
  });

  it('has an example of a plugin that the gateway loads', async () => {
    const folder = mkdtempSync(path.join(os.homedir(), '.tidegate-plugin-'));
    writeFileSync(path.join(folder, 'my-plugin.mjs'), exampleOf('// my-plugin.mjs'), { mode: 0o644 });
    const file = path.join(folder, 'gateway.conf');
    writeFileSync(file, 'listeners.tcp.bind = "127.0.0.1:0"\nplugins = ["./my-plugin.mjs"]\n');
    const said: unknown[] = [];
    const plugged = createGateway(
      { file },
      { log: (_, id, fields) => id === 'PLUGIN-SAYS' && said.push(fields?.text) },
    );
    try {
      await plugged.start();
      expect(said).toEqual(['ready']);
    } finally {
      await plugged.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('has an example that gets a frame over inproc', async () => {
    expect(await run(exampleOf('inproc://analytics'))).toEqual(['edge:21.5']);
  });
});

describe('embedded gateway', () => {
  let gateway: EmbeddedGateway | null = null;
  afterEach(() => gateway?.stop());

  it('throws every problem of a wrong configuration before anything is opened', () => {
    expect(() => createGateway({ hocon: 'mqtt { max_qos = 9 }\npersistence { syncc = ack }' })).toThrow(GatewayError);
    expect(() => createGateway({ tree: { mqtt: { max_qos: 9 } } })).toThrow(/max_qos/);
  });

  it('refuses what is no topic name and what is no topic filter', async () => {
    gateway = createGateway({ tree: { listeners: { tcp: { bind: '127.0.0.1:0' } } } });
    await gateway.start();
    await expect(gateway.publish('a/#', 'x')).rejects.toThrow(GatewayError);
    expect(() => gateway?.subscribe('a/#/b', () => {})).toThrow(GatewayError);
  });

  it('gives retained messages to a new subscription first, and not when it does not want them', async () => {
    gateway = createGateway({ tree: { listeners: { tcp: { bind: '127.0.0.1:0' } } } });
    await gateway.start();
    await gateway.publish('state/1', 'kept', { retain: true, qos: 1 });
    const got: string[] = [];
    gateway.subscribe('state/#', (message) => got.push(`${message.topic} ${message.retain}`), { qos: 1 });
    gateway.subscribe('state/+', () => got.push('never'), { retained: false });
    expect(got).toEqual(['state/1 true']);
  });
});
