// One broker under measurement: a process on free ports, its start-up time, its memory and processor time.
// Used by run.ts and check.ts for the built gateway, the bare loop and mosquitto. Stops only what it has started.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../harness/port.ts';

const READY_MS = 15_000;

/** Free loopback ports, all different: they are held until the last one is known. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

export class Server {
  readonly name: string;
  readonly port: number;
  /** SP ports of the gateway's bridges; 0 for a broker without. */
  readonly outPort: number;
  readonly inPort: number;
  readonly pairOutPort: number;
  readonly pairInPort: number;
  startMs = 0;
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
  private readonly command: string;
  private readonly args: readonly string[];
  private child: ChildProcess | null = null;

  private constructor(name: string, ports: readonly number[], command: string, args: (folder: string) => string[]) {
    this.name = name;
    [this.port, this.outPort = 0, this.inPort = 0, this.pairOutPort = 0, this.pairInPort = 0] = ports;
    this.command = command;
    this.args = args(this.folder);
  }

  /**
   * `more` comes at the end of the configuration, {pairOut} and {pairIn} in it are free ports; `files` are written beside it,
   * {dir} stands for their folder.
   */
  static async gateway(
    root: string,
    nodeArgs: readonly string[],
    more = '',
    files: Readonly<Record<string, string>> = {},
  ): Promise<Server> {
    const [port, out, into, pairOut, pairIn] = await freePorts(5);
    const conf = `listeners.tcp { bind = "127.0.0.1:${port}" }
persistence { enable = false }
auth { allow_anonymous = true }
log { level = warn, to = [console], format = json }
bridges.nng {
  pub.out { enable = true, pub_url = "tcp://127.0.0.1:${out}", mode = listen, send_buffer = 16MB
            forwards = [ { local_topic = "tonng/#", remote_topic = "out", nng_delimiter = ":" } ] }
  sub.in { enable = true, sub_url = "tcp://127.0.0.1:${into}", mode = listen
           subscription = [ { remote_topic = "in", nng_delimiter = ":", local_topic = "fromnng/t", qos = 0 },
                            { remote_topic = "each/", nng_delimiter = ":", local_topic = "", qos = 0 } ] }
}
${more.replaceAll('{pairOut}', String(pairOut)).replaceAll('{pairIn}', String(pairIn))}
`;
    return new Server('tidegate', [port, out, into, pairOut, pairIn], process.execPath, (folder) => {
      writeFileSync(path.join(folder, 'bench.conf'), conf.replaceAll('{dir}', folder));
      for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
      return [...nodeArgs, path.join(root, 'dist/main.js'), 'start', '-c', path.join(folder, 'bench.conf')];
    });
  }

  /** The lower bound: bare.ts. */
  static async bare(root: string): Promise<Server> {
    const port = await freePort();
    const args = ['--import', import.meta.resolve('tsx'), path.join(root, 'test/bench/bare.ts'), String(port)];
    return new Server('bare loop', [port], process.execPath, () => args);
  }

  /** mosquitto without its limits on what is in flight and queued, and without Nagle's delay: as fast as it goes. */
  static async mosquitto(program: string): Promise<Server> {
    const port = await freePort();
    const conf = `listener ${port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 1000
max_queued_messages 0
log_type error
`;
    return new Server('mosquitto', [port], program, (folder) => {
      writeFileSync(path.join(folder, 'bench.conf'), conf);
      return ['-c', path.join(folder, 'bench.conf')];
    });
  }

  async start(): Promise<void> {
    const begin = performance.now();
    const child = spawn(this.command, this.args, { stdio: ['ignore', 'ignore', 'inherit'] });
    this.child = child;
    while (!(await connects(this.port))) {
      if (child.exitCode !== null) throw new Error(`${this.name} ended with ${child.exitCode}`);
      if (performance.now() - begin > READY_MS) throw new Error(`${this.name} does not listen`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    this.startMs = performance.now() - begin;
  }

  /** Megabytes of resident memory, 0 where the system does not tell. */
  rssMb(): number {
    const file = `/proc/${this.child?.pid}/status`;
    if (!existsSync(file)) return 0;
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) / 1024;
  }

  /** Seconds of processor time used so far (all threads), 0 where the system does not tell. */
  cpuSeconds(): number {
    const file = `/proc/${this.child?.pid}/stat`;
    if (!existsSync(file)) return 0;
    const text = readFileSync(file, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // utime and stime are fields 14 and 15 of the whole line, in ticks of 10 ms (proc(5)).
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  async stop(): Promise<void> {
    const child = this.child;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 5000);
      await gone;
      clearTimeout(late);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
