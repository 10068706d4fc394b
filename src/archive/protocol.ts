// What the gateway and the archive's thread say to each other. Read by archive.ts and worker.ts.
import type { EventRow, MessageQuery, MessageRow, Point, SeriesQuery, TopicRow } from './archive.ts';

/** Recorded messages, one entry of each array for each. */
export interface RecordBatch {
  /** Wall-clock milliseconds. */
  readonly times: Float64Array;
  readonly topics: readonly string[];
  /** Bits 0 and 1: QoS, bit 2: RETAIN. */
  readonly flags: Uint8Array;
  /** Where each payload ends in `payloads`; it begins where the one before ends. */
  readonly ends: Uint32Array;
  readonly payloads: Uint8Array;
  /** The rest of the message as JSON: publisher and MQTT 5 properties. */
  readonly extras: readonly string[];
}

export interface ArchiveLimits {
  /** Recorded messages older than this are deleted, 0 = none. */
  readonly keepMs: number;
  /** Bytes of the file, 0 = no limit; recorded messages are deleted, oldest first. */
  readonly maxBytes: number;
}

export interface ThreadOptions extends ArchiveLimits {
  readonly path: string;
  readonly small: boolean;
}

/** Questions by name: what is asked, and what is answered. */
export interface Questions {
  messages: { asked: MessageQuery; answer: { rows: MessageRow[]; next: string | null } };
  topics: { asked: { filter: string; search: string; limit: number }; answer: { rows: TopicRow[]; more: boolean } };
  series: { asked: SeriesQuery; answer: { topic: string; points: Point[]; cut: boolean }[] };
  figures: { asked: { names: readonly string[]; from: number; to: number; stepMs: number }; answer: Figures };
  events: { asked: EventQuery; answer: { rows: EventRow[]; next: number | null } };
  sizes: { asked: null; answer: Sizes };
}

export interface EventQuery {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly string[];
  readonly search: string;
  readonly limit: number;
  /** Only events before the one with this number; 0 = from the newest on. */
  readonly before: number;
}

/** Means of each step; null = nothing is known of it. */
export interface Figures {
  readonly times: number[];
  readonly values: Record<string, (number | null)[]>;
}

export interface Sizes {
  readonly bytes: number;
  readonly messages: number;
  readonly topics: number;
  /** Wall-clock milliseconds; null where there is none. */
  readonly oldest: number | null;
  readonly newest: number | null;
}

/** One look at all figures. `level`: seconds of its step. */
export interface FigureRow {
  readonly level: number;
  readonly time: number;
  readonly values: Readonly<Record<string, number>>;
}

export interface NewEvent {
  readonly time: number;
  readonly kind: string;
  readonly level: string;
  readonly text: string;
  /** JSON. */
  readonly fields: string;
}

export type Written =
  | { readonly what: 'messages'; readonly batch: RecordBatch }
  | { readonly what: 'figures'; readonly rows: readonly FigureRow[] }
  | { readonly what: 'events'; readonly rows: readonly NewEvent[] };

export type ToThread =
  | { readonly kind: 'write'; readonly id: number; readonly written: Written }
  | { readonly kind: 'ask'; readonly id: number; readonly name: keyof Questions; readonly asked: unknown }
  | { readonly kind: 'limits'; readonly limits: ArchiveLimits };

export type FromThread =
  | { readonly kind: 'opened'; readonly note: string }
  | { readonly kind: 'refused'; readonly text: string }
  /** Of a write or a question. */
  | { readonly kind: 'done'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly text: string };
