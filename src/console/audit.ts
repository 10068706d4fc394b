// Who changed what through the HTTP API: a log line each, and the last of them for the console. Called by app.ts after each write.
// Never what a body held: bodies have passwords and payloads in them.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Json } from './console.ts';

const KEPT = 500;
/** Characters of a path that are kept. */
const PATH_CHARACTERS = 300;

export interface AuditEntry {
  /** Wall-clock milliseconds. */
  readonly time: number;
  readonly user: string;
  readonly remote: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

export class Audit {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly entries: AuditEntry[] = [];

  constructor(clock: Clock, log: Log) {
    this.clock = clock;
    this.log = log;
  }

  note(user: string, remote: string, method: string, path: string, status: number): void {
    const entry = { time: this.clock.now(), user, remote, method, path: path.slice(0, PATH_CHARACTERS), status };
    this.entries.push(entry);
    if (this.entries.length > KEPT) this.entries.shift();
    this.log('info', 'WEB-CHANGE', { user, remote, method, path: entry.path, status });
  }

  /** Newest first. */
  recent(): Json[] {
    return this.entries.map((entry) => ({ ...entry })).reverse();
  }
}
