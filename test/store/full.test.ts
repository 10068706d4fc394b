// A disk that is full or fails: what is refused, what waits, how it ends.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Hold } from '../../src/mqtt/message.ts';
import { SQLITE_FULL, SQLITE_IOERR } from '../../src/store/driver.ts';
import type { Journal } from '../../src/store/store.ts';
import {
  crashCopy,
  faultyWriter,
  message,
  queued,
  session,
  settled,
  storePath,
  testJournal,
} from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

async function start(path: string, options = {}): Promise<ReturnType<typeof testJournal>> {
  const made = testJournal(path, options);
  open.push(made.journal);
  await made.journal.load();
  return made;
}

/** Resolves when the store accepts messages (or no longer does). */
async function until(journal: Journal, accepting: boolean): Promise<void> {
  while (journal.accepting !== accepting) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Queues message `sequence` for session c; the code its publisher gets. */
function publish(journal: Journal, sequence: number, bytes = 100): Promise<number> {
  journal.messageQueued('c', queued(sequence, message('t', Buffer.alloc(bytes, sequence))));
  return settled(journal);
}

async function sequences(path: string): Promise<number[]> {
  const { journal } = testJournal(path);
  open.push(journal);
  return (await journal.load()).sessions[0].queue.map((m) => m.sequence);
}

describe('a store that cannot write', () => {
  let worker: URL;
  beforeAll(async () => {
    worker = await faultyWriter();
  });

  for (const [name, code] of Object.entries({ 'a full disk': SQLITE_FULL, 'an I/O error': SQLITE_IOERR })) {
    test(`refuses with 0x97 during ${name}, loses nothing, and goes on by itself`, async () => {
      const path = storePath();
      const { journal, logged } = await start(path, { worker });
      journal.sessionPut(session('c'));
      for (const n of [1, 2, 3]) expect(await publish(journal, n)).toBe(0);
      writeFileSync(`${path}.fail`, `${code}`);
      expect(await publish(journal, 4)).toBe(0x97);
      expect(journal.accepting).toBe(false);
      expect(logged).toContain('STO-FAILED');
      expect(await publish(journal, 5)).toBe(0x97);
      // Told meanwhile and never promised: kept in memory.
      journal.messageDone('c', 1);
      journal.messageState('c', 2, 'sent', 77);
      journal.messageState('c', 4, 'sent', 78);
      journal.messageDone('c', 5);
      for (let n = 0; n < 5000; n++) journal.sessionPut(session('c', { expiresAt: n }));
      rmSync(`${path}.fail`);
      await until(journal, true);
      expect(await publish(journal, 6)).toBe(0);
      const second = testJournal(crashCopy(path));
      open.push(second.journal);
      const [found] = (await second.journal.load()).sessions;
      expect(found.queue.map((m) => [m.sequence, m.state, m.packetId])).toEqual([
        [2, 'sent', 77],
        [3, 'queued', 0],
        [4, 'sent', 78],
        [6, 'queued', 0],
      ]);
      expect(found.session.expiresAt).toBe(4999);
    });
  }

  test('refuses with 0x97 when the writer thread dies, starts another, and loses nothing', async () => {
    const path = storePath();
    const { journal, logged } = await start(path, { worker });
    journal.sessionPut(session('c'));
    for (const n of [1, 2]) expect(await publish(journal, n)).toBe(0);
    writeFileSync(`${path}.fail`, 'die');
    expect(await publish(journal, 3)).toBe(0x97);
    expect(logged).toContain('STO-FAILED');
    journal.messageDone('c', 1);
    rmSync(`${path}.fail`);
    await until(journal, true);
    expect(await publish(journal, 4)).toBe(0);
    expect(await sequences(crashCopy(path))).toEqual([2, 3, 4]);
  });

  test('tries once more at close, and writes what it can', async () => {
    const path = storePath();
    const { journal } = await start(path, { worker });
    journal.sessionPut(session('c'));
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    expect(await publish(journal, 1)).toBe(0x97);
    rmSync(`${path}.fail`);
    await journal.close();
    expect(await sequences(path)).toEqual([1]);
  });

  test('says so when it has to stop without writing', async () => {
    const path = storePath();
    const { journal, logged } = await start(path, { worker });
    journal.sessionPut(session('c'));
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    expect(await publish(journal, 1)).toBe(0x97);
    await journal.close();
    expect(logged).toContain('STO-LOST');
  });

  test('releases a publisher whose receivers have acknowledged though its batch then fails', async () => {
    const path = storePath();
    const { journal } = await start(path, { worker });
    journal.sessionPut(session('c'));
    expect(await settled(journal)).toBe(0);
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    const hold = new Hold();
    journal.messageQueued('c', queued(1, message('t'), 'sent'));
    journal.barrier(hold);
    journal.messageDone('c', 1);
    expect(await new Promise((resolve) => hold.whenDone(resolve))).toBe(0);
  });
});

describe('a start on a full disk', () => {
  let worker: URL;
  beforeAll(async () => {
    worker = await faultyWriter();
  });

  test('gives what is stored, takes nothing, and recovers by itself without losing anything', async () => {
    const before = await start(storePath());
    const expired = message('t', 'old', { expiresAt: 1 });
    before.journal.sessionPut(session('c'));
    before.journal.messageQueued('c', queued(1, message('t', 'kept')));
    before.journal.messageQueued('c', queued(2, expired));
    expect(await settled(before.journal)).toBe(0);
    const path = crashCopy(before.path);
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    const { journal, logged } = testJournal(path, { worker });
    open.push(journal);
    const [found] = (await journal.load()).sessions;
    expect(found.queue.map((m) => m.sequence)).toEqual([1]);
    expect(journal.accepting).toBe(false);
    expect(logged).toContain('STO-FAILED');
    // Its number was free in memory: the row of the expired one must not come between.
    expect(await publish(journal, 2)).toBe(0x97);
    journal.messageDone('c', 1);
    rmSync(`${path}.fail`);
    await until(journal, true);
    expect(await publish(journal, 3)).toBe(0);
    expect(await sequences(crashCopy(path))).toEqual([2, 3]);
  });

  test('recovers by itself when nothing asks for it', async () => {
    const before = await start(storePath());
    before.journal.sessionPut(session('c'));
    expect(await settled(before.journal)).toBe(0);
    const path = crashCopy(before.path);
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    const { journal } = testJournal(path, { worker });
    open.push(journal);
    await journal.load();
    expect(journal.accepting).toBe(false);
    rmSync(`${path}.fail`);
    await until(journal, true);
  });

  test('begins without a file where there never was one, and makes it when there is room', async () => {
    const path = storePath();
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    const { journal, logged } = testJournal(path, { worker });
    open.push(journal);
    expect((await journal.load()).sessions).toEqual([]);
    expect(journal.accepting).toBe(false);
    expect(logged).toEqual(['STO-FAILED']);
    rmSync(`${path}.fail`);
    await until(journal, true);
    journal.sessionPut(session('c'));
    expect(await publish(journal, 1)).toBe(0);
    expect(await sequences(crashCopy(path))).toEqual([1]);
  });
});

describe('max_size', () => {
  test('refuses new messages, still takes acknowledgements, and accepts again when they made room', async () => {
    const path = storePath();
    const { journal, logged } = await start(path, { maxSize: 1024 * 1024 });
    journal.sessionPut(session('c'));
    let n = 0;
    while (journal.accepting) expect(await publish(journal, ++n, 20_000)).toBe(0);
    expect(logged).toContain('STO-FULL');
    expect(statSync(path).size + statSync(`${path}-wal`).size).toBeLessThan(4 * 1024 * 1024);
    expect(await sequences(crashCopy(path))).toHaveLength(n);
    for (let done = 1; done <= n / 2; done++) journal.messageDone('c', done);
    await until(journal, true);
    expect(await publish(journal, ++n, 20_000)).toBe(0);
  });
});

const root = process.geteuid?.() === 0;
const folder = mkdtempSync(join(tmpdir(), 'tidegate-full-'));
const mounted = root && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', folder]).status === 0;
afterAll(() => {
  if (mounted) spawnSync('umount', ['-l', folder]);
});

describe.skipIf(!mounted)('a disk that really is full (skipped where a small tmpfs cannot be mounted)', () => {
  test('refuses before it is full, fails with 0x97 when pressed on, loses nothing and recovers', async () => {
    const path = join(folder, 't.db');
    const { journal } = await start(path);
    journal.sessionPut(session('c'));
    expect(await settled(journal)).toBe(0);
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(join(folder, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - 1024 * 1024)));
    const kept: number[] = [];
    let n = 0;
    while (journal.accepting) {
      if ((await publish(journal, ++n, 20_000)) === 0) kept.push(n);
    }
    for (let code = 0; code === 0; ) {
      code = await publish(journal, ++n, 20_000);
      if (code === 0) kept.push(n);
    }
    expect(await sequences(crashCopy(path))).toEqual(kept);
    rmSync(join(folder, 'filler'));
    await until(journal, true);
    expect(await publish(journal, ++n)).toBe(0);
    expect(await sequences(crashCopy(path))).toEqual(Array.from({ length: n }, (_, i) => i + 1));
  });
});

test('max_size = 0 is no limit', async () => {
  const { journal } = await start(storePath(), { maxSize: 0 });
  journal.sessionPut(session('c'));
  for (let n = 1; n <= 20; n++) expect(await publish(journal, n, 20_000)).toBe(0);
  expect(journal.accepting).toBe(true);
});
