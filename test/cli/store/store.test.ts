// `tidegate store`: check, export and import of databases.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, expect, test } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { checkStore, exportStore, importStore } from '../../../src/cli/store/store.ts';
import type { Journal, Restored } from '../../../src/store/store.ts';
import { fakeIo, Sink } from '../../harness/io.ts';
import {
  crashCopy,
  message,
  queued,
  session,
  settled,
  storePath,
  subscription,
  testJournal,
} from '../../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

async function command(...argv: string[]): Promise<{ code: number; stderr: string }> {
  const io = fakeIo();
  const code = await runCli(argv, io);
  return { code, stderr: io.stderr.text() };
}

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

/** A file of the format before this one. */
function ofFormat1(): string {
  const path = storePath();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, gunzipSync(readFileSync(resolve(import.meta.dirname, '../../vectors/store-format-1.db.gz'))));
  return path;
}

test('check and export of an older format read it and do not change it', async () => {
  const path = ofFormat1();
  const before = readFileSync(path);
  const out = new Sink();
  expect(checkStore(path, out)).toBe(true);
  expect(out.text()).toMatch(/^format +1 \(the next start makes it 4\)$/m);
  const lines = new Sink();
  expect(await exportStore(ofFormat1(), lines)).toEqual([]);
  expect(readFileSync(path).equals(before)).toBe(true);
  const copy = storePath();
  await importStore(copy, Readable.from([lines.text()]), false);
  expect((await load(copy)).sessions.map((s) => s.queue.length)).toEqual([2, 1]);
});

test('export of a damaged store gives what can be read and says what cannot', async () => {
  const { journal, path } = testJournal(storePath());
  open.push(journal);
  await journal.load();
  journal.sessionPut(session('c'));
  for (let n = 1; n <= 200; n++) journal.retainedPut(message(`r/${n}`, Buffer.alloc(3000, n)));
  expect(await settled(journal)).toBe(0);
  await journal.close();
  const bytes = readFileSync(path);
  // The later half of the pages: rows of retained, whose first ones stay readable.
  bytes.fill(0xff, bytes.length >> 1);
  writeFileSync(path, bytes);
  const out = new Sink();
  const faults = await exportStore(path, out);
  expect(faults.join()).toMatch(/retained/);
  expect(out.text()).toMatch(/"clientId":"c"/);
  const checked = new Sink();
  // The driver keeps a file locked for as long as its process lives: another look needs another file.
  expect(checkStore(crashCopy(path), checked)).toBe(false);
  expect(checked.text()).toMatch(/^damaged: /m);
});

test('check and export refuse a store that a gateway has open', async () => {
  const { journal, path } = testJournal(storePath());
  open.push(journal);
  await journal.load();
  expect(() => checkStore(path, new Sink())).toThrow(/in use by another process/);
});

const folder = mkdtempSync(join(tmpdir(), 'tidegate-readonly-'));
const mounted =
  process.geteuid?.() === 0 && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder]).status === 0;
afterAll(() => {
  if (mounted) spawnSync('umount', ['-l', folder]);
});

test.skipIf(!mounted)('a store on a read-only disk is checked and exported, and no gateway starts on it', async () => {
  const path = join(folder, 't.db');
  copyFileSync(ofFormat1(), path);
  spawnSync('mount', ['-o', 'remount,ro', folder]);
  expect(checkStore(path, new Sink())).toBe(true);
  const lines = new Sink();
  expect(await exportStore(path, lines)).toEqual([]);
  expect(lines.text()).toMatch(/"clientId":"a"/);
  await expect(load(path)).rejects.toThrow(/cannot be written .*(EROFS|read-only)/);
});

test('export to a file never writes over the database itself', async () => {
  const path = crashCopy(await filled());
  const before = readFileSync(path);
  const { stderr, code } = await command('store', 'export', path, '-o', path);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/is the database itself/)]);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('import of a file that is not there says so in one line', async () => {
  const { stderr, code } = await command('store', 'import', storePath(), '/nowhere/lines');
  expect(code).toBe(1);
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/cannot read \/nowhere\/lines: no such file/)]);
});

test('import says that a folder is no file of lines', async () => {
  const { code, stderr } = await command('store', 'import', storePath(), tmpdir());
  expect(code).toBe(1);
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/cannot read .*: it is a folder$/)]);
});

test('check refuses a path where there is nothing', () => {
  expect(() => checkStore(storePath(), new Sink())).toThrow(/does not exist/);
});
