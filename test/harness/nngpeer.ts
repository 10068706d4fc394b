// SP peers on libnng for tests: compiles nngpeer.c once per process where gcc and libnng-dev are there, and talks to it by lines.
// What the program does with its lines is in the head of nngpeer.c.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export class NngPeers {
  /** Why there are none here, or null. */
  readonly missing: string | null;
  private readonly folder = mkdtempSync(join(tmpdir(), 'nngpeer-'));
  private readonly program = join(this.folder, 'nngpeer');
  private readonly running = new Set<NngPeer>();

  constructor() {
    const source = fileURLToPath(new URL('nngpeer.c', import.meta.url));
    try {
      execFileSync('gcc', ['-O1', '-o', this.program, source, '-lnng'], { stdio: 'pipe' });
      this.missing = null;
    } catch (error) {
      this.missing = `gcc or libnng-dev is missing (${String(error).split('\n', 1)[0]})`;
    }
  }

  start(protocol: string, mode: 'listen' | 'dial', url: string, ...options: string[]): NngPeer {
    const peer = new NngPeer(spawn(this.program, [protocol, mode, url, ...options], { stdio: 'pipe' }));
    this.running.add(peer);
    return peer;
  }

  /** Ends every peer that still runs. */
  async clear(): Promise<void> {
    await Promise.all([...this.running].map((peer) => peer.kill()));
    this.running.clear();
  }

  async remove(): Promise<void> {
    await this.clear();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class NngPeer {
  /** What it has printed. */
  readonly lines: string[] = [];
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private rest = '';
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding('utf8');
    child.stdout?.on('data', (text: string) => this.take(text));
    // A killed peer closes its pipes in the middle of a line.
    child.stdin?.on('error', () => {});
    this.ended = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  /** Received messages, without what is told of peers. */
  get messages(): string[] {
    return this.lines.filter((line) => line.startsWith('ok ') || line.startsWith('bad '));
  }

  /** Sends each line as a message. */
  send(...lines: string[]): void {
    this.child.stdin?.write(lines.map((line) => `${line}\n`).join(''));
  }

  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  line(text: string): Promise<void> {
    return this.until(() => this.lines.includes(text));
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  private take(text: string): void {
    const parts = (this.rest + text).split('\n');
    this.rest = parts.pop() ?? '';
    for (const part of parts) this.lines.push(part);
    const { waiting } = this;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}
