// The open log of changes and its compaction: only the last word of each row is written.
import { describe, expect, test } from 'vitest';
import { Hold } from '../../src/mqtt/message.ts';
import { compact } from '../../src/store/compact.ts';
import {
  type Body,
  DONE,
  Event,
  GONE,
  INBOUND_PUT,
  PATIENCE,
  QUEUED,
  RECEIVED,
  RETAINED_PUT,
  SENT,
  SESSION_DELETE,
  SESSION_PUT,
  Slot,
  STATE,
  SUBSCRIPTION_DELETE,
  SUBSCRIPTION_PUT,
} from '../../src/store/event.ts';
import { FrameWriter } from '../../src/store/frame.ts';
import { Batch, OpenLog } from '../../src/store/log.ts';
import { message, queued, session, subscription } from '../harness/journal.ts';

let serial = 0;

function told(log: OpenLog, kind: number, slot: Slot | null, sequence: number, body: Body = null): Event {
  const event = new Event(kind, slot, sequence, body, log.round);
  log.add(event);
  if (kind === QUEUED) slot?.push(event);
  return event;
}

function sent(log: OpenLog, slot: Slot, sequence: number, body = message('t')): Event {
  const event = told(log, QUEUED, slot, sequence, queued(sequence, body, 'sent'));
  event.state = SENT;
  return event;
}

function waiting(log: OpenLog, slot: Slot, sequence: number): Event {
  return told(log, QUEUED, slot, sequence, queued(sequence, message('t')));
}

/** Closes once; gives the sequences written. */
function close(log: OpenLog, all = false): { batch: Batch; written: number[]; bytes: number } {
  const batch = new Batch(++serial);
  const frame = new FrameWriter();
  log.take(frame, batch, all, Infinity);
  return { batch, written: batch.events.map((e) => e.sequence), bytes: frame.at };
}

function barrier(log: OpenLog, posted: Batch | null = null): Hold {
  const hold = new Hold();
  log.barrier(hold, posted);
  return hold;
}

describe('the open log', () => {
  test('a full batch ends between two messages, never between a message and its packet id', () => {
    const log = new OpenLog();
    const [a, b, publisher] = [new Slot(1, 'a', PATIENCE), new Slot(2, 'b', PATIENCE), new Slot(3, 'p', 0)];
    const publish = (packetId: number): void => {
      for (const slot of [a, b]) waiting(log, slot, packetId);
      told(log, INBOUND_PUT, publisher, packetId);
    };
    for (const packetId of [1, 2, 3]) publish(packetId);
    const batch = new Batch(++serial);
    log.take(new FrameWriter(), batch, true, 4);
    expect(batch.events.map((e) => [e.kind, e.sequence])).toEqual(
      [1, 2].flatMap((n) => [
        [QUEUED, n],
        [QUEUED, n],
        [INBOUND_PUT, n],
      ]),
    );
  });

  test('a message of 20 MB stays with its packet id and all its receivers', () => {
    const log = new OpenLog();
    const [a, b, publisher] = [new Slot(1, 'a', PATIENCE), new Slot(2, 'b', PATIENCE), new Slot(3, 'p', 0)];
    const large = message('t', Buffer.alloc(20 << 20));
    for (const slot of [a, b]) told(log, QUEUED, slot, 1, queued(1, large));
    told(log, INBOUND_PUT, publisher, 1);
    waiting(log, a, 2);
    expect(close(log, true).batch.events.map((e) => [e.kind, e.sequence])).toEqual([
      [QUEUED, 1],
      [QUEUED, 1],
      [INBOUND_PUT, 1],
    ]);
  });

  test('a message told in several parts, a barrier behind each, stays with its packet id', () => {
    const log = new OpenLog();
    const [a, b, bridge] = [new Slot(1, 'a', PATIENCE), new Slot(2, 'b', PATIENCE), new Slot(3, 'bridge', 0)];
    const publish = (packetId: number): void => {
      log.gather(true);
      for (const slot of [a, b]) {
        waiting(log, slot, packetId);
        log.separate();
        barrier(log);
      }
      told(log, INBOUND_PUT, bridge, packetId);
      log.gather(false);
      barrier(log);
    };
    for (const packetId of [1, 2, 3]) publish(packetId);
    const written: string[][] = [];
    for (let left = 3; left > 0; left--) {
      const batch = new Batch(++serial);
      log.take(new FrameWriter(), batch, true, 2);
      written.push(batch.events.map((e) => `${e.kind} ${e.sequence}`));
    }
    expect(written).toEqual([1, 2, 3].map((n) => [`${QUEUED} ${n}`, `${QUEUED} ${n}`, `${INBOUND_PUT} ${n}`]));
  });

  test('what is gathered and gets no packet id leaves the next message alone', () => {
    const log = new OpenLog();
    const [a, p] = [new Slot(1, 'a', PATIENCE), new Slot(3, 'p', 0)];
    log.gather(true);
    waiting(log, a, 1);
    log.gather(false);
    waiting(log, a, 2);
    told(log, INBOUND_PUT, p, 2);
    const batch = new Batch(++serial);
    log.take(new FrameWriter(), batch, true, 1);
    expect(batch.events.map((e) => e.sequence)).toEqual([1]);
  });

  test('a message just sent is carried for two rounds, then written', () => {
    const log = new OpenLog();
    sent(log, new Slot(1, 'c', 0), 1);
    expect(close(log).written).toEqual([]);
    log.round++;
    expect(close(log).written).toEqual([]);
    log.round++;
    expect(close(log).written).toEqual([1]);
  });

  test('a message that waits for its client is written at once, with all before it in its session', () => {
    const log = new OpenLog();
    const slot = new Slot(1, 'c', 0);
    sent(log, slot, 1);
    waiting(log, slot, 2);
    sent(log, slot, 3);
    sent(log, new Slot(2, 'd', 0), 9);
    expect(close(log).written).toEqual([1, 2]);
  });

  test('a session that does not acknowledge in time is not waited for', () => {
    const log = new OpenLog();
    const slot = new Slot(1, 'c', PATIENCE);
    sent(log, slot, 1);
    expect(close(log).written).toEqual([1]);
  });

  test('nothing is carried in a batch with an inbound id', () => {
    const log = new OpenLog();
    sent(log, new Slot(1, 'c', 0), 1);
    told(log, INBOUND_PUT, new Slot(2, 'p', 0), 7);
    expect(close(log).written).toEqual([1, 7]);
  });

  test('a deletion told after a carried message is carried with it', () => {
    const log = new OpenLog();
    const done = new Slot(2, 'd', 0);
    told(log, DONE, done, 1);
    sent(log, new Slot(1, 'c', 0), 2);
    told(log, DONE, done, 3);
    expect(close(log).written).toEqual([1]);
    expect(close(log, true).written).toEqual([2, 3]);
  });

  test('a barrier waits for each message told since the one before', () => {
    const log = new OpenLog();
    const a = waiting(log, new Slot(1, 'a', 0), 1);
    const first = barrier(log);
    const b = waiting(log, new Slot(2, 'b', 0), 1);
    const second = barrier(log);
    expect([a.hold, b.hold]).toEqual([first, second]);
    expect(log.urgent).toBe(true);
  });

  test('a barrier over messages just sent is not urgent', () => {
    const log = new OpenLog();
    sent(log, new Slot(1, 'a', 0), 1);
    expect(barrier(log).open).toBe(true);
    expect(log.urgent).toBe(false);
  });

  test('a barrier over anything else joins the batch and lets nothing be carried', () => {
    const log = new OpenLog();
    sent(log, new Slot(1, 'a', 0), 1);
    told(log, RETAINED_PUT, null, 5, message('r'));
    const hold = barrier(log);
    const { batch, written } = close(log);
    expect(written).toEqual([1, 5]);
    expect(batch.holds).toEqual([hold]);
  });

  test('a barrier with nothing told since the last one covers everything', () => {
    const log = new OpenLog();
    sent(log, new Slot(1, 'a', 0), 1);
    barrier(log);
    const hold = barrier(log);
    const { batch, written } = close(log);
    expect(written).toEqual([1]);
    expect(batch.holds).toEqual([hold]);
    const later = barrier(log, batch);
    expect(later.open).toBe(true);
    expect(batch.holds).toEqual([hold, later]);
  });

  test('a barrier called after its events have gone waits for their batch', () => {
    const log = new OpenLog();
    told(log, SESSION_PUT, new Slot(1, 'a', 0), 0, session('a'));
    const { batch } = close(log);
    const hold = barrier(log, batch);
    expect(hold.open).toBe(true);
    expect(batch.holds).toContain(hold);
  });

  test('a barrier with everything durable waits for nothing', () => {
    expect(barrier(new OpenLog()).open).toBe(false);
  });

  test('a message for many sessions is written once', () => {
    const log = new OpenLog();
    const body = message('t', Buffer.alloc(10_000));
    for (let n = 1; n <= 50; n++) told(log, QUEUED, new Slot(n, `c${n}`, 0), 1, queued(1, body));
    expect(close(log).bytes).toBeLessThan(15_000);
  });

  test('a failed batch comes back in order, without what is done', () => {
    const log = new OpenLog();
    const slot = new Slot(1, 'c', 0);
    for (const n of [1, 2, 3]) waiting(log, slot, n);
    const hold = barrier(log);
    const { batch } = close(log);
    batch.events[1].place = GONE;
    waiting(log, slot, 4);
    expect(log.reopen([batch])).toEqual([hold, hold, hold]);
    expect(close(log).written).toEqual([1, 3, 4]);
  });

  test('a batch stops growing at its limit and the rest keeps its waiters', () => {
    const log = new OpenLog();
    const body = message('r', Buffer.alloc(1024 * 1024));
    for (let n = 1; n <= 6; n++) told(log, RETAINED_PUT, null, n, body);
    const hold = barrier(log);
    const first = close(log);
    expect(first.written).toEqual([1, 2, 3, 4]);
    expect(first.batch.holds).toEqual([]);
    const second = close(log);
    expect(second.written).toEqual([5, 6]);
    expect(second.batch.holds).toEqual([hold]);
  });
});

describe('compaction', () => {
  function written(slot: Slot): Slot {
    slot.written = true;
    return slot;
  }
  function events(fill: (log: OpenLog) => void): Event[] {
    const log = new OpenLog();
    fill(log);
    let found: Event[] = [];
    log.rearrange((all) => (found = compact(all)));
    return found;
  }

  test('keeps the last word about each row', () => {
    const slot = written(new Slot(1, 'c', 0));
    const left = events((log) => {
      for (let n = 0; n < 10; n++) {
        told(log, SESSION_PUT, slot, 0, session('c', { expiresAt: n }));
        told(log, SUBSCRIPTION_PUT, slot, 0, subscription('a'));
        told(log, SUBSCRIPTION_DELETE, slot, 0, 'a');
        told(log, RETAINED_PUT, null, 0, message('r', `${n}`));
      }
    });
    expect(left.map((e) => e.kind)).toEqual([SUBSCRIPTION_DELETE, SESSION_PUT, RETAINED_PUT]);
    expect(left[1].body).toMatchObject({ expiresAt: 9 });
  });

  test('puts deletions first', () => {
    const slot = written(new Slot(1, 'c', 0));
    const left = events((log) => {
      waiting(log, slot, 5);
      told(log, DONE, slot, 1);
    });
    expect(left.map((e) => e.kind)).toEqual([DONE, QUEUED]);
  });

  test('drops everything of a session that ended', () => {
    const slot = written(new Slot(1, 'c', 0));
    const left = events((log) => {
      told(log, SESSION_PUT, slot, 0, session('c'));
      waiting(log, slot, 1);
      told(log, SESSION_DELETE, slot, 0);
      told(log, SESSION_PUT, new Slot(2, 'c', 0), 0, session('c'));
    });
    expect(left.map((e) => [e.kind, e.slot?.id])).toEqual([
      [SESSION_DELETE, 1],
      [SESSION_PUT, 2],
    ]);
  });

  test('forgets a session the writer never saw', () => {
    const slot = new Slot(1, 'c', 0);
    const left = events((log) => {
      told(log, SESSION_PUT, slot, 0, session('c'));
      told(log, SESSION_DELETE, slot, 0);
    });
    expect(left).toEqual([]);
  });

  test('a state told later is taken over by its message', () => {
    const slot = written(new Slot(1, 'c', 0));
    const left = events((log) => {
      waiting(log, slot, 1);
      const state = told(log, STATE, slot, 1);
      state.state = RECEIVED;
      state.packetId = 7;
    });
    expect(left.map((e) => [e.kind, e.state, e.packetId])).toEqual([[QUEUED, RECEIVED, 7]]);
  });

  test('a message that is done is dropped and its row deleted', () => {
    const slot = written(new Slot(1, 'c', 0));
    const left = events((log) => {
      waiting(log, slot, 1);
      told(log, DONE, slot, 1);
    });
    expect(left.map((e) => e.kind)).toEqual([DONE]);
  });
});
