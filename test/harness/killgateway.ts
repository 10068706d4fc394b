// A whole gateway in a process of its own that can be killed and started again on the same files. Used by test/e2e/kill.test.ts.
// It is bundled once from the sources as they are: builds that others make meanwhile do not change it under a running test.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';

const ROOT = path.resolve(import.meta.dirname, '../..');
const BANNER =
  "import { createRequire as makeRequire } from 'node:module';\nconst require = makeRequire(import.meta.url);";
/** The log lines that a failure is explained with. */
const KEPT_TEXT = 20_000;

export interface Program {
  readonly main: string;
  remove(): void;
}

/**
 * Bundles the command and its writer thread into a folder inside the project, where packages are found.
 * @param root of the project: another one's gateway can be compared
 */
export async function gatewayProgram(root = ROOT): Promise<Program> {
  const folder = mkdtempSync(path.join(root, 'node_modules/.gateway-'));
  // Older gateways have none.
  const archive = path.join(root, 'src/archive/worker.ts');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  await build({
    entryPoints: {
      main: path.join(root, 'src/main.ts'),
      worker: path.join(root, 'src/store/worker.ts'),
      ...(existsSync(archive) ? { 'archive-worker': archive } : {}),
    },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    outExtension: { '.js': '.mjs' },
    external: [
      'nanomsg',
      'koffi',
      'libsql',
      '@node-rs/argon2',
      'aedes',
      'aedes-*',
      'mqemitter*',
      'bufferutil',
      'utf-8-validate',
    ],
    banner: { js: BANNER },
    logLevel: 'silent',
  }).catch((error: unknown) => {
    remove();
    throw error;
  });
  // A chunk looks for its worker beside itself, under the name it has in dist/.
  for (const name of existsSync(archive) ? ['worker', 'archive-worker'] : ['worker'])
    writeFileSync(path.join(folder, `${name}.js`), readFileSync(path.join(folder, `${name}.mjs`)));
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module", "version": "0.0.0" }');
  return { main: path.join(folder, 'main.mjs'), remove };
}

/** What a gateway's process is like where it is not the usual one. */
export interface Surroundings {
  /** Environment variables on top of the present ones. */
  readonly env?: NodeJS.ProcessEnv;
  /** Options of Node.js itself. */
  readonly nodeArgs?: readonly string[];
  /** Called between a kill and the next start. */
  readonly afterKill?: (folder: string) => void;
}

export class KillGateway {
  readonly folder: string;
  port = 0;
  private readonly program: Program;
  private readonly surroundings: Surroundings;
  private readonly file: string;
  private child: ChildProcess | null = null;
  private text = '';
  private reloads = 0;

  /** `conf` names its folder `{dir}`; its listener must be tcp on port 0. */
  constructor(program: Program, conf: string, surroundings: Surroundings = {}) {
    this.program = program;
    this.surroundings = surroundings;
    this.folder = mkdtempSync(path.join(os.tmpdir(), 'kill-'));
    this.file = path.join(this.folder, 'kill.conf');
    writeFileSync(this.file, conf.replaceAll('{dir}', this.folder));
  }

  /** The configuration of its next start. */
  set conf(text: string) {
    writeFileSync(this.file, text.replaceAll('{dir}', this.folder));
  }

  /** Starts it and waits until it is ready, unless it runs. */
  async start(): Promise<void> {
    if (this.child !== null) return;
    const child = spawn(
      process.execPath,
      [...(this.surroundings.nodeArgs ?? []), this.program.main, 'start', '-c', this.file],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: this.folder,
        env: { ...process.env, ...this.surroundings.env },
      },
    );
    this.child = child;
    this.text = '';
    await new Promise<void>((resolve, reject) => {
      const take = (chunk: string): void => {
        this.text = (this.text + chunk).slice(-KEPT_TEXT);
        if (chunk.includes('GW-RELOAD')) this.reloads++;
        const ready = /GW-READY.*?127\.0\.0\.1:(\d+)/.exec(this.text);
        if (ready === null) return;
        this.port = Number(ready[1]);
        resolve();
      };
      child.stdout?.setEncoding('utf8').on('data', take);
      child.stderr?.setEncoding('utf8').on('data', take);
      child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${this.text}`)));
    });
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  /** Ends it without warning. */
  async kill(): Promise<void> {
    const child = this.child;
    if (child === null) return;
    this.child = null;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    this.surroundings.afterKill?.(this.folder);
  }

  /** Stops it in order (SIGTERM); gives its exit code. */
  async stop(): Promise<number | null> {
    const child = this.child;
    if (child === null) return null;
    this.child = null;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const [code] = (await ended) as [number | null];
    return code;
  }

  /** It does nothing for a while (SIGSTOP), as in a suspended machine. */
  async stall(ms: number): Promise<void> {
    const { child } = this;
    child?.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, ms));
    child?.kill('SIGCONT');
  }

  /** Gives it another configuration and waits until it is in force. */
  async reload(conf: string): Promise<void> {
    this.conf = conf;
    const child = this.child;
    if (child === null) return;
    const before = this.reloads;
    child.kill('SIGHUP');
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (this.reloads === before) return;
        child.stdout?.off('data', look);
        child.stderr?.off('data', look);
        resolve();
      };
      child.stdout?.on('data', look);
      child.stderr?.on('data', look);
      child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${this.text}`)));
    });
  }

  /** What it has written since its start, the last part of it. */
  get log(): string {
    return this.text;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * A file system that loses what was not synchronised: a library in front of the C library keeps what every write to the database
 * replaced until the next fsync of that file, and powerCut() puts it back. Null with the reason where it cannot be built.
 */
export function losingDisk(): Surroundings | string {
  if (process.platform !== 'linux') return 'needs LD_PRELOAD';
  const library = path.join(mkdtempSync(path.join(os.tmpdir(), 'losing-')), 'losewrites.so');
  try {
    const source = path.join(import.meta.dirname, 'losewrites.c');
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'], { stdio: 'pipe' });
  } catch (error) {
    return `no C compiler: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
  const undo = path.join(path.dirname(library), 'undo');
  return {
    env: { LD_PRELOAD: library, LOSE_SUFFIXES: '.db:.db-wal', LOSE_UNDO: undo },
    afterKill: (folder) => powerCut(undo, path.join(folder, 'data')),
  };
}

/** Undoes every write that was not synchronised, the last one first. Layout of a record: losewrites.c. */
function powerCut(undo: string, data: string): void {
  for (const name of ['t.db', 't.db-wal']) {
    const log = `${undo}.${name}`;
    if (!existsSync(log)) continue;
    const bytes = readFileSync(log);
    rmSync(log);
    const records: { offset: number; size: number; old: Buffer }[] = [];
    for (let at = 0; at + 24 <= bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at + 16));
      if (at + 24 + length > bytes.length) break;
      records.push({
        offset: Number(bytes.readBigUInt64LE(at)),
        size: Number(bytes.readBigUInt64LE(at + 8)),
        old: bytes.subarray(at + 24, at + 24 + length),
      });
      at += 24 + length;
    }
    const file = path.join(data, name);
    if (!existsSync(file) || records.length === 0) continue;
    const content = readFileSync(file);
    const whole = Buffer.alloc(Math.max(content.length, ...records.map((r) => r.offset + r.old.length)));
    content.copy(whole);
    for (const record of records.reverse()) record.old.copy(whole, record.offset);
    writeFileSync(file, whole);
    truncateSync(file, records[records.length - 1].size);
  }
  // The shared index of the log is memory: it does not survive.
  rmSync(path.join(data, 't.db-shm'), { force: true });
}
