// The native SP driver: the common contract, and what only it promises: bytes on the wire, bounds, policies.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { type SpContract, spContract } from '../contract/sp.ts';
import { frameHex, HELLO, RawSp } from '../harness/rawsp.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

let names = 0;
const contract: SpContract = {
  name: 'native',
  open: async () => testDriver(),
  cannot: new Map(),
  url: async (scheme, folder) => {
    names++;
    if (scheme === 'tcp') return 'tcp://127.0.0.1:0';
    if (scheme === 'ipc') return `ipc://${folder}/s${names}.ipc`;
    return `${scheme}://native-${process.pid}-${names}`;
  },
};
spContract(contract);

describe('native socket on the wire', () => {
  let sockets: SpSocket[] = [];
  let peers: RawSp[] = [];
  let folder: string;
  const driver = testDriver();

  const open = async (
    protocol: Protocol,
    options: Partial<SpOptions> = {},
    url = 'tcp://127.0.0.1:0',
  ): Promise<{ socket: SpSocket; watch: Watch; port: number }> => {
    const socket = driver.open(protocol, { ...SP_DEFAULTS, ...options });
    sockets.push(socket);
    const watch = new Watch(socket);
    if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
    socket.listen(url);
    const bound = await watch.state(url, 'listening');
    return { socket, watch, port: Number(bound.split(':').at(-1)) };
  };
  const raw = (where: number | string): RawSp => {
    const peer = new RawSp(where);
    peers.push(peer);
    return peer;
  };
  const greeted = async (at: { watch: Watch; port: number }, hello: string): Promise<RawSp> => {
    const before = at.watch.count('pipe-up');
    const peer = raw(at.port);
    peer.write(hello);
    await at.watch.until(() => at.watch.count('pipe-up') > before);
    await peer.take(8);
    return peer;
  };

  beforeEach(() => {
    sockets = [];
    peers = [];
    folder = mkdtempSync(join(tmpdir(), 'spn'));
  });
  afterEach(async () => {
    for (const peer of peers) peer.destroy();
    await Promise.all(sockets.map((socket) => socket.stop(200)));
    rmSync(folder, { recursive: true, force: true });
  });

  test('pub0 greets at once and frames a message', async () => {
    const pub = await open('pub0');
    const peer = raw(pub.port);
    expect(await peer.take(8)).toBe(HELLO.pub);
    peer.write(HELLO.sub);
    await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
    sendText(pub.socket, 'r1:hello');
    expect(await peer.take(16)).toBe(frameHex('r1:hello'));
  });
  test('ipc frames begin with 01', async () => {
    const pub = await open('pub0', {}, `ipc://${folder}/p.ipc`);
    const peer = raw(join(folder, 'p.ipc'));
    peer.write(HELLO.sub);
    await pub.watch.until(() => pub.watch.count('pipe-up') === 1);
    sendText(pub.socket, 'x');
    expect(await peer.take(18)).toBe(HELLO.pub + frameHex('x', true));
  });
  test('pair1 puts a hop count of one before the body', async () => {
    const pair = await open('pair1');
    const peer = await greeted(pair, HELLO.pair1);
    sendText(pair.socket, 'hi');
    expect(await peer.take(14)).toBe('0000000000000006000000016869');
    peer.write('0000000000000006 00000001 6f6b');
    await pair.watch.until(() => pair.watch.bodies.length > 0);
    expect(pair.watch.bodies).toEqual(['ok']);
  });
  test('pair1 drops what has hopped too often and closes for a bad header', async () => {
    const pair = await open('pair1');
    const peer = await greeted(pair, HELLO.pair1);
    peer.write('0000000000000006 00000009 6f6b 0000000000000006 00000001 6f6b');
    await pair.watch.until(() => pair.watch.bodies.length > 0);
    expect(pair.socket.stats.dropped).toBe(1);
    peer.write('0000000000000002 6f6b');
    await peer.closed();
    expect(pair.watch.refused()).toEqual(['bad-frame']);
  });
  test('pair refuses a second peer', async () => {
    const pair = await open('pair1');
    await greeted(pair, HELLO.pair1);
    const second = raw(pair.port);
    second.write(HELLO.pair1);
    await second.closed();
    expect(pair.watch.refused()).toEqual(['second-peer']);
    expect(pair.socket.pipes()).toHaveLength(1);
  });
  for (const [what, bytes, reason] of [
    ['of its own kind', HELLO.pub, 'wrong-protocol'],
    ['that speaks HTTP', '474554202f20485454502f312e310d0a', 'bad-greeting'],
    ['with reserved bytes set', '0053500000210001', 'bad-greeting'],
  ] as const) {
    test(`a peer ${what} is closed and counted, others go on`, async () => {
      const pub = await open('pub0');
      const good = await greeted(pub, HELLO.sub);
      const bad = raw(pub.port);
      bad.write(bytes);
      await bad.closed();
      expect(pub.watch.refused()).toEqual([reason]);
      expect(pub.socket.stats.refused).toBe(1);
      sendText(pub.socket, 'on');
      expect(await good.take(10)).toBe(frameHex('on'));
    });
  }
  test('a peer that leaves within its greeting is forgotten', async () => {
    const pub = await open('pub0');
    const gone = raw(pub.port);
    gone.write('005350');
    await gone.take(8);
    gone.destroy();
    const good = await greeted(pub, HELLO.sub);
    sendText(pub.socket, 'x');
    expect(await good.take(9)).toBe(frameHex('x'));
  });
  for (const length of ['7fffffffffffffff', '00000000ffffffff', 'ffffffffffffffff', '0000000000100001']) {
    test(`a frame of ${length} bytes closes the pipe, with its size`, async () => {
      const sub = await open('sub0', { recvMaxSize: 1 << 20 });
      const peer = await greeted(sub, HELLO.pub);
      peer.write(`${frameHex('good')}${length}61`);
      await peer.closed();
      await sub.watch.until(() => sub.watch.refused().length > 0);
      expect(sub.watch.bodies).toEqual(['good']);
      const event = sub.watch.events.find((e) => e.kind === 'refused');
      expect(event).toMatchObject({ reason: 'too-large', limit: 1 << 20 });
    });
  }
  test('a subscriber that sends is closed', async () => {
    const pub = await open('pub0');
    const peer = await greeted(pub, HELLO.sub);
    peer.write(frameHex('x'));
    await peer.closed();
    expect(pub.watch.refused()).toEqual(['unexpected-message']);
  });
  test('greeting and frames in one segment are taken', async () => {
    const sub = await open('sub0');
    const peer = raw(sub.port);
    peer.write(HELLO.pub + frameHex('a') + frameHex('b'));
    await sub.watch.until(() => sub.watch.bodies.length === 2);
    expect(sub.watch.bodies).toEqual(['a', 'b']);
  });
  test('a dialer comes back after hang-ups and wrong greetings', async () => {
    const arrivals: RawSp[] = [];
    let arrived = (): void => {};
    const server = createServer((socket) => {
      const peer = new RawSp(socket);
      peers.push(peer);
      arrivals.push(peer);
      if (arrivals.length === 1) peer.destroy();
      if (arrivals.length === 2) peer.write(HELLO.pub);
      if (arrivals.length === 3) peer.write(HELLO.sub);
      arrived();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const pub = driver.open('pub0', SP_DEFAULTS);
    sockets.push(pub);
    const watch = new Watch(pub);
    pub.dial(`tcp://127.0.0.1:${port}`);
    await watch.state(`tcp://127.0.0.1:${port}`, 'connected');
    expect(arrivals).toHaveLength(3);
    expect(watch.refused()).toEqual(['wrong-protocol']);
    arrived = () => server.close();
    arrivals[2].destroy();
    await watch.until(() => watch.count('pipe-down') === 1);
  });

  /** Fills a peer that does not read with numbered frames; what it finds when it reads on. */
  const stopped = async (
    overflow: 'drop_oldest' | 'drop_newest',
  ): Promise<{ got: number[]; total: number; dropped: number }> => {
    const pub = await open('pub0', { sendBuffer: 256 << 10, overflow });
    const peer = await greeted(pub, HELLO.sub);
    peer.socket.pause();
    const total = 3000;
    const body = Buffer.alloc(8192, 46);
    for (let i = 0; i < total; i++) {
      body.write(String(i).padStart(8, '0'));
      pub.socket.send(new Uint8Array(0), body, 0, body.length);
      if (i % 8 === 7) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const { dropped } = pub.socket.stats;
    peer.socket.resume();
    const got: number[] = [];
    await peer.until(() => {
      while (peer.bytes.length >= 8200) {
        got.push(Number(peer.bytes.toString('latin1', 8, 16)));
        peer.bytes = peer.bytes.subarray(8200);
      }
      return got.length + dropped >= total;
    });
    return { got, total, dropped };
  };
  test('drop_oldest leaves a stopped reader the newest messages, in order', async () => {
    const { got, total } = await stopped('drop_oldest');
    expect(got[0]).toBe(0);
    expect(got.at(-1)).toBe(total - 1);
    expect(got.length).toBeLessThan(total);
    const tail = got.slice(-31);
    expect(tail).toEqual(Array.from({ length: 31 }, (_, i) => total - 31 + i));
    expect(got).toEqual([...got].sort((a, b) => a - b));
  });
  test('drop_newest leaves it the oldest ones without a gap', async () => {
    const { got, total, dropped } = await stopped('drop_newest');
    expect(got).toEqual(Array.from({ length: got.length }, (_, i) => i));
    expect(got.length + dropped).toBe(total);
  });
  test('block refuses a message as a whole and tells when there is room', async () => {
    const pub = await open('pub0', { sendBuffer: 256 << 10, overflow: 'block' });
    const slow = await greeted(pub, HELLO.sub);
    slow.socket.pause();
    let rooms = 0;
    let told = (): void => {};
    pub.socket.onRoom(() => {
      rooms++;
      told();
    });
    let sent = 0;
    const body = Buffer.alloc(8192, 46);
    for (let more = true; more; ) {
      more = pub.socket.send(new Uint8Array(0), body, 0, body.length);
      if (more) sent++;
      if (sent % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(pub.socket.stats.dropped).toBe(0);
    const room = new Promise<void>((resolve) => {
      told = resolve;
    });
    slow.socket.resume();
    await room;
    expect(rooms).toBe(1);
    await slow.until(() => slow.bytes.length === sent * 8200);
  });
  test('block is released when the full peer leaves', async () => {
    const pub = await open('pub0', { sendBuffer: 64 << 10, overflow: 'block' });
    const slow = await greeted(pub, HELLO.sub);
    slow.socket.pause();
    const body = Buffer.alloc(65_536, 46);
    while (pub.socket.send(new Uint8Array(0), body, 0, body.length))
      await new Promise<void>((resolve) => setImmediate(resolve));
    const room = new Promise<void>((resolve) => pub.socket.onRoom(resolve));
    slow.destroy();
    await room;
  });
  test('an empty queue takes one message of any size', async () => {
    const pub = await open('pub0', { sendBuffer: 1024 });
    const peer = await greeted(pub, HELLO.sub);
    const body = Buffer.alloc(3 << 20, 1);
    pub.socket.send(new Uint8Array(0), body, 0, body.length);
    await peer.until(() => peer.bytes.length === body.length + 8);
  });
  test('stop lets queued messages leave', async () => {
    const pub = await open('pub0', { sendBuffer: 32 << 20 });
    const peer = await greeted(pub, HELLO.sub);
    peer.socket.pause();
    const body = Buffer.alloc(65_536, 46);
    for (let i = 0; i < 200; i++) pub.socket.send(new Uint8Array(0), body, 0, body.length);
    const done = pub.socket.stop(5000);
    peer.socket.resume();
    await peer.closed();
    await done;
    expect(peer.bytes.length).toBe(200 * 65_544);
  });
  test('pause holds back reading until resume', async () => {
    const sub = await open('sub0');
    const peer = await greeted(sub, HELLO.pub);
    sub.socket.pause();
    const body = 'x'.repeat(65_536);
    let sent = 0;
    await new Promise<void>((resolve) => {
      // Writes until the kernel takes no more: the reader really does not read.
      const more = (): void => {
        for (let i = 0; i < 10; i++, sent++) peer.write(frameHex(body));
        if (peer.socket.writableLength > 4 << 20) resolve();
        else setImmediate(more);
      };
      more();
    });
    expect(sub.watch.bodies.length).toBeLessThan(sent);
    sub.socket.resume();
    await sub.watch.until(() => sub.watch.bodies.length === sent);
  });
});
