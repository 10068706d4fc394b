// All NNG bridges of a gateway: src/bridge/supervisor.ts.
import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { BridgeBench, forward, pubBridge, subBridge, taking } from '../harness/bridges.ts';
import { sendText } from '../harness/spsockets.ts';

let bench: BridgeBench;
afterEach(() => bench.stop());

test('supervisor starts what is enabled and shows the rest as disabled', async () => {
  bench = new BridgeBench(pubBridge('on', []), subBridge('off', [], { enable: false }));
  await bench.supervisor.start();
  expect(bench.supervisor.list().map(({ type, name, state }) => [type, name, state])).toEqual([
    ['pub', 'on', 'listening'],
    ['sub', 'off', 'disabled'],
  ]);
});
test('a bridge with a peer is connected, without it listens again', async () => {
  bench = new BridgeBench(pubBridge('p', []));
  await bench.supervisor.start();
  const peer = await bench.peer('sub0', 'inproc://p-pub');
  expect(bench.state('pub', 'p')).toBe('connected');
  expect(bench.supervisor.get('pub', 'p')?.peers).toHaveLength(1);
  await peer.socket.stop(200);
  await bench.until(() => bench.state('pub', 'p') === 'listening');
});
test('a bridge that dials does not delay the start and shows that it tries', async () => {
  bench = new BridgeBench(pubBridge('p', [], { mode: 'dial', urls: ['tcp://127.0.0.1:1'] }));
  await bench.supervisor.start();
  await bench.until(() => bench.state('pub', 'p') === 'retrying');
  expect(bench.supervisor.get('pub', 'p')?.lastError).toMatch(/ECONNREFUSED/);
});
test('a busy address is the state error of that bridge alone, until it is free', async () => {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  bench = new BridgeBench(pubBridge('busy', [], { urls: [`tcp://127.0.0.1:${port}`] }), pubBridge('good', []));
  await bench.supervisor.start();
  expect(bench.state('pub', 'busy')).toBe('error');
  expect(bench.supervisor.get('pub', 'busy')?.lastError).toMatch(/EADDRINUSE/);
  expect(bench.state('pub', 'good')).toBe('listening');
  await new Promise((resolve) => server.close(resolve));
  await bench.until(() => bench.state('pub', 'busy') === 'listening');
  expect(bench.supervisor.get('pub', 'busy')?.lastError).toBeNull();
});
test('add, disable, enable and remove work while it runs', async () => {
  bench = new BridgeBench();
  await bench.supervisor.start();
  const options = subBridge('s', [taking('a', 'l/a')]);
  expect(await bench.supervisor.add(options)).toBe('ok');
  expect(await bench.supervisor.add(options)).toBe('exists');
  const peer = await bench.peer('pub0', 'inproc://s-sub');
  sendText(peer.socket, 'a:1');
  await bench.broker.until(() => bench.broker.published.length === 1);
  expect(await bench.supervisor.enable('sub', 's', false)).toBe('ok');
  expect(bench.state('sub', 's')).toBe('disabled');
  await peer.watch.until(() => peer.watch.count('pipe-down') === 1);
  expect(await bench.supervisor.enable('sub', 's', true)).toBe('ok');
  await peer.watch.until(() => peer.watch.count('pipe-up') === 2);
  sendText(peer.socket, 'a:2');
  await bench.broker.until(() => bench.broker.published.length === 2);
  expect(await bench.supervisor.remove('sub', 's')).toBe('ok');
  expect(await bench.supervisor.remove('sub', 's')).toBe('missing');
  expect(bench.supervisor.list()).toEqual([]);
  expect(bench.metrics.value('tidegate_bridge_unmatched_total', { bridge: 's', type: 'sub' })).toBeUndefined();
});
test('change of rules keeps the peers', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'old')]));
  await bench.supervisor.start();
  const peer = await bench.peer('sub0', 'inproc://p-pub');
  expect(await bench.supervisor.change(pubBridge('p', [forward('a', 'new')]))).toBe('ok');
  bench.broker.publish('a', 'x');
  await peer.watch.until(() => peer.watch.bodies.length > 0);
  expect(peer.watch.bodies).toEqual(['new:x']);
  expect(peer.watch.count('pipe-down')).toBe(0);
});
test('change of the URLs keeps the peers of those that stay', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'r')], { urls: ['inproc://one', 'inproc://two'] }));
  await bench.supervisor.start();
  const one = await bench.peer('sub0', 'inproc://one');
  const two = await bench.peer('sub0', 'inproc://two');
  await bench.supervisor.change(pubBridge('p', [forward('a', 'r')], { urls: ['inproc://two', 'inproc://three'] }));
  await one.watch.until(() => one.watch.count('pipe-down') === 1);
  await bench.peer('sub0', 'inproc://three');
  expect(two.watch.count('pipe-down')).toBe(0);
});
test('change of what the socket is made of restarts the bridge', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'r')]));
  await bench.supervisor.start();
  const peer = await bench.peer('sub0', 'inproc://p-pub');
  await bench.supervisor.change(pubBridge('p', [forward('a', 'r')], { sendBuffer: 1024 }));
  await peer.watch.until(() => peer.watch.count('pipe-up') === 2);
});
test('change of a bridge that is not there is told', async () => {
  bench = new BridgeBench();
  await bench.supervisor.start();
  expect(await bench.supervisor.change(pubBridge('p', []))).toBe('missing');
  expect(await bench.supervisor.enable('pub', 'p', true)).toBe('missing');
});
test('apply touches only what differs', async () => {
  const keep = pubBridge('keep', [forward('a', 'r')]);
  bench = new BridgeBench(keep, subBridge('gone', []));
  await bench.supervisor.start();
  const peer = await bench.peer('sub0', 'inproc://keep-pub');
  const source = { file: 'x', line: 3, column: 1 };
  const moved = { ...keep, source };
  await bench.supervisor.apply([moved, subBridge('come', [])]);
  expect(bench.supervisor.list().map((bridge) => bridge.name)).toEqual(['keep', 'come']);
  expect(bench.state('sub', 'come')).toBe('listening');
  expect(peer.watch.count('pipe-down')).toBe(0);
  bench.broker.publish('a', 'x');
  await peer.watch.until(() => peer.watch.bodies.length === 1);
});
test('a name may be taken anew right after it was removed', async () => {
  bench = new BridgeBench(pubBridge('p', [forward('a', 'r')]));
  await bench.supervisor.start();
  for (let i = 0; i < 20; i++) {
    const removed = bench.supervisor.remove('pub', 'p');
    const added = bench.supervisor.add(pubBridge('p', [forward('a', 'r')]));
    await Promise.all([removed, added]);
  }
  await bench.until(() => bench.state('pub', 'p') === 'listening');
});
test('a driver that cannot be loaded is the state error', async () => {
  bench = new BridgeBench();
  await bench.supervisor.start();
  // The bench has one driver for all names, so an address that the socket refuses stands for it.
  await bench.supervisor.add(pubBridge('p', [], { urls: ['foo://x'] }));
  expect(bench.state('pub', 'p')).toBe('error');
  expect(bench.supervisor.get('pub', 'p')?.lastError).toMatch(/unknown scheme/);
});
