// What features cost: the built gateway against itself, the same load with and without each, interleaved, medians.
//   npx tsx test/bench/costs.ts [--only NAME[,NAME]] [--rounds N] [--seconds N]
// Throughput says what a client sees; processor time a message says the same with less noise. Run by hand and before a release.
import { spawn } from 'node:child_process';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import type { LoadResult } from '../../src/cli/bench/run.ts';
import { encodeConnect } from '../../src/codec/connect.ts';
import { encodeSubscribe, encodeUnsubscribe } from '../../src/codec/subscribe.ts';
import { CONNECT, SUBSCRIBE, UNSUBSCRIBE } from '../../src/mqtt/packet.ts';
import { freePort } from '../harness/port.ts';
import { Server } from './server.ts';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

const FILTERS = 100_000;
const FILTERS_A_PACKET = 1000;

/** Rules that have to be passed before the one that grants. */
const RULES = 100;
const ACL = [
  'user bench',
  ...Array.from({ length: RULES - 1 }, (_, i) => `topic read other/${i}/+/state`),
  'topic readwrite bench/#',
].join('\n');

/** `sync = ack` is what a path means. */
const STORE = 'persistence { enable = true, path = "{dir}/store.db" }';
/** Publishers beside one subscriber: a thousand clients. */
const CROWD = ['-q', '0', '--pubs', '999', '--window', '20000'];
const CHROMIUM = '/usr/bin/chromium';
const consolePort = await freePort();

/** The overview with its live plots, and the list of clients, each in a browser window of its own session. */
const watched: Side = {
  conf: `http_server { ip_addr = "127.0.0.1", port = ${consolePort}, username = admin, password = secret }`,
  prepare: openConsoles,
};

/** Takes back what prepare() has made. */
type Undo = () => Promise<void> | void;

interface Cost {
  readonly name: string;
  readonly text: string;
  readonly plain: Side;
  readonly featured: Side;
}
interface Side {
  readonly conf?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Done once, before the load. */
  readonly prepare?: (server: Server) => Promise<Undo>;
}

/** What docs/topics.md and docs/quotas.md have: where it concerns the topics of the load, and where it does not. */
const POLICIES: readonly Cost[] = [
  {
    name: 'policies-elsewhere',
    text: 'rewrite rules, checks and quotas for other topics and users, QoS 0',
    plain: { args: ['-q', '0'] },
    featured: {
      conf: `topics { rewrite = [ { from = "old/#", to = "new/{1}" } ], delayed { enable = true }, exclusive_subscriptions = true }
validation.v { topics = ["other/#"], content = json }
quotas.q { per = user, username = other, publishes = 1 }`,
      args: ['-q', '0'],
    },
  },
  {
    name: 'rewrite',
    text: 'topics rewritten, QoS 1',
    plain: {},
    featured: { conf: 'topics.rewrite = [ { from = "bench/#", to = "rewritten/{1}" } ]' },
  },
  {
    name: 'mount',
    text: 'below a mount point, QoS 1',
    plain: {},
    featured: { conf: 'listeners.tcp.mount_point = "m/"' },
  },
  {
    name: 'utf8',
    text: 'payloads checked to be UTF-8, QoS 1',
    plain: {},
    featured: { conf: 'validation.v { topics = ["#"], content = utf8, action = tag }' },
  },
  {
    name: 'quota',
    text: 'a quota that is not reached, QoS 0',
    plain: { args: ['-q', '0'] },
    featured: { conf: 'quotas.q { per = client, publishes = 100000000 }', args: ['-q', '0'] },
  },
];

const COSTS: readonly Cost[] = [
  { name: 'v5', text: 'MQTT 5.0 instead of 3.1.1, QoS 1', plain: {}, featured: { args: ['-V', '5'] } },
  {
    name: 'acl',
    text: `password and ACL file of ${RULES} rules, QoS 1`,
    plain: {},
    featured: {
      conf: 'auth { allow_anonymous = false, password { bench = "secret" }, acl_file = "{dir}/acl" }',
      files: { acl: `${ACL}\n` },
      args: ['-u', 'bench', '-P', 'secret'],
    },
  },
  {
    name: 'subscriptions',
    text: `${FILTERS.toLocaleString('en')} other subscriptions, QoS 1`,
    plain: {},
    featured: { prepare: manySubscriptions },
  },
  ...POLICIES,
  {
    name: 'durable',
    text: 'subscriber with a durable session, QoS 1',
    plain: { conf: STORE, args: ['--window', '20000'] },
    featured: { conf: STORE, args: ['--window', '20000', '--durable'] },
  },
  {
    name: 'consoles',
    text: 'two open consoles, 1,000 clients at 50,000/s, QoS 0',
    plain: { args: [...CROWD, '-r', '50000'] },
    featured: { ...watched, args: [...CROWD, '-r', '50000'] },
  },
  {
    name: 'consoles-full',
    text: 'two open consoles, 1,000 clients as fast as it goes, QoS 0',
    plain: { args: CROWD },
    featured: { ...watched, args: CROWD },
  },
];

/** Two browser windows on the pages that are busiest; they stay open to the end of the comparison. */
async function openConsoles(): Promise<Undo> {
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  for (const page of ['Overview', 'Clients']) {
    const context = await browser.newContext({ locale: 'en-US' });
    const tab = await context.newPage();
    tab.setDefaultTimeout(20_000);
    await tab.goto(`http://127.0.0.1:${consolePort}/`);
    await tab.getByLabel('User').fill('admin');
    await tab.getByLabel('Password').fill('secret');
    await tab.getByRole('button', { name: 'Log in' }).click();
    await tab.getByRole('link', { name: page }).first().click();
  }
  return () => browser.close();
}

/** A client with a great many subscriptions that stays; says how long it took to make and, once, to end them. */
async function manySubscriptions(server: Server): Promise<Undo> {
  const socket = net.connect(server.port, '127.0.0.1');
  let answers = 0;
  let wake = (): void => {};
  socket.on('data', (chunk) => {
    // First bytes of SUBACK and UNSUBACK; nothing else in the answers to these packets has either value.
    for (const byte of chunk) if (byte === 0x90 || byte === 0xb0) answers++;
    wake();
  });
  const answered = async (count: number): Promise<void> => {
    while (answers < count) await new Promise<void>((resolve) => (wake = resolve));
    answers = 0;
  };
  const connect = {
    type: CONNECT,
    version: 4,
    clientId: 'many',
    cleanStart: true,
    keepAlive: 0,
    bridge: false,
  } as const;
  socket.write(encodeConnect({ ...connect, username: null, password: null, will: null, properties: null }));
  const filters = Array.from({ length: FILTERS }, (_, i) => `plant/${i % 100}/line/${i}/+`);
  const packets = FILTERS / FILTERS_A_PACKET;
  const options = { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
  const part = (i: number): string[] => filters.slice(i * FILTERS_A_PACKET, (i + 1) * FILTERS_A_PACKET);
  const subscribe = async (): Promise<void> => {
    for (let i = 0; i < packets; i++) {
      const subscriptions = part(i).map((topicFilter) => ({ topicFilter, ...options }));
      socket.write(encodeSubscribe(4, { type: SUBSCRIBE, packetId: 1, subscriptions, properties: null }));
    }
    await answered(packets);
  };
  const timed = async (what: string, work: () => Promise<void>): Promise<void> => {
    const begin = performance.now();
    await work();
    console.error(`${what} ${FILTERS} filters: ${Math.round(performance.now() - begin)} ms`);
  };
  await timed('subscribing', subscribe);
  await timed('unsubscribing', async () => {
    for (let i = 0; i < packets; i++)
      socket.write(encodeUnsubscribe(4, { type: UNSUBSCRIBE, packetId: 1, topicFilters: part(i), properties: null }));
    await answered(packets);
  });
  await subscribe();
  return () => void socket.destroy();
}

interface Sample {
  readonly perSecond: number;
  /** Microseconds of processor time a message. */
  readonly cpuUs: number;
}

async function measure(server: Server, args: readonly string[], seconds: number): Promise<Sample> {
  const words = ['bench', '-p', String(server.port), '-q', '1', '--inflight', '500', '-d', String(seconds), '--json'];
  const before = server.cpuSeconds();
  const child = spawn(process.execPath, [path.join(root, 'dist/main.js'), ...words, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  const result = JSON.parse(out) as LoadResult;
  return {
    perSecond: result.receivedPerSecond,
    cpuUs: ((server.cpuSeconds() - before) * 1e6) / result.received,
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

async function compare(cost: Cost, rounds: number, seconds: number): Promise<string> {
  const sides = [cost.plain, cost.featured];
  const servers: Server[] = [];
  const undo: Undo[] = [];
  const samples: [Sample[], Sample[]] = [[], []];
  try {
    for (const side of sides) {
      const server = await Server.gateway(root, [], side.conf, side.files);
      servers.push(server);
      await server.start();
      if (side.prepare !== undefined) undo.push(await side.prepare(server));
    }
    for (let round = 0; round < rounds; round++) {
      for (const [i, side] of sides.entries()) samples[i].push(await measure(servers[i], side.args ?? [], seconds));
    }
  } finally {
    for (const back of undo) await back();
    for (const server of servers) await server.stop();
  }
  const [plain, featured] = samples.map((list) => ({
    perSecond: median(list.map((s) => s.perSecond)),
    cpuUs: median(list.map((s) => s.cpuUs)),
  }));
  const percent = (a: number, b: number): string => `${Math.round((a / b) * 100)} %`;
  const k = (perSecond: number): string => `${Math.round(perSecond / 1000)} k/s`;
  return `| ${cost.text} | ${k(plain.perSecond)} | ${k(featured.perSecond)} | ${percent(featured.perSecond, plain.perSecond)} | ${percent(featured.cpuUs, plain.cpuUs)} |`;
}

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
  },
});
const wanted = values.only?.split(',');
console.log('| with | without it | with it | throughput left | processor time a message |\n|---|---|---|---|---|');
for (const cost of COSTS) {
  if (wanted !== undefined && !wanted.includes(cost.name)) continue;
  console.log(await compare(cost, Number(values.rounds), Number(values.seconds)));
}
