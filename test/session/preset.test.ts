// Sessions that the configuration makes before their clients come (NanoMQ's preset.session).
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { openRoom, type Room, type RoomOptions } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { storePath, testJournal } from '../harness/journal.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function room(options: RoomOptions = {}): Promise<Room> {
  const made = await openRoom(options);
  cleanups.push(() => made.stop());
  return made;
}

const OPTIONS = { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
const PRESET = [{ clientId: 'device', subscriptions: [{ topicFilter: 'down/#', ...OPTIONS }] }];
const KEEP = { cleanStart: false, expiry: 3600 } as const;

it('a preset session keeps messages for a client that has never been here', async () => {
  const r = await room();
  r.broker.preset(PRESET);
  await (await r.client('p')).published('down/a', 'x', 1);
  const device = await r.client('device', KEEP);
  expect(device.present).toBe(true);
  expect(await device.message()).toMatchObject({ topic: 'down/a', payload: 'x', qos: 1 });
});

it('a preset session belongs to the first user that continues it', async () => {
  const r = await room();
  r.broker.preset(PRESET);
  const password = Buffer.from('p');
  await (await r.client('device', { ...KEEP, username: 'first', password })).drop();
  r.broker.preset(PRESET);
  await expect(r.client('device', { ...KEEP, username: 'second', password })).rejects.toThrow('CONNACK 133');
});

it('a preset session that is there already is left as it is', async () => {
  const r = await room();
  const device = await r.client('device', KEEP);
  await device.subscribe('own', 1);
  r.broker.preset(PRESET);
  expect([...r.broker.subscriptions('device')].map((s) => s.topicFilter)).toEqual(['own']);
});

it('a clean start ends a preset session', async () => {
  const r = await room();
  r.broker.preset(PRESET);
  const device = await r.client('device');
  expect(device.present).toBe(false);
  expect([...r.broker.subscriptions('device')]).toEqual([]);
});

it('what a preset session has kept is there after a restart, for whoever comes first', async () => {
  const path = storePath();
  cleanups.push(() => rmSync(dirname(dirname(path)), { recursive: true, force: true }));
  const clock = new FakeClock(Date.now());
  const first = await openRoom({ journal: testJournal(path).journal, clock });
  first.broker.preset(PRESET);
  await (await first.client('p')).published('down/a', 'x', 1);
  await first.stop();
  const second = await room({ journal: testJournal(path).journal, clock });
  second.broker.preset(PRESET);
  const device = await second.client('device', { ...KEEP, username: 'u', password: Buffer.from('p') });
  expect((await device.messages()).map((m) => m.payload)).toEqual(['x']);
});

it('a preset session ends when max_session_expiry is over', async () => {
  const r = await room({ limits: { maxSessionExpiryMs: 60_000 } });
  r.broker.preset(PRESET);
  await r.advance(61_000);
  expect(r.broker.client('device')).toBeUndefined();
});
