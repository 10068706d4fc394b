// A durable journal for tests: its file in a folder of its own, its writer bundled once a process, what it logs kept as a list.
// crashCopy() is what a crash leaves: the files as they are at this moment, without the first journal having closed them.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build, buildSync, type PluginBuild } from 'esbuild';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { MsgId } from '../../src/base/messages.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Hold, Message, type Origin } from '../../src/mqtt/message.ts';
import type { Qos } from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import type { SqliteOptions } from '../../src/store/options.ts';
import { sqliteJournal } from '../../src/store/sqlite.ts';
import type { Journal, QueuedState, StoredMessage, StoredSession, StoredSubscription } from '../../src/store/store.ts';
import type { FakeClock } from './clock.ts';

let bundled: URL | null = null;

const BUNDLE = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  logLevel: 'silent',
  write: false,
} as const satisfies BuildOptions;

const WRITER = resolve(import.meta.dirname, '../../src/store/worker.ts');

/** Writes a bundle inside the project, so that it finds libsql, under a name of its content: it is there once however often it is made. */
function kept(name: string, result: { outputFiles: { text: string }[] }): string {
  const { text } = result.outputFiles[0];
  const folder = resolve(import.meta.dirname, '../../node_modules/.cache/tidegate');
  const file = join(folder, `${name}-${createHash('sha256').update(text).digest('hex').slice(0, 16)}.mjs`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, text);
  renameSync(`${file}.${process.pid}`, file);
  return file;
}

/** The writer as one JavaScript file: threads start ten times faster than through a TypeScript loader. */
export function writerBundle(): URL {
  bundled ??= pathToFileURL(kept('writer', buildSync({ ...BUNDLE, external: ['libsql'], entryPoints: [WRITER] })));
  return bundled;
}

/** A writer whose commits fail on demand (failingdriver.ts). */
export async function faultyWriter(): Promise<URL> {
  const driver = {
    name: 'failing-driver',
    setup: (b: PluginBuild): void => {
      b.onResolve({ filter: /\/driver\.ts$/ }, (args) =>
        args.importer.endsWith('failingdriver.ts')
          ? undefined
          : { path: resolve(import.meta.dirname, 'failingdriver.ts') },
      );
    },
  };
  return pathToFileURL(
    kept('faulty', await build({ ...BUNDLE, external: ['libsql'], entryPoints: [WRITER], plugins: [driver] })),
  );
}

/** A program of test/harness as one JavaScript file, for child processes. */
export function programBundle(name: string): string {
  const entry = resolve(import.meta.dirname, `${name}.ts`);
  return kept(name, buildSync({ ...BUNDLE, external: ['libsql'], entryPoints: [entry] }));
}

/** A new folder with a path for a database in it. */
export function storePath(): string {
  return join(mkdtempSync(join(tmpdir(), 'tidegate-store-')), 'data', 't.db');
}

export interface TestJournal {
  readonly journal: Journal;
  readonly metrics: Metrics;
  readonly path: string;
  /** Ids of the lines logged. */
  readonly logged: MsgId[];
}

export function testJournal(path: string, options: Partial<SqliteOptions> = {}): TestJournal {
  const metrics = new Metrics();
  const logged: MsgId[] = [];
  const journal = sqliteJournal({
    path,
    sync: 'ack',
    intervalMs: 20,
    maxSize: 2 ** 30,
    onCorrupt: 'start',
    clock: systemClock,
    log: (_level, id) => logged.push(id),
    metrics,
    worker: writerBundle(),
    ...options,
  });
  return { journal, metrics, path, logged };
}

/** What a store's writer notes comes from `time`; what it waits for passes by itself. */
export function storeClock(time: FakeClock): Clock {
  return { ...systemClock, now: () => time.now(), steady: () => time.steady(), boot: () => time.boot() };
}

/** Copies the files as a crash would leave them; gives the path of the copy. */
export function crashCopy(path: string): string {
  const copy = storePath();
  mkdirSync(resolve(copy, '..'), { recursive: true });
  for (const suffix of ['', '-wal', '-shm']) if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix);
  return copy;
}

/** The reason code a barrier is released with. */
export function settled(journal: Journal): Promise<number> {
  const hold = new Hold();
  journal.barrier(hold);
  return new Promise((resolve) => hold.whenDone(resolve));
}

export const ORIGIN: Origin = { kind: 'client', clientId: 'publisher', username: 'user', bridge: null };

export function message(
  topic: string,
  payload: string | Uint8Array = 'x',
  more: { qos?: Qos; retain?: boolean; properties?: Properties; expiresAt?: number; origin?: Origin } = {},
): Message {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  return new Message(
    topic,
    bytes,
    more.qos ?? 1,
    more.retain ?? false,
    more.properties ?? null,
    more.expiresAt ?? 0,
    more.origin ?? ORIGIN,
  );
}

export function session(clientId: string, more: Partial<StoredSession> = {}): StoredSession {
  return {
    clientId,
    username: null,
    expiresAt: 0,
    expiryInterval: 3600,
    version: 5,
    arrival: null,
    validUntil: 0,
    ...more,
  };
}

export function subscription(topicFilter: string, more: Partial<StoredSubscription> = {}): StoredSubscription {
  return {
    topicFilter,
    qos: 1,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0,
    subscriptionIdentifier: 0,
    ...more,
  };
}

export function queued(
  sequence: number,
  body: Message,
  state: QueuedState = 'queued',
  more: Partial<StoredMessage> = {},
): StoredMessage {
  return {
    sequence,
    message: body,
    qos: 1,
    retain: false,
    subscriptionIdentifiers: [],
    share: null,
    state,
    packetId: state === 'queued' ? 0 : sequence,
    ...more,
  };
}
