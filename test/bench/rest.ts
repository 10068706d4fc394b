// `make bench`, the rows of memory: until ready, at rest, with clients at rest, and under a steady rate; the built gateway as
// the service of the packages starts it. Called by run.ts; alone:
//   npx tsx test/bench/rest.ts [--rounds N] [--node PROGRAM] [--sizing] [--write]
// Rounds are interleaved, figures are medians. --sizing measures the table of docs/limits.md, --write puts it there.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net, { type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from './scenarios.ts';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
/** From ready, or from the last client, to the look at memory. */
const REST_MS = 5000;
const CLIENTS = 1000;

const BRIDGES = `bridges.nng {
  pub.out { enable = true, pub_url = "ipc://{dir}/out.ipc"
            forwards = [ { local_topic = "sensor/#", remote_topic = "sensors", nng_delimiter = ":" } ] }
  sub.in { enable = true, sub_url = "ipc://{dir}/in.ipc"
           subscription = [ { remote_topic = "result", nng_delimiter = ":" } ] }
}`;
const LISTENER = 'listeners.tcp.bind = "127.0.0.1:0"\nlog { level = info, to = [console], format = json }\n';
const SERVICE = `persistence.path = "{dir}/a.db"\nhttp_server { ip_addr = "127.0.0.1", port = 0 }\n`;

interface Setup {
  readonly text: string;
  readonly conf: string;
}
export const SETUPS: readonly Setup[] = [
  { text: 'a listener and two bridges', conf: `${LISTENER}persistence.enable = false\n${BRIDGES}` },
  {
    text: 'the same, `profile = small`',
    conf: `${LISTENER}persistence.enable = false\nbroker.profile = small\n${BRIDGES}`,
  },
  { text: 'the service: also store and console', conf: `${LISTENER}${SERVICE}${BRIDGES}` },
  { text: 'the service, `profile = small`', conf: `${LISTENER}${SERVICE}broker.profile = small\n${BRIDGES}` },
];

/** One gateway process in a folder of its own. */
class Resting {
  readyMs = 0;
  /** Of the processor, until ready. */
  startCpuMs = 0;
  port = 0;
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), 'bench-rest-'));
  private readonly child: ChildProcess;
  private readonly ready: Promise<void>;

  constructor(program: string, conf: string) {
    const file = path.join(this.folder, 'a.conf');
    writeFileSync(file, conf.replaceAll('{dir}', this.folder));
    const begin = performance.now();
    this.child = spawn(program, [path.join(root, 'dist/main.js'), 'start', '-c', file], {
      cwd: this.folder,
      env: { ...process.env, XDG_RUNTIME_DIR: this.folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    this.ready = new Promise((resolve, reject) => {
      this.child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${text}`)));
      this.child.stdout?.on('data', (chunk: Buffer) => {
        text = (text + chunk).slice(-4000);
        const line = /^.*"GW-READY".*\n/m.exec(text);
        if (line === null || this.port !== 0) return;
        this.readyMs = performance.now() - begin;
        this.startCpuMs = this.cpuMs();
        this.port = Number((JSON.parse(line[0]).mqtt[0] as string).split(':').at(-1));
        resolve();
      });
    });
  }

  started(): Promise<void> {
    return this.ready;
  }

  /** Of the processor so far, all threads. */
  cpuMs(): number {
    const text = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  /** Resident memory, and what of it is the process's own, not files. */
  rssMb(): { readonly all: number; readonly own: number } {
    const text = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    const of = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) / 1024;
    return { all: of('VmRSS'), own: of('RssAnon') };
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Connects clients that subscribe to a topic each and then rest. */
async function crowd(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const socket = net.connect(port, '127.0.0.1');
    sockets.push(socket);
    const id = Buffer.from(`rest-${String(i).padStart(6, '0')}`);
    const topic = Buffer.from(`device/${id}/set`);
    const connect = Buffer.concat([
      Buffer.from([0x10, 12 + id.length, 0, 4]),
      Buffer.from('MQTT'),
      Buffer.from([4, 2, 1, 44, 0, id.length]),
      id,
    ]);
    const subscribe = Buffer.concat([
      Buffer.from([0x82, 5 + topic.length, 0, 1, 0, topic.length]),
      topic,
      Buffer.from([1]),
    ]);
    socket.write(Buffer.concat([connect, subscribe]));
    // CONNACK and SUBACK: nine bytes.
    await new Promise<void>((resolve, reject) => {
      let bytes = 0;
      socket.once('error', reject);
      socket.on('data', (chunk) => {
        bytes += chunk.length;
        if (bytes >= 9) resolve();
      });
    });
  }
  return sockets;
}

interface Rest {
  readonly readyMs: number;
  readonly startCpuMs: number;
  readonly restMb: number;
  readonly ownMb: number;
  readonly crowdMb: number;
}

async function measure(program: string, { conf }: Setup): Promise<Rest> {
  const gateway = new Resting(program, conf);
  await gateway.started();
  const { readyMs, startCpuMs } = gateway;
  await pause(REST_MS);
  const rest = gateway.rssMb();
  const sockets = await crowd(gateway.port, CLIENTS);
  await pause(REST_MS);
  const crowdMb = gateway.rssMb().all;
  for (const socket of sockets) socket.destroy();
  await gateway.stop();
  return { readyMs, startCpuMs, restMb: rest.all, ownMb: rest.own, crowdMb };
}

/** The table of starts and rests. */
export async function restLines(program: string, rounds: number): Promise<string[]> {
  const found = SETUPS.map((): Rest[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [i, setup] of SETUPS.entries()) found[i].push(await measure(program, setup));
  const of = (rests: readonly Rest[], key: keyof Rest): string => median(rests.map((one) => one[key])).toFixed(0);
  const version = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
  return [
    `| start and rest, Node.js ${version} | until ready | processor time | at rest | of it its own | with 1,000 clients at rest |`,
    '|---|---|---|---|---|---|',
    ...SETUPS.map(
      ({ text }, i) =>
        `| ${text} | ${of(found[i], 'readyMs')} ms | ${of(found[i], 'startCpuMs')} ms | ${of(found[i], 'restMb')} MB | ${of(found[i], 'ownMb')} MB | ${of(found[i], 'crowdMb')} MB |`,
    ),
  ];
}

/** Clients that publish together at a rate; one subscriber takes all. */
const LOADS: readonly (readonly [clients: number, perSecond: number])[] = [
  [10, 100],
  [100, 1000],
  [1000, 1000],
  [1000, 10_000],
  [1000, 50_000],
  [5000, 10_000],
  [10_000, 10_000],
];
const LOAD_SECONDS = 8;

async function sizing(program: string): Promise<string[]> {
  const lines = ['| clients | messages a second | processor | memory | `profile = small` |', '|---|---|---|---|---|'];
  for (const [clients, perSecond] of LOADS) {
    const cells: { readonly core: number; readonly mb: number }[] = [];
    for (const { conf } of [SETUPS[2], SETUPS[3]]) {
      const gateway = new Resting(program, conf);
      await gateway.started();
      const words = [
        '-p',
        String(gateway.port),
        '--pubs',
        String(clients),
        '-r',
        String(perSecond),
        '--topics',
        '1000',
      ];
      const load = spawn(
        process.execPath,
        [path.join(root, 'dist/main.js'), 'bench', ...words, '-d', String(LOAD_SECONDS)],
        {
          stdio: 'ignore',
        },
      );
      let isOver = false;
      const over = new Promise<void>((resolve) => load.once('exit', () => resolve())).then(() => {
        isOver = true;
      });
      let mb = 0;
      const busy: number[] = [];
      let before = gateway.cpuMs();
      while (!isOver) {
        await Promise.race([over, pause(1000)]);
        const now = gateway.cpuMs();
        busy.push((now - before) / 10);
        before = now;
        mb = Math.max(mb, gateway.rssMb().all);
      }
      cells.push({ core: median(busy), mb });
      await gateway.stop();
    }
    const rate = perSecond.toLocaleString('en');
    lines.push(
      `| ${clients.toLocaleString('en')} | ${rate} | ${cells[0].core.toFixed(0)} % | ${cells[0].mb.toFixed(0)} MB | ${cells[1].mb.toFixed(0)} MB |`,
    );
  }
  return lines;
}

const PAGE = path.join(root, 'docs/limits.md');
const [BEGIN, END] = ['<!-- sizing: written by test/bench/rest.ts -->', '<!-- end of sizing -->'];

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      node: { type: 'string', default: process.execPath },
      sizing: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  });
  const lines = values.sizing ? await sizing(values.node) : await restLines(values.node, Number(values.rounds));
  console.log(lines.join('\n'));
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (values.sizing && values.write) {
    if (from < 0 || to < from) throw new Error('docs/limits.md has no place for figures');
    writeFileSync(PAGE, `${page.slice(0, from)}${BEGIN}\n${lines.join('\n')}\n${page.slice(to)}`);
  }
}
