// Whether the files of a store are still where they were opened. A database that was deleted under a running gateway
// still takes commits, which nobody would ever find again: they are not confirmed before the database is back in its
// place. Called by the writer thread (worker.ts) after every batch and now and then. Sources:
// https://www.sqlite.org/lang_vacuum.html, unlink(2).
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Database } from './driver.ts';
import { FILE_MODE, makeFolder, setAside } from './open.ts';

/** Tells one file from another, null where there is none. */
function identity(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

export class Place {
  private readonly path: string;
  private readonly database: string | null;
  private readonly log: string | null;

  /** To be made when the database is open and has been written once: its log is there then. */
  constructor(file: string) {
    this.path = resolve(file);
    this.database = identity(this.path);
    this.log = identity(`${this.path}-wal`);
  }

  /** True when the database or its write-ahead log was deleted or replaced. Two system calls. */
  get lost(): boolean {
    return identity(this.path) !== this.database || identity(`${this.path}-wal`) !== this.log;
  }

  /**
   * Puts everything that is committed where it belongs; the connection must not be used afterwards. What somebody else
   * has put there is set aside. Throws when that cannot be done: the connection then still has everything. O(size of
   * the database).
   */
  restore(db: Database, now: number): void {
    const { path } = this;
    if (identity(path) === this.database) {
      // Only the log is missing.
      db.prepare('PRAGMA wal_checkpoint(TRUNCATE)', true).all([]);
      sync(path);
      return;
    }
    const anew = `${path}.anew`;
    makeFolder(dirname(path));
    rmSync(anew, { force: true });
    db.prepare('VACUUM INTO ?', false).run([anew]);
    chmodSync(anew, FILE_MODE);
    sync(anew);
    if (existsSync(path)) setAside(path, now, 'other');
    rmSync(`${path}-wal`, { force: true });
    renameSync(anew, path);
    sync(dirname(path));
  }
}

function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
