// What stands between a pipe and its socket: what a pipe is given to work with, and what it tells. Types alone.
// native.ts is the owner; pipe.ts calls it, for every message and at every change of its state.
import type { Clock } from '../base/clock.ts';
import type { Turn } from '../base/turn.ts';
import type { WordView } from '../base/words.ts';
import type { BlockPool } from '../base/writer.ts';
import type { ProtocolRow } from './pattern.ts';
import type { Pipe } from './pipe.ts';
import type { SpOptions } from './sp.ts';

/** How bytes become messages: a stream with or without the ipc type byte, or a transport that keeps messages whole. */
export type Framing = 'tcp' | 'ipc' | 'message';

/** What a pipe tells its socket. */
export interface PipeOwner {
  /** Whether somebody waits for pipeRoom(). */
  readonly waiting: boolean;
  pipeUp(pipe: Pipe): void;
  /** Once, whatever state the pipe was in. */
  pipeDown(pipe: Pipe, reason: string): void;
  pipeRefused(pipe: Pipe, reason: string, size?: number): void;
  pipeMessage(pipe: Pipe, bytes: Uint8Array, start: number, end: number): void;
  /** `count` messages of `length` bytes, each `stride` bytes behind the one before; false: give them one by one. */
  pipeRun(pipe: Pipe, bytes: Uint8Array, start: number, length: number, stride: number, count: number): boolean;
  /** The pipe dropped `count` messages of its queue. */
  pipeDropped(count: number): void;
  /** There is room again where there was none. */
  pipeRoom(): void;
}

export interface PipeContext {
  readonly row: ProtocolRow;
  readonly options: SpOptions;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly pool: BlockPool;
  readonly owner: PipeOwner;
  /** Asked before memory for an unfinished frame is taken; told with a negative number when it is given back. */
  readonly claim: (bytes: number) => boolean;
  /** Of the bodies that are sent, one after another to each pipe. */
  readonly source: WordView;
  /** Where all pipes are read to: what is there is handled before the next read. */
  readonly place: Buffer;
}
