// Files of earlier formats: they open, are brought up to date once, and lose nothing. The files are those that the earlier version wrote.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { FORMAT_VERSION } from '../../src/store/schema.ts';
import type { Journal } from '../../src/store/store.ts';
import { message, ORIGIN, queued, session, settled, storePath, testJournal } from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

function fileOfFormat(version: number): string {
  const path = storePath();
  mkdirSync(dirname(path), { recursive: true });
  const packed = readFileSync(resolve(import.meta.dirname, `../vectors/store-format-${version}.db.gz`));
  writeFileSync(path, gunzipSync(packed));
  return path;
}

/** user_version in the header of the file (https://www.sqlite.org/fileformat2.html, 1.3.14). */
function versionOf(path: string): number {
  return readFileSync(path).readUInt32BE(60);
}

test('a file of format 1 gives everything that is in it, and is of the present format afterwards', async () => {
  const path = fileOfFormat(1);
  expect(versionOf(path)).toBe(1);
  const { journal } = testJournal(path);
  open.push(journal);
  const { sessions, retained, spools } = await journal.load();
  const [a, b] = sessions;
  expect(a.session).toMatchObject({ clientId: 'a', username: 'u', expiresAt: Number.POSITIVE_INFINITY });
  expect(a.subscriptions.map((s) => [s.topicFilter, s.qos, s.subscriptionIdentifier])).toEqual([
    ['$share/g/t', 1, 7],
    ['plain/#', 2, 0],
  ]);
  // Format 1 did not say through which subscription a message came.
  expect(a.queue).toMatchObject([
    { sequence: 1, state: 'sent', packetId: 5, subscriptionIdentifiers: [7], share: null },
    { sequence: 2, state: 'queued', packetId: 0, share: null },
  ]);
  expect(a.queue.map((m) => Buffer.from(m.message.payload).toString())).toEqual(['first', 'second']);
  expect(a.inbound).toEqual([99]);
  expect(b.queue[0].message.properties).toEqual({ contentType: 'text' });
  expect(b.will?.dueAt).toBe(-60_000);
  expect(retained.map((m) => m.topic)).toEqual(['r']);
  expect(Buffer.from(spools.get('nng:pub:x')?.[0].bytes ?? []).toString()).toBe('frame');
  await journal.close();
  expect(versionOf(path)).toBe(FORMAT_VERSION);
});

test('what is told to a file of format 1 is stored in the present format', async () => {
  const path = fileOfFormat(1);
  const first = testJournal(path);
  open.push(first.journal);
  await first.journal.load();
  first.journal.messageQueued('b', queued(2, message('t', 'third'), 'queued', { share: '$share/g/t' }));
  expect(await settled(first.journal)).toBe(0);
  await first.journal.close();
  const second = testJournal(path);
  open.push(second.journal);
  const [, b] = (await second.journal.load()).sessions;
  expect(b.queue.map((m) => [m.sequence, m.share])).toEqual([
    [1, null],
    [2, '$share/g/t'],
  ]);
});

test('a file of format 2 gives everything that is in it, whose sessions and messages came from nobody known', async () => {
  const path = fileOfFormat(2);
  expect(versionOf(path)).toBe(2);
  const { journal } = testJournal(path);
  open.push(journal);
  const { sessions, retained, spools } = await journal.load();
  const [a, b] = sessions;
  expect(a.session).toMatchObject({ clientId: 'a', username: 'u', arrival: null, validUntil: 0 });
  expect(a.subscriptions.map((s) => [s.topicFilter, s.qos])).toEqual([
    ['$share/g/t', 1],
    ['plain/#', 2],
  ]);
  expect(a.queue.map((m) => [m.sequence, m.state, m.share])).toEqual([
    [1, 'sent', '$share/g/t'],
    [2, 'queued', null],
  ]);
  expect(a.inbound).toEqual([99]);
  expect(b.will?.message).toMatchObject({ topic: 'gone', origin: { clientId: 'publisher', username: 'user' } });
  expect(retained.map((m) => [m.topic, m.origin.kind, m.origin.arrival ?? null])).toEqual([
    ['r', 'client', null],
    ['r/2', 'bridge', null],
  ]);
  expect(Buffer.from(spools.get('nng:pub:x')?.[0].bytes ?? []).toString()).toBe('frame');
  await journal.close();
  expect(versionOf(path)).toBe(FORMAT_VERSION);
});

test.each([1, 2])('who a client is, told to a file of format %i, is stored', async (format) => {
  const path = fileOfFormat(format);
  const first = testJournal(path);
  open.push(first.journal);
  await first.journal.load();
  const arrival = { listener: 'tcp', remoteAddress: '10.0.0.1', realm: '', via: 'users', claims: null } as const;
  first.journal.sessionPut(session('a', { username: 'u', arrival, validUntil: 7 }));
  first.journal.retainedPut(message('r', 'new', { retain: true, origin: { ...ORIGIN, arrival } }));
  expect(await settled(first.journal)).toBe(0);
  await first.journal.close();
  const second = testJournal(path);
  open.push(second.journal);
  const { sessions, retained } = await second.journal.load();
  expect(sessions[0].session).toMatchObject({ clientId: 'a', arrival, validUntil: 7 });
  expect(sessions[0].queue.length).toBe(2);
  expect(retained.find((m) => m.topic === 'r')?.origin.arrival).toEqual(arrival);
});
