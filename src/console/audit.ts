// Who did what through the HTTP API: a log line each, and the last of them for the console. Made by http.ts; app.ts
// tells it each write, session.ts each login. Never what a body held: bodies have passwords and payloads in them.
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Json } from './console.ts';

/** Of each kind: a script that publishes through the API does not push out who changed the configuration. */
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

/** setup: what admins change; use: messages, clients, switches, logins. */
export type AuditKind = 'setup' | 'use';

export class Audit {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly entries: Record<AuditKind, AuditEntry[]> = { setup: [], use: [] };

  constructor(clock: Clock, log: Log) {
    this.clock = clock;
    this.log = log;
  }

  note(kind: AuditKind, user: string, remote: string, method: string, path: string, status: number): void {
    const entry = this.keep(kind, user, remote, method, path, status);
    // What was changed is in the log at its usual level; attempts and use only in a more talkative one.
    const level = kind === 'setup' && status < 400 ? 'warn' : 'info';
    this.log(level, 'WEB-CHANGE', { user, remote, method, path: entry.path, status });
  }

  /** A login; the log has a line of its own. */
  loggedIn(user: string, remote: string): void {
    this.keep('use', user, remote, 'POST', '/api/v4/login', 200);
    this.log('info', 'WEB-LOGIN', { user, remote });
  }

  /** Newest first. */
  recent(): Json[] {
    const { setup, use } = this.entries;
    const all = [...setup, ...use].sort((a, b) => b.time - a.time);
    return all.map((entry) => ({ ...entry }));
  }

  /** Keeps an entry that has its line in the log already. */
  keep(kind: AuditKind, user: string, remote: string, method: string, path: string, status: number) {
    const entry = { time: this.clock.now(), user, remote, method, path: path.slice(0, PATH_CHARACTERS), status };
    const list = this.entries[kind];
    list.push(entry);
    if (list.length > KEPT) list.shift();
    return entry;
  }
}
