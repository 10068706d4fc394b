// The writer thread: owns the database file, applies batches one after the other, tidies up while there is nothing to
// do. Run as a thread of link.ts with WriterOptions; speaks protocol.ts. Must never die of an SQLite error: it reports
// and waits. Sources: https://www.sqlite.org/wal.html (checkpoints), /pragma.html (incremental_vacuum).
import { resolve } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { Applier } from './apply.ts';
import { type Database, SQLITE_FULL, SQLITE_IOERR, SqliteError } from './driver.ts';
import { readNote, writeNote } from './note.ts';
import { OpenError, type Opened, openStore, refusal } from './open.ts';
import { Place } from './place.ts';
import type { FromWriter, ToWriter, WriterOptions } from './protocol.ts';
import { readPacks, sweep } from './restore.ts';
import { migrate } from './schema.ts';
import { type Noted, resumedMs } from './time.ts';
import { Keeper } from './upkeep.ts';

/** How often an idle writer looks whether its files are still there. */
const LOOK_MS = 2000;

class Writer {
  private readonly options: WriterOptions;
  private readonly send: (message: FromWriter, transfer?: ArrayBuffer[]) => void;
  private opened: Opened | null = null;
  private applier: Applier | null = null;
  private keeper: Keeper | null = null;
  private place: Place | null = null;
  /** What the start could not write yet. */
  private preparation: (() => void) | null = null;
  /** failed: batches are refused until the main thread has put its events in order again. */
  private state: 'running' | 'failed' = 'running';
  /** The connection is not to be used any more. */
  private ended = false;

  constructor(options: WriterOptions, send: (message: FromWriter, transfer?: ArrayBuffer[]) => void) {
    this.options = options;
    this.send = send;
  }

  start(): void {
    try {
      const opened = openStore(this.options);
      this.opened = opened;
      const steadyMs = this.read(opened);
      if (this.preparation === null) this.place = new Place(this.options.path);
      setInterval(() => this.look(), LOOK_MS).unref();
      this.keeper = new Keeper(opened, this.options, {
        tell: (space) => this.send({ kind: 'space', space }),
        mayTake: () => this.preparation === null,
        makeUp: () => this.makeUp(),
      });
      this.send({ kind: 'opened', driver: opened.db.driver });
      this.send({ kind: 'space', space: this.keeper.space() });
      if (this.options.load) this.send({ kind: 'loaded', steadyMs });
    } catch (error) {
      // Damage that quick_check does not see shows when the rows are read.
      const { message, damaged, full } = refusal(resolve(this.options.path), error);
      this.send({ kind: 'refused', text: message, damaged, full });
    }
  }

  /**
   * Brings the tables up to date and sends what is in them, in one transaction: on a disk without room it is read all
   * the same, taken back, and made up for as soon as something can be written. Gives the steady time now.
   */
  private read(opened: Opened): number {
    const { db, version } = opened;
    const { load, now } = this.options;
    // Until the commit everything stays in memory, so that there is something to read on a full disk.
    db.exec('PRAGMA cache_spill = OFF');
    db.exec('BEGIN IMMEDIATE');
    const steadyMs = resumedMs(readNote(db, version), now);
    this.preparation = () => {
      migrate(db, version, now.wallMs);
      if (load) sweep(db, steadyMs);
      writeNote(db, { ...now, steadyMs });
    };
    this.preparation();
    if (load) for (const pack of readPacks(db)) this.send({ kind: 'pack', pack }, [pack.buffer]);
    try {
      db.exec('COMMIT');
      this.preparation = null;
    } catch (error) {
      rollBack(db);
      const code = error instanceof SqliteError ? error.code : 0;
      if (code !== SQLITE_FULL && code !== SQLITE_IOERR) throw error;
      if (version === 0) throw new OpenError(`${this.options.path} cannot be created: no room`, error, false, true);
      this.send({ kind: 'unwritten', text: (error as Error).message });
    }
    db.exec('PRAGMA cache_spill = ON');
    return steadyMs;
  }

  /** Writes what the start could not. Throws SqliteError while that is still so. */
  private makeUp(): void {
    const { preparation, opened } = this;
    if (preparation === null || opened === null) return;
    opened.db.exec('BEGIN IMMEDIATE');
    try {
      preparation();
      opened.db.exec('COMMIT');
    } catch (error) {
      rollBack(opened.db);
      throw error;
    }
    this.preparation = null;
    this.place = new Place(this.options.path);
  }

  handle(message: ToWriter): void {
    switch (message.kind) {
      case 'batch':
        this.batch(message.serial, message.buffer, message.bytes);
        return;
      case 'note':
        this.note(message.note);
        return;
      case 'resume':
        this.state = 'running';
        return;
      case 'close':
        this.note(message.note);
        this.close();
        return;
    }
  }

  private batch(serial: number, buffer: ArrayBuffer, bytes: number): void {
    const { opened, keeper } = this;
    if (opened === null || keeper === null || this.state === 'failed') {
      this.send({ kind: 'failed', serial, code: 0, text: 'an earlier batch failed' });
      return;
    }
    try {
      this.makeUp();
      this.applier ??= new Applier(opened.db);
      const start = performance.now();
      const commitMs = this.applier.apply(buffer, bytes);
      const applyMs = performance.now() - start - commitMs;
      this.putBack();
      keeper.worked(bytes);
      this.send({ kind: 'done', serial, buffer, applyMs, commitMs, space: keeper.space() }, [buffer]);
    } catch (error) {
      // Another writer begins on the files as they are now.
      if (this.ended) throw error;
      this.state = 'failed';
      const code = error instanceof SqliteError ? error.code : 0;
      keeper.failed();
      this.send({ kind: 'failed', serial, code, text: (error as Error).message });
    }
  }

  /** A note that cannot be written is out of date, no more. */
  private note(note: Noted): void {
    const { opened } = this;
    if (opened === null || this.state === 'failed' || this.preparation !== null || this.ended) return;
    try {
      writeNote(opened.db, note);
    } catch {
      // The next batch says what is wrong.
    }
  }

  /**
   * Nothing is confirmed that stands in files nobody will find. Throws when they cannot be put back; else this thread
   * ends.
   */
  private putBack(): void {
    const { place, opened } = this;
    if (place === null || opened === null || !place.lost) return;
    place.restore(opened.db, Date.now());
    this.ended = true;
    throw new Error('the files of the store were removed while they were in use; they have been written anew');
  }

  private look(): void {
    if (this.state === 'failed') return;
    try {
      this.putBack();
    } catch (error) {
      if (this.ended) throw error;
      // The next batch finds out again, and fails.
    }
  }

  private close(): void {
    try {
      this.putBack();
    } catch {
      // Put back, or not to be had: there is nothing more to do.
    }
    try {
      if (!this.ended) this.keeper?.finish();
      this.opened?.db.close();
    } catch {
      // What is committed is safe in the write-ahead log; the next start reads it from there.
    }
    this.send({ kind: 'closed' });
    parentPort?.close();
  }
}

/** SQLite may have taken it back already. */
function rollBack(db: Database): void {
  try {
    db.exec('ROLLBACK');
  } catch {
    // There is nothing to take back.
  }
}

if (parentPort !== null) {
  const port = parentPort;
  const writer = new Writer(workerData as WriterOptions, (message, transfer) => port.postMessage(message, transfer));
  port.on('message', (message: ToWriter) => writer.handle(message));
  writer.start();
}
