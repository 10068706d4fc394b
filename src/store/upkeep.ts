// What the writer thread does besides writing: measures the files, copies the write-ahead log into the database while
// it is idle, gives free pages back slowly (flash wears by writing), and says when there is no room for new messages.
// Called by worker.ts. Sources: https://www.sqlite.org/wal.html, /pragma.html#pragma_incremental_vacuum, proc(5) for
// /proc/.../io.
import { readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as after } from 'node:timers';
import type { Statement } from './driver.ts';
import type { Opened } from './open.ts';
import type { Space, WriterOptions } from './protocol.ts';

/** Idle for so long, and a log of at least a quarter of its limit is copied: the next burst finds it empty. */
const IDLE_MS = 250;
/**
 * Free pages are given back after a longer rest, so many at a time, and only when they are a quarter of the file and
 * this many bytes.
 */
const VACUUM_IDLE_MS = 10_000;
const VACUUM_PAGES = 256;
const VACUUM_BYTES = 4 * 1024 * 1024;
/** How often a full store looks whether there is room again. */
const FULL_POLL_MS = 500;
/**
 * Room on the disk that is left alone: a tenth of the file system, at most 16 MB. Acknowledgements and deletions still
 * need some.
 */
const RESERVE_BYTES = 16 * 1024 * 1024;

/** What the keeper asks of the writer. */
export interface KeeperUser {
  tell(space: Space): void;
  /** False while the store is behind with what its start should have written: it counts as full then. */
  mayTake(): boolean;
  /** Tries to write that. Throws SqliteError. */
  makeUp(): void;
}

export class Keeper {
  private readonly path: string;
  private readonly options: WriterOptions;
  private readonly opened: Opened;
  private readonly user: KeeperUser;
  private readonly pages: Statement;
  private readonly freePages: Statement;
  private readonly checkpoint: Statement;
  private timer: NodeJS.Timeout | null = null;
  private full = false;
  private ioFile: string | null = '/proc/thread-self/io';
  private countedBytes = 0;
  private checkpoints = 0;
  private writtenAtCheckpoint = 0;
  private lastWorkMs = 0;

  constructor(opened: Opened, options: WriterOptions, user: KeeperUser) {
    this.path = resolve(options.path);
    this.options = options;
    this.opened = opened;
    this.user = user;
    this.pages = opened.db.prepare('PRAGMA page_count', true);
    this.freePages = opened.db.prepare('PRAGMA freelist_count', true);
    this.checkpoint = opened.db.prepare('PRAGMA wal_checkpoint(PASSIVE)', true);
    this.writtenAtCheckpoint = this.written();
  }

  /** After a batch of so many bytes. */
  worked(bytes: number): void {
    this.countedBytes += bytes;
    this.lastWorkMs = performance.now();
    if (this.timer === null) this.timer = after(() => this.idle(), IDLE_MS);
  }

  /** After a batch that could not be written. */
  failed(): void {
    // A log that has been copied is used again from its start: that alone may make room on a full disk.
    this.tryCheckpoint();
    this.watch();
  }

  space(): Space {
    const databaseBytes = this.read(this.pages) * this.opened.pageBytes;
    const freeBytes = this.read(this.freePages) * this.opened.pageBytes;
    this.judge(databaseBytes - freeBytes);
    return {
      databaseBytes,
      freeBytes,
      walBytes: this.walBytes(),
      writtenBytes: this.written(),
      checkpoints: this.checkpoints,
      full: this.full,
    };
  }

  /** Before closing: the database alone then holds everything. */
  finish(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.opened.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)', true).all([]);
  }

  private read(statement: Statement): number {
    try {
      return Number(statement.get([])?.[0] ?? 0);
    } catch {
      return 0;
    }
  }

  private walBytes(): number {
    return statSync(`${this.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /**
   * What this thread gave to write calls; on systems that do not count it, twice the bytes of the batches as an
   * estimate.
   */
  private written(): number {
    if (this.ioFile !== null) {
      try {
        return Number(/^wchar: (\d+)/m.exec(readFileSync(this.ioFile, 'utf8'))?.[1] ?? 0);
      } catch {
        this.ioFile = null;
      }
    }
    return this.countedBytes * 2;
  }

  /** Full begins at the limit and ends at 95 % of it (disk: at 1.25 times the reserve), so that it does not flutter. */
  private judge(usedBytes: number): void {
    const limit = this.options.maxSize * (this.full ? 0.95 : 1);
    let full = usedBytes >= limit || !this.user.mayTake();
    try {
      const disk = statfsSync(dirname(this.path));
      const reserve = Math.min(RESERVE_BYTES, (disk.blocks * disk.bsize) / 10) * (this.full ? 1.25 : 1);
      if (disk.bavail * disk.bsize < reserve) full = true;
    } catch {
      // Not every file system tells; then only a failing write does.
    }
    this.full = full;
    if (full) this.watch();
  }

  /** Looks again soon, for nobody else would notice that there is room. */
  private watch(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = after(() => this.idle(), FULL_POLL_MS);
  }

  private tryCheckpoint(): void {
    try {
      this.checkpoint.all([]);
      this.checkpoints++;
      this.writtenAtCheckpoint = this.written();
    } catch {
      // A full disk: the log stays as it is, and is valid.
    }
  }

  private tryMakeUp(): void {
    try {
      this.user.makeUp();
    } catch {
      // Still no room.
    }
  }

  private idle(): void {
    this.timer = null;
    const restMs = performance.now() - this.lastWorkMs;
    if (this.full) {
      this.tryCheckpoint();
      this.tryMakeUp();
      this.user.tell(this.space());
      return;
    }
    if (restMs < IDLE_MS) {
      this.timer = after(() => this.idle(), IDLE_MS);
      return;
    }
    if (this.written() - this.writtenAtCheckpoint >= this.options.checkpointBytes / 4) {
      this.tryCheckpoint();
      this.user.tell(this.space());
    }
    this.vacuum(restMs);
  }

  private vacuum(restMs: number): void {
    const free = this.read(this.freePages) * this.opened.pageBytes;
    const size = this.read(this.pages) * this.opened.pageBytes;
    if (free < VACUUM_BYTES || free * 4 < size) return;
    if (restMs >= VACUUM_IDLE_MS) {
      try {
        this.opened.db.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
      } catch {
        return;
      }
    }
    // Comes back until the file is tight again; a batch in between makes it wait anew.
    this.timer = after(() => this.idle(), restMs >= VACUUM_IDLE_MS ? IDLE_MS : VACUUM_IDLE_MS);
  }
}
