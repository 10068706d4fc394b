// Stops and changes in the order of the data: what was acknowledged when a gateway stops, or takes a bridge away, has gone to every bridge.
// The gateway is a process of its own, with an NNG pipeline, an NNG publisher and a remote broker that all work.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Protocol, SpSocket } from '../../src/sp/sp.ts';
import { KillClient } from '../harness/killclient.ts';
import { gatewayProgram, KillGateway, type Program } from '../harness/killgateway.ts';
import { KillRemote } from '../harness/killremote.ts';
import { SP_DEFAULTS, testDriver, Watch } from '../harness/spsockets.ts';

let program: Program;
let gateway: KillGateway;
let remote: KillRemote;
let port: number;
let sockets: SpSocket[] = [];
let publishers: KillClient[] = [];
beforeAll(async () => {
  program = await gatewayProgram();
  return () => program.remove();
});
afterEach(async () => {
  for (const client of publishers) client.cut();
  await Promise.all(sockets.map((socket) => socket.stop(50)));
  await gateway.remove();
  remote.stop();
  sockets = [];
  publishers = [];
});

const BASE = `
listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "{dir}/data/t.db", sync = ack }
log { level = warn, format = json }
`;

/** All bridges, with something that only a new worker can change. */
function bridges(port: number, keepalive: string, bytes: string): string {
  const rule = 'local_topic = "t/#", remote_topic = "", qos = 1';
  const nng = `enable = true, mode = listen, send_buffer = ${bytes}, spool = 64MB, overflow = block
    forwards = [ { ${rule}, nng_delimiter = ":" } ]`;
  return `
bridges.mqtt.up {
  enable = true, server = "mqtt-tcp://127.0.0.1:${port}", proto_ver = 4, clientid = "gw", keepalive = ${keepalive}, clean_start = false
  forwards = [ { ${rule} } ]
}
bridges.nng.push.work { push_url = "ipc://{dir}/push.ipc", ${nng} }
bridges.nng.pub.news { pub_url = "ipc://{dir}/pub.ipc", ${nng} }
`;
}

/** Payloads a peer has got. */
function peer(protocol: Protocol, file: string): () => string[] {
  const socket = testDriver().open(protocol, SP_DEFAULTS);
  sockets.push(socket);
  const watch = new Watch(socket);
  if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
  socket.dial(`ipc://${gateway.folder}/${file}`);
  return () => watch.bodies.map((body) => body.slice(body.indexOf(':') + 1));
}

async function begin(): Promise<Record<string, () => readonly string[]>> {
  remote = new KillRemote();
  port = await remote.start();
  gateway = new KillGateway(program, BASE + bridges(port, '60s', '1MB'));
  await gateway.start();
  const ends = { push: peer('pull0', 'push.ipc'), pub: peer('sub0', 'pub.ipc'), mqtt: () => remote.received };
  publishers = [4, 5, 4].map(
    (version, i) =>
      new KillClient({
        clientId: `p${i}`,
        version: version as 4 | 5,
        publishes: { topic: () => `t/p${i}`, body: () => 'x', qos: i === 2 ? 2 : 1, retain: false, window: 50 },
      }),
  );
  for (const client of publishers) {
    client.publish(true);
    client.connect(gateway.port);
  }
  await Promise.all(publishers.map((client) => client.until(() => client.acknowledged.size > 200)));
  return ends;
}

/** Acknowledged messages by the client id of their publisher. */
type Acknowledged = ReadonlyMap<string, ReadonlySet<number>>;

function acknowledged(): Acknowledged {
  return new Map(publishers.map((client) => [client.options.clientId, new Set(client.acknowledged)]));
}

/** How many of them did not reach an end, by its name. */
function missing(ends: Record<string, () => readonly string[]>, promised: Acknowledged): Record<string, number> {
  const lost: Record<string, number> = {};
  for (const [name, got] of Object.entries(ends)) {
    const there = new Set(got().map((text) => text.split(' ', 2).join(' ')));
    lost[name] = 0;
    for (const [clientId, numbers] of promised)
      for (const n of numbers) if (!there.has(`${clientId} ${n}`)) lost[name]++;
  }
  return lost;
}

async function arrived(ends: Record<string, () => readonly string[]>, promised: Acknowledged): Promise<void> {
  const none = { push: 0, pub: 0, mqtt: 0 };
  await expect.poll(() => missing(ends, promised), { timeout: 20_000, interval: 50 }).toEqual(none);
}

/** Every publisher goes on for a while. */
async function more(): Promise<void> {
  await Promise.all(
    publishers.map((client) => {
      const most = client.acknowledged.size + 200;
      return client.until(() => client.acknowledged.size > most);
    }),
  );
}

describe('what was acknowledged has gone to every bridge', { timeout: 60_000 }, () => {
  test('when the gateway stops in the middle of traffic', async () => {
    const ends = await begin();
    expect(await gateway.stop()).toBe(0);
    await arrived(ends, acknowledged());
  });

  test('when a reload gives every bridge a new worker', async () => {
    const ends = await begin();
    for (let i = 1; i <= 3; i++) {
      await gateway.reload(BASE + bridges(port, `${60 + i}s`, `${1 + i}MB`));
      await more();
    }
    for (const client of publishers) client.publish(false);
    await Promise.all(publishers.map((client) => client.until(() => client.settled)));
    await arrived(ends, acknowledged());
    expect(publishers.flatMap((client) => client.complaints)).toEqual([]);
  });

  test('when a reload takes every bridge away', async () => {
    const ends = await begin();
    const promised = acknowledged();
    await gateway.reload(BASE);
    await arrived(ends, promised);
    await more();
  });
});
