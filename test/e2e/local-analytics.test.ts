// Local analytics processes: peers on libnng that speak as eKuiper, Neuron and nngproxy do, to the byte, against a gateway that is killed and
// started again. Skipped, with the reason, where gcc or libnng-dev is missing.
import { setTimeout } from 'node:timers/promises';
import mqtt from 'mqtt';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Firehose } from '../harness/firehose.ts';
import { gatewayProgram, KillGateway, type Program } from '../harness/killgateway.ts';
import { type NngPeer, NngPeers } from '../harness/nngpeer.ts';

const peers = new NngPeers();
let program: Program;
let gateway: KillGateway;
const clients: Firehose[] = [];
beforeAll(async () => {
  program = await gatewayProgram();
});
afterAll(async () => {
  program.remove();
  await peers.remove();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.end();
  await peers.clear();
  await gateway.remove();
});

async function start(conf: string): Promise<void> {
  gateway = new KillGateway(
    program,
    `listeners.tcp { bind = "127.0.0.1:0" }\npersistence { path = "{dir}/data/t.db", sync = ack }\nlog { level = info, format = json }\n${conf}`,
  );
  await gateway.start();
}
async function firehose(): Promise<Firehose> {
  const client = await Firehose.connect(gateway.port);
  clients.push(client);
  return client;
}
const url = (): string => `ipc://${gateway.folder}/p.ipc`;
const numbered = (i: number): Buffer => Buffer.from(`{"n":${i},"values":{"temp":21.5},"errors":{}}`);
const numberOf = (line: string): number => Number(/"n":(\d+)/.exec(line)?.[1] ?? -1);
/** Each number once, in the order in which they first came. */
const firsts = (lines: readonly string[]): number[] => [...new Set(lines.map(numberOf))];
const counted = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Ten rounds where somebody asks for them; the short form shows the same. */
const ROUNDS = Number(process.env.KILL_ROUNDS ?? 3);
const HALF = 500;
const MOST_HELD_MS = 1000;

const withLibrary = describe.skipIf(peers.missing !== null);
withLibrary(`peers on libnng${peers.missing === null ? '' : ` (${peers.missing})`}`, () => {
  /** Both sides are killed and started again, ten times each; 10,000 messages go each way. */
  async function survive(preset: 'ekuiper' | 'neuron', mode: 'listen' | 'dial'): Promise<void> {
    await start(`bridges.nng.pair.p { enable = true, preset = ${preset}, pair_url = "ipc://{dir}/p.ipc", reconnect_max = 100ms,
      forwards = [ { local_topic = "out" } ], subscription = [ { local_topic = "in/{json:node}" } ] }`);
    const seen: string[] = [];
    let sent = 0;
    let brought = 0;
    let peer: NngPeer | null = null;
    for (let round = 0; round < ROUNDS; round++) {
      await peer?.kill();
      const client = await firehose();
      // Nobody is there: no publisher waits for it.
      const before = performance.now();
      await client.publish('out', 1, 1, () => numbered(sent));
      await client.until(() => client.acknowledged === 1);
      expect(performance.now() - before).toBeLessThan(MOST_HELD_MS);
      await client.publish('out', 1, HALF - 1, (i) => numbered(sent + 1 + i));
      await client.until(() => client.acknowledged === HALF);
      sent += HALF;
      await gateway.kill();
      await gateway.start();
      const next = peers.start('pair0', mode, url(), '--json');
      peer = next;
      await next.line('up');
      const again = await firehose();
      await again.subscribe('in/+', 0);
      await again.publish('out', 1, HALF, (i) => numbered(sent + i));
      await again.until(() => again.acknowledged === HALF);
      sent += HALF;
      const lines = counted(2 * HALF).map((i) => `{"node":"k${round}","n":${brought + i}}`);
      next.send(...lines);
      await again.until(() => again.received.length === lines.length);
      expect(again.received.map((body) => body.toString())).toEqual(lines);
      brought += lines.length;
      await next.until(() => next.messages.some((line) => numberOf(line) === sent - 1));
      seen.push(...next.messages);
      again.end();
      client.end();
    }
    expect(seen.filter((line) => line.startsWith('bad'))).toEqual([]);
    expect(firsts(seen)).toEqual(counted(2 * ROUNDS * HALF));
    expect(brought).toBe(2 * ROUNDS * HALF);
  }

  test(
    'eKuiper dials: bare JSON both ways, nothing of QoS 1 lost, order kept',
    () => survive('ekuiper', 'dial'),
    120_000,
  );
  test(
    'Neuron listens: bare JSON both ways, nothing of QoS 1 lost, order kept',
    () => survive('neuron', 'listen'),
    120_000,
  );

  test('the trace header of Neuron is taken off and becomes a property, ours is put on', async () => {
    await start(`bridges.nng.pair.p { enable = true, preset = ekuiper, pair_url = "ipc://{dir}/p.ipc",
      forwards = [ { local_topic = "out", trace = add } ], subscription = [ { local_topic = "in" } ] }`);
    const peer = peers.start('pair0', 'dial', url(), '--json', '--trace');
    await peer.line('up');
    const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { protocolVersion: 5 });
    const came = new Promise<[string, string | undefined]>((resolve) => {
      client.on('message', (_topic, payload, packet) => {
        resolve([payload.toString(), String(packet.properties?.userProperties?.traceparent)]);
      });
    });
    await client.subscribeAsync('in', { qos: 1 });
    peer.send('{"t":1}');
    expect(await came).toEqual(['{"t":1}', `00-${'01'.repeat(16)}-${'02'.repeat(8)}-01`]);
    const traceparent = `00-${'0a'.repeat(16)}-${'0b'.repeat(8)}-00`;
    await client.publishAsync('out', '{"t":2}', { qos: 1, properties: { userProperties: { traceparent } } });
    await peer.line(`ok 0ace${'0a'.repeat(16)}${'0b'.repeat(8)}|{"t":2}`);
    await client.endAsync(true);
  });

  test("nngproxy's frames: the payload alone, to and from pub0 and sub0", async () => {
    await start(`bridges.nng.pub.o { enable = true, preset = nngproxy, pub_url = "ipc://{dir}/o.ipc", forwards = [ { local_topic = "out/#" } ] }
      bridges.nng.sub.i { enable = true, preset = nngproxy, sub_url = "ipc://{dir}/i.ipc", subscription = [ { local_topic = "in" } ] }`);
    const reader = peers.start('sub0', 'dial', `ipc://${gateway.folder}/o.ipc`);
    const writer = peers.start('pub0', 'dial', `ipc://${gateway.folder}/i.ipc`);
    await Promise.all([reader.line('up'), writer.line('up')]);
    const client = await firehose();
    await client.subscribe('in', 0);
    await client.publish('out/a', 1, 3, (i) => Buffer.from(`hello ${i}`));
    await reader.until(() => reader.messages.length === 3);
    expect(reader.messages).toEqual(['ok hello 0', 'ok hello 1', 'ok hello 2']);
    writer.send('a/b:c', 'x');
    await client.until(() => client.received.length === 2);
    expect(client.received.map((body) => body.toString())).toEqual(['a/b:c', 'x']);
  });

  test('a second eKuiper is refused and comes in after the first has gone', async () => {
    await start(
      `bridges.nng.pair.p { enable = true, preset = ekuiper, pair_url = "ipc://{dir}/p.ipc", forwards = [ { local_topic = "out" } ] }`,
    );
    const first = peers.start('pair0', 'dial', url(), '--json');
    await first.line('up');
    const client = await firehose();
    await client.publish('out', 1, 1, numbered);
    await first.until(() => first.messages.length === 1);
    const second = peers.start('pair0', 'dial', url(), '--json');
    await second.line('ready');
    expect(second.messages).toEqual([]);
    await first.kill();
    // pair0 has no acknowledgements: what is written before the gateway sees that the first has gone, goes with it. The second comes in after that.
    for (let n = 1; second.messages.length === 0; n++) {
      await client.publish('out', 1, 1, () => numbered(n));
      await setTimeout(20);
    }
  });
});
