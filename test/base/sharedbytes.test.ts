// Bytes that several writers send: their memory is used again when all are done with them, and not before.
import { expect, it } from 'vitest';
import { SharedBytes, SpareBuffers } from '../../src/base/sharedbytes.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool, Writer } from '../../src/base/writer.ts';

function make(spare: SpareBuffers, bytes = 20_000): SharedBytes {
  const memory = spare.take(bytes);
  memory.fill(7);
  return new SharedBytes(memory.subarray(0, bytes), spare, memory);
}

/** A sink that confirms when it is asked to. */
function slowSink() {
  const parts: Buffer[] = [];
  const dones: (() => void)[] = [];
  const sink = {
    write: (bytes: Uint8Array, done: () => void) => {
      parts.push(Buffer.from(bytes));
      dones.push(done);
    },
    cork: () => {},
    uncork: () => {},
  };
  return { sink, parts, confirm: () => dones.splice(0).forEach((done) => void done()) };
}

it('memory is free when the packet is handled and every writer has sent it, and counts once meanwhile', () => {
  const spare = new SpareBuffers();
  const pool = new BlockPool();
  const turn = new Turn();
  const [a, b] = [slowSink(), slowSink()];
  const writers = [a, b].map(({ sink }) => new Writer(turn, pool, sink));
  const shared = make(spare);
  turn.enter();
  for (const writer of writers) {
    writer.append(Buffer.from('head'), 0, 4);
    writer.refer(shared, 10, 20_000);
    writer.append(Buffer.from('tail'), 0, 4);
    expect(writer.queuedBytes).toBe(19_998);
  }
  turn.leave();
  const blocks = 4 * 2048;
  expect(pool.usedBytes).toBe(20_000 + blocks);
  a.confirm();
  shared.handled();
  expect([spare.bytes, pool.usedBytes]).toEqual([0, 20_000 + blocks / 2]);
  b.confirm();
  expect([spare.bytes, pool.usedBytes]).toEqual([32_768, 0]);
  const expected = Buffer.concat([Buffer.from('head'), Buffer.alloc(19_990, 7), Buffer.from('tail')]);
  for (const { parts } of [a, b]) expect(Buffer.concat(parts).equals(expected)).toBe(true);
  expect(spare.take(17_000).length).toBe(32_768);
});

it('memory that somebody keeps a view of is not used again', () => {
  const spare = new SpareBuffers();
  const shared = make(spare);
  shared.keep();
  shared.handled();
  expect(spare.bytes).toBe(0);
});

it('a writer that closes lets go of what it has not sent', () => {
  const spare = new SpareBuffers();
  const pool = new BlockPool();
  const writer = new Writer(new Turn(), pool, slowSink().sink);
  const shared = make(spare);
  writer.refer(shared, 0, 20_000);
  shared.handled();
  writer.close();
  expect([spare.bytes, pool.usedBytes]).toEqual([32_768, 0]);
});

it('spare memory is bounded, fits what is asked for, and is given up when it is not needed', () => {
  const spare = new SpareBuffers();
  const buffers = Array.from({ length: 100 }, () => spare.take(300_000));
  for (const buffer of buffers) spare.give(buffer);
  expect(spare.bytes).toBeLessThanOrEqual(16 << 20);
  expect(spare.take(20_000).length).toBeLessThan(64_000);
  spare.trim();
  const { bytes } = spare;
  spare.give(spare.take(300_000));
  spare.trim();
  expect(spare.bytes).toBeLessThan(bytes);
  spare.trim();
  spare.trim();
  expect(spare.bytes).toBe(0);
});

it('bytes that need not lie in a row fill the blocks of a writer one after the other', () => {
  const { sink, parts, confirm } = slowSink();
  const pool = new BlockPool();
  const turn = new Turn();
  const writer = new Writer(turn, pool, sink);
  const source = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 7) >> 3));
  turn.enter();
  writer.append(source, 0, 10);
  writer.spread(source, 10, 150_000);
  writer.spread(source, 150_000, 150_003);
  writer.spread(source, 150_003, 200_000);
  turn.leave();
  expect(Buffer.concat(parts).equals(source)).toBe(true);
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
  confirm();
  expect(pool.usedBytes).toBe(0);
});
