// The control socket: who gets in by it, what `tidegate ctl` finds, what a gateway that was killed leaves.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { registerCtl } from '../../src/cli/ctl/ctl.ts';
import { localGateways } from '../../src/cli/ctl/local.ts';
import { ControlSocket } from '../../src/console/controlsocket.ts';
import { fakeIo } from '../harness/io.ts';
import { ConsoleStage } from './standins.ts';

let folder: string;
let stage: ConsoleStage | null = null;
beforeEach(() => {
  folder = path.join(mkdtempSync(path.join(os.tmpdir(), 'control-')), 'run');
});
afterEach(async () => {
  await stage?.stop();
  stage = null;
  rmSync(path.dirname(folder), { recursive: true, force: true });
});

const env = () => ({ TIDEGATE_RUN: folder });
const own = () => path.join(folder, `${process.pid}.sock`);

async function ctl(...words: string[]): Promise<string> {
  const program = new Command('tidegate').exitOverride().enablePositionalOptions();
  const io = fakeIo();
  registerCtl(program, { io, exit: () => {} }, env(), false);
  await program.parseAsync(['ctl', ...words], { from: 'user' });
  return io.stdout.text();
}

describe('the control socket', () => {
  it('lets its user in as admin without address and password, and goes with the gateway', async () => {
    stage = await new ConsoleStage({ controlFolder: folder }).start();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(own()).mode & 0o777).toBe(0o600);
    expect(await localGateways(env())).toEqual([{ pid: process.pid, path: own(), open: true }]);
    expect(await ctl('status')).toContain(`unix:${own()}`);
    await ctl('kick', 'nobody').catch(() => {});
    expect(await ctl('audit')).toContain('local');
    await stage.stop();
    stage = null;
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is no way in for TCP: the same request there is refused', async () => {
    stage = await new ConsoleStage({ controlFolder: folder }).start();
    const answer = await fetch(`http://127.0.0.1:${stage.server.port}/api/v4/audit`);
    expect(answer.status).toBe(401);
  });

  it('is not made where others could put theirs, and the gateway starts all the same', async () => {
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    stage = await new ConsoleStage({ controlFolder: folder }).start();
    expect(readdirSync(folder)).toEqual([]);
    const server = createServer();
    await listen(server, path.join(folder, '1.sock'));
    expect(await localGateways(env())).toEqual([]);
    server.close();
  });

  it('takes dead sockets away and leaves those that answer', async () => {
    mkdirSync(folder, { mode: 0o700 });
    const live = createServer();
    await listen(live, path.join(folder, '1.sock'));
    const dead = createServer();
    await listen(dead, path.join(folder, 'moved'));
    // As a process that was killed leaves it: the file without a listener.
    const { renameSync } = await import('node:fs');
    renameSync(path.join(folder, 'moved'), path.join(folder, '2.sock'));
    await new Promise((resolve) => dead.close(resolve));
    expect(existsSync(path.join(folder, '2.sock'))).toBe(true);
    const socket = new ControlSocket(folder, new WeakSet());
    await socket.start(() => {});
    expect(readdirSync(folder).sort()).toEqual(['1.sock', path.basename(socket.path)].sort());
    await expect(ctl('status')).rejects.toThrow(/2 gateways run here/);
    await socket.stop();
    live.close();
  });
});

function listen(server: Server, at: string): Promise<void> {
  return new Promise((resolve) => server.listen(at, resolve));
}
