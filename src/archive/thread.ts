// The archive as the gateway has it: starts its thread, hands it what is to be written, passes answers on, and starts
// it again when it has ended. Built by gateway/archive.ts. Never throws at whoever writes: promises reject.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Archive } from './archive.ts';
import type { ArchiveLimits, FromThread, Questions, ThreadOptions, ToThread, Written } from './protocol.ts';

const AGAIN_MS = 10_000;
const WARN_MS = 60_000;
/** Questions that wait for their answers; more are refused. */
const MOST_ASKED = 32;
const SMALL_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

interface Waiting {
  readonly isQuestion: boolean;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

function spawn(options: ThreadOptions): Worker {
  const source = import.meta.url.endsWith('.ts');
  const url = new URL(source ? './worker.ts' : './archive-worker.js', import.meta.url);
  const common = {
    workerData: options,
    ...(options.small ? { resourceLimits: SMALL_LIMITS } : {}),
    name: 'tidegate-archive',
    execArgv: ['--disable-warning=ExperimentalWarning'],
  };
  if (!source) return new Worker(url, common);
  // A thread does not inherit the loader for TypeScript: it registers its own first.
  const loader = createRequire(import.meta.url)
    .resolve('tsx/esm/api')
    .replace(/\.cjs$/, '.mjs');
  const load = (module: string): string => `import(${JSON.stringify(module)})`;
  const code = `${load(pathToFileURL(loader).href)}.then((tsx) => { tsx.register(); return ${load(url.href)}; });`;
  return new Worker(code, { ...common, eval: true });
}

export class ArchiveThread implements Archive {
  /** Why nothing is written now; null = all is well. */
  problem: string | null = null;
  private options: ThreadOptions;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly warn: Log;
  private worker: Worker | null = null;
  private again: Timer | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private asked = 0;
  private lastId = 0;
  private stopped = false;

  constructor(options: ThreadOptions, clock: Clock, log: Log) {
    this.options = options;
    this.clock = clock;
    this.log = log;
    this.warn = limitLog(log, () => clock.mono(), WARN_MS);
  }

  start(): void {
    this.spawn();
  }

  limit(limits: ArchiveLimits): void {
    this.options = { ...this.options, ...limits };
    this.post({ kind: 'limits', limits });
  }

  async write(written: Written, transfer: ArrayBuffer[] = []): Promise<void> {
    try {
      await this.send(false, (id) => ({ kind: 'write', id, written }), transfer);
      this.recovered();
    } catch (error) {
      this.failed((error as Error).message);
      throw error;
    }
  }

  ask<N extends keyof Questions>(name: N, asked: Questions[N]['asked']): Promise<Questions[N]['answer']> {
    if (this.asked >= MOST_ASKED) return Promise.reject(new Error('too many questions are waiting'));
    return this.send(true, (id) => ({ kind: 'ask', id, name, asked }), []) as Promise<Questions[N]['answer']>;
  }

  /** What is being written is written first. */
  async stop(deadlineMs: number): Promise<void> {
    this.stopped = true;
    this.again?.cancel();
    const end = new Promise<void>((resolve) => this.clock.after(deadlineMs, resolve));
    const writes = [...this.waiting.values()].length > 0 ? this.drained() : Promise.resolve();
    await Promise.race([writes, end]);
    const { worker } = this;
    this.worker = null;
    await worker?.terminate();
    this.giveUp('the gateway stops');
  }

  // ---- inside

  private drained(): Promise<void> {
    const done = [...this.waiting.values()].map((one) => {
      return new Promise<void>((resolve) => {
        const { resolve: pass, reject } = one;
        one.resolve = (answer) => {
          pass(answer);
          resolve();
        };
        one.reject = (error) => {
          reject(error);
          resolve();
        };
      });
    });
    return Promise.all(done).then(() => {});
  }

  private send(isQuestion: boolean, make: (id: number) => ToThread, transfer: ArrayBuffer[]): Promise<unknown> {
    if (this.worker === null) return Promise.reject(new Error(this.problem ?? 'the archive is not open'));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { isQuestion, resolve, reject });
      if (isQuestion) this.asked++;
      this.post(make(id), transfer);
    });
  }

  private post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.worker?.postMessage(message, transfer);
  }

  private spawn(): void {
    const worker = spawn(this.options);
    this.worker = worker;
    let reason = 'its thread has ended';
    worker.on('message', (message: FromThread) => this.message(message));
    worker.on('error', (error) => {
      reason = (error as Error).message;
    });
    worker.once('exit', () => {
      if (this.worker !== worker) return;
      this.worker = null;
      this.failed(this.problem ?? reason);
      this.giveUp(this.problem ?? reason);
      if (!this.stopped) this.again = this.clock.after(AGAIN_MS, () => this.spawn());
    });
  }

  private message(message: FromThread): void {
    if (message.kind === 'opened') {
      if (message.note !== '') this.log('error', 'ARC-DAMAGED', { file: this.options.path, note: message.note });
      this.recovered();
      return;
    }
    if (message.kind === 'refused') {
      this.failed(message.text);
      void this.worker?.terminate();
      return;
    }
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    this.waiting.delete(message.id);
    if (waiting.isQuestion) this.asked--;
    if (message.kind === 'done') waiting.resolve(message.answer);
    else waiting.reject(new Error(message.text));
  }

  private giveUp(reason: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
    this.asked = 0;
  }

  private failed(text: string): void {
    if (this.stopped) return;
    this.problem = text;
    this.warn('error', 'ARC-FAILED', { file: this.options.path, error: text });
  }

  private recovered(): void {
    if (this.problem === null) return;
    this.problem = null;
    this.log('error', 'ARC-RECOVERED', { file: this.options.path });
  }
}
