// Messages that wait for one slow pipe, as wire frames in blocks: first in, first out, the oldest can be dropped.
// Called by pipe.ts only while a peer does not take what the writer holds; a peer that reads never sees it.
// It bounds nothing itself: the pipe decides by `bytes`. Blocks come from the pool and go back.
import { type BlockPool, copyBytes, type Writer } from '../base/writer.ts';
import { readLength, TCP_HEADER_BYTES } from '../codec/sp.ts';

/** The pool's largest size. */
const BLOCK_SIZE = 2;

export class FrameQueue {
  /** Bytes of the frames inside, headers included. */
  bytes = 0;
  frames = 0;
  /** The block being filled, valid after reserve(); write a frame at `at`, then call commit(). */
  block: Buffer | null = null;
  at = 0;
  private readonly pool: BlockPool;
  /** Bytes before the length in each header: 1 for ipc. */
  private readonly prefixBytes: number;
  private readonly blocks: Buffer[] = [];
  /** How far each block is filled; frames never span blocks. */
  private readonly ends: number[] = [];
  /** Index of the oldest block: the array is cut when half of it is read. */
  private first = 0;
  private headAt = 0;

  /** @param prefixBytes bytes before the length in each frame header */
  constructor(pool: BlockPool, prefixBytes: number) {
    this.pool = pool;
    this.prefixBytes = prefixBytes;
  }

  /** Makes room for a frame of `bytes` in a row at block[at]. */
  reserve(bytes: number): void {
    if (this.block !== null && this.block.length - this.at >= bytes) return;
    const pooled = this.pool.take(BLOCK_SIZE);
    if (bytes > pooled.length) this.pool.give(pooled);
    this.block = bytes > pooled.length ? Buffer.allocUnsafeSlow(bytes) : pooled;
    this.at = 0;
    this.blocks.push(this.block);
    this.ends.push(0);
  }

  commit(bytes: number): void {
    this.at += bytes;
    this.ends[this.ends.length - 1] = this.at;
    this.bytes += bytes;
    this.frames++;
  }

  /** Bytes of the oldest frame with its header, 0 when there is none. */
  headBytes(): number {
    if (this.frames === 0) return 0;
    const block = this.blocks[this.first];
    return this.prefixBytes + TCP_HEADER_BYTES + readLength(block, this.headAt + this.prefixBytes);
  }

  /** Forgets the oldest frame. */
  dropHead(): void {
    this.skip(this.headBytes(), 1);
  }

  /**
   * Moves whole frames to the writer until it holds `limit` bytes (an empty one takes a frame of any size); returns how
   * many.
   */
  moveTo(writer: Writer, limit: number): number {
    let moved = 0;
    while (this.frames > 0 && (writer.queuedBytes === 0 || writer.queuedBytes < limit)) {
      const block = this.blocks[this.first];
      const blockEnd = this.ends[this.first];
      const room = limit - writer.queuedBytes;
      let bytes = 0;
      let count = 0;
      let at = this.headAt;
      while (at < blockEnd && (count === 0 || bytes < room)) {
        at += this.prefixBytes + TCP_HEADER_BYTES + readLength(block, at + this.prefixBytes);
        bytes = at - this.headAt;
        count++;
      }
      writer.append(block, this.headAt, at);
      moved += count;
      this.skip(bytes, count);
    }
    return moved;
  }

  /** Takes the oldest frame's body out as a copy. */
  takeBody(): Buffer {
    const bytes = this.headBytes();
    const from = this.headAt + this.prefixBytes + TCP_HEADER_BYTES;
    const body = Buffer.allocUnsafe(this.headAt + bytes - from);
    copyBytes(this.blocks[this.first], from, body, 0, body.length);
    this.skip(bytes, 1);
    return body;
  }

  clear(): void {
    for (let i = this.first; i < this.blocks.length; i++) this.pool.give(this.blocks[i]);
    this.blocks.length = 0;
    this.ends.length = 0;
    this.first = 0;
    this.headAt = 0;
    this.block = null;
    this.at = 0;
    this.bytes = 0;
    this.frames = 0;
  }

  private skip(bytes: number, count: number): void {
    this.headAt += bytes;
    this.bytes -= bytes;
    this.frames -= count;
    if (this.frames === 0) {
      this.clear();
      return;
    }
    if (this.headAt < this.ends[this.first]) return;
    this.pool.give(this.blocks[this.first]);
    this.headAt = 0;
    this.first++;
    if (this.first >= 64 && this.first * 2 >= this.blocks.length) {
      this.blocks.splice(0, this.first);
      this.ends.splice(0, this.first);
      this.first = 0;
    }
  }
}
