// push, pull and pair bridges: src/bridge/nng/bridge.ts with its halves over a stub broker and in-process SP peers.
import { afterEach, expect, test } from 'vitest';
import type { PairBridgeOptions } from '../../../src/bridge/bridge.ts';
import { BridgeBench, forward, pairBridge, pubBridge, subBridge, taking } from '../../harness/bridges.ts';
import { sendText } from '../../harness/spsockets.ts';

let bench: BridgeBench;
afterEach(() => bench.stop());

const push = (rules = [forward('a', 'r', ':', { qos: 1 })], more = {}) =>
  pubBridge('p', rules, { type: 'push', overflow: 'block', ...more });

test('push bridge sends each frame to one peer, in turn', async () => {
  bench = new BridgeBench(push());
  await bench.supervisor.start();
  const one = await bench.peer('pull0', 'inproc://p-pub');
  const two = await bench.peer('pull0', 'inproc://p-pub');
  for (let i = 0; i < 10; i++) bench.broker.publish('a', String(i));
  await one.watch.until(() => one.watch.bodies.length === 5);
  await two.watch.until(() => two.watch.bodies.length === 5);
  expect(one.watch.bodies).toEqual(['r:0', 'r:2', 'r:4', 'r:6', 'r:8']);
  expect(two.watch.bodies).toEqual(['r:1', 'r:3', 'r:5', 'r:7', 'r:9']);
});
test('push bridge gives a peer that does not read no more than it can take, others get the rest', async () => {
  bench = new BridgeBench(push());
  await bench.supervisor.start();
  const slow = await bench.peer('pull0', 'inproc://p-pub');
  const quick = await bench.peer('pull0', 'inproc://p-pub');
  slow.socket.pause();
  const big = 'x'.repeat(10_000);
  for (let i = 0; i < 2000; i++) bench.broker.publish('a', `${String(i).padStart(4, '0')}${big}`, 1);
  await quick.watch.until(() => quick.watch.bodies.at(-1)?.startsWith('r:1999') === true);
  // 20 MB went through; the peer that does not read has what its connection holds.
  expect(quick.watch.bodies.length).toBeGreaterThan(1900);
  const numbers = quick.watch.bodies.map((body) => Number(body.slice(2, 6)));
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
});
test('push bridge keeps frames while no peer is there and lets QoS 1 publishers wait', async () => {
  bench = new BridgeBench(push());
  await bench.supervisor.start();
  const held = bench.broker.publish('a', '1', 1);
  bench.broker.publish('a', '2', 0);
  expect(held?.open).toBe(true);
  expect(bench.supervisor.get('push', 'p')?.waiting).toMatchObject({ frames: 2, spooled: 0 });
  const peer = await bench.peer('pull0', 'inproc://p-pub');
  await peer.watch.until(() => peer.watch.bodies.length === 2);
  expect(peer.watch.bodies).toEqual(['r:1', 'r:2']);
  expect(held?.open).toBe(false);
});
test('push bridge that drops counts frames that find nobody', async () => {
  bench = new BridgeBench(push(undefined, { overflow: 'drop_newest' }));
  await bench.supervisor.start();
  expect(bench.broker.publish('a', '1', 1)).toBeNull();
  expect(bench.supervisor.get('push', 'p')?.rules[0].dropped).toEqual({ 'no-peer': 1 });
});
test('pull bridge publishes what its peers push', async () => {
  bench = new BridgeBench(subBridge('s', [taking('can', 'l/{topic}', ':', { qos: 1 })], { type: 'pull' }));
  await bench.supervisor.start();
  const peer = await bench.peer('push0', 'inproc://s-sub');
  for (const body of ['can/1:21', 'nothing', 'can/2:22']) sendText(peer.socket, body);
  await bench.broker.until(() => bench.broker.published.length === 2);
  expect(bench.broker.seen()).toEqual(['l/can/1 21', 'l/can/2 22']);
  expect(bench.supervisor.get('pull', 's')).toMatchObject({ type: 'pull', unmatched: 1, rules: [{ matched: 2 }] });
  expect(bench.metrics.value('tidegate_bridge_matched_total', { bridge: 's', type: 'pull', rule: '0' })).toBe(2);
});

for (const protocol of ['pair0', 'pair1'] as const) {
  test(`pair bridge goes both ways over ${protocol}`, async () => {
    bench = new BridgeBench(pairBridge('d', [forward('set/#', '')], [taking('state', '')], { protocol }));
    await bench.supervisor.start();
    const peer = await bench.peer(protocol, 'inproc://d-pair');
    bench.broker.publish('set/a', '1');
    await peer.watch.until(() => peer.watch.bodies.length === 1);
    expect(peer.watch.bodies).toEqual(['set/a:1']);
    sendText(peer.socket, 'state/a:on');
    await bench.broker.until(() => bench.broker.published.length === 1);
    expect(bench.broker.seen()).toEqual(['state/a on']);
  });
}
test('pair bridge never sends back what came from its peer', async () => {
  bench = new BridgeBench(pairBridge('d', [forward('#', '')], [taking('x', '')]));
  await bench.supervisor.start();
  const peer = await bench.peer('pair0', 'inproc://d-pair');
  sendText(peer.socket, 'x:1');
  await bench.broker.until(() => bench.broker.published.length === 1);
  bench.broker.publish('end', '~');
  await peer.watch.until(() => peer.watch.bodies.length === 1);
  expect(peer.watch.bodies).toEqual(['end:~']);
});
test('pair bridge counts both directions apart', async () => {
  bench = new BridgeBench(pairBridge('d', [forward('set', 's')], [taking('state', '')]));
  await bench.supervisor.start();
  const peer = await bench.peer('pair0', 'inproc://d-pair');
  bench.broker.publish('set', '12');
  sendText(peer.socket, 'state:on');
  sendText(peer.socket, 'state:off');
  await bench.broker.until(() => bench.broker.published.length === 2);
  const status = bench.supervisor.get('pair', 'd');
  expect(status?.rules).toMatchObject([{ matched: 1, bytes: 2 }]);
  expect(status?.taking).toMatchObject([{ matched: 2, bytes: 5 }]);
  const of = (rule: string) =>
    bench.metrics.value('tidegate_bridge_forwarded_total', { bridge: 'd', type: 'pair', rule });
  expect([of('forwards.0'), of('subscription.0')]).toEqual([1, 2]);
});
test('pair bridge takes one peer and refuses a second', async () => {
  bench = new BridgeBench(pairBridge('d', [forward('set', 's')], []));
  await bench.supervisor.start();
  await bench.peer('pair0', 'inproc://d-pair');
  void bench.peer('pair0', 'inproc://d-pair').catch(() => {});
  await bench.until(() => bench.lines.some((line) => line.id === 'NNG-REFUSED'));
  expect(bench.supervisor.get('pair', 'd')?.peers).toHaveLength(1);
});
test('a bridge changes rules without losing its peer, and its protocol with another socket', async () => {
  const first: PairBridgeOptions = pairBridge('d', [forward('a', 'one')], []);
  bench = new BridgeBench(first);
  await bench.supervisor.start();
  const peer = await bench.peer('pair0', 'inproc://d-pair');
  await bench.supervisor.change({ ...first, forwards: [forward('a', 'two')] });
  bench.broker.publish('a', 'x');
  await peer.watch.until(() => peer.watch.bodies.length === 1);
  expect(peer.watch.bodies).toEqual(['two:x']);
  await bench.supervisor.change({ ...first, protocol: 'pair1' });
  await peer.watch.until(() => peer.watch.count('pipe-down') === 1);
  expect(bench.supervisor.get('pair', 'd')?.peers).toHaveLength(0);
});
