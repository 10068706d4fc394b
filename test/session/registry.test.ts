// What a broker does with the sessions it finds in its store.
import { afterEach, expect, it } from 'vitest';
import type { RestoredSession } from '../../src/store/store.ts';
import { Diary } from '../broker/diary.ts';
import { openRoom, type Room } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { message, queued, session, subscription } from '../harness/journal.ts';

let room: Room;
afterEach(() => room.stop());

const KEEP = { cleanStart: false, expiry: 3600 } as const;

function restored(clientId: string, more: Partial<RestoredSession> & { expiresAt?: number } = {}): RestoredSession {
  const { expiresAt = 0, ...others } = more;
  return {
    session: session(clientId, { expiresAt }),
    subscriptions: [],
    queue: [],
    inbound: [],
    will: null,
    ...others,
  };
}

it('sessions that were away already are not written again; those that were connected count from now', async () => {
  const clock = new FakeClock();
  const expiresAt = clock.now() + 100_000;
  const sessions = [restored('away', { expiresAt }), restored('was here')];
  const diary = new Diary({ sessions });
  room = await openRoom({ journal: diary, clock });
  expect(diary.told).toEqual(['sessionPut was here']);
  await room.advance(101_000);
  expect([...room.broker.clients()].map((c) => c.clientId)).toEqual(['was here']);
});

it('sessions that ended meanwhile are gone, with their subscriptions, and their will is sent once', async () => {
  const clock = new FakeClock();
  const over = restored('over', {
    expiresAt: clock.now() - 1000,
    subscriptions: [subscription('t')],
    will: { message: message('will'), dueAt: clock.now() + 60_000 },
  });
  const watcher = restored('watcher', { subscriptions: [subscription('will')] });
  const diary = new Diary({ sessions: [watcher, over] });
  room = await openRoom({ journal: diary, clock });
  expect(diary.told).toContain('sessionDelete over');
  const back = await room.client('watcher', KEEP);
  expect((await back.messages()).map((m) => m.topic)).toEqual(['will']);
  expect(room.metric('subscriptions')).toBe(1);
});

it('messages come again by what the store says of each: PUBREL, DUP under the old id, or for the first time', async () => {
  const sessions = [
    restored('c', {
      queue: [
        queued(1, message('t', 'released', { qos: 2 }), 'received', { qos: 2, packetId: 32 }),
        queued(2, message('t', 'sent', { qos: 2 }), 'sent', { qos: 2, packetId: 16 }),
        queued(3, message('t', 'fresh'), 'queued'),
      ],
    }),
  ];
  room = await openRoom({ journal: new Diary({ sessions }) });
  const c = await room.client('c', KEEP);
  expect(await c.next()).toMatchObject({ type: 6, packetId: 32 });
  expect(await c.message(false)).toMatchObject({ payload: 'sent', dup: true, packetId: 16, qos: 2 });
  const fresh = await c.message(false);
  expect(fresh).toMatchObject({ payload: 'fresh', dup: false, qos: 1 });
  expect([32, 16]).not.toContain(fresh.packetId);
});
