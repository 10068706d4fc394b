// What REST, console and `ctl store` are told of the store.
import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import type { PersistenceConfig } from '../../src/config/config.ts';
import { storeView } from '../../src/gateway/storeview.ts';
import { SQLITE_IOERR } from '../../src/store/driver.ts';
import type { Journal } from '../../src/store/store.ts';
import { faultyWriter, message, settled, storePath, testJournal } from '../harness/journal.ts';

const open: Journal[] = [];
afterEach(async () => {
  for (const journal of open.splice(0)) await journal.close();
});

const SOURCE = { file: '', line: 0, column: 0 };

function config(path: string): PersistenceConfig {
  const settings = { sync: 'ack', intervalMs: 100, maxSize: 1 << 20, onCorrupt: 'start' } as const;
  return { ...settings, enable: true, path, origin: 'persistence', source: SOURCE };
}

test('the store tells sizes, the time of a batch and of its wait for the disk, and what was spared', async () => {
  const path = storePath();
  const { journal, metrics } = testJournal(path);
  open.push(journal);
  await journal.load();
  expect(storeView(metrics, config(path))).toMatchObject({ state: 'ok', batch_p50_ms: null, fsync_p99_ms: null });
  journal.retainedPut(message('r', Buffer.alloc(10_000)));
  expect(await settled(journal)).toBe(0);
  const view = storeView(metrics, config(path));
  expect(view).toMatchObject({ enable: true, state: 'ok', path, sync: 'ack', max_bytes: 1 << 20, failed_batches: 0 });
  for (const name of ['database_bytes', 'wal_bytes', 'written_bytes', 'batches', 'batch_p50_ms', 'batch_p99_ms'])
    expect(view[name], name).toBeGreaterThan(0);
  for (const name of ['fsync_p50_ms', 'fsync_p99_ms', 'free', 'elided']) expect(view[name], name).toBeTypeOf('number');
  expect(view.bytes).toBe(Number(view.database_bytes) + Number(view.wal_bytes));
});

test('a store that cannot write says failing, not full', async () => {
  const path = storePath();
  const { journal, metrics } = testJournal(path, { worker: await faultyWriter() });
  open.push(journal);
  await journal.load();
  writeFileSync(`${path}.fail`, `${SQLITE_IOERR}`);
  journal.retainedPut(message('r'));
  expect(await settled(journal)).toBe(0x97);
  expect(storeView(metrics, config(path))).toMatchObject({ state: 'failing', failed_batches: 1 });
  rmSync(`${path}.fail`);
});
