// Messages that are acknowledged before they had to be written are never written.
import { afterEach, expect, test } from 'vitest';
import { Hold } from '../../src/mqtt/message.ts';
import type { Journal, QueuedState } from '../../src/store/store.ts';
import { message, queued, session, settled, storePath, type TestJournal, testJournal } from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

async function started(): Promise<TestJournal> {
  const made = testJournal(storePath());
  open.push(made.journal);
  await made.journal.load();
  made.journal.sessionPut(session('c'));
  expect(await settled(made.journal)).toBe(0);
  return made;
}

function publish(journal: Journal, sequence: number, state: QueuedState): { code: number | null } {
  const hold = new Hold();
  const outcome: { code: number | null } = { code: null };
  journal.messageQueued('c', queued(sequence, message('t'), state));
  journal.barrier(hold);
  hold.whenDone((code) => {
    outcome.code = code;
  });
  return outcome;
}

const batches = (t: TestJournal): number | undefined => t.metrics.value('tidegate_store_batches_total');

test('a message acknowledged before its batch closes is never written and its publisher released at once', async () => {
  const t = await started();
  const before = batches(t);
  const outcome = publish(t.journal, 1, 'sent');
  expect(outcome.code).toBeNull();
  t.journal.messageDone('c', 1);
  expect(outcome.code).toBe(0);
  expect(t.metrics.value('tidegate_store_elided_total')).toBe(1);
  await t.journal.close();
  expect(batches(t)).toBe(before);
});

test('a publisher is released when every durable receiver has acknowledged, not before', async () => {
  const t = await started();
  t.journal.sessionPut(session('d'));
  expect(await settled(t.journal)).toBe(0);
  const body = message('t');
  const hold = new Hold();
  let code: number | null = null;
  t.journal.messageQueued('c', queued(1, body, 'sent'));
  t.journal.messageQueued('d', queued(1, body, 'sent'));
  t.journal.barrier(hold);
  hold.whenDone((c) => {
    code = c;
  });
  t.journal.messageDone('c', 1);
  expect(code).toBeNull();
  t.journal.messageDone('d', 1);
  expect(code).toBe(0);
});

test('a publisher of a retained message waits for the commit though its receivers have acknowledged', async () => {
  const t = await started();
  const body = message('t', 'x', { retain: true });
  const hold = new Hold();
  t.journal.messageQueued('c', queued(1, body, 'sent'));
  t.journal.retainedPut(body);
  t.journal.barrier(hold);
  t.journal.messageDone('c', 1);
  expect(hold.open).toBe(true);
  expect(await new Promise((resolve) => hold.whenDone(resolve))).toBe(0);
});

test('an offline session delays no publisher to an online one', async () => {
  const t = await started();
  t.journal.sessionPut(session('off'));
  expect(await settled(t.journal)).toBe(0);
  t.journal.messageQueued('off', queued(1, message('t')));
  const waiting = new Hold();
  t.journal.barrier(waiting);
  const outcome = publish(t.journal, 1, 'sent');
  t.journal.messageDone('c', 1);
  expect(outcome.code).toBe(0);
  expect(waiting.open).toBe(true);
});

test('a session that ends releases whoever waits for it', async () => {
  const t = await started();
  const outcome = publish(t.journal, 1, 'sent');
  t.journal.sessionDelete('c');
  expect(outcome.code).toBe(0);
});

test('a message that nobody acknowledges is written and its publisher released', async () => {
  const t = await started();
  const hold = new Hold();
  t.journal.messageQueued('c', queued(1, message('t'), 'sent'));
  t.journal.barrier(hold);
  expect(await new Promise((resolve) => hold.whenDone(resolve))).toBe(0);
  expect(t.metrics.value('tidegate_store_elided_total')).toBe(0);
});

test('a barrier over everything waits for what earlier barriers cover, and takes nothing from the next one', async () => {
  const t = await started();
  const outcome = publish(t.journal, 1, 'sent');
  t.journal.messageQueued('c', queued(2, message('t'), 'sent'));
  const all = new Hold();
  t.journal.barrierAll(all);
  const next = new Hold();
  t.journal.barrier(next);
  expect([all.open, next.open]).toEqual([true, true]);
  expect(await new Promise((resolve) => all.whenDone(resolve))).toBe(0);
  expect(outcome.code).toBe(0);
  expect(next.open).toBe(false);
});

test('close() while the store opens ends the opening', async () => {
  const { journal } = testJournal(storePath());
  const loading = journal.load();
  await journal.close();
  await expect(loading).rejects.toMatchObject({ code: 'GW-STATE' });
});

test('sync = interval releases at once', async () => {
  const t = testJournal(storePath(), { sync: 'interval' });
  open.push(t.journal);
  await t.journal.load();
  t.journal.sessionPut(session('c'));
  expect(publish(t.journal, 1, 'queued').code).toBe(0);
});
