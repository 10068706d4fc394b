// What the store on disk is doing, for REST and the console: its size, room on the disk, whether it takes messages.
// Called by gateway.ts when somebody looks. Reads the store's own metrics; never touches its files.
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Metrics } from './base/metrics.ts';
import type { PersistenceConfig } from './config/config.ts';
import type { Json, JsonObject } from './console/console.ts';

/** Bytes that are free on the disk of a file, null where that cannot be told. */
function freeBytes(file: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize;
  } catch {
    return null;
  }
}

export function storeView(metrics: Metrics, config: PersistenceConfig): JsonObject {
  if (!config.enable) return { enable: false };
  const figure = (name: string): Json => metrics.value(`tidegate_store_${name}`) ?? null;
  const database = metrics.value('tidegate_store_database_bytes') ?? 0;
  const wal = metrics.value('tidegate_store_wal_bytes') ?? 0;
  return {
    enable: true,
    state: metrics.value('tidegate_store_ok') === 0 ? 'full' : 'ok',
    path: config.path,
    sync: config.sync,
    bytes: database + wal,
    max_bytes: config.maxSize,
    free: freeBytes(config.path),
    pending_bytes: figure('pending_bytes'),
    written_bytes: figure('written_bytes_total'),
  };
}
