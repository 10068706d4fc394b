// Whose a session is: the user's, in the realm of its listener. Nobody else continues it, ends it or disturbs who is connected.
import { afterEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import { build, Folder, line7 } from '../auth/support.ts';
import { Diary } from '../broker/diary.ts';
import { openRoom, type Room } from '../broker/room.ts';
import { session, storePath, testJournal } from '../harness/journal.ts';

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const password = Buffer.from('p');
const alice = { username: 'alice', password };
const bob = { username: 'bob', password };

const open: Room[] = [];
let folder: Folder;
afterEach(async () => {
  for (const room of open.splice(0)) await room.stop();
  folder.done();
});

/** Listeners tcp.a and tcp.b with users of their own, tcp.a2 with those of tcp.a, tcp with those of everybody else. */
async function users(allowAnonymous = true): Promise<AccessControl> {
  folder = new Folder();
  const a = folder.put('a', `${line7('alice', 'p')}\n${line7('bob', 'p')}\n`);
  const b = folder.put('b', `${line7('alice', 'p')}\n`);
  const listeners = new Map([
    ['tcp', {}],
    ['tcp.a', { passwordFile: a }],
    ['tcp.a2', { passwordFile: a }],
    ['tcp.b', { passwordFile: b }],
  ]);
  return build({ allowAnonymous, listeners });
}

async function room(options: Parameters<typeof openRoom>[0] = {}): Promise<Room> {
  const made = await openRoom({ control: await users(), ...options });
  open.push(made);
  return made;
}

async function withQueue(r: Room): Promise<void> {
  const client = await r.client('x', { ...KEEP, ...alice, listener: 'tcp.a' });
  await client.subscribe('t', 1);
  await client.drop();
  await (await r.client('p', { listener: 'tcp' })).published('t', 'queued', 1);
}

const OTHERS = [
  ['another user of the same listener', { ...bob, listener: 'tcp.a' }],
  ['the same name of another password file', { ...alice, listener: 'tcp.b' }],
  ['somebody without a name', { listener: 'tcp' }],
] as const;

describe('a session that waits for its user', () => {
  for (const [who, how] of OTHERS) {
    it(`is neither continued nor ended by ${who}`, async () => {
      const r = await room();
      await withQueue(r);
      for (const cleanStart of [true, false]) {
        await expect(r.client('x', { ...KEEP, ...how, cleanStart })).rejects.toThrow('CONNACK 133');
        await expect(r.client('x', { ...how, version: 4, cleanStart })).rejects.toThrow('CONNACK 2');
      }
      const back = await r.client('x', { ...KEEP, ...alice, listener: 'tcp.a' });
      expect((await back.messages()).map((m) => m.payload)).toEqual(['queued']);
    });
  }

  it('is continued by its user through another listener with the same password file', async () => {
    const r = await room();
    await withQueue(r);
    const back = await r.client('x', { ...KEEP, ...alice, listener: 'tcp.a2' });
    expect(back.present).toBe(true);
    expect((await back.messages()).map((m) => m.payload)).toEqual(['queued']);
  });

  it('is free again when it has ended', async () => {
    const r = await room();
    await withQueue(r);
    await r.advance(3_601_000);
    expect((await r.client('x', { ...KEEP, ...bob, listener: 'tcp.a' })).present).toBe(false);
  });

  it('is for whoever comes with its client id where the configuration says so, as in mosquitto', async () => {
    const r = await room({ limits: { sessionOwner: 'client_id' } });
    await withQueue(r);
    const other = await r.client('x', { ...KEEP, ...bob, listener: 'tcp.a' });
    expect(other.present).toBe(true);
    expect((await other.messages()).map((m) => m.payload)).toEqual(['queued']);
  });
});

it('a connected client with a kept session is not disturbed by another user, and who tries is told in the log now and then', async () => {
  const r = await room();
  const client = await r.client('x', { ...KEEP, ...alice, listener: 'tcp.a' });
  for (const [, how] of OTHERS) await expect(r.client('x', how)).rejects.toThrow('CONNACK 133');
  expect(client.closed).toBe(false);
  expect(await client.messages()).toEqual([]);
  const told = r.log.filter(({ id }) => id === 'SES-FOREIGN');
  expect(told.map(({ fields }) => fields?.owner)).toEqual(['alice']);
});

it('a session that ends with its connection keeps nothing: another user takes the client id over and gets a session of its own', async () => {
  const r = await room();
  const client = await r.client('x', { ...alice, listener: 'tcp.a' });
  await client.subscribe('t', 1);
  const other = await r.client('x', { ...KEEP, ...bob, listener: 'tcp.a' });
  await client.untilClosed();
  expect(other.present).toBe(false);
  await (await r.client('p', { listener: 'tcp' })).published('t', 'x', 1);
  expect(await other.messages()).toEqual([]);
});

it('a stored session belongs to its user and realm after a restart', async () => {
  const path = storePath();
  const control = await users();
  const first = await room({ control, journal: testJournal(path).journal });
  await withQueue(first);
  await first.stop();
  open.length = 0;
  const second = await room({ control, journal: testJournal(path).journal });
  for (const [, how] of OTHERS) await expect(second.client('x', { ...KEEP, ...how })).rejects.toThrow('CONNACK 133');
  const back = await second.client('x', { ...KEEP, ...alice, listener: 'tcp.a2' });
  expect((await back.messages()).map((m) => m.payload)).toEqual(['queued']);
});

it('a session of a store that kept only names goes to the one user who can be meant, and to nobody where that is not certain', async () => {
  const stored = (clientId: string, username: string) => ({
    session: session(clientId, { username, expiryInterval: 3600 }),
    subscriptions: [],
    queue: [],
    inbound: [],
    will: null,
  });
  const sessions = [stored('x', 'alice'), stored('y', 'bob')];
  const r = await room({ control: await users(false), journal: new Diary({ sessions }) });
  await expect(r.client('x', { ...KEEP, ...alice, listener: 'tcp.a' })).rejects.toThrow('CONNACK 133');
  await expect(r.client('x', { ...KEEP, ...alice, listener: 'tcp.b' })).rejects.toThrow('CONNACK 133');
  expect((await r.client('y', { ...KEEP, ...bob, listener: 'tcp.a' })).present).toBe(true);
});
