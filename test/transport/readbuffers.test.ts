// Reading into buffers that are used again: nothing is lost, mixed up or overwritten while somebody needs it, and large buffers come back.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dialSocket, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { LargeBuffers } from '../../src/transport/readbuffers.ts';
import { peerOf, StreamConnection } from '../../src/transport/stream.ts';
import type { LentReader } from '../../src/transport/transport.ts';
import { pattern } from '../contract/transport.ts';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0).reverse()) one();
});

/** `ours` is the end under test, dialled or accepted. */
async function pair(which: 'dialled' | 'accepted'): Promise<{ ours: StreamConnection; theirs: Socket }> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dialled = dialSocket({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  const [[accepted]] = (await Promise.all([once(server, 'connection'), once(dialled, 'connect')])) as [
    [Socket],
    unknown,
  ];
  const [mine, theirs] = which === 'dialled' ? [dialled, accepted] : [accepted, dialled];
  theirs.on('error', () => {});
  undo.push(() => {
    server.close();
    dialled.destroy();
    accepted.destroy();
  });
  return { ours: new StreamConnection('tcp', mine, peerOf(mine)), theirs };
}

/** Collects chunks as `keep` says: copies, or the lent bytes themselves. */
function collector(keep: (count: number) => boolean) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let waiting: { until: number; go: () => void } | null = null;
  const reader: LentReader = (chunk) => {
    bytes += chunk.length;
    const kept = keep(chunks.length);
    chunks.push(kept ? chunk : Buffer.from(chunk));
    if (waiting !== null && bytes >= waiting.until) waiting.go();
    return kept;
  };
  const reached = (until: number): Promise<void> =>
    new Promise((go) => {
      if (bytes >= until) go();
      else waiting = { until, go };
    });
  return { reader, reached, all: () => Buffer.concat(chunks), count: () => chunks.length };
}

describe.each(['dialled', 'accepted'] as const)('a connection that was %s', (which) => {
  it.each([
    ['never keeps', () => false],
    ['keeps every chunk', () => true],
    ['keeps every third chunk', (count: number) => count % 3 === 0],
  ] as const)('brings all bytes in order to a reader that %s', async (_text, keep) => {
    const { ours, theirs } = await pair(which);
    const sink = collector(keep);
    const buffers = new LargeBuffers();
    expect(ours.readInto(buffers, sink.reader)).toBe(true);
    const data = pattern(3_000_000);
    let sent = 0;
    for (const size of [1, 2047, 2048, 2049, 65_536, 100, 700_000]) {
      theirs.write(data.subarray(sent, sent + size));
      sent += size;
      await sink.reached(sent);
    }
    theirs.write(data.subarray(sent));
    await sink.reached(data.length);
    expect(sink.all().equals(data)).toBe(true);
  });

  it('fills the places that its reader names, in order, also what the stream had read before', async () => {
    const { ours, theirs } = await pair(which);
    const first = collector(() => false);
    ours.onData(first.reader);
    const data = pattern(2_000_000);
    theirs.write(data.subarray(0, 10));
    await first.reached(10);
    ours.pause();
    theirs.write(data.subarray(10, 20));
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    const places = [7, 300, 70_000, 2048].map((bytes) => Buffer.alloc(bytes));
    const sink = collector(() => false);
    let turn = 0;
    const filled = ours.fill({
      place: () => places[turn++ % places.length],
      take: (buffer, bytes) => {
        expect(bytes).toBeLessThanOrEqual(buffer.length);
        sink.reader(buffer.subarray(0, bytes));
        // Now and then it wants nothing for a while.
        if (turn % 50 === 0) {
          ours.pause();
          setImmediate(() => ours.resume());
        }
      },
    });
    expect(filled).toBe(true);
    ours.resume();
    theirs.write(data.subarray(20));
    await sink.reached(data.length - 10);
    expect(sink.all().equals(data.subarray(10))).toBe(true);
  });

  it('gives what the stream had read before, and goes on when it was paused', async () => {
    const { ours, theirs } = await pair(which);
    const first = collector(() => false);
    ours.onData(first.reader);
    theirs.write('one');
    await first.reached(3);
    ours.pause();
    // Bytes that Node reads before it notices, or leaves to the system: both must come, and in order.
    theirs.write('two');
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    const second = collector(() => false);
    ours.readInto(new LargeBuffers(), second.reader);
    theirs.write('three');
    await new Promise((resolve) => setImmediate(resolve));
    expect(second.count()).toBe(0);
    ours.resume();
    await second.reached(8);
    expect(second.all().toString()).toBe('twothree');
  });

  it('gives chunks of their own to a reader that comes by onData later', async () => {
    const { ours, theirs } = await pair(which);
    const lent = collector(() => false);
    ours.readInto(new LargeBuffers(), lent.reader);
    theirs.write('one');
    await lent.reached(3);
    const own = collector(() => true);
    ours.onData(own.reader);
    theirs.write('two');
    await own.reached(3);
    theirs.write('xyz');
    await own.reached(6);
    expect([lent.all().toString(), own.all().toString()]).toEqual(['one', 'twoxyz']);
  });

  it('tells the end of the other side', async () => {
    const { ours, theirs } = await pair(which);
    const sink = collector(() => false);
    const ended = new Promise<void>((resolve) => ours.onEnd(resolve));
    ours.readInto(new LargeBuffers(), sink.reader);
    theirs.end('last');
    await ended;
    expect(sink.all().toString()).toBe('last');
  });

  it('has no large buffer for small messages, and gives it back with little to read or when it closes', async () => {
    const { ours, theirs } = await pair(which);
    const buffers = new LargeBuffers();
    const sink = collector(() => false);
    ours.readInto(buffers, sink.reader);
    theirs.write(Buffer.alloc(100));
    await sink.reached(100);
    expect(buffers.lent).toBe(0);
    theirs.write(Buffer.alloc(500_000));
    await sink.reached(500_100);
    theirs.write(Buffer.alloc(10));
    await sink.reached(500_110);
    // The buffer is chosen when the reader has returned.
    await new Promise((resolve) => setImmediate(resolve));
    expect(buffers.lent).toBe(0);
    theirs.write(Buffer.alloc(500_000));
    await sink.reached(900_000);
    const closed = new Promise<void>((resolve) => ours.onClose(() => resolve()));
    ours.destroy();
    await closed;
    expect(buffers.lent).toBe(0);
  });
});

describe('large buffers', () => {
  it('are bounded in number, and one that was kept is never lent again', () => {
    const buffers = new LargeBuffers();
    const taken: Buffer[] = [];
    for (let next = buffers.take(); next !== null; next = buffers.take()) taken.push(next);
    expect(taken.length * taken[0].length).toBeLessThanOrEqual(32 * 1024 * 1024);
    buffers.giveBack(taken[0], true);
    buffers.giveBack(taken[1], false);
    expect(buffers.take()).toBe(taken[1]);
    expect(taken).not.toContain(buffers.take());
  });

  it('being all lent, small ones do', async () => {
    const { ours, theirs } = await pair('accepted');
    const buffers = new LargeBuffers();
    while (buffers.take() !== null);
    const sink = collector((count) => count % 2 === 0);
    ours.readInto(buffers, sink.reader);
    const data = pattern(200_000);
    theirs.write(data);
    await sink.reached(data.length);
    expect(sink.all().equals(data)).toBe(true);
  });
});
