// `tidegate store`: check, export and import of databases.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { checkStore, exportStore, importStore } from '../../src/cli/store.ts';
import type { Journal, Restored } from '../../src/store/store.ts';
import { Sink } from '../harness/io.ts';
import {
  crashCopy,
  message,
  queued,
  session,
  settled,
  storePath,
  subscription,
  testJournal,
} from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

async function load(path: string): Promise<Restored> {
  const { journal } = testJournal(path);
  open.push(journal);
  return journal.load();
}

async function filled(): Promise<string> {
  const { journal, path } = testJournal(storePath());
  open.push(journal);
  await journal.load();
  const body = message('t/\u{1F6AA}', Buffer.from([0, 255, 10]), {
    qos: 2,
    properties: { correlationData: Buffer.from([1, 2]), userProperties: [['a', 'b']], contentType: 'x' },
  });
  journal.sessionPut(session("c'); --", { expiresAt: Number.POSITIVE_INFINITY, username: 'u' }));
  journal.sessionPut(session('d', { version: 4 }));
  journal.subscriptionPut('d', subscription('a/#', { qos: 2, subscriptionIdentifier: 5 }));
  journal.messageQueued('d', queued(3, body, 'sent', { qos: 2, subscriptionIdentifiers: [5] }));
  journal.messageQueued("c'); --", queued(9, body));
  journal.inboundPut('d', 77);
  journal.willPut('d', { message: message('w'), dueAt: 12 });
  journal.retainedPut(message('r', 'v', { retain: true }));
  journal.spoolPut('mqtt:up', 4, Buffer.from([9, 0]));
  expect(await settled(journal)).toBe(0);
  return path;
}

test('export and import give the same store', async () => {
  const path = await filled();
  const out = new Sink();
  await exportStore(crashCopy(path), out);
  const copy = storePath();
  expect(await importStore(copy, Readable.from([out.text()]), false)).toBe(out.text().trimEnd().split('\n').length);
  expect(await load(copy)).toEqual(await load(crashCopy(path)));
});

test('import refuses a store that is not empty', async () => {
  const copy = crashCopy(await filled());
  await expect(importStore(copy, Readable.from(['']), false)).rejects.toMatchObject({ code: 'CLI-FAILED' });
});

const SESSION = JSON.stringify({ type: 'session', ...session('c') });
for (const [what, line] of Object.entries({
  'is not JSON': '{',
  'has an unknown type': '{"type":"x"}',
  'has an unknown field': SESSION.replace('}', ',"__proto__x":1}'),
  'has a field of the wrong type': SESSION.replace('3600', '"long"'),
  'is of a newer format': '{"type":"tidegate-store","format":2}',
  'names a session that is not there': '{"type":"inbound","clientId":"nobody","packetId":1}',
})) {
  test(`import refuses a line that ${what} and names its number`, async () => {
    const input = Readable.from([`${SESSION}\n${line}\n`]);
    await expect(importStore(storePath(), input, false)).rejects.toThrow(/line 2: /);
  });
}

test('check counts what is in a whole store', async () => {
  const out = new Sink();
  expect(checkStore(crashCopy(await filled()), out)).toBe(true);
  expect(out.text()).toMatch(/^session +2$/m);
  expect(out.text()).toMatch(/^ok$/m);
});

test('check says that a damaged store is damaged and leaves it alone', async () => {
  const path = storePath();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, 'not a database at all, but long enough to look at\n'.repeat(100));
  const before = readFileSync(path);
  const out = new Sink();
  expect(checkStore(path, out)).toBe(false);
  expect(out.text()).toMatch(/damaged/);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('check refuses a path where there is nothing', () => {
  expect(() => checkStore(storePath(), new Sink())).toThrow(/does not exist/);
});
