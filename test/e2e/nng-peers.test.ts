// Native SP sockets against other programs: nngcat (nng) and nanocat (nanomsg), as publisher and subscriber, listening and dialing, over tcp
// and ipc. Skipped, with the reason, where a program is not installed.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { Authority, hasOpenssl, serverTls } from '../harness/certificates.ts';
import { freePort } from '../harness/port.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

const PROGRAMS = [
  { program: 'nngcat', debian: 'nng-utils' },
  { program: 'nanocat', debian: 'nanomsg-utils' },
];

/** Kills a program and waits until it is gone. */
function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

for (const { program, debian } of PROGRAMS) {
  const missing = spawnSync(program, ['--help']).error !== undefined;
  const title = missing ? `${program} (skipped: not installed, Debian package ${debian})` : program;
  describe.skipIf(missing)(title, () => {
    let folder: string;
    let children: ChildProcess[] = [];
    let sockets: SpSocket[] = [];
    let ipcNames = 0;

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'spe'));
      children = [];
      sockets = [];
    });
    afterEach(async () => {
      await Promise.all(children.map(ended));
      await Promise.all(sockets.map((socket) => socket.stop(200)));
      rmSync(folder, { recursive: true, force: true });
    });

    const address = async (scheme: string): Promise<string> =>
      scheme === 'tcp' ? `tcp://127.0.0.1:${await freePort()}` : `${scheme}://${folder}/s${++ipcNames}.ipc`;
    /** Starts the program; `text` is what it has printed, looked at whenever more comes. */
    const run = (...args: string[]): { until(pattern: RegExp): Promise<string> } => {
      const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      children.push(child);
      let text = '';
      let look = (): void => {};
      const take = (chunk: Buffer): void => {
        text += chunk.toString('latin1');
        look();
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      return {
        until: (pattern) =>
          new Promise((resolve) => {
            look = () => pattern.test(text) && resolve(text);
            look();
          }),
      };
    };
    const open = async (
      protocol: Protocol,
      mode: 'listen' | 'dial',
      url: string,
      options: Partial<SpOptions> = {},
    ): Promise<{ socket: SpSocket; watch: Watch }> => {
      const socket = testDriver().open(protocol, { ...SP_DEFAULTS, ...options });
      sockets.push(socket);
      const watch = new Watch(socket);
      if (protocol === 'sub0') socket.subscribe(Buffer.from('topic'));
      if (mode === 'listen') {
        socket.listen(url);
        await watch.state(url, 'listening');
      } else socket.dial(url);
      return { socket, watch };
    };
    const other = (mode: 'listen' | 'dial'): string => (mode === 'listen' ? '--connect' : '--bind');
    /** Sends now and then until the program has printed it: its subscription and our pipe come up in any order. */
    const untilSeen = async (socket: SpSocket, text: string, seen: Promise<string>): Promise<string> => {
      const timer = setInterval(() => sendText(socket, text), 20);
      try {
        return await seen;
      } finally {
        clearInterval(timer);
      }
    };

    for (const scheme of ['tcp', 'ipc']) {
      for (const mode of ['listen', 'dial'] as const) {
        test(`pub0 that ${mode}s serves a subscriber over ${scheme}`, async () => {
          const url = await address(scheme);
          const pub = await open('pub0', mode, url);
          const cat = run('--sub', other(mode), url, '--subscribe', 'topic', '--quoted');
          const text = await untilSeen(pub.socket, 'topic:hello', cat.until(/topic:hello/));
          expect(text).toContain('"topic:hello"');
        });
        test(`sub0 that ${mode}s takes from a publisher over ${scheme}`, async () => {
          const url = await address(scheme);
          const sub = await open('sub0', mode, url);
          run('--pub', other(mode), url, '--data', 'topic/1/x', '--interval', '1', '--delay', '1');
          await sub.watch.until(() => sub.watch.bodies.length > 0);
          expect(sub.watch.bodies[0]).toBe('topic/1/x');
        });
      }
    }
    test('push0 serves a puller', async () => {
      const url = await address('tcp');
      const push = await open('push0', 'listen', url);
      const cat = run('--pull', '--connect', url, '--quoted');
      await untilSeen(push.socket, 'work', cat.until(/"work"/));
    });
    test('pull0 takes from a pusher', async () => {
      const url = await address('tcp');
      const pull = await open('pull0', 'listen', url);
      run('--push', '--connect', url, '--data', 'work');
      await pull.watch.until(() => pull.watch.bodies.length > 0);
      expect(pull.watch.bodies).toEqual(['work']);
    });
    for (const protocol of ['pair0', ...(program === 'nngcat' ? ['pair1'] : [])] as const) {
      test(`${protocol} talks both ways`, async () => {
        const url = await address('ipc');
        const pair = await open(protocol as Protocol, 'listen', url);
        const flag = program === 'nanocat' ? '--pair' : `--${protocol}`;
        const cat = run(flag, '--connect', url, '--data', 'ping', '--interval', '1', '--quoted');
        await pair.watch.until(() => pair.watch.bodies.includes('ping'));
        await untilSeen(pair.socket, 'pong', cat.until(/"pong"/));
      });
    }
    if (program === 'nngcat') {
      test('pub0 serves a subscriber over WebSocket', async () => {
        const url = `ws://127.0.0.1:${await freePort()}/sp`;
        const pub = await open('pub0', 'listen', url);
        const cat = run('--sub', '--connect', url, '--subscribe', 'topic', '--quoted');
        await untilSeen(pub.socket, 'topic:hello', cat.until(/"topic:hello"/));
      });
      test('sub0 takes from a publisher over WebSocket', async () => {
        const url = `ws://127.0.0.1:${await freePort()}/sp`;
        const sub = await open('sub0', 'listen', url);
        run('--pub', '--connect', url, '--data', 'topic:x', '--interval', '1', '--delay', '1');
        await sub.watch.until(() => sub.watch.bodies.length > 0);
        expect(sub.watch.bodies[0]).toBe('topic:x');
      });
      test('sub0 that dials takes from a publisher over WebSocket', async () => {
        const url = `ws://127.0.0.1:${await freePort()}/sp`;
        const sub = await open('sub0', 'dial', url);
        run('--pub', '--bind', url, '--data', 'topic:x', '--interval', '1', '--delay', '1');
        await sub.watch.until(() => sub.watch.bodies.length > 0);
        expect(sub.watch.bodies[0]).toBe('topic:x');
      });
      for (const scheme of ['tls+tcp', 'wss']) {
        test.skipIf(!hasOpenssl())(`pub0 serves a subscriber over ${scheme}`, async () => {
          const authority = new Authority();
          try {
            const pair = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
            const url = `${scheme}://127.0.0.1:${await freePort()}${scheme === 'wss' ? '/sp' : ''}`;
            const pub = await open('pub0', 'listen', url, { tlsServer: serverTls(pair) });
            const cat = run(
              '--sub',
              '--connect',
              url.replace('127.0.0.1', 'localhost'),
              '--cacert',
              authority.ca,
              '--quoted',
            );
            await untilSeen(pub.socket, 'topic:hello', cat.until(/"topic:hello"/));
          } finally {
            authority.remove();
          }
        });
      }
      test('pair1 talks both ways over WebSocket', async () => {
        const url = `ws://127.0.0.1:${await freePort()}/sp`;
        const pair = await open('pair1', 'listen', url);
        const cat = run('--pair1', '--connect', url, '--data', 'ping', '--interval', '1', '--quoted');
        await pair.watch.until(() => pair.watch.bodies.includes('ping'));
        await untilSeen(pair.socket, 'pong', cat.until(/"pong"/));
      });
    }
  });
}
