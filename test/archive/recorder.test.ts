// What the recorder takes, and what becomes of it while the archive takes nothing.
import { expect, test } from 'vitest';
import type { Archive } from '../../src/archive/archive.ts';
import type { Written } from '../../src/archive/protocol.ts';
import { Recorder } from '../../src/archive/recorder.ts';
import { Ledger } from '../../src/base/ledger.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { openRoom, type Room, settled } from '../broker/room.ts';

/** An archive that takes batches, or fails while `broken`. */
class StandIn implements Archive {
  broken = false;
  readonly topics: string[] = [];
  readonly payloads: string[] = [];

  async write(written: Written): Promise<void> {
    if (this.broken) throw new Error('disk full');
    if (written.what !== 'messages') throw new Error('messages expected');
    const { topics, ends, payloads } = written.batch;
    this.topics.push(...topics);
    let start = 0;
    for (const end of ends) {
      this.payloads.push(Buffer.from(payloads.subarray(start, end)).toString());
      start = end;
    }
  }

  ask(): Promise<never> {
    return Promise.reject(new Error('not asked here'));
  }
}

interface Place {
  readonly room: Room;
  readonly archive: StandIn;
  readonly recorder: Recorder;
  readonly ledger: Ledger;
  readonly messages: string[];
  publish(topic: string, payload: string): Promise<void>;
}

async function place(): Promise<Place> {
  const room = await openRoom();
  const archive = new StandIn();
  const ledger = new Ledger();
  const messages: string[] = [];
  const log = (_level: string, id: string): void => void messages.push(id);
  const recorder = new Recorder({
    broker: room.broker,
    archive,
    clock: room.clock,
    ledger,
    log,
    metrics: new Metrics(),
  });
  const client = room.broker.attach({ clientId: 'p', username: null, kind: 'api', bridge: null, trusted: true });
  const publish = async (topic: string, payload: string): Promise<void> => {
    const bytes = Buffer.from(payload);
    client.publish(topic, bytes, 0, bytes.length, 0, false, null);
    await settled();
  };
  return { room, archive, recorder, ledger, messages, publish };
}

test('a message that several filters take is recorded once, others are not', async () => {
  const { room, archive, recorder, publish } = await place();
  recorder.record(['a/#', 'a/+/x', 'b']);
  await publish('a/1/x', 'one');
  await publish('b', 'two');
  await publish('c', 'three');
  room.clock.advance(300);
  await settled();
  expect(archive.topics).toEqual(['a/1/x', 'b']);
  expect(archive.payloads).toEqual(['one', 'two']);
  recorder.record(['c']);
  await publish('a/1/x', 'four');
  await publish('c', 'five');
  await recorder.stop(1000);
  expect(archive.payloads).toEqual(['one', 'two', 'five']);
  await room.stop();
});

test('what the archive does not take waits in order and is written later; its memory is counted and given back', async () => {
  const { room, archive, recorder, ledger, publish } = await place();
  recorder.record(['#']);
  archive.broken = true;
  for (const payload of ['1', '2', '3']) {
    await publish('t', payload);
    room.clock.advance(300);
    await settled();
  }
  expect(archive.payloads).toEqual([]);
  expect(ledger.of('recording')).toBeGreaterThan(600);
  archive.broken = false;
  room.clock.advance(300);
  await settled();
  expect(archive.payloads).toEqual(['1', '2', '3']);
  expect(ledger.of('recording')).toBe(0);
  expect(recorder.missedMessages).toBe(0);
  await recorder.stop(1000);
  await room.stop();
});

test('beyond the bound in bytes messages are counted as missed, with a log line, and the rest is kept', async () => {
  const { room, archive, recorder, messages, publish } = await place();
  recorder.record(['#']);
  archive.broken = true;
  const large = 'x'.repeat(1 << 20);
  for (let i = 0; i < 20; i++) await publish('t', large);
  expect(recorder.missedMessages).toBeGreaterThanOrEqual(4);
  expect(messages).toContain('REC-MISSED');
  archive.broken = false;
  room.clock.advance(300);
  await settled(40);
  expect(archive.payloads.length + recorder.missedMessages).toBe(20);
  await recorder.stop(1000);
  await room.stop();
});

test('a message larger than the bound is recorded when nothing else waits', async () => {
  const { room, archive, recorder, publish } = await place();
  recorder.record(['#']);
  await publish('t', 'x'.repeat(17 << 20));
  await settled(40);
  await publish('t', 'after');
  room.clock.advance(300);
  await settled(40);
  expect(archive.payloads.map(({ length }) => length)).toEqual([17 << 20, 5]);
  expect(recorder.missedMessages).toBe(0);
  await recorder.stop(1000);
  await room.stop();
});
