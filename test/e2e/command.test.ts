// The built command as a process: start-up, signals, a busy port. Skipped when nothing has been built (`make test` builds first).
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const MAIN = path.join(import.meta.dirname, '../../dist/main.js');
const CONF =
  'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nlog { level = info, format = json }\n';

let folder: string;
let started: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'command-'));
  started = [];
});
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Running {
  readonly child: ChildProcess;
  /** Everything it has written to both streams. */
  readonly text: () => string;
  /** Resolves as soon as the text matches; rejects when the process ends before. */
  readonly until: (pattern: RegExp) => Promise<RegExpExecArray>;
  readonly exit: Promise<number | null>;
}

function tidegate(...argv: string[]): Running {
  const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder });
  started.push(child);
  let text = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      for (const check of waiting) check();
    });
  }
  const exit = once(child, 'close').then(([code]) => code as number | null);
  const until = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = pattern.exec(text);
        if (found === null) return;
        waiting.delete(check);
        resolve(found);
      };
      waiting.add(check);
      check();
      exit.then(() => reject(new Error(`ended: ${text}`)));
    });
  return { child, text: () => text, until, exit };
}

function configuration(text = CONF): string {
  const file = path.join(folder, 'tidegate.conf');
  writeFileSync(file, text);
  return file;
}

describe.skipIf(!existsSync(MAIN))('the command', () => {
  it('tells that it is ready, with its addresses, as its last line of the start', async () => {
    const gateway = tidegate('start', '-c', configuration());
    await gateway.until(/GW-READY.*\n/);
    const last = JSON.parse(gateway.text().trimEnd().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({ msgid: 'GW-READY', msg: 'ready' });
    expect(JSON.stringify(last)).toMatch(/127\.0\.0\.1:[1-9]\d*/);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 at %s while clients are connected', async (signal) => {
    const gateway = tidegate('start', '-c', configuration());
    const [, port] = await gateway.until(/GW-READY.*127\.0\.0\.1:(\d+)/);
    const client = net.connect(Number(port), '127.0.0.1');
    await once(client, 'connect');
    client.on('error', () => {});
    gateway.child.kill(signal);
    expect(await gateway.exit).toBe(0);
  });

  it('ends with 1 and names the port when it is taken', async () => {
    const other = net.createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as net.AddressInfo;
    const gateway = tidegate('start', '-c', configuration(CONF.replace(':0"', `:${port}"`)));
    expect(await gateway.exit).toBe(1);
    expect(gateway.text()).toContain(`127.0.0.1:${port}`);
    expect(gateway.text()).toMatch(/in use|EADDRINUSE/);
    expect(gateway.text()).not.toContain('    at ');
    other.close();
  });

  it('writes its log to a file, and to a new one after SIGHUP', async () => {
    const file = configuration(`${CONF}log { to = [console, file], dir = "logs", file = "gate.log" }\n`);
    const gateway = tidegate('start', '-c', file);
    await gateway.until(/GW-READY/);
    const log = path.join(folder, 'logs/gate.log');
    rmSync(log);
    gateway.child.kill('SIGHUP');
    await gateway.until(/GW-RELOAD/);
    gateway.child.kill('SIGTERM');
    expect(await gateway.exit).toBe(0);
    expect(readFileSync(log, 'utf8')).toContain('GW-STOPPED');
  });

  it('takes a configuration from --set alone', async () => {
    const gateway = tidegate('start', '--set', 'listeners.tcp.bind=127.0.0.1:0', '--set', 'persistence.enable=false');
    await gateway.until(/GW-READY.*127\.0\.0\.1:[1-9]/);
  });

  it('ends quietly when the reader of its output goes away', async () => {
    const gateway = tidegate('--help');
    gateway.child.stdout?.destroy();
    expect(await gateway.exit).toBe(0);
  });
});
