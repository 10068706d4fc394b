// A gateway on a disk that really fills up: a small tmpfs, so root only. Nothing acknowledged is lost, what needs no disk goes on, and it
// recovers alone when there is space.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectAsync, type IClientOptions, type MqttClient, connect as open } from 'mqtt';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const folder = mkdtempSync(join(tmpdir(), 'tidegate-disk-'));
const mounted =
  process.geteuid?.() === 0 && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder]).status === 0;
afterAll(() => {
  if (mounted) spawnSync('umount', ['-l', folder]);
  rmSync(folder, { recursive: true, force: true });
});

const clients: MqttClient[] = [];
const gateways: TestGateway[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.endAsync(true);
  for (const gateway of gateways.splice(0)) await gateway.stop();
});

async function start(path: string): Promise<TestGateway> {
  const gateway = await testGateway(`
    listeners.tcp { bind = "127.0.0.1:0" }
    persistence { path = "${path}" }
    mqtt { max_mqueue_len = 0, max_mqueue_bytes = 0 }
  `);
  gateways.push(gateway);
  return gateway;
}

async function connect({ port }: TestGateway, clientId: string, more: IClientOptions = {}): Promise<MqttClient> {
  const client = await connectAsync(`mqtt://127.0.0.1:${port}`, {
    clientId,
    protocolVersion: 5,
    reconnectPeriod: 0,
    ...more,
  });
  client.on('error', () => {});
  clients.push(client);
  return client;
}

const KEEP: IClientOptions = { clean: false, properties: { sessionExpiryInterval: 3600 } };

/** The reason code of a QoS 1 publish. */
async function publish(client: MqttClient, topic: string, payload: string | Buffer): Promise<number> {
  try {
    await client.publishAsync(topic, payload, { qos: 1 });
    return 0;
  } catch (error) {
    return (error as { code?: number }).code ?? -1;
  }
}

function numbered(n: number): Buffer {
  return Buffer.from(`${n}`.padEnd(20_000, ' '));
}

/** Payloads a client gets until `count` of them are here. */
function receive(client: MqttClient, count: number): Promise<string[]> {
  const got: string[] = [];
  return new Promise((resolve) => {
    client.on('message', (_topic, payload) => {
      got.push(payload.toString().trim());
      if (got.length === count) resolve(got);
    });
  });
}

/** What waits for a kept session, at least `count` messages. */
async function drain({ port }: TestGateway, clientId: string, count: number): Promise<string[]> {
  const client = open(`mqtt://127.0.0.1:${port}`, { clientId, protocolVersion: 5, reconnectPeriod: 0, ...KEEP });
  clients.push(client);
  return receive(client, count);
}

describe.skipIf(!mounted)('a full disk (skipped where a small tmpfs cannot be mounted)', { timeout: 60_000 }, () => {
  it('refuses QoS 1 to kept sessions, lets QoS 0 and reading go on, recovers alone, and loses nothing acknowledged', async () => {
    const gateway = await start(join(folder, 'data', 't.db'));
    const kept = await connect(gateway, 'kept', KEEP);
    await kept.subscribeAsync('d/#', { qos: 1 });
    await kept.endAsync(false, { properties: { sessionExpiryInterval: 3600 } });
    const publisher = await connect(gateway, 'publisher');
    await publisher.publishAsync('r/before', 'stays', { qos: 1, retain: true });

    const acknowledged: string[] = [];
    let n = 0;
    let code = 0;
    while (code === 0) {
      code = await publish(publisher, 'd/x', numbered(++n));
      if (code === 0) acknowledged.push(`${n}`);
    }
    expect(code).toBe(0x97);
    expect(acknowledged.length).toBeGreaterThan(50);

    // The last byte goes to somebody else: now writing fails, and is not only refused.
    for (let bytes = 1 << 20; bytes >= 4096; bytes >>= 1) {
      try {
        for (let i = 0; ; i++) writeFileSync(join(folder, `filler-${bytes}-${i}`), Buffer.alloc(bytes));
      } catch {
        // No space for one of this size.
      }
    }
    expect(await publish(publisher, 'd/x', numbered(++n))).toBe(0x97);
    expect(await publish(publisher, 'other', 'x')).toBe(0);
    await expect(publisher.publishAsync('r/new', 'x', { qos: 1, retain: true })).rejects.toMatchObject({ code: 0x97 });
    await expect(connect(gateway, 'new', KEEP)).rejects.toMatchObject({ code: 0x97 });

    // 3.1.1 cannot be told: no PUBACK, and the connection ends.
    const old = await connect(gateway, 'old', { protocolVersion: 4 });
    const closed = new Promise((resolve) => old.once('close', () => resolve('closed')));
    let puback = false;
    old.publish('d/x', numbered(++n), { qos: 1 }, (error) => {
      puback = error === undefined || error === null;
    });
    expect(await closed).toBe('closed');
    expect(puback).toBe(false);

    const reader = await connect(gateway, 'reader');
    const live = receive(reader, 2);
    await reader.subscribeAsync(['r/#', 'live'], { qos: 0 });
    await publisher.publishAsync('live', 'goes on', { qos: 0 });
    expect((await live).sort()).toEqual(['goes on', 'stays']);

    // What a power cut would leave at this moment, for later: it must hold all that was acknowledged.
    const copies = mkdtempSync(join(tmpdir(), 'tidegate-cut-'));
    cpSync(join(folder, 'data'), join(copies, 'then'), { recursive: true });

    spawnSync('mount', ['-o', 'remount,size=24m', folder]);
    for (code = -1; code !== 0; ) {
      code = await publish(publisher, 'd/x', numbered(++n));
      if (code === 0) acknowledged.push(`${n}`);
      else await new Promise((resolve) => setTimeout(resolve, 50));
    }
    cpSync(join(folder, 'data'), join(copies, 'now'), { recursive: true });
    for (const [name, promised] of [
      ['then', acknowledged.slice(0, -1)],
      ['now', acknowledged],
    ] as const) {
      const again = await start(join(copies, name, 't.db'));
      const got = await drain(again, 'kept', promised.length);
      expect(promised.filter((payload) => !got.includes(payload))).toEqual([]);
      // A refused one may be there, in its place.
      expect(got).toEqual([...got].sort((a, b) => Number(a) - Number(b)));
    }
    rmSync(copies, { recursive: true, force: true });
  });
});
