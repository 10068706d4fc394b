// A Redis server of the test's own on a port the system chooses, nothing on disk. Tests that need one are skipped where it is missing.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { freePort } from './port.ts';

/** Why tests with Redis cannot run here, null = they can. */
export function noRedis(): string | null {
  return spawnSync('redis-server', ['--version']).status === 0 ? null : 'redis-server is not installed';
}

export interface TestRedis {
  readonly url: string;
  /** The server is gone; start() brings it back at the same address, empty. */
  pause(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

async function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => setTimeout(() => resolve(false), 20));
  });
}

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'redis-'));
  let child: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
    child = spawn('redis-server', args, { stdio: 'ignore' });
    for (let tries = 0; !(await answers(port)); tries++)
      if (tries > 250) throw new Error('redis-server does not answer');
  };
  const pause = async (): Promise<void> => {
    const one = child;
    child = null;
    if (one === null) return;
    const gone = new Promise((resolve) => one.once('exit', resolve));
    one.kill('SIGKILL');
    await gone;
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    pause,
    stop: async () => {
      await pause();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
