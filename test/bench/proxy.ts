// What the proxy costs: the same load on a mosquitto directly, through nginx's stream module and through the proxy of the built gateway,
// interleaved in one run, medians. Latencies are of messages that pass the proxy twice (publisher to broker, broker to subscriber).
//   npx tsx test/bench/proxy.ts [--rounds N] [--seconds N] [--only NAME[,NAME]] [--dist FOLDER] [--plain: preread = false too] [--inspect]
//     [--topics] [--web: WebSocket in front, beside the same two proxies over TCP] [--before FOLDER: the proxy of another build too]
//     [--bare: a bare loop in the place of mosquitto, which leaves the processor to the proxy]
// Needs mosquitto, and nginx with its stream module for the comparison; the load generator is `tidegate bench`. The processor time a
// message is that of the proxy alone, for both passes.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { LoadResult } from '../../src/cli/bench/run.ts';
import { freePort } from '../harness/port.ts';

interface Scenario {
  readonly name: string;
  readonly text: string;
  readonly args: readonly string[];
  readonly measure: 'rate' | 'p50';
}
const SCENARIOS: readonly Scenario[] = [
  { name: 'qos0', text: 'QoS 0, 1 to 1', args: ['-q', '0'], measure: 'rate' },
  { name: 'qos1', text: 'QoS 1, 1 to 1', args: ['-q', '1', '--inflight', '500'], measure: 'rate' },
  { name: 'large', text: 'QoS 0, 1 to 1, 16 KB payloads', args: ['-q', '0', '-s', '16384'], measure: 'rate' },
  { name: 'latency', text: 'p50 latency at 1,000/s, QoS 0', args: ['-q', '0', '-r', '1000'], measure: 'p50' },
];

interface Place {
  readonly name: string;
  readonly port: number;
  readonly child: ChildProcess | null;
}

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-proxy-'));

function program(name: string): string | null {
  const places = ['/usr/sbin', '/usr/local/sbin', ...(process.env.PATH ?? '').split(':')];
  return places.map((place) => path.join(place, name)).find((file) => existsSync(file)) ?? null;
}

async function listens(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const open = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`${child.spawnfile} does not listen`);
}

async function run(name: string, port: number, command: string, args: readonly string[]): Promise<Place> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  await listens(port, child);
  return { name, port, child };
}

function write(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

async function mosquitto(command: string): Promise<Place> {
  const port = await freePort();
  const user = process.getuid?.() === 0 ? 'user root\n' : '';
  const conf = `${user}listener ${port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 1000
max_queued_messages 0
log_type error
`;
  return run('direct', port, command, ['-c', write('mosquitto.conf', conf)]);
}

async function nginx(command: string, broker: number): Promise<Place | null> {
  const module = '/usr/lib/nginx/modules/ngx_stream_module.so';
  const built = execFileSync('sh', ['-c', `${command} -V 2>&1`], { encoding: 'utf8' });
  if (!existsSync(module) && !/--with-stream( |$)/.test(built)) return null;
  const port = await freePort();
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const conf = `${existsSync(module) ? `load_module ${module};\n` : ''}${user}daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.log;
events { worker_connections 4096; }
stream {
  upstream brokers { server 127.0.0.1:${broker}; }
  server { listen 127.0.0.1:${port}; proxy_pass brokers; proxy_timeout 10m; }
}
`;
  return run('nginx', port, command, ['-c', write('nginx.conf', conf), '-p', folder]);
}

async function bare(): Promise<Place> {
  const port = await freePort();
  return run('direct', port, process.execPath, [
    '--import',
    'tsx',
    path.join(root, 'test/bench/bare.ts'),
    String(port),
  ]);
}

async function tidegate(dist: string, broker: number, more: string, name: string, pool = ''): Promise<Place> {
  const port = await freePort();
  const conf = `persistence { enable = false }
log { level = warn, to = [console], format = json }
upstreams.brokers { servers = [ { addr = "127.0.0.1:${broker}" } ], ${pool} }
proxy.bench { bind = "127.0.0.1:${port}", default = brokers, ${more} }
`;
  return run(name, port, process.execPath, [path.join(dist, 'main.js'), 'start', '-c', write(`${name}.conf`, conf)]);
}

/** A proxy whose clients come by `protocol`, behind one that takes the load by TCP: the processor time is that of the former. */
async function chained(dist: string, broker: number, protocol: 'tcp' | 'ws'): Promise<Place[]> {
  const behind = await tidegate(dist, broker, `protocol = ${protocol}`, `${protocol}-front`);
  const first = await tidegate(dist, behind.port, '', `${protocol}-first`, `protocol = ${protocol}`);
  return [
    { name: protocol, port: first.port, child: behind.child },
    { name: '', port: 0, child: first.child },
  ];
}

/** Seconds of processor time of a process and its children, 0 where the system does not tell. */
function cpuSeconds(place: Place): number {
  if (place.child === null) return 0;
  const ids = [String(place.child.pid)];
  const children = `/proc/${ids[0]}/task/${ids[0]}/children`;
  if (existsSync(children)) ids.push(...readFileSync(children, 'utf8').split(' ').filter(Boolean));
  return ids.reduce((sum, id) => {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);
}

async function load(dist: string, place: Place, scenario: Scenario, seconds: number): Promise<LoadResult> {
  const args = ['bench', '-p', String(place.port), '-d', String(seconds), '--json', ...scenario.args];
  const child = spawn(process.execPath, [path.join(dist, 'main.js'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  if (!out.startsWith('{')) throw new Error(`${scenario.name} through ${place.name} gave no figures`);
  return JSON.parse(out) as LoadResult;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function amount(scenario: Scenario, x: number): string {
  return scenario.measure === 'p50' ? `${Math.round(x)} us` : `${Math.round(x / 1000)} k/s`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string' },
      dist: { type: 'string', default: path.join(root, 'dist') },
      inspect: { type: 'boolean', default: false },
      topics: { type: 'boolean', default: false },
      plain: { type: 'boolean', default: false },
      web: { type: 'boolean', default: false },
      before: { type: 'string' },
      bare: { type: 'boolean', default: false },
    },
  });
  const commands = [program('mosquitto'), program('nginx')];
  if (commands[0] === null) throw new Error('mosquitto is not installed');
  const places: Place[] = [];
  try {
    const broker = values.bare ? await bare() : await mosquitto(commands[0]);
    places.push(broker);
    const other = commands[1] === null ? null : await nginx(commands[1], broker.port);
    if (other === null) console.error('nginx with its stream module is not installed: no comparison');
    else places.push(other);
    places.push(await tidegate(values.dist, broker.port, '', 'tidegate'));
    if (values.plain) places.push(await tidegate(values.dist, broker.port, 'preread = false', 'plain'));
    if (values.inspect) places.push(await tidegate(values.dist, broker.port, 'inspect = true', 'inspect'));
    if (values.topics) {
      const rules = 'topics = [ { filter = "other/#", upstream = brokers } ]';
      places.push(await tidegate(values.dist, broker.port, rules, 'topics'));
      if (values.before !== undefined) places.push(await tidegate(values.before, broker.port, rules, 'topics before'));
    }
    if (values.before !== undefined) places.push(await tidegate(values.before, broker.port, '', 'before'));
    if (values.web)
      for (const protocol of ['tcp', 'ws'] as const)
        places.push(...(await chained(values.dist, broker.port, protocol)));
    const shown = places.filter((place) => place.name !== '');
    const wanted = values.only?.split(',');
    const figures = new Map<string, number[]>();
    const times = new Map<string, number[]>();
    for (let round = 1; round <= Number(values.rounds); round++) {
      for (const scenario of SCENARIOS.filter((s) => wanted?.includes(s.name) ?? true)) {
        for (const place of shown) {
          const cpu = cpuSeconds(place);
          const result = await load(values.dist, place, scenario, Number(values.seconds));
          const spent = cpuSeconds(place) - cpu;
          const used = spent / Number(values.seconds);
          const usEach = (spent * 1e6) / Math.max(1, result.received);
          const x = scenario.measure === 'p50' ? result.latencyUs.p50 : result.receivedPerSecond;
          const key = `${scenario.name} ${place.name}`;
          figures.set(key, [...(figures.get(key) ?? []), x]);
          times.set(key, [...(times.get(key) ?? []), usEach]);
          console.error(
            `round ${round}  ${scenario.name.padEnd(8)} ${place.name.padEnd(9)} ${amount(scenario, x).padStart(10)}  lost ${result.lost}  core ${Math.round(used * 100)} %  ${usEach.toFixed(2)} us each`,
          );
        }
      }
    }
    console.log(`| path | ${shown.map((place) => place.name).join(' | ')} |\n|---|${shown.map(() => '---|').join('')}`);
    for (const scenario of SCENARIOS) {
      const row = shown.map((place) => figures.get(`${scenario.name} ${place.name}`));
      if (row[0] === undefined) continue;
      const used = shown.map((place) => times.get(`${scenario.name} ${place.name}`));
      console.log(`| ${scenario.text} | ${row.map((xs) => amount(scenario, median(xs ?? [0]))).join(' | ')} |`);
      console.log(`| processor time | ${used.map((xs) => `${median(xs ?? [0]).toFixed(2)} us`).join(' | ')} |`);
    }
  } finally {
    for (const { child } of places) child?.kill('SIGTERM');
    await new Promise((resolve) => setTimeout(resolve, 300));
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
