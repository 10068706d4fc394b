// NNG to MQTT: src/bridge/nng/in.ts over a stub broker and in-process SP peers.
import { afterEach, expect, test } from 'vitest';
import type { SubBridgeOptions, SubscriptionOptions } from '../../../src/bridge/bridge.ts';
import { escapeBytes } from '../../../src/bridge/nng/in.ts';
import { BridgeBench, type Peer, subBridge, taking } from '../../harness/bridges.ts';
import { sendText } from '../../harness/spsockets.ts';

let bench: BridgeBench;
afterEach(() => bench.stop());

async function start(rules: SubscriptionOptions[], more: Partial<SubBridgeOptions> = {}): Promise<Peer> {
  bench = new BridgeBench(subBridge('s', [...rules, taking('end', 'l/end')], more));
  await bench.supervisor.start();
  return bench.peer('pub0', 'inproc://s-sub');
}
/** Sends the bodies and an end mark; what was published before it. */
async function through(peer: Peer, ...bodies: string[]): Promise<string[]> {
  for (const body of [...bodies, 'end:~']) sendText(peer.socket, body);
  await bench.broker.until(() => bench.broker.published.some(({ topic }) => topic === 'l/end'));
  return bench.broker.seen().slice(0, -1);
}
const rule = (index = 0) => bench.supervisor.get('sub', 's')?.rules[index];

test('sub bridge publishes to local_topic with the QoS and RETAIN of the rule', async () => {
  const peer = await start([taking('can', 'l/can', ':', { qos: 2, retain: true })]);
  expect(await through(peer, 'can:\x00\xff')).toEqual(['l/can \x00\xff']);
  expect(bench.broker.published[0]).toMatchObject({ qos: 2, retain: true });
});
test('sub bridge is a client with its clientid and the user of bridges', async () => {
  await start([], { clientId: 'mine' });
  expect(bench.broker.attached).toEqual([
    { clientId: 'mine', username: 'nngproxy_bridge', kind: 'bridge', bridge: 'nng:s', trusted: false },
  ]);
});
test('sub bridge without clientid makes one up', async () => {
  await start([]);
  expect(bench.broker.attached[0].clientId).toMatch(/^nng-s-[0-9a-f]{8}$/);
});
test('sub bridge publishes nothing for frames that no rule takes, and counts them', async () => {
  const peer = await start([taking('can', 'l/can')]);
  expect(await through(peer, 'zzz:1', 'can', '', 'can:yes')).toEqual(['l/can yes']);
  expect(bench.supervisor.get('sub', 's')?.unmatched).toBe(3);
  expect(bench.metrics.value('tidegate_bridge_unmatched_total', { bridge: 's', type: 'sub' })).toBe(3);
  const lines = bench.lines.filter((line) => line.id === 'NNG-UNMATCHED');
  expect(lines).toHaveLength(1);
  expect(lines[0].fields).toMatchObject({ bridge: 's', bytes: 5, begins: 'zzz:1' });
});
test('sub bridge counts what is denied or no Topic Name', async () => {
  const peer = await start([taking('k', 'k/1'), taking('', '')]);
  bench.broker.denied.add('k/1');
  expect(await through(peer, 'k:1', 'a/+:2', 'good:3')).toEqual(['good 3']);
  expect(rule(0)?.dropped).toEqual({ denied: 1 });
  expect(rule(1)?.dropped).toEqual({ 'invalid-topic': 1 });
});
test('sub bridge with compat 0.25.5 sends what begins like a rule to the topic nng', async () => {
  const peer = await start([taking('mb', 'l/mb', ':::', { qos: 1 })], { compat: '0.25.5' });
  expect(await through(peer, 'mb::x', 'mb:::y', 'zz', 'mb:::')).toEqual(['nng mb::x', 'l/mb y']);
  expect(rule(0)?.dropped).toEqual({ 'empty-payload': 1 });
});
test('sub bridge decodes base64 and JSON payloads and drops what is neither', async () => {
  const peer = await start([
    taking('b', 'l/b', ':', { payload: 'base64' }),
    taking('j', 'l/j', ':', { payload: 'json' }),
  ]);
  const envelope = JSON.stringify({ topic: 'x', payload: 'AP8=', encoding: 'base64' });
  expect(await through(peer, 'b:AP8=', 'b:A*8=', `j:${envelope}`, 'j:{"payload":"t"}', 'j:{', 'j:[]')).toEqual([
    'l/b \x00\xff',
    'l/j \x00\xff',
    'l/j t',
  ]);
  expect(rule(0)?.dropped).toEqual({ 'payload-form': 1 });
  expect(rule(1)?.dropped).toEqual({ 'payload-form': 2 });
});
test('sub bridge limits the rate of a rule', async () => {
  const peer = await start([taking('a', 'l/a', ':', { rateLimit: 1 })]);
  expect(await through(peer, 'a:1', 'a:2', 'a:3')).toEqual(['l/a 1']);
  expect(rule(0)?.dropped).toEqual({ rate: 2 });
});
test('sub bridge stops reading while too many publishes wait and goes on when they are done', async () => {
  const peer = await start([taking('a', 'l/a', ':', { qos: 1 })]);
  const holds = (bench.broker.holds = []) as { done(): void }[];
  const total = 40_000;
  for (let i = 0; i < total; i++) sendText(peer.socket, `a:${i}`);
  await bench.broker.until(() => holds.length >= 4096);
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(bench.broker.published.length).toBeLessThan(total);
  for (let done = 0; done < total; ) {
    await bench.broker.until(() => holds.length > 0);
    for (const hold of holds.splice(0)) {
      hold.done();
      done++;
    }
  }
  expect(bench.broker.published.at(-1)?.payload).toBe(String(total - 1));
});
test('bytes in log lines are escaped', () => {
  const bytes = Buffer.from('a\\b\n\x1b[31m\xff"', 'latin1');
  expect(escapeBytes(bytes, 0, bytes.length)).toBe('a\\\\b\\x0a\\x1b[31m\\xff"');
});

test.each(['tcp', 'ipc'])('frames that come in a row mean what each of them means, over %s', async (scheme) => {
  const url = scheme === 'tcp' ? 'tcp://127.0.0.1:0' : `ipc:///tmp/nngin-${process.pid}.ipc`;
  const rules = [taking('a', 'l/a'), taking('bb', ''), taking('c', 'l/c/{suffix}')];
  const bench = new BridgeBench(subBridge('s', rules, { urls: [url] }));
  try {
    await bench.supervisor.start();
    const bound = bench.supervisor.get('sub', 's')?.endpoints[0].bound ?? '';
    const peer = await bench.peer('pub0', bound);
    const kinds = ['a:1', 'a:2', 'bb:3', 'x:4', 'c/d:5', 'a:', 'a:longer'];
    const wanted = ['l/a 1', 'l/a 2', 'bb 3', null, 'l/c//d 5', 'l/a ', 'l/a longer'];
    const picks = Array.from({ length: 3000 }, (_, i) => Math.floor(i / (1 + (i % 7))) % kinds.length);
    for (const pick of picks) sendText(peer.socket, kinds[pick]);
    const expected = picks.flatMap((pick) => wanted[pick] ?? []);
    await bench.broker.until(() => bench.broker.published.length === expected.length);
    expect(bench.broker.seen()).toEqual(expected);
    const status = bench.supervisor.get('sub', 's');
    expect(status?.unmatched).toBe(3000 - expected.length);
    expect(status?.rules.map((rule) => rule.forwarded)).toEqual(
      [['l/a'], ['bb'], ['l/c//d']].map(([topic]) => expected.filter((seen) => seen.startsWith(`${topic} `)).length),
    );
    expect(status?.peers[0].messagesReceived).toBe(3000);
  } finally {
    await bench.stop();
  }
});
