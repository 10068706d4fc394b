// Unix socket listeners: the file's mode and group, dead and living sockets in its place, abstract names.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dial } from '../../src/transport/dial.ts';
import type { Listener } from '../../src/transport/transport.ts';
import { listenUnix, type UnixListenerOptions } from '../../src/transport/unix.ts';
import { Catch } from '../contract/transport.ts';
import { Door } from '../harness/carrier.ts';

let folder: string;
let path: string;
const toStop: Listener[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidegate-unix-'));
  path = join(folder, 'x.sock');
});
afterEach(async () => {
  for (const listener of toStop.splice(0)) await listener.stop();
  rmSync(folder, { recursive: true, force: true });
});

function listener(door: Door, more: Partial<UnixListenerOptions> = {}): Listener {
  const made = listenUnix({ ...door.options(), path, mode: 0o660, group: null, ...more });
  toStop.push(made);
  return made;
}

/** A socket file whose owner has died without removing it. */
async function deadSocket(): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  const aside = `${path}.aside`;
  renameSync(path, aside);
  server.close();
  await once(server, 'close');
  renameSync(aside, path);
}

async function reaches(door: Door): Promise<boolean> {
  const near = await dial({ kind: 'unix', path });
  const far = new Catch(await door.next());
  near.write(Buffer.from('x'), () => {});
  await far.when(() => far.bytes === 1);
  near.destroy();
  far.connection.destroy();
  return true;
}

describe('listenUnix', () => {
  it('shows its path and gives peers names that differ', async () => {
    const door = new Door();
    expect(await listener(door).start()).toEqual([{ kind: 'unix', address: path, port: 0 }]);
    const near = [await dial({ kind: 'unix', path }), await dial({ kind: 'unix', path })];
    const far = [await door.next(), await door.next()];
    expect(far.map(({ remote }) => remote)).toEqual(['unix:1', 'unix:2']);
    expect(far[0].remoteAddress).toBe('');
    for (const connection of [...near, ...far]) connection.destroy();
  });

  it('gives the file its mode whatever the umask is', async () => {
    for (const mask of [0o077, 0]) {
      const before = process.umask(mask);
      const made = listener(new Door(), { mode: 0o662 });
      await made.start();
      process.umask(before);
      expect(statSync(path).mode & 0o777).toBe(0o662);
      await made.stop();
    }
  });

  it('leaves the mode to the umask when there is none', async () => {
    const before = process.umask(0o027);
    await listener(new Door(), { mode: null }).start();
    process.umask(before);
    expect(statSync(path).mode & 0o777).toBe(0o750);
  });

  it('gives the file its group, by number and by name', async () => {
    const gid = process.getgid?.() ?? 0;
    const line = readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find((text) => text.split(':')[2] === String(gid));
    const names = [String(gid), ...(line === undefined ? [] : [line.split(':')[0]])];
    for (const group of names) {
      const made = listener(new Door(), { group });
      await made.start();
      expect(statSync(path).gid).toBe(gid);
      await made.stop();
    }
  });

  it('fails for a group that does not exist and leaves no file', async () => {
    await expect(listener(new Door(), { group: 'no-such-group' }).start()).rejects.toMatchObject({
      code: 'TRANSPORT-BIND',
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves nothing but the socket in the folder, and nothing after stop', async () => {
    const made = listener(new Door());
    await made.start();
    expect(readdirSync(folder)).toEqual(['x.sock']);
    await made.stop();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('replaces a dead socket', async () => {
    await deadSocket();
    const dead = lstatSync(path).ino;
    const door = new Door();
    await listener(door).start();
    expect(lstatSync(path).ino).not.toBe(dead);
    expect(await reaches(door)).toBe(true);
    expect(readdirSync(folder)).toEqual(['x.sock']);
  });

  it('replaces the socket of a killed process', async () => {
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(existsSync(path)).toBe(true);
    const door = new Door();
    await listener(door).start();
    expect(await reaches(door)).toBe(true);
  });

  it('never touches a living socket', async () => {
    const door = new Door();
    await listener(door).start();
    const { ino } = lstatSync(path);
    await expect(listener(new Door()).start()).rejects.toThrow('address already in use (EADDRINUSE)');
    expect(lstatSync(path).ino).toBe(ino);
    (await door.next()).destroy(); // whoever looked whether the socket lives
    expect(await reaches(door)).toBe(true);
  });

  it('never touches the living socket of a server that accepts nobody', async () => {
    const script = `const s = require('net').createServer(); s.listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
      process.stdout.write('up', () => { for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }); })`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const fillers = [1, 2, 3, 4].map(() => connect({ path }).on('error', () => {}));
    await once(fillers[0], 'connect');
    await expect(listener(new Door()).start()).rejects.toMatchObject({ code: 'TRANSPORT-BIND' });
    expect(existsSync(path)).toBe(true);
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('leaves a file that is no socket alone', async () => {
    writeFileSync(path, 'mine');
    await expect(listener(new Door()).start()).rejects.toThrow('exists and is no socket');
    expect(readFileSync(path, 'utf8')).toBe('mine');
    expect(readdirSync(folder)).toEqual(['x.sock']);
  });

  it('lets exactly one of many win a race for a dead socket', async () => {
    await deadSocket();
    const doors = [1, 2, 3, 4, 5].map(() => new Door());
    const results = await Promise.allSettled(doors.map((door) => listener(door).start()));
    const winners = results.map(({ status }) => status === 'fulfilled');
    expect(winners.filter(Boolean).length).toBe(1);
    expect(await reaches(doors[winners.indexOf(true)])).toBe(true);
  });

  it('does not remove at stop what another has put in its place', async () => {
    const first = listener(new Door());
    await first.start();
    rmSync(path);
    const door = new Door();
    await listener(door).start();
    await first.stop();
    expect(await reaches(door)).toBe(true);
  });

  it('fails for a folder that does not exist', async () => {
    const missing = join(folder, 'no', 'x.sock');
    await expect(listener(new Door(), { path: missing }).start()).rejects.toThrow(missing);
  });

  it('fails for a path that the system would cut', async () => {
    const long = join(folder, 'x'.repeat(110));
    await expect(listener(new Door(), { path: long }).start()).rejects.toThrow('longer than the system allows');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('binds the longest path there is', async () => {
    const longest = join(folder, 'x'.repeat(107 - folder.length - 1));
    await listener(new Door(), { path: longest }).start();
    (await dial({ kind: 'unix', path: longest })).destroy();
  });

  it.runIf(process.getuid?.() !== 0)(
    'fails where it may not write (not shown as root: root writes everywhere)',
    async () => {
      chmodSync(folder, 0o500);
      await expect(listener(new Door()).start()).rejects.toMatchObject({ code: 'TRANSPORT-BIND' });
      chmodSync(folder, 0o700);
    },
  );

  it('reads a PROXY header', async () => {
    const door = new Door();
    await listener(door, { proxyProtocol: true }).start();
    const near = await dial({ kind: 'unix', path });
    near.write(Buffer.from('PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\nhi'), () => {});
    const far = new Catch(await door.next());
    await far.when(() => far.bytes === 2);
    expect(far.connection.remoteAddress).toBe('203.0.113.7');
    near.destroy();
    far.connection.destroy();
  });
});

describe.runIf(process.platform === 'linux')('listenUnix with an abstract name', () => {
  const name = `\0tidegate-unix-${process.pid}`;

  it('shows the name with an at sign and leaves no file', async () => {
    const [{ address }] = await listener(new Door(), { path: name }).start();
    expect(address).toBe(`@${name.slice(1)}`);
    // To the byte: a name padded with NULs would be another name to every other program.
    const names = readFileSync('/proc/net/unix', 'latin1')
      .split('\n')
      .map((line) => line.split(' ').at(-1));
    expect(names).toContain(address);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('fails for a name in use and can take it after stop', async () => {
    const first = listener(new Door(), { path: name });
    await first.start();
    await expect(listener(new Door(), { path: name }).start()).rejects.toThrow('EADDRINUSE');
    await first.stop();
    await listener(new Door(), { path: name }).start();
  });
});
