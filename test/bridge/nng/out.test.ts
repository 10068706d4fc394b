// MQTT to NNG: src/bridge/nng/out.ts over a stub broker and in-process SP peers.
import { afterEach, expect, test } from 'vitest';
import type { ForwardOptions, PubBridgeOptions } from '../../../src/bridge/bridge.ts';
import type { Origin } from '../../../src/mqtt/message.ts';
import { BridgeBench, forward, type Peer, pubBridge } from '../../harness/bridges.ts';

let bench: BridgeBench;
afterEach(() => bench.stop());

async function start(rules: ForwardOptions[], more: Partial<PubBridgeOptions> = {}): Promise<Peer> {
  bench = new BridgeBench(pubBridge('p', rules, more));
  await bench.supervisor.start();
  return bench.peer('sub0', 'inproc://p-pub');
}
async function got(peer: Peer, count: number): Promise<string[]> {
  await peer.watch.until(() => peer.watch.bodies.length >= count);
  return peer.watch.bodies;
}
const fromBridge = (bridge: string): Origin => ({ kind: 'bridge', clientId: 'b', username: null, bridge });
const drops = (reason: string, rule = 0): number | undefined =>
  bench.supervisor.get('pub', 'p')?.rules[rule].dropped[reason];

test('pub bridge sends topic part, delimiter and payload', async () => {
  const peer = await start([forward('p1/#', 'r1'), forward('p6/#', '')]);
  bench.broker.publish('p1/x', 'hello');
  bench.broker.publish('p6/a/b', '\x00\xff');
  expect(await got(peer, 2)).toEqual(['r1:hello', 'p6/a/b:\x00\xff']);
});
test('pub bridge sends a frame for every matching rule, in order', async () => {
  const peer = await start([
    forward('dup/#', 'd1'),
    forward('dup/a', 'd2'),
    forward('dup/+', 'd3', ':', { enable: false }),
  ]);
  bench.broker.publish('dup/a', 'x');
  bench.broker.publish('dup/b', 'y');
  expect(await got(peer, 3)).toEqual(['d1:x', 'd2:x', 'd1:y']);
});
test('pub bridge fills in what the wildcards matched', async () => {
  const peer = await start([forward('sensor/+/temp', 't/{1}')]);
  bench.broker.publish('sensor/k1/temp', '21');
  bench.broker.publish('sensor/k2/temp', '22');
  expect(await got(peer, 2)).toEqual(['t/k1:21', 't/k2:22']);
});
test('pub bridge does not send back what came in through the bridge of its name', async () => {
  const peer = await start([forward('a/#', 'all'), forward('a/#', 'mqtt', ':', { from: 'mqtt' })]);
  bench.broker.publish('a/1', 'own', 0, false, fromBridge('nng:p'));
  bench.broker.publish('a/2', 'other', 0, false, fromBridge('nng:q'));
  bench.broker.publish('a/3', 'remote', 0, false, fromBridge('mqtt:m'));
  bench.broker.publish('a/4', 'client');
  expect(await got(peer, 4)).toEqual(['all:other', 'all:remote', 'all:client', 'mqtt:client']);
  expect(drops('loop')).toBe(1);
});
test('pub bridge with retain = live leaves out messages with RETAIN', async () => {
  const peer = await start([forward('a', 'live', ':', { retain: 'live' }), forward('a', 'any')]);
  bench.broker.publish('a', '1', 0, true);
  bench.broker.publish('a', '2');
  expect(await got(peer, 3)).toEqual(['any:1', 'live:2', 'any:2']);
});
test('pub bridge with retain = retained sends stored messages to its first peer, other rules do not', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'r', ':', { retain: 'retained' }), forward('a', 'any')]));
  bench.broker.store('a', 'old');
  await bench.supervisor.start();
  const peer = await bench.peer('sub0', 'inproc://p-pub');
  const second = await bench.peer('sub0', 'inproc://p-pub');
  bench.broker.publish('a', 'new');
  await second.watch.until(() => second.watch.bodies.length === 2);
  expect(await got(peer, 3)).toEqual(['r:old', 'r:new', 'any:new']);
  expect(second.watch.bodies).toEqual(['r:new', 'any:new']);
});
test('pub bridge counts messages that no peer is there for', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'r')]));
  await bench.supervisor.start();
  bench.broker.publish('a', 'x');
  expect(drops('no-peer')).toBe(1);
});
test('pub bridge counts by rule', async () => {
  const peer = await start([forward('a', 'r'), forward('b', 'r')]);
  bench.broker.publish('a', 'xyz');
  await got(peer, 1);
  expect(bench.supervisor.get('pub', 'p')?.rules[0]).toMatchObject({ index: 0, matched: 1, forwarded: 1, bytes: 3 });
  expect(bench.metrics.value('tidegate_bridge_forwarded_total', { bridge: 'p', type: 'pub', rule: '0' })).toBe(1);
  expect(bench.metrics.value('tidegate_bridge_peers', { bridge: 'p', type: 'pub' })).toBe(1);
});
test('pub bridge limits the rate of a rule and counts what it leaves out', async () => {
  const peer = await start([forward('a', 'r', ':', { rateLimit: 2 }), forward('end', 'end')]);
  for (let i = 0; i < 5; i++) bench.broker.publish('a', String(i));
  bench.broker.publish('end', '');
  await peer.watch.until(() => peer.watch.bodies.includes('end:'));
  expect(peer.watch.bodies).toEqual(['r:0', 'r:1', 'end:']);
  expect(drops('rate')).toBe(3);
});
test('pub bridge sends base64 and JSON where a rule says so', async () => {
  const peer = await start([
    forward('a', 'b', ':', { payload: 'base64' }),
    forward('a', 'j', ':', { payload: 'json' }),
  ]);
  bench.broker.publish('a', '\x00\xff', 1);
  bench.broker.publish('a', 'text');
  const frames = await got(peer, 4);
  expect(frames[0]).toBe('b:AP8=');
  expect(JSON.parse(frames[1].slice(2))).toEqual({
    topic: 'a',
    qos: 1,
    retain: false,
    payload: 'AP8=',
    encoding: 'base64',
  });
  expect(JSON.parse(frames[3].slice(2))).toEqual({ topic: 'a', qos: 0, retain: false, payload: 'text' });
});

test('overflow = block holds QoS 1 publishers until the frame is in the queue and drops QoS 0 past the bound', async () => {
  const big = 'x'.repeat(60_000);
  const peer = await start([forward('a', 'r', ':', { qos: 1 })], { overflow: 'block', sendBuffer: 100_000 });
  peer.socket.pause();
  let held = bench.broker.publish('a', big, 1);
  for (let i = 0; i < 50 && held === null; i++) held = bench.broker.publish('a', big, 1);
  expect(held?.open).toBe(true);
  expect(bench.broker.publish('a', big, 0)).toBeNull();
  expect(bench.broker.publish('a', big, 0)).toBeNull();
  expect(drops('overflow')).toBeGreaterThan(0);
  const settled = new Promise<number>((resolve) => held?.whenDone(resolve));
  peer.socket.resume();
  expect(await settled).toBe(0);
});
test('overflow = block tells QoS 1 publishers past the last bound that there is no room', async () => {
  const big = 'x'.repeat(4_000_000);
  const peer = await start([forward('a', 'r', ':', { qos: 1 })], { overflow: 'block', sendBuffer: 100_000 });
  peer.socket.pause();
  let reason = 0;
  for (let i = 0; i < 100 && reason === 0; i++) {
    bench.broker.publish('a', big, 1)?.whenDone((code) => {
      reason = code;
    });
  }
  expect(reason).toBe(0x97);
});
test('a stopped bridge tells the publishers that wait for it that it has not taken their messages', async () => {
  const big = 'x'.repeat(60_000);
  const peer = await start([forward('a', 'r', ':', { qos: 1 })], { overflow: 'block', sendBuffer: 100_000 });
  peer.socket.pause();
  let held = bench.broker.publish('a', big, 1);
  for (let i = 0; i < 50 && held === null; i++) held = bench.broker.publish('a', big, 1);
  const settled = new Promise<number>((resolve) => held?.whenDone(resolve));
  await bench.supervisor.remove('pub', 'p');
  expect(await settled).toBe(0x80);
});
