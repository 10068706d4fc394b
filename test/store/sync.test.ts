// sync = interval and off: nobody waits, what is lost in a crash is bounded, an orderly stop loses nothing, and a disk that fails still counts.
import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { SQLITE_FULL } from '../../src/store/driver.ts';
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

async function start(path: string, options = {}): Promise<Journal> {
  const { journal } = testJournal(path, options);
  open.push(journal);
  await journal.load();
  return journal;
}

async function count(path: string): Promise<number> {
  const { journal } = testJournal(path);
  open.push(journal);
  return (await journal.load()).sessions[0]?.queue.length ?? 0;
}

describe.each(['interval', 'off'] as const)('sync = %s', (sync) => {
  test('acknowledges at once, and an orderly stop writes everything', async () => {
    const path = storePath();
    const journal = await start(path, { sync, intervalMs: 60_000 });
    journal.sessionPut(session('c'));
    for (let n = 1; n <= 500; n++) {
      journal.messageQueued('c', queued(n, message('t', `${n}`)));
      expect(await settled(journal)).toBe(0);
    }
    await journal.close();
    expect(await count(path)).toBe(500);
  });

  test('writes by itself after its time, so that a crash loses no more than that', async () => {
    const path = storePath();
    const journal = await start(path, { sync, intervalMs: 20 });
    journal.sessionPut(session('c'));
    journal.messageQueued('c', queued(1, message('t')));
    while ((await count(crashCopy(path))) === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  test('takes nothing new while the disk fails, and forgets nothing that it took', async () => {
    const path = storePath();
    const journal = await start(path, { sync, intervalMs: 20, worker: await faultyWriter() });
    journal.sessionPut(session('c'));
    writeFileSync(`${path}.fail`, `${SQLITE_FULL}`);
    journal.messageQueued('c', queued(1, message('t')));
    while (journal.accepting) await new Promise((resolve) => setTimeout(resolve, 5));
    rmSync(`${path}.fail`);
    while (!journal.accepting) await new Promise((resolve) => setTimeout(resolve, 5));
    await journal.close();
    expect(await count(path)).toBe(1);
  });
});
