// The main thread's end of the writer thread: starts it, hands it frames, passes on what it answers, notices its death.
// Called by commit.ts only. Keeps no events; it does own the memory of frames that come back for reuse.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { SqliteOptions } from './options.ts';
import type { FromWriter, ToWriter, WriterOptions } from './protocol.ts';

/** Frames kept for reuse; larger ones go to the garbage collector. */
const KEPT_FRAMES = 4;
const KEPT_BYTES = 1024 * 1024;
/** Bytes of the write-ahead log that a commit copies into the database; small stores keep it smaller. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
const LEAST_CHECKPOINT_BYTES = 256 * 1024;
/** Heap of the thread on a small machine: batches and packs lie outside. */
const SMALL_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

export interface LinkEvents {
  onMessage(message: FromWriter): void;
  /** The thread ended without being asked to. */
  onDeath(reason: string): void;
}

/**
 * Where the writer's code is: bundled beside this file, or its source while this file is source (development, tests).
 */
export function writerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);
}

function spawn(url: URL, options: WriterOptions): Worker {
  const common = {
    workerData: options,
    ...(options.small ? { resourceLimits: SMALL_LIMITS } : {}),
    name: 'tidegate-store',
    // node:sqlite announces itself as experimental; that line is of no use to an operator.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  };
  if (!url.pathname.endsWith('.ts')) return new Worker(url, common);
  // A thread does not inherit the loader for TypeScript: it registers its own first.
  const loader = createRequire(import.meta.url)
    .resolve('tsx/esm/api')
    .replace(/\.cjs$/, '.mjs');
  const load = (module: string): string => `import(${JSON.stringify(module)})`;
  const code = `${load(pathToFileURL(loader).href)}.then((tsx) => { tsx.register(); return ${load(url.href)}; });`;
  return new Worker(code, { ...common, eval: true });
}

export class Link {
  private readonly events: LinkEvents;
  private readonly worker: Worker;
  private readonly frames: ArrayBuffer[] = [];
  private readonly ended: Promise<void>;
  private expected = false;

  constructor(url: URL, options: WriterOptions, events: LinkEvents) {
    this.events = events;
    this.worker = spawn(url, options);
    this.worker.on('message', (message: FromWriter) => this.message(message));
    let reason = 'it ended';
    this.worker.on('error', (error) => {
      reason = (error as Error).message;
    });
    this.ended = new Promise((resolve) => {
      this.worker.once('exit', () => {
        if (!this.expected) this.events.onDeath(reason);
        resolve();
      });
    });
  }

  /** Memory for the next frame, or null for new memory. */
  frame(): ArrayBuffer | null {
    return this.frames.pop() ?? null;
  }

  post(message: ToWriter): void {
    if (message.kind === 'batch') this.worker.postMessage(message, [message.buffer]);
    else this.worker.postMessage(message);
  }

  /** Ends the thread, which releases the file even where the driver's close() does not. */
  async stop(): Promise<void> {
    this.expected = true;
    await this.worker.terminate();
    await this.ended;
  }

  private message(message: FromWriter): void {
    if (message.kind === 'done' && message.buffer.byteLength <= KEPT_BYTES && this.frames.length < KEPT_FRAMES) {
      this.frames.push(message.buffer);
    }
    this.events.onMessage(message);
  }
}

/** Starts the writer thread of a store. @param load whether it sends everything there is before it takes batches */
export function openLink(options: SqliteOptions, load: boolean, events: LinkEvents): Link {
  const { path, sync, clock, driver, small = false } = options;
  const maxSize = options.maxSize === 0 ? Number.MAX_SAFE_INTEGER : options.maxSize;
  const checkpointBytes = Math.max(LEAST_CHECKPOINT_BYTES, Math.min(CHECKPOINT_BYTES, Math.floor(maxSize / 4)));
  const synchronous = sync === 'off' ? 'normal' : 'full';
  const now = { wallMs: clock.now(), boot: clock.boot() };
  const writer = { path, maxSize, synchronous, checkpointBytes, now, load, driver, small } as const;
  return new Link(options.worker ?? writerUrl(), writer, events);
}
