// What the store on disk is doing, for REST and the console: its size, room on the disk, whether it takes messages.
// Given to console/ by console.ts; called when somebody looks. Reads the store's own metrics; never touches its files.
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Metrics } from '../base/metrics.ts';
import type { PersistenceConfig } from '../config/config.ts';
import type { Json, JsonObject } from '../console/console.ts';

/** Bytes that are free on the disk of a file, null where that cannot be told. */
function freeBytes(file: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize;
  } catch {
    return null;
  }
}

/**
 * Milliseconds that half and 99 of 100 observations of a histogram of seconds did not exceed; null before the first
 * one.
 */
function times(metrics: Metrics, name: string): { p50: Json; p99: Json } {
  const histogram = metrics.histogramOf(`tidegate_store_${name}_seconds`);
  if (histogram === undefined || histogram.count === 0) return { p50: null, p99: null };
  const most = histogram.bounds[histogram.bounds.length - 1];
  // What is above the last bound is told as that.
  const ms = (q: number): number => Math.min(histogram.quantile(q), most) * 1000;
  return { p50: ms(0.5), p99: ms(0.99) };
}

export function storeView(metrics: Metrics, config: PersistenceConfig): JsonObject {
  if (!config.enable) return { enable: false };
  const figure = (name: string): Json => metrics.value(`tidegate_store_${name}`) ?? null;
  const database = metrics.value('tidegate_store_database_bytes') ?? 0;
  const wal = metrics.value('tidegate_store_wal_bytes') ?? 0;
  const batch = times(metrics, 'batch');
  const commit = times(metrics, 'commit');
  return {
    enable: true,
    state: figure('failing') === 1 ? 'failing' : figure('ok') === 0 ? 'full' : 'ok',
    path: config.path,
    sync: config.sync,
    bytes: database + wal,
    database_bytes: database,
    unused_bytes: figure('free_bytes'),
    wal_bytes: wal,
    max_bytes: config.maxSize,
    free: freeBytes(config.path),
    pending_bytes: figure('pending_bytes'),
    written_bytes: figure('written_bytes_total'),
    batches: figure('batches_total'),
    failed_batches: figure('failed_batches_total'),
    events: figure('events_total'),
    elided: figure('elided_total'),
    batch_p50_ms: batch.p50,
    batch_p99_ms: batch.p99,
    fsync_p50_ms: commit.p50,
    fsync_p99_ms: commit.p99,
  };
}
