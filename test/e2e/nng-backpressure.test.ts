// overflow = block from end to end: MQTT publishers feel slow SP peers as late acknowledgements; nothing is refused, nothing lost.
import { afterEach, expect, test } from 'vitest';
import { Firehose } from '../harness/firehose.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { HEAD, type Peer, peerOf } from '../harness/nnggateway.ts';

let gateway: TestGateway | null = null;
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0)) await one();
  await gateway?.stop();
  gateway = null;
});

async function start(conf: string): Promise<TestGateway> {
  gateway = await testGateway(HEAD + conf);
  return gateway;
}
function closing(peer: Peer): Peer {
  undo.push(() => peer.socket.stop(100));
  return peer;
}
async function firehose(): Promise<Firehose> {
  const client = await Firehose.connect(gateway?.port ?? 0);
  undo.push(() => client.end());
  return client;
}

const numbers = (peer: Peer): number[] => peer.watch.bodies.map((body) => Number(body.slice(2, 10)));
const counted = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
function numbered(bytes: number): (i: number) => Buffer {
  return (i) => {
    const body = Buffer.alloc(bytes, 46);
    body.write(String(i).padStart(8, '0'));
    return body;
  };
}

for (const [type, protocol] of [
  ['pub', 'sub0'],
  ['push', 'pull0'],
] as const) {
  for (const qos of [1, 2] as const) {
    test(`${type}: a client that waits for no acknowledgement is not read while its QoS ${qos} publishes wait for a slow peer`, async () => {
      const running =
        await start(`bridges.nng.${type}.p { enable = true, ${type}_url = "tcp://127.0.0.1:0", overflow = block,
        send_buffer = 64KB, forwards = [ { local_topic = "b/#", remote_topic = "b", nng_delimiter = ":", qos = ${qos} } ] }`);
      const peer = closing(await peerOf(running, type, 'p', protocol));
      peer.socket.pause();
      const client = await firehose();
      const total = 8000;
      const sent = client.publish('b/1', qos, total, numbered(10_000));
      const waiting = () => running.gateway.bridges.get(type, 'p')?.waiting ?? { frames: 0, bytes: 0 };
      // 80 MB are on their way; what the gateway takes of them stays within the bound of one client, a chunk more at most.
      await expect.poll(() => waiting().bytes, { timeout: 10_000 }).toBeGreaterThan(4_000_000);
      await expect
        .poll(async () => {
          const before = waiting().frames;
          await new Promise((resolve) => setImmediate(resolve));
          return waiting().frames - before;
        })
        .toBe(0);
      expect(waiting().bytes).toBeLessThan(4_500_000);
      expect(client.acknowledged).toBeLessThan(total);
      peer.socket.resume();
      await sent;
      await client.until(() => client.acknowledged === total || client.closed);
      await peer.watch.until(() => peer.watch.bodies.length >= total);
      expect(numbers(peer)).toEqual(counted(total));
      expect(running.gateway.bridges.get(type, 'p')?.rules[0].dropped).toEqual({});
    }, 60_000);
  }
}

test('small publishes of a client before 5.0 stop at max_awaiting_rel, and the others go on', async () => {
  const running = await start(`mqtt { max_awaiting_rel = 100 }
    bridges.nng.push.p { enable = true, push_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "b", remote_topic = "b", nng_delimiter = ":", qos = 1 } ] }`);
  const client = await firehose();
  const sent = client.publish('b', 1, 1000, numbered(10));
  await expect.poll(() => running.gateway.bridges.get('push', 'p')?.waiting?.frames).toBe(100);
  const other = await firehose();
  const reader = await firehose();
  await reader.subscribe('other', 0);
  await other.publish('other', 1, 10, numbered(10));
  await other.until(() => other.acknowledged === 10);
  await reader.until(() => reader.received.length === 10);
  expect(running.gateway.bridges.get('push', 'p')?.waiting?.frames).toBe(100);
  const peer = closing(await peerOf(running, 'push', 'p', 'pull0'));
  await sent;
  await client.until(() => client.acknowledged === 1000);
  await peer.watch.until(() => peer.watch.bodies.length === 1000);
  expect(numbers(peer)).toEqual(counted(1000));
});
