// The figures of a durable store, declared once in the registry of base/metrics.ts: shown in /metrics, REST, console
// and `ctl store`. Called by commit.ts. Only numbers: no paths, no client ids.
import type { Cell, Histogram, Metrics } from '../base/metrics.ts';
import type { Space } from './protocol.ts';

/** Seconds: a commit on a good SSD takes 0.3 ms, on a worn SD card 200 ms and more. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const EVENTS = [1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

const NO_SPACE: Space = { databaseBytes: 0, freeBytes: 0, walBytes: 0, writtenBytes: 0, checkpoints: 0, full: false };

export class StoreStats {
  space: Space = NO_SPACE;
  /** Events told, and messages that never had to be written. */
  told = 0;
  elided = 0;
  /** 1 while the store takes new messages. */
  readonly ok: Cell;
  readonly failed: Cell;
  readonly damaged: Cell;
  private readonly batches: Cell;
  private readonly frameBytes: Cell;
  private readonly batchEvents: Histogram;
  private readonly batchSeconds: Histogram;
  private readonly applySeconds: Histogram;
  private readonly commitSeconds: Histogram;

  constructor(metrics: Metrics, underway: () => number, pendingBytes: () => number, failing: () => boolean) {
    const gauge = (name: string, text: string, unit: 'bytes' | 'items', read: () => number): void =>
      metrics.read({ name: `tidegate_store_${name}`, text, type: 'gauge', unit }, read);
    const total = (name: string, text: string, unit: 'bytes' | 'items' | 'messages', read: () => number): void =>
      metrics.read({ name: `tidegate_store_${name}_total`, text, type: 'counter', unit }, read);
    const counter = (name: string, text: string): Cell =>
      metrics.cell({ name: `tidegate_store_${name}_total`, text, type: 'counter', unit: 'items' });
    const seconds = (name: string, text: string): Histogram =>
      metrics.histogram({ name: `tidegate_store_${name}_seconds`, text, type: 'histogram', unit: 'seconds' }, SECONDS);

    gauge('database_bytes', 'Size of the database file.', 'bytes', () => this.space.databaseBytes);
    gauge('free_bytes', 'Free pages inside the database file.', 'bytes', () => this.space.freeBytes);
    gauge('wal_bytes', 'Size of the write-ahead log.', 'bytes', () => this.space.walBytes);
    gauge('pending_bytes', 'Messages told to the store and not yet committed.', 'bytes', pendingBytes);
    gauge('batches_underway', 'Batches the writer thread has not confirmed yet.', 'items', underway);
    total(
      'written_bytes',
      'Bytes the store has written to disk, checkpoints included.',
      'bytes',
      () => this.space.writtenBytes,
    );
    total(
      'checkpoints',
      'Copies of the write-ahead log into the database made while idle.',
      'items',
      () => this.space.checkpoints,
    );
    total('events', 'Changes told to the store.', 'items', () => this.told);
    total('elided', 'Messages acknowledged before they had to be written.', 'messages', () => this.elided);
    this.batches = counter('batches', 'Batches sent to the writer thread.');
    this.failed = counter('failed_batches', 'Batches that could not be written (they are tried again).');
    this.damaged = counter('damaged', 'Damaged database files that were set aside.');
    this.frameBytes = metrics.cell({
      name: 'tidegate_store_batch_bytes_total',
      text: 'Bytes of all batches.',
      type: 'counter',
      unit: 'bytes',
    });
    this.ok = metrics.cell({
      name: 'tidegate_store_ok',
      text: '1 while the store takes new messages, 0 while it is full or cannot write.',
      type: 'gauge',
      unit: 'none',
    });
    metrics.read(
      { name: 'tidegate_store_failing', text: '1 while nothing can be written.', type: 'gauge', unit: 'none' },
      () => (failing() ? 1 : 0),
    );
    this.batchEvents = metrics.histogram(
      { name: 'tidegate_store_batch_events', text: 'Events in a batch.', type: 'histogram', unit: 'items' },
      EVENTS,
    );
    this.batchSeconds = seconds('batch', 'From sending a batch to its confirmation.');
    this.applySeconds = seconds('apply', 'Writing the rows of a batch.');
    this.commitSeconds = seconds('commit', 'Commit of a batch: the wait for the disk.');
  }

  get usedBytes(): number {
    return this.space.databaseBytes - this.space.freeBytes;
  }

  batch(events: number, bytes: number): void {
    this.batches.value++;
    this.frameBytes.value += bytes;
    this.batchEvents.observe(events);
  }

  committed(applyMs: number, commitMs: number): void {
    this.applySeconds.observe(applyMs / 1000);
    this.commitSeconds.observe(commitMs / 1000);
  }

  latency(batchMs: number): void {
    this.batchSeconds.observe(batchMs / 1000);
  }
}
