// A gateway with a proxy in a process of its own, with as many file descriptors as a test says: what happens near the limit can only be
// seen from outside. Bundled from the sources as they are. Used by test/proxy/crowd.test.ts.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gatewayProgram, type Program } from './killgateway.ts';

export class ProxyProcess {
  /** All it has written so far. */
  text = '';
  private readonly program: Program;
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), 'proxy-'));
  private readonly child: ChildProcess;

  private constructor(program: Program, conf: string, descriptors: number) {
    this.program = program;
    const file = path.join(this.folder, 'proxy.conf');
    writeFileSync(file, conf);
    const command = ['-c', 'ulimit -n "$1" && shift && exec "$@"', 'sh', String(descriptors), process.execPath];
    this.child = spawn('sh', [...command, program.main, 'start', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'] });
    const take = (chunk: string): void => {
      this.text += chunk;
    };
    this.child.stdout?.setEncoding('utf8').on('data', take);
    this.child.stderr?.setEncoding('utf8').on('data', take);
  }

  /** Resolves when it is ready; `descriptors` is its limit, soft and hard. */
  static async start(conf: string, descriptors: number): Promise<ProxyProcess> {
    const made = new ProxyProcess(await gatewayProgram(), conf, descriptors);
    await made.says(/GW-READY/);
    return made;
  }

  /** Waits for a text in its output. */
  async says(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) {
      if (this.child.exitCode !== null) throw new Error(`the gateway ended with ${this.child.exitCode}: ${this.text}`);
      await Promise.race([once(this.child.stdout ?? this.child, 'data'), once(this.child, 'exit')]);
    }
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Memory it has in RAM. */
  get residentBytes(): number {
    const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'latin1'));
    return found === null ? 0 : Number(found[1]) * 1024;
  }

  get descriptorCount(): number {
    return readdirSync(`/proc/${this.child.pid}/fd`).length;
  }

  async stop(): Promise<void> {
    if (this.running) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGTERM');
      await ended;
    }
    this.program.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
