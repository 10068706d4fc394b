// The thread of the archive: owns its file, writes what it is given and answers questions, one after the other, and
// deletes what is too old or too much in between. Run by thread.ts with ThreadOptions; speaks protocol.ts. An error of
// SQLite is told to whoever asked; the thread goes on.
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from '../store/driver.ts';
import { ArchiveRefused, Bounds, openArchive } from './file.ts';
import { Past } from './past.ts';
import type { FromThread, Questions, ThreadOptions, ToThread, Written } from './protocol.ts';
import { Recordings } from './recordings.ts';

const PRUNE_MS = 5000;
const SWEEP_MS = 3_600_000;

class Thread {
  private readonly db: Database;
  private readonly bounds: Bounds;
  private readonly recordings: Recordings;
  private readonly past: Past;

  constructor(db: Database, options: ThreadOptions) {
    this.db = db;
    this.bounds = new Bounds(db, options);
    this.recordings = new Recordings(db);
    this.past = new Past(db);
    setInterval(() => this.prune(), PRUNE_MS);
    setInterval(() => this.quietly(() => this.sweep()), SWEEP_MS);
  }

  receive(message: ToThread): FromThread | null {
    if (message.kind === 'limits') {
      this.bounds.limits = message.limits;
      return null;
    }
    const { id } = message;
    try {
      const answer = message.kind === 'write' ? this.write(message.written) : this.answer(message.name, message.asked);
      return { kind: 'done', id, answer };
    } catch (error) {
      return { kind: 'failed', id, text: (error as Error).message };
    }
  }

  private write(written: Written): null {
    this.db.exec('BEGIN IMMEDIATE');
    try {
      if (written.what === 'messages') this.recordings.write(written.batch);
      else if (written.what === 'figures') this.past.writeFigures(written.rows);
      else this.past.writeEvents(written.rows);
      this.db.exec('COMMIT');
    } catch (error) {
      this.recordings.forget();
      this.quietly(() => this.db.exec('ROLLBACK'));
      throw error;
    }
    return null;
  }

  private answer(name: keyof Questions, asked: unknown): unknown {
    const { recordings, past, bounds } = this;
    const answers: { [N in keyof Questions]: (asked: Questions[N]['asked']) => Questions[N]['answer'] } = {
      messages: (query) => recordings.messages(query),
      topics: ({ filter, search, limit }) => recordings.topics(filter, search, limit),
      series: (query) => recordings.series(query),
      figures: ({ names, from, to, stepMs }) => past.figures(names, from, to, stepMs),
      events: (query) => past.events(query),
      sizes: () => recordings.sizes(bounds.bytes()),
    };
    return (answers[name] as (asked: unknown) => unknown)(asked);
  }

  private prune(): void {
    this.quietly(() => {
      // More in a moment, so that questions are not kept waiting.
      if (this.bounds.prune(Date.now())) setTimeout(() => this.prune(), 50);
    });
  }

  private sweep(): void {
    this.bounds.sweepTopics();
    this.recordings.forget();
  }

  /** For work that comes again: what fails now (a full disk) is tried the next time, and shows in writes. */
  private quietly(work: () => void): void {
    try {
      work();
    } catch {
      // As above.
    }
  }
}

function run(): void {
  const port = parentPort;
  if (port === null) return;
  const send = (message: FromThread): void => port.postMessage(message);
  const options = workerData as ThreadOptions;
  try {
    const { db, note } = openArchive(options.path, options.small);
    const thread = new Thread(db, options);
    port.on('message', (message: ToThread) => {
      const answer = thread.receive(message);
      if (answer !== null) send(answer);
    });
    send({ kind: 'opened', note });
  } catch (error) {
    if (!(error instanceof ArchiveRefused)) throw error;
    send({ kind: 'refused', text: error.message });
  }
}

run();
