// A load for rules: one MQTT client publishes 64-byte JSON objects on 1,000 topics in turn, another one takes what the
// rule makes of them. Run by scenarios.ts as a process of its own; prints the figures `tidegate bench --json` prints.
//   npx tsx test/bench/json.ts PORT SECONDS
// Closed loop. Results have one length each, so they are counted by their bytes; the first of each read is looked at.
import net from 'node:net';
import type { LoadResult } from '../../src/cli/bench/run.ts';
import { encodeConnect } from '../../src/codec/connect.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { encodeSubscribe } from '../../src/codec/subscribe.ts';
import { CONNECT, SUBSCRIBE } from '../../src/mqtt/packet.ts';

const TOPICS = 1000;
const PAYLOAD_BYTES = 64;
const BLOCK = 500;
const WINDOW = 2000;
const WARMUP_SECONDS = 1;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;

/** What the rule of run.ts makes of every message; the topics it publishes on have one length. */
const RESULT = encodePublish(4, {
  topic: 'rules/out/000',
  payload: Buffer.from('{"device":"k1","temp":100.5,"hot":true}'),
  qos: 0,
  retain: false,
  dup: false,
  packetId: 0,
  properties: null,
});

function messages(): Buffer[] {
  const blocks: Buffer[] = [];
  for (let first = 0; first < TOPICS; first += BLOCK) {
    const packets = Array.from({ length: BLOCK }, (_, i) => {
      const n = first + i;
      const json = `{"device":"k1","temp":${100.5 + (n % 800)},"unit":"C","seq":${1000 + n},"x":"`;
      const payload = Buffer.from(`${json.padEnd(PAYLOAD_BYTES - 2, 'x')}"}`);
      const topic = `rules/in/${String(n).padStart(3, '0')}`;
      return encodePublish(4, { topic, payload, qos: 0, retain: false, dup: false, packetId: 0, properties: null });
    });
    blocks.push(Buffer.concat(packets));
  }
  return blocks;
}

/** A client that is in, its socket past the `bytes` of the broker's first answers. */
async function client(port: number, clientId: string, more: Buffer, bytes: number): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  const connect = { type: CONNECT, version: 4, clientId, cleanStart: true, keepAlive: 0, bridge: false } as const;
  const packet = encodeConnect({ ...connect, username: null, password: null, will: null, properties: null });
  socket.write(Buffer.concat([packet, more]));
  let left = bytes;
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.on('data', (chunk) => {
      left -= chunk.length;
      if (left <= 0) resolve();
    });
  });
  socket.removeAllListeners('data');
  return socket;
}

function check(chunk: Buffer, at: number): void {
  if (chunk.length - at < RESULT.length) return;
  const got = chunk.toString('latin1', at + 4, at + RESULT.length);
  if (!/^rules\/out\/\d{3}\{"device":"k1","temp":\d{3}\.5,"hot":true\}$/.test(got))
    throw new Error(`not what the rule makes: ${got}`);
}

async function main(port: number, seconds: number): Promise<void> {
  const options = { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
  const subscriptions = [{ topicFilter: 'rules/out/#', ...options }];
  const subscribe = encodeSubscribe(4, { type: SUBSCRIBE, packetId: 1, subscriptions, properties: null });
  const subscriber = await client(port, 'json-sub', subscribe, CONNACK_BYTES + SUBACK_BYTES);
  const publisher = await client(port, 'json-pub', Buffer.alloc(0), CONNACK_BYTES);
  const blocks = messages();
  let [sent, bytes] = [0, 0];
  const received = (): number => Math.floor(bytes / RESULT.length);
  const begin = performance.now();
  const elapsed = (): number => (performance.now() - begin) / 1000;
  let mark: { at: number; sent: number; received: number; cpu: NodeJS.CpuUsage } | null = null;
  const pump = (): void => {
    if (elapsed() >= seconds + WARMUP_SECONDS) return;
    while (sent - received() + BLOCK <= WINDOW) {
      publisher.write(blocks[(sent / BLOCK) % blocks.length]);
      sent += BLOCK;
    }
  };
  const all = new Promise<boolean>((resolve) => {
    let [seen, still] = [0, 0];
    const watch = setInterval(() => {
      still = bytes === seen ? still + 1 : 0;
      seen = bytes;
      const over = elapsed() >= seconds + WARMUP_SECONDS && received() === sent;
      if (!over && still < 20) return;
      clearInterval(watch);
      resolve(over);
    }, 100);
  });
  let lastAt = begin;
  subscriber.on('data', (chunk) => {
    check(chunk, (RESULT.length - (bytes % RESULT.length)) % RESULT.length);
    bytes += chunk.length;
    lastAt = performance.now();
    if (mark === null && elapsed() >= WARMUP_SECONDS)
      mark = { at: lastAt, sent, received: received(), cpu: process.cpuUsage() };
    pump();
  });
  pump();
  const complete = await all;
  for (const socket of [publisher, subscriber]) socket.destroy();
  const from = mark ?? { at: begin, sent: 0, received: 0, cpu: { user: 0, system: 0 } };
  const measured = Math.max(1e-3, (lastAt - from.at) / 1000);
  const used = process.cpuUsage(from.cpu);
  const result: LoadResult = {
    sent,
    received: received(),
    lost: sent - received(),
    disorder: 0,
    gaps: 0,
    seconds: measured,
    sentPerSecond: (sent - from.sent) / measured,
    receivedPerSecond: (received() - from.received) / measured,
    latencyUs: { p50: 0, p99: 0, p999: 0, max: 0 },
    loadCpu: (used.user + used.system) / 1e6 / measured,
    stalled: !complete,
  };
  console.log(JSON.stringify(result));
}

await main(Number(process.argv[2]), Number(process.argv[3]));
