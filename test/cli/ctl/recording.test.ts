// `tidegate ctl recording` against a gateway that records: tables, a file, a replay.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import mqtt, { type MqttClient } from 'mqtt';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { registerCtl } from '../../../src/cli/ctl/ctl.ts';
import { type TestGateway, testGateway } from '../../harness/gateway.ts';
import { fakeIo } from '../../harness/io.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'ctl-recording-'));
let gateway: TestGateway;
let client: MqttClient;
let url: string;

beforeAll(async () => {
  gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
record { path = "${folder}/archive.db", topics = ["plant/#"] }
http_server { port = 0 }`);
  url = `http://${String(gateway.messages.find(({ id }) => id === 'GW-READY')?.fields?.http)}`;
  client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { reconnectPeriod: 0 });
  for (const [i, payload] of ['one', 'two', 'three'].entries())
    await client.publishAsync(`plant/${i % 2}`, payload, { qos: 1 });
  for (let messages = 0; messages < 3; ) {
    const shown: unknown = JSON.parse(await ctl('recording', 'status', '--json'));
    messages = (shown as { messages: number }).messages;
  }
}, 60_000);
afterAll(async () => {
  await client?.endAsync(true);
  await gateway?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ctl(...words: string[]): Promise<string> {
  const io = fakeIo();
  const program = new Command('tidegate').exitOverride().enablePositionalOptions();
  program.configureOutput({ writeErr: () => {}, writeOut: () => {} });
  registerCtl(program, { io, exit: () => {} }, { TIDEGATE_URL: url }, false);
  await program.parseAsync(['ctl', ...words], { from: 'user' });
  return io.stdout.text();
}

test('messages are a table, newest first unless asked otherwise, as many as are wanted', async () => {
  const lines = (await ctl('recording', 'messages', 'plant/#', '--from', '-1h', '--limit', '2')).trimEnd().split('\n');
  expect(lines[0]).toMatch(/^TIME +TOPIC +QOS +BYTES +FROM +PAYLOAD$/);
  expect(lines.slice(1).map((line) => line.split(/ {2,}/).at(-1))).toEqual(['three', 'two']);
  const oldest: unknown = JSON.parse(await ctl('recording', 'messages', 'plant/0', '--oldest', '--json'));
  expect((oldest as { payload: string }[]).map(({ payload }) => payload)).toEqual(['one', 'three']);
});

test('status, topics and files are those of the gateway', async () => {
  expect(await ctl('recording', 'status')).toMatch(/^topics +plant\/#\nmessages +3\n/);
  expect(await ctl('recording', 'topics', '--search', '1')).toMatch(/^TOPIC +NEWEST\nplant\/1 +\d{4}-/);
  const lines = (await ctl('recording', 'export', 'plant/+')).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { payload: string }).payload)).toEqual(['one', 'two', 'three']);
  expect(await ctl('recording', 'export', 'plant/1', '--format', 'csv')).toContain(',two,');
  await expect(ctl('recording', 'export', 'plant/#/x')).rejects.toThrow('is not a topic filter');
});

test('a replay publishes what was recorded below its prefix and is listed', async () => {
  await client.subscribeAsync('again/#', { qos: 1 });
  const came: string[] = [];
  const all = new Promise<void>((resolve) => {
    client.on('message', (topic, payload) => {
      if (came.push(`${topic} ${payload}`) === 3) resolve();
    });
  });
  const started = await ctl('recording', 'replay', 'plant/#', '--from', '-1h', '--prefix', 'again/', '--speed', '0');
  expect(started).toBe('replay 1 publishes below again/\n');
  await all;
  expect(came).toEqual(['again/plant/0 one', 'again/plant/1 two', 'again/plant/0 three']);
  for (let text = ''; !/^ *1 +finished +plant\/# +again\/ +0 +3 +0/m.test(text); )
    text = await ctl('recording', 'replays');
  await expect(ctl('recording', 'stop', '99')).rejects.toThrow();
});
