// The writer thread: owns the database file, applies batches one after the other, tidies up while there is nothing to do.
// Run as a thread of link.ts with WriterOptions; speaks protocol.ts. Must never die of an SQLite error: it reports and waits.
// Sources: https://www.sqlite.org/wal.html (checkpoints), /pragma.html (incremental_vacuum).
import { parentPort, workerData } from 'node:worker_threads';
import { Applier } from './apply.ts';
import { SQLITE_CORRUPT, SQLITE_NOTADB, SqliteError } from './driver.ts';
import { OpenError, type Opened, openStore } from './open.ts';
import { Place } from './place.ts';
import type { FromWriter, ToWriter, WriterOptions } from './protocol.ts';
import { readPacks, sweep } from './restore.ts';
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
      if (this.options.load) {
        sweep(opened.db, this.options.now);
        for (const pack of readPacks(opened.db)) this.send({ kind: 'pack', pack }, [pack.buffer]);
      }
      this.place = new Place(this.options.path);
      setInterval(() => this.look(), LOOK_MS).unref();
      this.applier = new Applier(opened.db);
      this.keeper = new Keeper(opened, this.options, (space) => this.send({ kind: 'space', space }));
      this.send({ kind: 'opened', driver: opened.db.driver });
      this.send({ kind: 'space', space: this.keeper.space() });
      if (this.options.load) this.send({ kind: 'loaded' });
    } catch (error) {
      const damaged = error instanceof OpenError ? error.damaged : false;
      // Damage that quick_check does not see shows when the rows are read.
      const found = error instanceof SqliteError && (error.code === SQLITE_CORRUPT || error.code === SQLITE_NOTADB);
      this.send({ kind: 'refused', text: (error as Error).message, damaged: damaged || found });
    }
  }

  handle(message: ToWriter): void {
    switch (message.kind) {
      case 'batch':
        this.batch(message.serial, message.buffer, message.bytes);
        return;
      case 'resume':
        this.state = 'running';
        return;
      case 'close':
        this.close();
        return;
    }
  }

  private batch(serial: number, buffer: ArrayBuffer, bytes: number): void {
    if (this.applier === null || this.keeper === null || this.state === 'failed') {
      this.send({ kind: 'failed', serial, code: 0, text: 'an earlier batch failed' });
      return;
    }
    try {
      const start = performance.now();
      const commitMs = this.applier.apply(buffer, bytes);
      const applyMs = performance.now() - start - commitMs;
      this.putBack();
      this.keeper.worked(bytes);
      this.send({ kind: 'done', serial, buffer, applyMs, commitMs, space: this.keeper.space() }, [buffer]);
    } catch (error) {
      // Another writer begins on the files as they are now.
      if (this.ended) throw error;
      this.state = 'failed';
      const code = error instanceof SqliteError ? error.code : 0;
      this.keeper.failed();
      this.send({ kind: 'failed', serial, code, text: (error as Error).message });
    }
  }

  /** Nothing is confirmed that stands in files nobody will find. Throws when they cannot be put back; else this thread ends. */
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

if (parentPort !== null) {
  const port = parentPort;
  const writer = new Writer(workerData as WriterOptions, (message, transfer) => port.postMessage(message, transfer));
  port.on('message', (message: ToWriter) => writer.handle(message));
  writer.start();
}
