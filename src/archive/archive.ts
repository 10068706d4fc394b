// SEAM of archive/: what the gateway keeps of the past in a file of its own: recorded messages, figures over time,
// what happened. Implemented by thread.ts, asked by console/. Nothing here is owed to anybody: what cannot be written
// is counted and told, and never holds up a message.
//
// Map (made by `make docs`):
//   file.ts        The archive's file: opens it, sets a damaged one aside, keeps it within its bounds
//   happenings.ts  What happened, as a person wants to read it later: starts, reloads, changes and by whom, bridges
//   number.ts      The number that a payload holds: the payload itself, or one field of its JSON
//   past.ts        Figures over time and events in the archive's file
//   protocol.ts    What the gateway and the archive's thread say to each other
//   recorder.ts    Records what is published on the topics of `record`
//   recordings.ts  Recorded messages in the archive's file: written in batches, found by topic filter and time
//   replay.ts      Publishes recorded messages again, below a prefix, in their own time or faster
//   sampler.ts     Figures of the gateway over time: looks at them every ten seconds
//   thread.ts      The archive as the gateway has it: starts its thread, hands it what is to be written
//   worker.ts      The thread of the archive: owns its file, writes what it is given and answers questions
import type { Questions, Written } from './protocol.ts';

/** Which recorded messages are wanted. Times are wall-clock milliseconds, both included. */
export interface MessageQuery {
  readonly filter: string;
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly newestFirst: boolean;
  /** `next` of the page before; null = the first page. */
  readonly after: string | null;
}

export interface MessageRow {
  readonly time: number;
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly payload: Uint8Array;
  /** JSON: publisher and properties. */
  readonly extra: string;
}

export interface TopicRow {
  readonly topic: string;
  /** Time of its newest message. */
  readonly newest: number;
}

export interface SeriesQuery {
  readonly filter: string;
  /** Path into a JSON payload, "a.b.0"; "" = the payload itself is a number. */
  readonly field: string;
  readonly from: number;
  readonly to: number;
  /** Steps that the time is cut into. */
  readonly points: number;
}

/** The numbers of one step. */
export interface Point {
  readonly time: number;
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly last: number;
}

export interface EventRow {
  readonly id: number;
  readonly time: number;
  readonly kind: string;
  readonly level: string;
  readonly text: string;
  readonly fields: string;
}

export interface Archive {
  /** Resolves when it is in the file; rejects when it is not. */
  write(written: Written, transfer?: ArrayBuffer[]): Promise<void>;
  /** Rejects with a text for people where the file does not answer. */
  ask<N extends keyof Questions>(name: N, asked: Questions[N]['asked']): Promise<Questions[N]['answer']>;
}
