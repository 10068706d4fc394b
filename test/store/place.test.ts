// The files of a store that are deleted, moved or replaced while a gateway uses them: what was and is acknowledged is found at the next start.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Journal } from '../../src/store/store.ts';
import { crashCopy, message, queued, session, settled, storePath, testJournal } from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

/** A store with the acknowledged messages 1 to 3 of session c. */
async function filled(): Promise<ReturnType<typeof testJournal>> {
  const made = testJournal(storePath());
  open.push(made.journal);
  await made.journal.load();
  made.journal.sessionPut(session('c'));
  for (let n = 1; n <= 3; n++) expect(await publish(made.journal, n)).toBe(0);
  return made;
}

function publish(journal: Journal, sequence: number): Promise<number> {
  journal.messageQueued('c', queued(sequence, message('t', Buffer.alloc(5000, sequence))));
  return settled(journal);
}

/** Publishes until one is acknowledged; gives its sequence. */
async function publishUntilTaken(journal: Journal, from: number): Promise<number> {
  for (let n = from; ; n++) {
    if ((await publish(journal, n)) === 0) return n;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function sequences(path: string): Promise<number[]> {
  const { journal } = testJournal(path);
  open.push(journal);
  return (await journal.load()).sessions[0].queue.map((m) => m.sequence);
}

const WAYS: Record<string, (path: string) => void> = {
  'the database': (path) => rmSync(path),
  'the write-ahead log': (path) => rmSync(`${path}-wal`),
  'the whole folder': (path) => rmSync(dirname(path), { recursive: true }),
};

for (const [what, remove] of Object.entries(WAYS)) {
  test(`when ${what} is deleted, everything acknowledged before and after is there after a crash`, async () => {
    const { journal, path, logged } = await filled();
    remove(path);
    const last = await publishUntilTaken(journal, 4);
    expect(logged).toContain('STO-FAILED');
    expect(await sequences(crashCopy(path))).toEqual(Array.from({ length: last }, (_, n) => n + 1));
    // And it goes on.
    journal.messageDone('c', 1);
    expect(await publish(journal, last + 1)).toBe(0);
    await journal.close();
    expect((await sequences(path)).slice(-1)).toEqual([last + 1]);
  });
}

test('when the database was moved away and another file stands in its place, that one is kept under another name', async () => {
  const { journal, path } = await filled();
  renameSync(path, `${path}.moved`);
  writeFileSync(path, 'something else');
  const last = await publishUntilTaken(journal, 4);
  expect(await sequences(crashCopy(path))).toHaveLength(last);
  const other = readdirSync(dirname(path)).find((name) => name.startsWith('t.db.other-'));
  expect(readFileSync(`${dirname(path)}/${other}`, 'utf8')).toBe('something else');
});

test('when it is deleted while nothing happens, a stop puts it back', async () => {
  const { journal, path } = await filled();
  rmSync(dirname(path), { recursive: true });
  await journal.close();
  expect(await sequences(path)).toEqual([1, 2, 3]);
});

test('while it cannot be put back nothing is acknowledged, and nothing is lost when it can', async () => {
  const { journal, path } = await filled();
  rmSync(dirname(path), { recursive: true });
  // A file where the folder was.
  writeFileSync(dirname(path), '');
  for (const n of [4, 5]) expect(await publish(journal, n)).toBe(0x97);
  expect(journal.accepting).toBe(false);
  rmSync(dirname(path));
  mkdirSync(dirname(path));
  const last = await publishUntilTaken(journal, 6);
  expect(await sequences(crashCopy(path))).toEqual(Array.from({ length: last }, (_, n) => n + 1));
});
