// Runs of messages: sendMany() of native sockets does what send() does for each of them, whatever the protocol, transport and policy.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

let sockets: SpSocket[] = [];
const folder = mkdtempSync(join(tmpdir(), 'many-'));
let names = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(async () => {
  await Promise.all(sockets.map((socket) => socket.stop(100)));
  sockets = [];
});

const driver = testDriver();
async function linked(
  from: Protocol,
  to: Protocol,
  scheme: 'tcp' | 'ipc' | 'inproc',
  peers: number,
  options: Partial<SpOptions>,
): Promise<{ sender: SpSocket; watches: Watch[]; receivers: SpSocket[] }> {
  const url =
    scheme === 'tcp'
      ? 'tcp://127.0.0.1:0'
      : scheme === 'ipc'
        ? `ipc://${folder}/${++names}`
        : `inproc://many-${++names}`;
  const sender = driver.open(from, { ...SP_DEFAULTS, ...options });
  sockets.push(sender);
  const own = new Watch(sender);
  sender.listen(url);
  const bound = await own.state(url, 'listening');
  const receivers = Array.from({ length: peers }, () => driver.open(to, SP_DEFAULTS));
  sockets.push(...receivers);
  const watches = receivers.map((socket) => new Watch(socket));
  for (const [i, socket] of receivers.entries()) {
    if (to === 'sub0') socket.subscribe(new Uint8Array(0));
    socket.dial(bound);
    await own.until(() => own.count('pipe-up') === i + 1);
  }
  return { sender, watches, receivers };
}

/** Bodies of many sizes in one buffer, the last one at its very end. */
function run(count: number): { source: Buffer; spans: Int32Array; bodies: string[] } {
  const bodies = Array.from({ length: count }, (_, i) => `${i}.`.repeat(1 + ((i * i) % (i % 50 === 0 ? 300 : 9))));
  const parts: string[] = [];
  const spans = new Int32Array(2 * count);
  let at = 3;
  for (const [i, body] of bodies.entries()) {
    spans[2 * i] = at;
    at += body.length;
    spans[2 * i + 1] = at;
    parts.push(body, i === count - 1 ? '' : '##');
    at += 2;
  }
  return { source: Buffer.from(`###${parts.join('')}`, 'latin1'), spans, bodies };
}

const PAIRS: [Protocol, Protocol][] = [
  ['pub0', 'sub0'],
  ['push0', 'pull0'],
  ['pair0', 'pair0'],
  ['pair1', 'pair1'],
];
for (const [from, to] of PAIRS) {
  for (const scheme of ['tcp', 'ipc', 'inproc'] as const) {
    for (const overflow of ['drop_oldest', 'block'] as const) {
      test(`${from} over ${scheme} with ${overflow} sends a run as it sends each`, async () => {
        const { sender, watches } = await linked(from, to, scheme, 1, { overflow });
        const { source, spans, bodies } = run(500);
        const head = Buffer.from('head:');
        const expected = [...bodies, ...bodies.slice(0, 2)].map((body) => `head:${body}`);
        expect(sender.sendMany(head, source, spans, 500)).toBe(500);
        expect(sender.sendMany(head, source, spans, 2)).toBe(2);
        await watches[0].until(() => watches[0].bodies.length === 502);
        expect(watches[0].bodies).toEqual(expected);
        expect(sender.stats.messagesSent).toBe(502);
        expect(sender.stats.bytesSent).toBe(expected.join('').length);
        expect(sender.pipes()[0].messagesSent).toBe(502);
      });
    }
  }
}
test('every subscriber gets the run, one that does not read drops alone', async () => {
  const { sender, watches, receivers } = await linked('pub0', 'sub0', 'ipc', 3, { sendBuffer: 100_000 });
  receivers[2].pause();
  const { source, spans, bodies } = run(1000);
  for (let i = 0; i < 1000; i++) {
    sender.sendMany(new Uint8Array(0), source, spans, 1000);
    await watches[0].until(() => watches[0].bodies.length === (i + 1) * 1000);
    await watches[1].until(() => watches[1].bodies.length === (i + 1) * 1000);
    if (sender.stats.dropped > 0 && i > 2) break;
  }
  expect(sender.stats.dropped).toBeGreaterThan(0);
  for (const watch of watches.slice(0, 2)) expect(watch.bodies.slice(-1000)).toEqual(bodies);
  const before = watches[0].bodies.length;
  receivers[2].resume();
  await watches[2].until(() => watches[2].bodies.length + sender.stats.dropped === before);
  expect(watches[2].bodies.at(-1)).toBe(bodies[999]);
});
test('with block a run ends at the first message that has no room, and goes on there', async () => {
  const { sender, watches, receivers } = await linked('push0', 'pull0', 'ipc', 1, {
    overflow: 'block',
    sendBuffer: 50_000,
  });
  receivers[0].pause();
  const { source, spans, bodies } = run(1000);
  let all = 0;
  let sent = 1000;
  while (sent === 1000) {
    sent = sender.sendMany(new Uint8Array(0), source, spans, 1000);
    all += sent;
    await new Promise((resolve) => setImmediate(resolve));
  }
  const room = new Promise<void>((resolve) => sender.onRoom(resolve));
  receivers[0].resume();
  await room;
  await watches[0].until(() => watches[0].bodies.length === all);
  sendText(sender, 'end');
  await watches[0].until(() => watches[0].bodies.length === all + 1);
  expect(watches[0].bodies.slice(0, all)).toEqual(Array.from({ length: all }, (_, i) => bodies[i % 1000]));
});
