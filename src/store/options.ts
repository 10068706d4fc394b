// What a durable journal is built from. Filled in by gateway/gateway.ts from the persistence block of the
// configuration. Read by sqlite.ts, commit.ts and link.ts; holds no default: the schema of the configuration has them.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Database } from './driver.ts';

export interface SqliteOptions {
  /** The database file; its folder is made when it is absent. */
  readonly path: string;
  /**
   * ack: barriers wait for the commit; interval and off: they do not, and commits come every intervalMs (off: every
   * second).
   */
  readonly sync: 'ack' | 'interval' | 'off';
  readonly intervalMs: number;
  /** Bytes of the database at which QoS > 0 messages for durable sessions are refused; 0 = no limit. */
  readonly maxSize: number;
  /** start: a damaged file is set aside and an empty one begins; stop: load() throws. */
  readonly onCorrupt: 'start' | 'stop';
  /** Little memory: smaller caches. */
  readonly small?: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The writer's code, when it is not beside this file. */
  readonly worker?: URL;
  readonly driver?: Database['driver'];
}
