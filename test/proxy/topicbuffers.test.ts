// A proxy with topics on real sockets, which reads into buffers that it uses again: under back pressure, with packets cut anywhere, every
// byte arrives as it was sent, both ways, in order for each server.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { encodeConnack } from '../../src/codec/connect.ts';
import { PacketCutter } from '../../src/codec/cutter.ts';
import { encodePublish, newScan, scanPublish } from '../../src/codec/publish.ts';
import { CONNACK, CONNECT, PUBLISH } from '../../src/mqtt/packet.ts';
import { pattern } from '../contract/transport.ts';
import { testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';
import { Random } from '../harness/random.ts';

const MESSAGES = 2500;
const LARGEST_BYTES = 9000;

/** 3.1.1, clean session, client id "c". */
const CONNECT_PACKET = Buffer.from('100d00044d51545404020000000163', 'hex');

const undo: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

/** What came, by topic: the numbers in their order, or what is wrong. */
class Received {
  readonly numbers = new Map<string, number[]>();
  count = 0;
  onConnect: (() => void) | null = null;
  private readonly scan = newScan();
  private readonly cutter = new PacketCutter(1_000_000);
  private readonly done: () => void;
  private readonly wanted: number;

  /** Reads `socket` with pauses: what is sent to it piles up before it. */
  constructor(socket: Socket, wanted: number, done: () => void) {
    this.wanted = wanted;
    this.done = done;
    let turn = 0;
    socket.on('data', (chunk: Buffer) => {
      this.cutter.feed(chunk, (bytes) => this.packet(bytes));
      if (++turn % 3 === 0) return;
      socket.pause();
      setImmediate(() => setImmediate(() => socket.resume()));
    });
  }

  private packet(bytes: Buffer): boolean {
    const { cutter, scan, numbers } = this;
    if (cutter.frame.type === CONNECT) this.onConnect?.();
    if (cutter.frame.type !== PUBLISH) return true;
    scanPublish(bytes, cutter.frame, 4, scan);
    const topic = bytes.toString('utf8', scan.topicStart, scan.topicEnd);
    const payload = bytes.subarray(scan.payloadStart, cutter.frame.end);
    const number = payload.readUInt32BE(0);
    const isWhole = pattern(payload.length - 4, number + 1).equals(payload.subarray(4));
    const list = numbers.get(topic) ?? [];
    numbers.set(topic, list);
    list.push(isWhole ? number : -1);
    if (++this.count === this.wanted) this.done();
    return true;
  }
}

function message(topic: string, number: number, bytes: number): Buffer {
  const payload = Buffer.concat([Buffer.alloc(4), pattern(bytes, number + 1)]);
  payload.writeUInt32BE(number, 0);
  return encodePublish(4, { topic, payload, qos: 0, retain: false, dup: false, packetId: 0, properties: null });
}

/** All of it, in pieces that are cut anywhere. */
async function sendAll(socket: Socket, packets: readonly Buffer[], random: Random): Promise<void> {
  const all = Buffer.concat(packets);
  for (let at = 0; at < all.length; ) {
    const end = at + 1 + random.below(150_000);
    if (!socket.write(all.subarray(at, end))) await once(socket, 'drain');
    at = end;
  }
}

/** A server that accepts a client, takes what it sends and sends its own messages. */
async function server(name: string, wanted: number, done: () => void): Promise<{ port: number; got: Received[] }> {
  const got: Received[] = [];
  const random = new Random(name.length);
  const listener: Server = createServer((socket) => {
    socket.on('error', () => {});
    const received = new Received(socket, wanted, done);
    got.push(received);
    received.onConnect = () => {
      socket.write(encodeConnack(4, { type: CONNACK, sessionPresent: false, reasonCode: 0, properties: null }));
      const packets = Array.from({ length: MESSAGES }, (_, i) => message(name, i, random.below(LARGEST_BYTES)));
      void sendAll(socket, packets, random).catch(() => {});
    };
    undo.push(() => socket.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  undo.push(() => listener.close());
  return { port: (listener.address() as AddressInfo).port, got };
}

it('passes every byte on as it was sent, both ways, while all sides read slowly', async () => {
  const all = Array.from({ length: MESSAGES }, (_, i) => i);
  let open = 3;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const done = (): void => {
    if (--open === 0) finish();
  };
  const left = await server('left', MESSAGES, done);
  const main = await server('main', MESSAGES, done);
  const port = await freePort();
  const gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
upstreams.main { servers = [ { addr = "127.0.0.1:${main.port}" } ] }
upstreams.left { servers = [ { addr = "127.0.0.1:${left.port}" } ] }
proxy.front { bind = "127.0.0.1:${port}", default = main, topics = [ { filter = "left/#", upstream = left } ] }`);
  undo.push(() => gateway.stop());
  const client = dial(port, '127.0.0.1').on('error', () => {});
  undo.push(() => client.destroy());
  const received = new Received(client, 2 * MESSAGES, done);
  client.write(CONNECT_PACKET);
  const random = new Random(7);
  const packets = all.flatMap((i) => ['left', 'main'].map((topic) => message(topic, i, random.below(LARGEST_BYTES))));
  await Promise.all([sendAll(client, packets, random), finished]);
  expect(received.numbers).toEqual(
    new Map([
      ['left', all],
      ['main', all],
    ]),
  );
  expect(main.got.map(({ numbers }) => numbers)).toEqual([new Map([['main', all]])]);
  expect(left.got.map(({ numbers }) => numbers)).toEqual([new Map([['left', all]])]);
}, 60_000);
