// What every SP driver has to do, whatever carries it: run by test/sp/*.test.ts on each driver. A driver says what it cannot do in
// `cannot`; those rows show up as skipped with that reason, they do not vanish.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Protocol, SpDriver, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { SP_DEFAULTS, sendText, Watch } from '../harness/spsockets.ts';

export type Ability = 'port-zero' | 'pair1' | 'abstract' | 'block' | 'pipes' | 'too-large-event';

export interface SpContract {
  readonly name: string;
  open(): Promise<SpDriver>;
  /** Abilities the driver lacks, with the reason. */
  readonly cannot: ReadonlyMap<Ability, string>;
  /** A free URL of this scheme for a listener. */
  url(scheme: string, folder: string): Promise<string>;
}

export function spContract(contract: SpContract): void {
  describe(`SP contract: ${contract.name}`, () => {
    let driver: SpDriver;
    let folder: string;
    let sockets: SpSocket[] = [];

    const open = (protocol: Protocol, options: Partial<SpOptions> = {}): { socket: SpSocket; watch: Watch } => {
      const socket = driver.open(protocol, { ...SP_DEFAULTS, ...options });
      sockets.push(socket);
      return { socket, watch: new Watch(socket) };
    };
    /** Two sockets that are connected: the first one listens. */
    const pair = async (
      a: Protocol,
      b: Protocol,
      scheme = 'tcp',
      options: Partial<SpOptions> = {},
    ): Promise<[{ socket: SpSocket; watch: Watch }, { socket: SpSocket; watch: Watch }, string]> => {
      const url = await contract.url(scheme, folder);
      const left = open(a, options);
      const right = open(b, options);
      left.socket.listen(url);
      const bound = await left.watch.state(url, 'listening');
      if (b === 'sub0') right.socket.subscribe(new Uint8Array(0));
      if (a === 'sub0') left.socket.subscribe(new Uint8Array(0));
      right.socket.dial(bound);
      await linked(left, right);
      return [left, right, url];
    };
    /** Sends marks one way until one arrives, so that both ends are known to be up. */
    const linked = async (
      a: { socket: SpSocket; watch: Watch },
      b: { socket: SpSocket; watch: Watch },
    ): Promise<void> => {
      const [from, to] = ['sub0', 'pull0'].includes(b.socket.protocol) ? [a, b] : [b, a];
      const timer = setInterval(() => sendText(from.socket, '~'), 10);
      await to.watch.until(() => to.watch.bodies.includes('~'));
      clearInterval(timer);
      sendText(from.socket, '~end');
      await to.watch.until(() => to.watch.bodies.includes('~end'));
      to.watch.bodies.length = 0;
    };
    const able = (ability: Ability, name: string, run: () => Promise<void>): void => {
      const why = contract.cannot.get(ability);
      if (why !== undefined) test.skip(`${name} (${why})`, run);
      else test(name, run);
    };

    beforeEach(async () => {
      driver = await contract.open();
      folder = mkdtempSync(join(tmpdir(), 'spc'));
      sockets = [];
    });
    afterEach(async () => {
      await Promise.all(sockets.map((socket) => socket.stop(1000)));
      rmSync(folder, { recursive: true, force: true });
    });

    for (const scheme of ['tcp', 'ipc', 'inproc']) {
      test(`pub0 sends to sub0 over ${scheme}`, async () => {
        const [pub, sub] = await pair('pub0', 'sub0', scheme);
        for (const text of ['one', 'two', '', 'a\x00\xff']) sendText(pub.socket, text);
        await sub.watch.until(() => sub.watch.bodies.length >= 4);
        expect(sub.watch.bodies).toEqual(['one', 'two', '', 'a\x00\xff']);
      });
      test(`sub0 that listens takes from a pub0 that dials over ${scheme}`, async () => {
        const [sub, pub] = await pair('sub0', 'pub0', scheme);
        for (let i = 0; i < 100; i++) sendText(pub.socket, String(i));
        await sub.watch.until(() => sub.watch.bodies.length >= 100);
        expect(sub.watch.bodies).toEqual(Array.from({ length: 100 }, (_, i) => String(i)));
      });
    }
    able('abstract', 'pub0 sends to sub0 over abstract', async () => {
      const [pub, sub] = await pair('pub0', 'sub0', 'abstract');
      sendText(pub.socket, 'x');
      await sub.watch.until(() => sub.watch.bodies.length > 0);
      expect(sub.watch.bodies).toEqual(['x']);
    });
    test('send puts head and body into one message', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const body = Buffer.from('__payload__');
      pub.socket.send(Buffer.from('topic:'), body, 2, 9);
      await sub.watch.until(() => sub.watch.bodies.length > 0);
      expect(sub.watch.bodies).toEqual(['topic:payload']);
    });
    test('send copies what it needs before it returns', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const body = Buffer.from('first');
      pub.socket.send(new Uint8Array(0), body, 0, 5);
      body.write('other');
      await sub.watch.until(() => sub.watch.bodies.length > 0);
      expect(sub.watch.bodies).toEqual(['first']);
    });
    test('sub0 lets through only what begins with a subscribed prefix', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      sub.socket.unsubscribe(new Uint8Array(0));
      sub.socket.subscribe(Buffer.from('a/'));
      sub.socket.subscribe(Buffer.from('end'));
      for (const text of ['a/1', 'b/1', 'a', 'ab/1', 'a/2', 'end']) sendText(pub.socket, text);
      await sub.watch.until(() => sub.watch.bodies.includes('end'));
      expect(sub.watch.bodies).toEqual(['a/1', 'a/2', 'end']);
    });
    test('a message of a megabyte arrives whole', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const text = `${'x'.repeat((1 << 20) - 1)}y`;
      sendText(pub.socket, text);
      await sub.watch.until(() => sub.watch.bodies.length > 0);
      expect(sub.watch.bodies[0] === text).toBe(true);
    });
    test('push0 gives each message to one pull0', async () => {
      const [push, pull] = await pair('push0', 'pull0');
      for (let i = 0; i < 50; i++) sendText(push.socket, String(i));
      await pull.watch.until(() => pull.watch.bodies.length >= 50);
      expect(pull.watch.bodies).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
    });
    test('pair0 talks both ways', async () => {
      const [a, b] = await pair('pair0', 'pair0');
      sendText(a.socket, 'ping');
      await b.watch.until(() => b.watch.bodies.includes('ping'));
      sendText(b.socket, 'pong');
      await a.watch.until(() => a.watch.bodies.includes('pong'));
    });
    able('pair1', 'pair1 talks both ways', async () => {
      const [a, b] = await pair('pair1', 'pair1');
      sendText(a.socket, 'ping');
      await b.watch.until(() => b.watch.bodies.includes('ping'));
      sendText(b.socket, 'pong');
      await a.watch.until(() => a.watch.bodies.includes('pong'));
    });
    test('a dialer that starts before its peer connects later', async () => {
      const url = await contract.url('ipc', folder);
      const sub = open('sub0');
      sub.socket.subscribe(new Uint8Array(0));
      sub.socket.dial(url);
      const pub = open('pub0');
      pub.socket.listen(url);
      await linked(pub, sub);
    });
    test('a listener on a busy address waits until it is free', async () => {
      const url = await contract.url('tcp', folder);
      const first = open('pub0');
      first.socket.listen(url);
      const bound = await first.watch.state(url, 'listening');
      const second = open('pub0');
      second.socket.listen(bound);
      await second.watch.state(bound, 'retrying');
      await first.socket.stop(100);
      await second.watch.state(bound, 'listening');
    });
    test('close ends one endpoint and leaves the others', async () => {
      const urls = [await contract.url('ipc', folder), await contract.url('ipc', folder)];
      const pub = open('pub0');
      for (const url of urls) pub.socket.listen(url);
      for (const url of urls) await pub.watch.state(url, 'listening');
      await pub.socket.close(urls[0]);
      expect(pub.socket.endpoints().map((endpoint) => endpoint.url)).toEqual([urls[1]]);
      const sub = open('sub0');
      sub.socket.subscribe(new Uint8Array(0));
      sub.socket.dial(urls[1]);
      await linked(pub, sub);
    });
    test('a wrong URL is refused', () => {
      const { socket } = open('pub0');
      expect(() => socket.listen('foo://x')).toThrowError(/unknown scheme/);
      expect(() => socket.dial('ipc://relative')).toThrowError(/three slashes/);
    });
    able('pipes', 'pipes shows the peers and what went through them', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      sendText(pub.socket, 'x');
      await sub.watch.until(() => sub.watch.bodies.length > 0);
      expect(pub.socket.pipes()).toHaveLength(1);
      expect(pub.socket.pipes()[0].messagesSent).toBeGreaterThan(0);
      expect(sub.socket.pipes()[0].messagesReceived).toBeGreaterThan(0);
      await sub.socket.stop(1000);
      await pub.watch.until(() => pub.watch.count('pipe-down') === 1);
      expect(pub.socket.pipes()).toHaveLength(0);
    });
    test('stop may be called twice', async () => {
      const [pub] = await pair('pub0', 'sub0');
      await pub.socket.stop(1000);
      await pub.socket.stop(1000);
      sendText(pub.socket, 'to nobody');
    });
  });
}
