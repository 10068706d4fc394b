// What the main thread (link.ts) and the writer thread (worker.ts) say to each other.
// Frames and packs are transferred, never copied.
import type { OpenOptions } from './open.ts';
import type { Pack } from './restore.ts';
import type { Moment, Noted } from './time.ts';

/** The writer's workerData. */
export interface WriterOptions extends OpenOptions {
  readonly now: Moment;
  /** Bytes of the database at which no new messages are taken. */
  readonly maxSize: number;
  /** Whether rows are to be read at start; not when a writer takes the place of one that died. */
  readonly load: boolean;
}

export type ToWriter =
  | { readonly kind: 'batch'; readonly serial: number; readonly buffer: ArrayBuffer; readonly bytes: number }
  /** After a failed batch: the next one is a new beginning. Batches before this are refused. */
  | { readonly kind: 'resume' }
  /** The gateway is running at this moment. */
  | { readonly kind: 'note'; readonly note: Noted }
  | { readonly kind: 'close'; readonly note: Noted };

/** State of the files after a batch. */
export interface Space {
  readonly databaseBytes: number;
  readonly freeBytes: number;
  readonly walBytes: number;
  /** Bytes this thread has written to disk so far. */
  readonly writtenBytes: number;
  readonly checkpoints: number;
  /** max_size is reached or the disk is nearly full: only what frees room or is small may come. */
  readonly full: boolean;
}

export type FromWriter =
  | { readonly kind: 'opened'; readonly driver: string }
  | { readonly kind: 'refused'; readonly text: string; readonly damaged: boolean; readonly full: boolean }
  | { readonly kind: 'pack'; readonly pack: Pack }
  | { readonly kind: 'loaded'; readonly steadyMs: number }
  /** Opened and read, and nothing can be written yet: what the start would have written is made up for first. */
  | { readonly kind: 'unwritten'; readonly text: string }
  | {
      readonly kind: 'done';
      readonly serial: number;
      readonly buffer: ArrayBuffer;
      readonly applyMs: number;
      readonly commitMs: number;
      readonly space: Space;
    }
  | { readonly kind: 'failed'; readonly serial: number; readonly code: number; readonly text: string }
  | { readonly kind: 'space'; readonly space: Space }
  | { readonly kind: 'closed' };
