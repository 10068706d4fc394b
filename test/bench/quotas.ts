// Quotas under attack: for each limit a flooder in a process of its own beside 50 well-behaved clients of a gateway in
// another one. Prints the latency of the well-behaved ones, what they lost, and what became of the flooder.
// Run: npx tsx test/bench/quotas.ts [SECONDS]   (needs `make build`)
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { encodePacket } from '../../src/codec/packet.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { CONNECT, type ConnectPacket, SUBSCRIBE } from '../../src/mqtt/packet.ts';

const CLIENTS = 50;
const EVERY_MS = 20;
const main = path.resolve(import.meta.dirname, '../../dist/main.js');

/** What is flooded, and the quota against it; the flooder is the user "bad". */
const CASES: Readonly<Record<string, string>> = {
  none: '',
  'publishes delay': 'publishes = 200',
  'publishes drop': 'publishes = 200, action = drop',
  'publishes disconnect': 'publishes = 200, action = disconnect',
  bytes: 'bytes = 64KB',
  inflight: 'inflight = 20',
  connects: 'connects = 20',
  'connects refused': 'connects = 20, action = disconnect',
  sessions: 'sessions = 10',
  subscriptions: 'subscriptions = 10',
  retained: 'retained = 10',
};

function hello(clientId: string, username: string | null, cleanStart = true): Buffer {
  const properties = cleanStart ? null : { sessionExpiryInterval: 600 };
  const packet: ConnectPacket = {
    type: CONNECT,
    version: 5,
    bridge: false,
    clientId,
    cleanStart,
    keepAlive: 0,
    username,
    password: null,
    will: null,
    properties,
  };
  return encodePacket(5, packet);
}

function subscribe(topicFilter: string, packetId = 1): Buffer {
  const request = { topicFilter, qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
  return encodePacket(5, { type: SUBSCRIBE, packetId, subscriptions: [request], properties: null });
}

function message(topic: string, payload: Buffer, qos: 0 | 1 = 0, packetId = 0, retain = false): Buffer {
  return encodePublish(5, { topic, payload, qos, retain, dup: false, packetId, properties: null });
}

function open(port: number, first: Buffer): Socket {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  socket.on('error', () => {});
  socket.write(first);
  return socket;
}

/** Keeps the socket full. */
function pour(socket: Socket, chunk: () => Buffer): void {
  const go = (): void => {
    while (!socket.destroyed && socket.write(chunk()));
  };
  socket.on('drain', go);
  go();
}

/** The flooder: never ends by itself. */
function flood(port: number, what: string): void {
  const kind = what.split(' ')[0];
  let n = 0;
  const start = (): void => {
    const id = kind === 'connects' || kind === 'sessions' ? `bad${n++}` : 'bad';
    const socket = open(port, hello(id, 'bad', kind !== 'sessions' && kind !== 'inflight'));
    socket.on('data', () => {
      if (kind === 'connects' || kind === 'sessions') socket.destroy();
    });
    socket.on('close', () => setImmediate(start));
    const burst = (one: () => Buffer) => () => Buffer.concat(Array.from({ length: 100 }, one));
    const id16 = (): number => (n++ % 65_000) + 1;
    if (kind === 'none' || kind === 'publishes')
      pour(
        socket,
        burst(() => message('bad', Buffer.alloc(50))),
      );
    else if (kind === 'bytes') pour(socket, () => message('bad', Buffer.alloc(100_000)));
    else if (kind === 'inflight')
      pour(
        socket,
        burst(() => message('bad', Buffer.alloc(50), 1, id16())),
      );
    else if (kind === 'retained')
      pour(
        socket,
        burst(() => message(`bad/${n++}`, Buffer.alloc(50), 0, 0, true)),
      );
    else if (kind === 'subscriptions')
      pour(
        socket,
        burst(() => subscribe(`bad/${n++}/+`, id16())),
      );
  };
  for (let i = 0; i < (kind === 'connects' || kind === 'sessions' ? 20 : 4); i++) start();
}

/** One well-behaved client: publishes to itself at QoS 1, reads the time it was sent from what comes back. */
class Citizen {
  readonly latencies: number[] = [];
  sent = 0;
  private readonly socket: Socket;
  private rest: Buffer = Buffer.alloc(0);
  private readonly topic: string;

  constructor(port: number, index: number) {
    this.topic = `good/${String(index).padStart(2, '0')}`;
    this.socket = open(port, Buffer.concat([hello(`good${index}`, 'good'), subscribe(this.topic)]));
    this.socket.on('data', (chunk: Buffer) => this.data(chunk));
  }

  send(): void {
    const payload = Buffer.alloc(8);
    payload.writeDoubleBE(performance.now());
    this.sent++;
    this.socket.write(message(this.topic, payload, 1, (this.sent % 60_000) + 1));
  }

  end(): void {
    this.socket.destroy();
  }

  private data(chunk: Buffer): void {
    this.rest = Buffer.concat([this.rest, chunk]);
    while (this.rest.length >= 2 && this.rest.length >= 2 + this.rest[1]) {
      const packet = this.rest.subarray(0, 2 + this.rest[1]);
      this.rest = this.rest.subarray(packet.length);
      if (packet[0] >> 4 !== 3) continue;
      this.latencies.push(performance.now() - packet.readDoubleBE(packet.length - 8));
      const idAt = 2 + 2 + this.topic.length;
      this.socket.write(Buffer.from([0x40, 2, packet[idAt], packet[idAt + 1]]));
    }
  }
}

/** Acknowledgements wait for the disk there. */
function stored(quota: string, folder: string): string {
  return quota.startsWith('inflight') ? `persistence.path = "${folder}/db"` : '';
}

async function gateway(quota: string): Promise<{ process: ChildProcess; port: number; folder: string }> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'quota-bench-'));
  const file = path.join(folder, 'q.conf');
  const block = quota === '' ? '' : `quotas.bad { per = user, username = bad, ${quota} }`;
  writeFileSync(
    file,
    `listeners.tcp.bind = "127.0.0.1:0"\nauth.allow_anonymous = true\nlog.level = error\n${block}\n${stored(quota, folder)}\n`,
  );
  const child = spawn(process.execPath, [main, 'start', '-c', file], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /tcp:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
    if (port !== undefined) return { process: child, port: Number(port), folder };
  }
  throw new Error('the gateway did not start');
}

async function run(name: string, seconds: number): Promise<void> {
  const { process: child, port, folder } = await gateway(CASES[name]);
  const citizens = Array.from({ length: CLIENTS }, (_, i) => new Citizen(port, i));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const bad = fork(import.meta.filename, ['flood', String(port), name], { execArgv: process.execArgv });
  await new Promise((resolve) => setTimeout(resolve, 500));
  const timer = setInterval(() => {
    for (const one of citizens) one.send();
  }, EVERY_MS);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  clearInterval(timer);
  bad.kill();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const all = citizens.flatMap((one) => one.latencies).sort((a, b) => a - b);
  const sent = citizens.reduce((sum, one) => sum + one.sent, 0);
  const at = (share: number): string => (all[Math.floor(all.length * share)] ?? Number.NaN).toFixed(2);
  console.log(`${name.padEnd(22)} p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, lost ${sent - all.length} of ${sent}`);
  for (const one of citizens) one.end();
  child.kill();
  await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true });
}

if (process.argv[2] === 'flood') flood(Number(process.argv[3]), process.argv[4]);
else {
  const [, , seconds = '3', only] = process.argv;
  for (const name of Object.keys(CASES))
    if (only === undefined || name.startsWith(only)) await run(name, Number(seconds));
}
