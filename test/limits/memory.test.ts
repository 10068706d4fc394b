// The memory model: a gateway with a heap of 256 MB and limits as they are by default is filled with each kind of thing that a client can make
// it keep, in the worst shape known, until it refuses. Nothing dies, others are served, and what is counted is what the heap has grown by,
// within a quarter. FULL=1 keeps all of it, so that every kind is at its bound at once. HEAP_MB is the heap, 256 unless given.
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bytesOf, type Report, total, WatchedGateway, Wire } from './watch.ts';

const PERSON = { username: 'u', password: 'p' };
const CONF = `
listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth { allow_anonymous = true, password { u = "p" }, limits { per_user = 5 } }
bridges.nng.sub.in { enable = true, sub_url = "tcp://127.0.0.1:0", mode = listen, subscription = [{ remote_topic = "", local_topic = "nng" }] }
`;
/** What others may notice of it. */
const PING_MS = 200;
const MB = 1024 * 1024;
const FULL = process.env.FULL === '1';
/** Below it the noise of a running process is larger than the question. */
const WORTH_BYTES = 8 * MB;

let gateway: WatchedGateway;
let other: Wire;
let slowest = 0;
let pinging = true;

/** A client that does no harm: it asks again and again. */
async function pingOn(): Promise<void> {
  while (pinging) {
    slowest = Math.max(slowest, await other.ping(gateway));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

beforeAll(async () => {
  gateway = await WatchedGateway.start(CONF, 0, Number(process.env.HEAP_MB ?? 256));
  other = await Wire.client(gateway.port, 'other', PERSON);
}, 90_000);

afterAll(async () => {
  pinging = false;
  await gateway.stop();
});

/** Fills; gives what was counted and measured meanwhile. What `fill` returns is kept until then. */
async function filled(
  fill: () => Promise<{ drop(): void }[]>,
): Promise<{ grown: number; counted: number; after: Report }> {
  const before = await gateway.report();
  pinging = true;
  slowest = 0;
  const pings = pingOn();
  const kept = await fill();
  pinging = false;
  await pings;
  const after = await gateway.report();
  expect(gateway.ended, gateway.errors).toBeNull();
  if (FULL) return { grown: after.usedBytes - before.usedBytes, counted: total(after) - total(before), after };
  for (const one of kept) one.drop();
  // What has gone is not counted among what comes next.
  while ((await gateway.report(false)).numbers.tidegate_clients_connected > 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  expect(gateway.ended, gateway.errors).toBeNull();
  expect(slowest).toBeLessThan(PING_MS);
  const grown = after.usedBytes - before.usedBytes;
  const counted = total(after) - total(before);
  if (process.env.FIGURES !== undefined)
    console.log({ grown, counted, ratio: counted / grown, slowest, kinds: after.counted });
  if (grown > WORTH_BYTES || counted > WORTH_BYTES) {
    expect(counted / grown).toBeGreaterThan(0.75);
    expect(counted / grown).toBeLessThan(1.25);
  }
  return { grown, counted, after };
}

function pairs(count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => Buffer.from([0x26, 0, 2, 97, 97 + (i % 26), 0, 1, 98])));
}

/** Publishes retained messages until one is refused. */
async function retainUntilRefused(clientId: string, publishOf: (packetId: number) => Buffer): Promise<Wire> {
  const wire = await Wire.client(gateway.port, clientId, PERSON);
  for (let id = 1; !wire.codes.has(0x97) && id < 60_000; id++) {
    await wire.sent(publishOf(id));
    if (id % 64 === 0) await wire.until(() => wire.came[4] >= id - 64);
  }
  await wire.until(() => wire.codes.has(0x97));
  expect(wire.codes.get(0x97)).toBeGreaterThan(0);
  return wire;
}

/** Subscribes with one client after the other until a filter is refused. */
async function subscribeUntilRefused(name: string, filterOf: (n: number) => string, each: number): Promise<Wire[]> {
  const wires: Wire[] = [];
  let n = 0;
  for (let refused = false; !refused && wires.length < 200; ) {
    const wire = await Wire.client(gateway.port, `${name}${wires.length}`, PERSON);
    wires.push(wire);
    const filters = Array.from({ length: each }, () => filterOf(n++));
    wire.send(bytesOf.subscribe(filters));
    await wire.until(() => wire.came[9] > 0);
    refused = wire.codes.has(0x97);
  }
  expect(wires.at(-1)?.codes.get(0x97)).toBeGreaterThan(0);
  return wires;
}

/** Forgets what was retained below a topic. */
async function forget(topicOf: (id: number) => string, count: number): Promise<void> {
  if (FULL) return;
  const wire = await Wire.client(gateway.port, 'sweeper', PERSON);
  for (let id = 1; id <= count; id++) await wire.sent(bytesOf.publish(topicOf(id), Buffer.alloc(0), { retain: true }));
  await wire.ping(gateway);
  wire.drop();
}

const deepTopic = (id: number): string => `deep/${id}/${'a/'.repeat(125)}b`;

test('failed logins with names of 64 KB', async () => {
  const { after } = await filled(async () => {
    for (let n = 0; n < 300; n++) {
      const wire = await Wire.open(gateway.port);
      await wire.sent(bytesOf.connect('c', { username: `${n}${'u'.repeat(60_000)}`, password: 'no' }));
      await wire.until(() => false);
    }
    return [];
  });
  expect(after.counted.failures).toBeLessThan(MB);
}, 60_000);

test('retained messages on topics of 128 levels', async () => {
  await filled(async () => [
    await retainUntilRefused('deep', (id) =>
      bytesOf.publish(deepTopic(id), Buffer.of(1), { qos: 1, retain: true, packetId: id }),
    ),
  ]);
  await forget(deepTopic, 5000);
}, 120_000);

test('retained messages with properties', async () => {
  const properties = pairs(1000);
  const topicOf = (id: number): string => `p/${id}`;
  await filled(async () => [
    await retainUntilRefused('properties', (id) =>
      bytesOf.publish(topicOf(id), Buffer.of(1), { qos: 1, retain: true, packetId: id, properties }),
    ),
  ]);
  await forget(topicOf, 1000);
}, 120_000);

test('filters of 128 levels', async () => {
  await filled(() => subscribeUntilRefused('deep', (n) => `${n}/${'+/'.repeat(3)}${'a/'.repeat(120)}b`, 200));
}, 120_000);

test('filters of 64 KB', async () => {
  await filled(() => subscribeUntilRefused('long', (n) => `${n}/${'x'.repeat(60_000)}`, 10));
}, 120_000);

test('queues of sessions that are away', async () => {
  await filled(async () => {
    for (let n = 0; n < 100; n++) {
      const wire = await Wire.client(gateway.port, `away${n}`, { ...PERSON, expiry: 60 });
      wire.send(bytesOf.subscribe([`q/${n}/#`]));
      await wire.until(() => wire.came[9] > 0);
      if (!FULL) expect(wire.codes.has(0x97)).toBe(false);
      wire.drop();
    }
    const wire = await Wire.client(gateway.port, 'filler', PERSON);
    let id = 0;
    for (let n = 0; n < 100; n++) {
      for (let m = 0; m < 1024; m++) {
        id = (id % 60_000) + 1;
        wire.send(bytesOf.publish(`q/${n}/${m}`, Buffer.alloc(100), { qos: 1, packetId: id }));
      }
      await wire.until(() => wire.came[4] >= (n + 1) * 1024);
    }
    return [wire];
  });
}, 120_000);

test('sessions with names and wills of 60 KB', async () => {
  await filled(async () => {
    let refused = 0;
    for (let n = 0; n < 1500 && refused < 20; n++) {
      const wire = await Wire.open(gateway.port);
      const will = { topic: `w/${n}`, payload: Buffer.alloc(60_000) };
      wire.send(bytesOf.connect(`${n}${'i'.repeat(59_000)}`, { ...PERSON, will, expiry: 600 }));
      await wire.until(() => wire.came[2] > 0);
      if (wire.codes.has(0x97)) refused++;
      wire.drop();
    }
    expect(refused).toBeGreaterThan(0);
    return [];
  });
  // Who is here already goes on, and so does a session that was kept.
  const again = await Wire.client(gateway.port, `3${'i'.repeat(59_000)}`, { ...PERSON, expiry: 1 });
  expect(again.codes.get(0)).toBeGreaterThan(0);
  again.drop();
}, 120_000);

test('packets that come in part, from clients and from nobody', async () => {
  const { after } = await filled(async () => {
    const sockets: Socket[] = [];
    for (let n = 0; n < 300; n++) {
      const socket = connect(gateway.port, '127.0.0.1');
      socket.on('error', () => {});
      await new Promise<void>((resolve) => {
        socket.once('connect', resolve);
        socket.once('close', () => resolve());
      });
      const connectBytes = bytesOf.connect('x'.repeat(60_000), { will: { topic: 'w', payload: Buffer.alloc(60_000) } });
      socket.write(connectBytes.subarray(0, connectBytes.length - 1));
      sockets.push(socket);
    }
    const wires: Wire[] = [];
    for (let n = 0; n < 60; n++) {
      const wire = await Wire.client(gateway.port, `part${n}`, PERSON);
      const bytes = bytesOf.publish('t', Buffer.alloc(2 * MB));
      await wire.sent(bytes.subarray(0, bytes.length - 1));
      wires.push(wire);
    }
    await other.ping(gateway);
    return [...wires, { drop: () => sockets.map((socket) => socket.destroy()) }];
  });
  expect(after.counted.input).toBeLessThan(64 * MB);
}, 120_000);

test('topic aliases of 64 KB', async () => {
  await filled(async () => {
    const wires: Wire[] = [];
    for (let n = 0; n < 40; n++) {
      const wire = await Wire.client(gateway.port, `alias${n}`, PERSON);
      wires.push(wire);
      for (let alias = 1; alias <= 60; alias++) {
        const properties = Buffer.of(0x23, 0, alias);
        await wire.sent(bytesOf.publish(`${n}/${alias}/${'t'.repeat(60_000)}`, Buffer.of(1), { properties }));
      }
    }
    await other.ping(gateway);
    return wires;
  });
}, 120_000);

test('SP frames that never end', async () => {
  const { after } = await filled(async () => {
    const { hostname, port } = new URL(gateway.nng[0].replace('tcp:', 'http:'));
    const sockets: Socket[] = [];
    for (let n = 0; n < 120; n++) {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      await new Promise<void>((resolve) => {
        socket.once('connect', resolve);
        socket.once('close', () => resolve());
      });
      socket.write(Buffer.from([0, 0x53, 0x50, 0, 0, 0x20, 0, 0]));
      const head = Buffer.alloc(8);
      head.writeBigUInt64BE(BigInt(MB));
      socket.write(Buffer.concat([head, Buffer.alloc(MB - 1)]));
      sockets.push(socket);
    }
    await other.ping(gateway);
    return [{ drop: () => sockets.map((socket) => socket.destroy()) }];
  });
  expect(after.counted.sp).toBeLessThan(64 * MB);
}, 120_000);
