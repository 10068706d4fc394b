// What is kept for peers that are not there: src/bridge/nng/spool.ts and bridge/nng/backlog.ts behind bridges over a stub broker.
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { PubBridgeOptions } from '../../../src/bridge/bridge.ts';
import { Spool, Spools, spoolCost } from '../../../src/bridge/nng/spool.ts';
import type { SpoolEntry } from '../../../src/store/store.ts';
import { BridgeBench, forward, pubBridge } from '../../harness/bridges.ts';

let bench: BridgeBench | null = null;
afterEach(async () => {
  await bench?.stop();
  bench = null;
});

async function start(more: Partial<PubBridgeOptions> = {}): Promise<BridgeBench> {
  const rules = [forward('a', 'r', ':', { qos: 1 }), forward('zero', 'z')];
  bench = new BridgeBench(pubBridge('p', rules, { spool: 1 << 20, ...more }));
  await bench.supervisor.start();
  return bench;
}
const drops = (rule = 0, type: 'pub' | 'push' = 'pub') => bench?.supervisor.get(type, 'p')?.rules[rule].dropped;

for (const type of ['pub', 'push'] as const) {
  test(`${type} with a spool keeps frames of rules with QoS for its first peer, in order`, async () => {
    const { broker, supervisor, peer } = await start({ type }).then((b) => ({
      broker: b.broker,
      supervisor: b.supervisor,
      peer: (protocol: 'sub0' | 'pull0') => b.peer(protocol, 'inproc://p-pub'),
    }));
    for (let i = 0; i < 1000; i++) expect(broker.publish('a', String(i), i % 2 === 0 ? 1 : 0)).toBeNull();
    expect(supervisor.get(type, 'p')?.waiting).toMatchObject({ frames: 1000, spooled: 1000 });
    const one = await peer(type === 'pub' ? 'sub0' : 'pull0');
    await one.watch.until(() => one.watch.bodies.length === 1000);
    expect(one.watch.bodies).toEqual(Array.from({ length: 1000 }, (_, i) => `r:${i}`));
    broker.publish('a', 'after');
    await one.watch.until(() => one.watch.bodies.length === 1001);
    expect(one.watch.bodies[1000]).toBe('r:after');
    await expect.poll(() => supervisor.get(type, 'p')?.waiting?.spooled).toBe(0);
  });
}
test('frames of rules with QoS 0 are not kept', async () => {
  const { broker } = await start();
  broker.publish('zero', 'x', 1);
  expect(bench?.supervisor.get('pub', 'p')?.waiting).toMatchObject({ spooled: 0 });
});
test('a full spool drops the oldest, the newest, or lets publishers wait', async () => {
  const cost = spoolCost(10);
  const bodies = async (): Promise<string[]> => {
    const peer = await bench?.peer('sub0', 'inproc://p-pub');
    await peer?.watch.until(() => peer.watch.bodies.some((body) => body.startsWith('r:end')));
    return peer?.watch.bodies ?? [];
  };
  const fill = (): ReturnType<BridgeBench['broker']['publish']> => {
    for (const name of ['1', '2', '3', '4']) bench?.broker.publish('a', name.repeat(8), 1);
    return bench?.broker.publish('a', 'end-----', 1) ?? null;
  };
  await start({ spool: 3 * cost, overflow: 'drop_oldest' });
  expect(fill()).toBeNull();
  expect(drops()).toEqual({ overflow: 2 });
  expect(await bodies()).toEqual(['r:33333333', 'r:44444444', 'r:end-----']);
  await bench?.stop();

  await start({ spool: 3 * cost, overflow: 'drop_newest' });
  expect(fill()).toBeNull();
  expect(drops()).toEqual({ overflow: 2 });
  bench?.broker.publish('end', '');
  expect(bench?.supervisor.get('pub', 'p')?.waiting?.spooled).toBe(3);
  await bench?.stop();

  await start({ spool: 3 * cost, overflow: 'block' });
  const held = fill();
  expect(held?.open).toBe(true);
  expect(drops()).toEqual({});
  expect(await bodies()).toEqual(['r:11111111', 'r:22222222', 'r:33333333', 'r:44444444', 'r:end-----']);
  expect(held?.open).toBe(false);
});
test('a spool larger than what a peer may hold reaches a peer that reads, whole', async () => {
  const { broker } = await start({ spool: 16 << 20, sendBuffer: 100_000 });
  const big = 'x'.repeat(10_000);
  for (let i = 0; i < 1000; i++) broker.publish('a', `${String(i).padStart(4, '0')}${big}`);
  const peer = await bench?.peer('sub0', 'inproc://p-pub');
  await peer?.watch.until(() => peer.watch.bodies.length === 1000);
  expect(peer?.watch.bodies.map((body) => Number(body.slice(2, 6)))).toEqual(Array.from({ length: 1000 }, (_, i) => i));
});
test('frames that went down with their only peer are sent to the next one', async () => {
  const { broker } = await start({ type: 'push', overflow: 'block', spool: 16 << 20 });
  const big = 'x'.repeat(50_000);
  for (let i = 0; i < 100; i++) broker.publish('a', `${String(i).padStart(4, '0')}${big}`);
  const first = await bench?.peer('pull0', 'inproc://p-pub');
  first?.socket.pause();
  await first?.socket.stop(0);
  const second = await bench?.peer('pull0', 'inproc://p-pub');
  await second?.watch.until(() => second.watch.bodies.at(-1)?.startsWith('r:0099') === true);
  const numbers = second?.watch.bodies.map((body) => Number(body.slice(2, 6))) ?? [];
  // What the first one's connection had taken is its own; everything behind comes in order.
  expect(numbers).toEqual(Array.from({ length: 100 }, (_, i) => i).slice(100 - numbers.length));
});
test('a bridge that is restarted goes on with what waits', async () => {
  const { broker, supervisor } = await start();
  broker.publish('a', '1', 1);
  const options = supervisor.get('pub', 'p')?.options as PubBridgeOptions;
  await supervisor.change({ ...options, sendBuffer: 1000 });
  broker.publish('a', '2', 1);
  const peer = await bench?.peer('sub0', 'inproc://p-pub');
  await peer?.watch.until(() => peer.watch.bodies.length === 2);
  expect(peer?.watch.bodies).toEqual(['r:1', 'r:2']);
});

describe('the journal', () => {
  const told: string[] = [];
  const journal = {
    durable: true,
    accepting: true,
    spoolPut: (bridge: string, sequence: number) => told.push(`put ${bridge} ${sequence - base}`),
    spoolDelete: (bridge: string, upTo: number) => told.push(`delete ${bridge} ${upTo - base}`),
  };
  let base = 0;
  const frame = (spool: Spool, text: string) =>
    spool.put(3, Buffer.from('h:'), Buffer.from(`__${text}__`), 2, 2 + text.length);

  test('forgets what is done as far as everything before it is done', () => {
    told.length = 0;
    const spool = new Spool('nng:pub:p', journal, systemClock, [{ sequence: 10, bytes: Buffer.from('damaged') }]);
    base = 11;
    const [a, b, c] = ['a', 'b', 'c'].map((text) => frame(spool, text));
    expect(spool.damaged).toBe(1);
    spool.done(b);
    spool.done(a);
    spool.done(c);
    spool.done(c);
    expect(told.slice(1)).toEqual([
      'put nng:pub:p 0',
      'put nng:pub:p 1',
      'put nng:pub:p 2',
      'delete nng:pub:p 1',
      'delete nng:pub:p 2',
    ]);
    expect(spool.bytes).toBe(0);
  });
  test('gives back frames with their rule, in order', () => {
    const kept: SpoolEntry[] = [];
    const keeping = {
      ...journal,
      spoolPut: (_: string, sequence: number, bytes: Uint8Array) => kept.push({ sequence, bytes: Buffer.from(bytes) }),
    };
    const spool = new Spool('x', keeping, systemClock, []);
    frame(spool, 'one');
    frame(spool, '');
    const again = new Spool('x', journal, systemClock, kept);
    expect([...again.pending()].map((f) => [f.rule, f.payloadBytes, f.frame.toString()])).toEqual([
      [3, 3, 'h:one'],
      [3, 0, 'h:'],
    ]);
    expect(frame(again, 'two').sequence).toBe(kept[1].sequence + 1);
  });
  test('drops what is left of bridges that are not configured any more', () => {
    told.length = 0;
    base = 0;
    const left = new Map([
      ['nng:pub:gone', [{ sequence: 1, bytes: Buffer.alloc(0) }]],
      ['mqtt:remote', [{ sequence: 1, bytes: Buffer.alloc(0) }]],
      ['nng:push:p', [{ sequence: 1, bytes: Buffer.from([1, 0, 2, 0, 0, 0, 1, 104, 58, 120]) }]],
    ]);
    const spools = new Spools(journal, systemClock, () => {}, left, [{ type: 'push', name: 'p' }]);
    expect(told).toEqual(['delete nng:pub:gone Infinity']);
    expect([...spools.of({ type: 'push', name: 'p' }).pending()]).toMatchObject([{ rule: 2, payloadBytes: 1 }]);
    spools.forget({ type: 'push', name: 'p' });
    expect(told[1]).toBe('delete nng:push:p Infinity');
    expect([...spools.of({ type: 'push', name: 'p' }).pending()]).toEqual([]);
  });
});
