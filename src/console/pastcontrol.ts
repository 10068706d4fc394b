// What is kept of the past as REST and console ask for it: figures, events, recorded messages and their replay. Types
// alone, for console.ts; gateway/archive.ts does the work.
import type { EventRow, MessageQuery, MessageRow, Point, SeriesQuery, TopicRow } from '../archive/archive.ts';

/** What is kept of the past. Promises reject with a text for people where its file does not answer. */
export interface PastControl {
  /** Means over steps of at least `stepMs`, of figures by name; times are wall-clock milliseconds. */
  figures(
    names: readonly string[],
    from: number,
    to: number,
    stepMs: number,
  ): Promise<{
    readonly times: readonly number[];
    readonly values: Readonly<Record<string, readonly (number | null)[]>>;
  }>;
  /** Newest first. `before`: only those before the one of this number, 0 = all. */
  events(query: {
    readonly from: number;
    readonly to: number;
    readonly kinds: readonly string[];
    readonly search: string;
    readonly limit: number;
    readonly before: number;
  }): Promise<{ readonly rows: readonly EventRow[]; readonly next: number | null }>;
  /** null: there is no file to record to. */
  readonly recording: RecordingControl | null;
}

export interface RecordingControl {
  status(): Promise<{
    readonly topics: readonly string[];
    readonly keepMs: number;
    readonly maxSize: number;
    /** Messages that should have been recorded and were not, since the start. */
    readonly missed: number;
    /** Why nothing can be written now. */
    readonly problem: string | null;
    /** null where the file does not answer. */
    readonly sizes: {
      readonly bytes: number;
      readonly messages: number;
      readonly topics: number;
      readonly oldest: number | null;
      readonly newest: number | null;
    } | null;
  }>;
  messages(query: MessageQuery): Promise<{ readonly rows: readonly MessageRow[]; readonly next: string | null }>;
  topics(
    filter: string,
    search: string,
    limit: number,
  ): Promise<{ readonly rows: readonly TopicRow[]; readonly more: boolean }>;
  series(
    query: SeriesQuery,
  ): Promise<readonly { readonly topic: string; readonly points: readonly Point[]; readonly cut: boolean }[]>;
  replays(): readonly ReplayView[];
  /** null: too many are running. */
  replay(request: ReplayRequest, username: string): ReplayView | null;
  /** Whether there was one. */
  stopReplay(id: number): boolean;
}

/** Recorded messages that are published again. */
export interface ReplayRequest {
  readonly filter: string;
  readonly from: number;
  readonly to: number;
  readonly prefix: string;
  /** 1 = as recorded, 0 = without waiting. */
  readonly speed: number;
  readonly retain: boolean;
}
export interface ReplayView extends ReplayRequest {
  readonly id: number;
  readonly state: 'running' | 'finished' | 'stopped' | 'failed';
  readonly published: number;
  readonly refused: number;
  readonly position: number | null;
  readonly error: string | null;
}
