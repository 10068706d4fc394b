// What every SP driver has to do, whatever carries it: run by test/sp/*.test.ts on each driver. A driver says what it cannot do in
// `cannot`; those rows show up as skipped with that reason, they do not vanish.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Protocol, SpDriver, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { SP_DEFAULTS, sendText, Watch } from '../harness/spsockets.ts';

export type Ability = 'pair1' | 'abstract' | 'pipes' | 'burst';

export interface SpContract {
  readonly name: string;
  open(): Promise<SpDriver>;
  /** Abilities the driver lacks, with the reason. */
  readonly cannot: ReadonlyMap<Ability, string>;
  /** A free URL of this scheme for a listener. */
  url(scheme: string, folder: string): Promise<string>;
}

interface Side {
  readonly socket: SpSocket;
  readonly watch: Watch;
}
const MARK = '~';

export function spContract(contract: SpContract): void {
  describe(`SP contract: ${contract.name}`, () => {
    let driver: SpDriver;
    let folder: string;
    let sockets: SpSocket[] = [];

    const open = (protocol: Protocol, options: Partial<SpOptions> = {}): Side => {
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
    ): Promise<[Side, Side, string]> => {
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
    const linked = async (a: Side, b: Side): Promise<void> => {
      const [from, to] = ['sub0', 'pull0'].includes(b.socket.protocol) ? [a, b] : [b, a];
      const timer = setInterval(() => sendText(from.socket, MARK), 10);
      await to.watch.until(() => to.watch.bodies.includes(MARK));
      clearInterval(timer);
    };
    /** What arrived, without marks: one of them may still have been under way. */
    const arrived = (side: Side): string[] => side.watch.bodies.filter((body) => body !== MARK);
    /** Sends texts and waits until as many have arrived; one by one where a driver drops what comes too fast. */
    const deliver = async (from: Side, to: Side, texts: readonly string[]): Promise<string[]> => {
      const before = arrived(to).length;
      const slowly = contract.cannot.has('burst');
      for (const [i, text] of texts.entries()) {
        sendText(from.socket, text);
        if (slowly) await to.watch.until(() => arrived(to).length > before + i);
      }
      await to.watch.until(() => arrived(to).length >= before + texts.length);
      return arrived(to).slice(before);
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

    const hundred = Array.from({ length: 100 }, (_, i) => String(i));

    for (const scheme of ['tcp', 'ipc', 'inproc']) {
      test(`pub0 sends to sub0 over ${scheme}`, async () => {
        const [pub, sub] = await pair('pub0', 'sub0', scheme);
        const texts = ['one', 'two', '', 'a\x00\xff'];
        expect(await deliver(pub, sub, texts)).toEqual(texts);
      });
      test(`sub0 that listens takes from a pub0 that dials over ${scheme}`, async () => {
        const [sub, pub] = await pair('sub0', 'pub0', scheme);
        expect(await deliver(pub, sub, hundred)).toEqual(hundred);
      });
    }
    able('abstract', 'pub0 sends to sub0 over abstract', async () => {
      const [pub, sub] = await pair('pub0', 'sub0', 'abstract');
      expect(await deliver(pub, sub, ['x'])).toEqual(['x']);
    });
    able('burst', 'a burst of 20,000 messages arrives whole and in order', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const texts = Array.from({ length: 20_000 }, (_, i) => String(i).padStart(64, '.'));
      expect(await deliver(pub, sub, texts)).toEqual(texts);
    });
    test('send puts head and body into one message', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      pub.socket.send(Buffer.from('topic:'), Buffer.from('__payload__'), 2, 9);
      await sub.watch.until(() => arrived(sub).length > 0);
      expect(arrived(sub)).toEqual(['topic:payload']);
    });
    test('send copies what it needs before it returns', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const body = Buffer.from('first');
      pub.socket.send(new Uint8Array(0), body, 0, 5);
      body.write('other');
      await sub.watch.until(() => arrived(sub).length > 0);
      expect(arrived(sub)).toEqual(['first']);
    });
    test('sub0 lets through only what begins with a subscribed prefix', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      sub.socket.unsubscribe(new Uint8Array(0));
      for (const prefix of ['a/', '1', '2', '3']) sub.socket.subscribe(Buffer.from(prefix));
      // A wanted one after each that is not: when it is there, the other would have been.
      for (const [other, wanted] of [
        ['b/1', '1'],
        ['a', '2'],
        ['ab/1', '3'],
        ['', 'a/2'],
      ]) {
        sendText(pub.socket, other);
        if (contract.cannot.has('burst')) await new Promise<void>((resolve) => setImmediate(resolve));
        await deliver(pub, sub, [wanted]);
      }
      expect(arrived(sub)).toEqual(['1', '2', '3', 'a/2']);
    });
    test('a message of a megabyte arrives whole', async () => {
      const [pub, sub] = await pair('pub0', 'sub0');
      const text = `${'x'.repeat((1 << 20) - 1)}y`;
      const [got] = await deliver(pub, sub, [text]);
      expect(got === text).toBe(true);
    });
    test('push0 gives each message to one pull0', async () => {
      const [push, pull] = await pair('push0', 'pull0');
      expect(await deliver(push, pull, hundred)).toEqual(hundred);
    });
    test('pair0 talks both ways', async () => {
      const [a, b] = await pair('pair0', 'pair0');
      expect(await deliver(a, b, ['ping'])).toEqual(['ping']);
      expect(await deliver(b, a, ['pong'])).toEqual(['pong']);
    });
    able('pair1', 'pair1 talks both ways', async () => {
      const [a, b] = await pair('pair1', 'pair1');
      expect(await deliver(a, b, ['ping'])).toEqual(['ping']);
      expect(await deliver(b, a, ['pong'])).toEqual(['pong']);
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
      await deliver(pub, sub, ['x']);
      expect(pub.socket.pipes()).toHaveLength(1);
      expect(JSON.parse(JSON.stringify(pub.socket.pipes()))).toEqual(pub.socket.pipes());
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
