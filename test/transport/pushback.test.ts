// Connections that were read from before: the bytes come first, then the rest, under the same contract.
import { describe, expect, it } from 'vitest';
import { memoryPair } from '../../src/transport/memory.ts';
import { withPushback } from '../../src/transport/pushback.ts';
import type { Connection } from '../../src/transport/transport.ts';
import { Catch, describeTransport } from '../contract/transport.ts';

describeTransport(
  'pushed back (nothing)',
  { kind: 'memory', halfClose: true, reset: true },
  {
    start: async () => {},
    connect: async () => {
      const [near, far] = memoryPair();
      return { near: withPushback(near, Buffer.alloc(0)), far: withPushback(far, Buffer.alloc(0)) };
    },
    stop: async () => {},
  },
);

/** A far end whose first bytes were read already and are given back. */
async function preread(): Promise<[near: Connection, far: Connection]> {
  const [near, far] = memoryPair();
  near.write(Buffer.from('first '), () => {});
  const got = new Catch(far);
  await got.when(() => got.bytes === 6);
  near.write(Buffer.from('second'), () => {});
  return [near, withPushback(far, got.all)];
}

describe('withPushback', () => {
  it('delivers the bytes first, then what comes', async () => {
    const [, far] = await preread();
    const got = new Catch(far);
    expect(got.bytes).toBe(0);
    await got.when(() => got.bytes === 12);
    expect(got.chunks.map(String)).toEqual(['first ', 'second']);
  });

  it('holds the bytes back while paused', async () => {
    const [, far] = await preread();
    far.pause();
    const got = new Catch(far);
    for (let i = 0; i < 5; i++) await new Promise((next) => setImmediate(next));
    expect(got.bytes).toBe(0);
    far.resume();
    await got.when(() => got.bytes === 12);
  });

  it('stops after the bytes when the reader pauses', async () => {
    const [, far] = await preread();
    const chunks: string[] = [];
    far.onData((chunk) => {
      chunks.push(String(chunk));
      far.pause();
    });
    for (let i = 0; i < 5; i++) await new Promise((next) => setImmediate(next));
    expect(chunks).toEqual(['first ']);
  });

  it('delivers nothing after destroy', async () => {
    const [, far] = await preread();
    const got = new Catch(far);
    far.destroy();
    await got.closed();
    for (let i = 0; i < 5; i++) await new Promise((next) => setImmediate(next));
    expect(got.bytes).toBe(0);
  });

  it('delivers the bytes before it says that the peer has closed', async () => {
    const [near, far] = await preread();
    near.end();
    const got = new Catch(far);
    expect((await got.closed()).by).toBe('peer');
    expect(got.all.toString()).toBe('first second');
  });
});
