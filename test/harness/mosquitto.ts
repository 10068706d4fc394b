// A real mosquitto on a free loopback port, for tests that need a peer not written here. Skipped by its users when not installed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './port.ts';

/** The path of a program, /usr/sbin included, or null. */
export function programPath(name: string): string | null {
  try {
    const env = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` };
    return execFileSync('sh', ['-c', `command -v ${name}`], { env, encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
}

const LOG_TEXT = 20_000;

export class Mosquitto {
  readonly port: number;
  readonly folder: string;
  /** What it has written since its start, the last part of it. */
  log = '';
  private readonly child: ChildProcess;

  private constructor(port: number, folder: string, child: ChildProcess) {
    this.port = port;
    this.folder = folder;
    this.child = child;
  }

  /** Starts it with these lines of configuration; {dir} stands for the folder that holds `files`. */
  static async start(lines: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<Mosquitto> {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'mosquitto-'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const conf = join(folder, 'conf');
    // Started by root it would become another user, who may not read the folder.
    const user = process.getuid?.() === 0 ? 'user root\n' : '';
    writeFileSync(conf, `${user}listener ${port} 127.0.0.1\n${lines.join('\n').replaceAll('{dir}', folder)}\n`);
    const child = spawn(programPath('mosquitto') ?? 'mosquitto', ['-c', conf], { stdio: ['ignore', 'ignore', 'pipe'] });
    let text = '';
    const started: { broker: Mosquitto | null } = { broker: null };
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        const made = started.broker;
        if (made !== null) made.log = (made.log + chunk.toString()).slice(-LOG_TEXT);
        if (/ running/.test(text)) resolve();
      });
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`mosquitto exited ${code}: ${text}`)));
    }).catch((error: unknown) => {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    });
    started.broker = new Mosquitto(port, folder, child);
    return started.broker;
  }

  /** Rewrites a file and has the configuration read again. */
  reload(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
    this.child.kill('SIGHUP');
  }

  /** Ends it at once. May be called again, and for one that has ended already. */
  async stop(): Promise<void> {
    // What a signal has ended has no exit code, then or later.
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const gone = new Promise((resolve) => this.child.once('exit', resolve));
      this.child.kill('SIGKILL');
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
