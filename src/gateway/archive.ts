// The wiring of what is kept of the past: recorded messages, figures, what happened. Loaded by ondemand.ts where there
// is something to record or a console to show it. Opens no file where none is configured: then the last hour and the
// last thousand events are kept in memory.
import type { Happenings } from '../archive/happenings.ts';
import { Recorder } from '../archive/recorder.ts';
import { Replay, type ReplayRequest, type ReplayView } from '../archive/replay.ts';
import { Sampler, type Source } from '../archive/sampler.ts';
import { ArchiveThread } from '../archive/thread.ts';
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Engine } from '../broker/broker.ts';
import type { Config, RecordConfig } from '../config/config.ts';
import type { PastControl } from '../console/console.ts';
import { archivePath } from './options.ts';

/** Replays that run at once, and that are listed. */
const MOST_RUNNING = 4;
const MOST_LISTED = 20;

export interface PastParts {
  readonly broker: Engine;
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly happenings: Happenings;
  readonly small: boolean;
}

export class Past {
  private readonly parts: PastParts;
  private readonly thread: ArchiveThread | null;
  private config: RecordConfig;
  private recorder: Recorder | null = null;
  private sampler: Sampler | null = null;
  private readonly replays: Replay[] = [];
  private lastReplay = 0;
  private readonly endings: (() => void)[] = [];

  constructor(config: Config, parts: PastParts) {
    const { record } = config;
    this.parts = parts;
    this.config = record;
    const { clock, log, small } = parts;
    const { keepMs, maxSize: maxBytes } = record;
    const path = archivePath(config);
    this.thread = path === '' ? null : new ArchiveThread({ path, keepMs, maxBytes, small }, clock, log);
  }

  start(): void {
    const { broker, happenings } = this.parts;
    this.thread?.start();
    happenings.start(this.thread);
    this.endings.push(happenings.follow(broker));
    this.apply(this.config);
  }

  /** What is recorded from now on; the path takes a restart. */
  apply(config: RecordConfig): void {
    this.config = config;
    const { keepMs, maxSize: maxBytes } = config;
    const { thread: archive } = this;
    if (archive === null) return;
    archive.limit({ keepMs, maxBytes });
    if (config.topics.length > 0) this.recorder ??= new Recorder({ ...this.parts, archive });
    this.recorder?.record(config.topics);
  }

  /** Figures of the console, looked at from now on. */
  sample(source: Source): void {
    this.sampler = new Sampler(this.parts.clock, source);
    this.sampler.start(this.thread);
  }

  async stop(deadlineMs: number): Promise<void> {
    for (const end of this.endings.splice(0)) end();
    for (const replay of this.replays) replay.stop();
    await this.recorder?.stop(deadlineMs / 2);
    await this.sampler?.stop();
    await this.parts.happenings.stop();
    await this.thread?.stop(deadlineMs / 4);
  }

  /** For REST and console. */
  control(): PastControl {
    const { thread, parts } = this;
    const find = parts.happenings.find.bind(parts.happenings);
    return {
      figures: async (names, from, to, stepMs) =>
        (await this.sampler?.find(names, from, to, stepMs)) ?? { times: [], values: {} },
      events: find,
      recording:
        thread === null
          ? null
          : {
              status: async () => {
                const { topics, keepMs, maxSize } = this.config;
                const sizes = await thread.ask('sizes', null).catch(() => null);
                const missed = this.recorder?.missedMessages ?? 0;
                return { topics, keepMs, maxSize, missed, problem: thread.problem, sizes };
              },
              messages: (query) => thread.ask('messages', query),
              topics: (filter, search, limit) => thread.ask('topics', { filter, search, limit }),
              series: (query) => thread.ask('series', query),
              replays: () => this.replays.map((replay) => replay.view()),
              replay: (request, username) => this.replay(thread, request, username),
              stopReplay: (id) => this.stopReplay(id),
            },
    };
  }

  private replay(archive: ArchiveThread, request: ReplayRequest, username: string): ReplayView | null {
    if (this.replays.filter(({ running }) => running).length >= MOST_RUNNING) return null;
    const { broker, clock } = this.parts;
    const replay = new Replay(++this.lastReplay, request, username, { archive, broker, clock });
    this.replays.push(replay);
    const over = this.replays.findIndex(({ running }) => !running);
    if (this.replays.length > MOST_LISTED && over >= 0) this.replays.splice(over, 1);
    void replay.run();
    return replay.view();
  }

  private stopReplay(id: number): boolean {
    const found = this.replays.find((replay) => replay.view().id === id);
    found?.stop();
    return found !== undefined;
  }
}
