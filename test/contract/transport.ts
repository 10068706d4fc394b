// What every kind of Connection promises, as tests: called with a way to make connected pairs, once per carrier.
// Run by test/transport/*.test.ts. Must not know the carrier beyond what its traits say.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloseReason, Connection } from '../../src/transport/transport.ts';

/** Two ends of one connection. */
export interface Ends {
  readonly near: Connection;
  readonly far: Connection;
}

export interface Carrier {
  start(): Promise<void>;
  /** `near` has dialled, `far` was accepted. */
  connect(): Promise<Ends>;
  stop(): Promise<void>;
}

/** Registers a test for carriers that it is about; for others there is nothing to test. */
const when = (applies: boolean): ((name: string, run: () => Promise<void>) => void) => (applies ? it : () => {});

export interface Traits {
  readonly kind: Connection['kind'];
  /** The carrier can end one direction alone. */
  readonly halfClose: boolean;
  /** A reset is seen as an error at the other end. */
  readonly reset: boolean;
}

const ignore = (): void => {};

/** Collects what a connection brings. */
export class Catch {
  readonly connection: Connection;
  readonly chunks: Buffer[] = [];
  bytes = 0;
  ended = false;
  closes: CloseReason[] = [];
  private readonly waiting: { until: () => boolean; go: () => void }[] = [];

  constructor(connection: Connection, keepOpen = false) {
    this.connection = connection;
    connection.onData((chunk) => {
      this.chunks.push(Buffer.from(chunk));
      this.bytes += chunk.length;
      this.check();
    });
    if (keepOpen)
      connection.onEnd(() => {
        this.ended = true;
        this.check();
      });
    connection.onClose((reason) => {
      this.closes.push(reason);
      this.check();
    });
  }

  get all(): Buffer {
    return Buffer.concat(this.chunks);
  }

  when(until: () => boolean): Promise<void> {
    if (until()) return Promise.resolve();
    return new Promise((go) => this.waiting.push({ until, go }));
  }

  async closed(): Promise<CloseReason> {
    await this.when(() => this.closes.length > 0);
    return this.closes[0];
  }

  private check(): void {
    for (const waiter of [...this.waiting])
      if (waiter.until()) {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        waiter.go();
      }
  }
}

/** Bytes in which every position differs from its neighbours' and blocks do not repeat soon. */
export function pattern(bytes: number, seed = 1): Buffer {
  const made = Buffer.allocUnsafe(bytes);
  let x = seed;
  for (let i = 0; i < bytes; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    made[i] = x >>> 24;
  }
  return made;
}

function turn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}

/** Lets the event loop turn until `until` holds. */
export async function turns(until: () => boolean): Promise<void> {
  while (!until()) await turn();
}

function written(connection: Connection, bytes: Uint8Array): Promise<void> {
  return new Promise((done) => connection.write(bytes, done));
}

export function describeTransport(name: string, traits: Traits, carrier: Carrier): void {
  describe(`${name} connection`, () => {
    const opened: Ends[] = [];
    const connect = async (): Promise<Ends> => {
      const ends = await carrier.connect();
      opened.push(ends);
      return ends;
    };

    beforeAll(() => carrier.start());
    afterAll(async () => {
      for (const { near, far } of opened) {
        near.destroy();
        far.destroy();
      }
      await carrier.stop();
    });

    it('shows its kind and the names of both ends', async () => {
      const { near, far } = await connect();
      expect([near.kind, far.kind]).toEqual([traits.kind, traits.kind]);
      for (const text of [near.remote, near.local, far.remote, far.local]) expect(text).not.toBe('');
    });

    it('delivers bytes once and in order, both ways at the same time', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      const [out, back] = [pattern(300_000, 1), pattern(200_000, 2)];
      for (let at = 0; at < out.length; at += 7919) near.write(out.subarray(at, at + 7919), ignore);
      for (let at = 0; at < back.length; at += 104_729) far.write(back.subarray(at, at + 104_729), ignore);
      await Promise.all([atFar.when(() => atFar.bytes >= out.length), atNear.when(() => atNear.bytes >= back.length)]);
      expect(atFar.all.equals(out)).toBe(true);
      expect(atNear.all.equals(back)).toBe(true);
    });

    it('delivers writes of one byte in order', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      const out = pattern(500);
      for (let at = 0; at < out.length; at++) near.write(out.subarray(at, at + 1), ignore);
      await got.when(() => got.bytes >= out.length);
      expect(got.all.equals(out)).toBe(true);
    });

    it('delivers a write of many megabytes', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      const out = pattern(9_000_001);
      await written(near, out);
      await got.when(() => got.bytes >= out.length);
      expect(got.all.equals(out)).toBe(true);
    });

    it('keeps order through cork and uncork', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      near.write(Buffer.from('a'), ignore);
      near.cork();
      for (const text of ['b', 'c', 'd']) near.write(Buffer.from(text), ignore);
      near.uncork();
      near.write(Buffer.from('e'), ignore);
      await got.when(() => got.bytes >= 5);
      expect(got.all.toString()).toBe('abcde');
    });

    it('calls done once for each write', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      const counts = new Array<number>(50).fill(0);
      for (let i = 0; i < counts.length; i++)
        near.write(pattern(1000 + i), () => {
          counts[i]++;
        });
      await turns(() => counts.every((count) => count > 0) && got.bytes >= 50_000);
      near.end();
      await Promise.all([got.closed(), new Catch(near).closed()]);
      expect(counts.every((count) => count === 1)).toBe(true);
    });

    it('never delivers within the call that writes', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      near.write(Buffer.from('x'), ignore);
      expect(got.bytes).toBe(0);
      await got.when(() => got.bytes === 1);
    });

    it('holds bytes back while paused and goes on after resume', async () => {
      const { near, far } = await connect();
      const got = new Catch(far);
      near.write(Buffer.from('1'), ignore);
      await got.when(() => got.bytes === 1);
      far.pause();
      const out = pattern(24_000_000);
      let taken = false;
      near.write(out, () => {
        taken = true;
      });
      new Catch(near);
      for (let i = 0; i < 200; i++) await turn();
      expect(taken).toBe(false);
      expect(near.queuedBytes).toBeGreaterThan(0);
      expect(got.bytes).toBeLessThan(out.length / 2);
      far.resume();
      await got.when(() => got.bytes >= out.length + 1);
      expect(got.all.subarray(1).equals(out)).toBe(true);
      await turns(() => near.queuedBytes === 0);
    });

    it('does not read before there is a reader', async () => {
      const { near, far } = await connect();
      near.write(Buffer.from('early'), ignore);
      for (let i = 0; i < 20; i++) await turn();
      const got = new Catch(far);
      await got.when(() => got.bytes === 5);
      expect(got.all.toString()).toBe('early');
    });

    it('hands later chunks to the reader that was set last', async () => {
      const { near, far } = await connect();
      const first = new Catch(far);
      near.write(Buffer.from('one'), ignore);
      await first.when(() => first.bytes === 3);
      const second = new Catch(far);
      near.write(Buffer.from('two'), ignore);
      await second.when(() => second.bytes === 3);
      expect([first.all.toString(), second.all.toString()]).toEqual(['one', 'two']);
    });

    it('sends what is queued before end closes', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      const out = pattern(3_000_000);
      near.write(out, ignore);
      near.end();
      expect((await atFar.closed()).by).toBe('peer');
      expect((await atNear.closed()).by).toBe('us');
      expect(atFar.all.equals(out)).toBe(true);
    });

    it('throws away what comes in after end', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far, true)];
      near.end();
      far.write(Buffer.from('late'), ignore);
      far.end();
      await Promise.all([atNear.closed(), atFar.closed()]);
      expect(atNear.bytes).toBe(0);
    });

    it('calls done once for writes after end and after destroy', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      let calls = 0;
      const done = (): void => {
        calls++;
      };
      near.end();
      near.write(Buffer.from('x'), done);
      expect(calls).toBe(0);
      await Promise.all([atNear.closed(), atFar.closed()]);
      near.write(Buffer.from('y'), done);
      near.destroy();
      near.write(Buffer.from('z'), done);
      await turns(() => calls === 3);
      expect(atFar.bytes).toBe(0);
    });

    it('calls done once for writes that are lost by destroy', async () => {
      const { near, far } = await connect();
      const got = new Catch(near);
      far.pause();
      const counts = new Array<number>(20).fill(0);
      near.cork();
      for (let i = 0; i < counts.length; i++)
        near.write(Buffer.alloc(1_000_000), () => {
          counts[i]++;
        });
      near.uncork();
      await turn();
      near.destroy();
      expect(await got.closed()).toEqual({ by: 'us' });
      await turns(() => counts.every((count) => count > 0));
      for (let i = 0; i < 5; i++) await turn();
      expect(counts.every((count) => count === 1)).toBe(true);
    });

    it('calls done once for writes that are lost because the peer is gone', async () => {
      const { near, far } = await connect();
      const got = new Catch(near);
      far.pause();
      const counts = new Array<number>(20).fill(0);
      for (let i = 0; i < counts.length; i++)
        near.write(Buffer.alloc(1_000_000), () => {
          counts[i]++;
        });
      await turn();
      far.destroy(true);
      await got.closed();
      await turns(() => counts.every((count) => count > 0));
      for (let i = 0; i < 5; i++) await turn();
      expect(counts.every((count) => count === 1)).toBe(true);
    });

    it('says by whom it was closed', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      far.end();
      expect(await atFar.closed()).toEqual({ by: 'us' });
      expect(await atNear.closed()).toEqual({ by: 'peer' });
    });

    it('says that it is closed once, also to a handler that comes late', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      near.destroy();
      near.destroy(true);
      near.end();
      await Promise.all([atNear.closed(), atFar.closed()]);
      near.end();
      near.destroy();
      for (let i = 0; i < 5; i++) await turn();
      expect(atNear.closes.length).toBe(1);
      expect(atFar.closes.length).toBe(1);
    });

    it('says to a handler set after the close that it is closed', async () => {
      const { near, far } = await connect();
      const atFar = new Catch(far);
      near.destroy();
      await atFar.closed();
      const late = new Catch(near);
      expect((await late.closed()).by).toBe('us');
    });

    it('delivers nothing after destroy, also when called by the reader', async () => {
      const { near, far } = await connect();
      let chunks = 0;
      const closed = new Promise<void>((resolve) => far.onClose(() => resolve()));
      far.onData(() => {
        chunks++;
        far.destroy();
      });
      for (let i = 0; i < 30; i++) near.write(Buffer.alloc(70_000), ignore);
      new Catch(near);
      await closed;
      for (let i = 0; i < 5; i++) await turn();
      expect(chunks).toBe(1);
    });

    it('destroys after the grace when the peer does not read', async () => {
      const { near, far } = await connect();
      const got = new Catch(near);
      far.pause();
      let done = 0;
      near.write(Buffer.alloc(30_000_000), () => {
        done++;
      });
      near.end(50);
      expect((await got.closed()).by).toBe('us');
      await turns(() => done === 1);
    });

    it('survives pause, resume, cork, shutdown and end in every order after its close', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      near.destroy();
      for (const connection of [near, far]) {
        connection.pause();
        connection.resume();
        connection.cork();
        connection.uncork();
        connection.shutdown();
        connection.end();
        connection.destroy(true);
      }
      await Promise.all([atNear.closed(), atFar.closed()]);
    });

    when(traits.reset)('shows a reset of the peer as an error', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      far.destroy(true);
      expect(await atNear.closed()).toEqual({ by: 'error', error: 'ECONNRESET' });
      expect(await atFar.closed()).toEqual({ by: 'us' });
    });

    when(traits.halfClose)('can still write after the peer has sent its last byte', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far, true)];
      near.write(Buffer.from('last'), ignore);
      near.shutdown();
      await atFar.when(() => atFar.ended);
      expect(atFar.all.toString()).toBe('last');
      const out = pattern(500_000);
      far.write(out, ignore);
      far.end();
      expect((await atNear.closed()).by).toBe('peer');
      expect((await atFar.closed()).by).toBe('peer');
      expect(atNear.all.equals(out)).toBe(true);
    });

    when(traits.halfClose)('ends by itself when nobody cares for the end of the peer', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near, true), new Catch(far)];
      near.shutdown();
      await Promise.all([atNear.closed(), atFar.closed()]);
      expect(atNear.ended).toBe(true);
    });

    when(!traits.halfClose)('closes altogether at shutdown', async () => {
      const { near, far } = await connect();
      const [atNear, atFar] = [new Catch(near), new Catch(far)];
      near.write(Buffer.from('last'), ignore);
      near.shutdown();
      await Promise.all([atNear.closed(), atFar.closed()]);
      expect(atFar.all.toString()).toBe('last');
    });
  });
}
