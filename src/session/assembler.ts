// A packet that arrives in pieces: its bytes are collected here once, in a buffer that grows with what has really come.
// Used by reader.ts for the packet that a chunk cuts, never for whole ones. A peer that announces much and sends little costs little.
import type { Frame } from '../codec/codec.ts';
import { readFrame } from '../codec/frame.ts';

const FIRST_BYTES = 1024;

export class Assembler {
  /** The packet so far; whole when `complete`. */
  buffer: Buffer = Buffer.alloc(0);
  have = 0;
  /** Bytes of the whole packet, 0 while its header is not complete. */
  private need = 0;

  get active(): boolean {
    return this.have > 0;
  }

  get complete(): boolean {
    return this.need > 0 && this.have === this.need;
  }

  /**
   * Takes bytes of chunk[at, end) until the packet is whole; returns the offset of the first byte not taken.
   * Throws ProtocolError as readFrame does.
   */
  feed(chunk: Buffer, at: number, end: number, frame: Frame, maxBytes: number): number {
    while (this.need === 0) {
      if (at >= end) return at;
      this.room(this.have + 1);
      this.buffer[this.have++] = chunk[at++];
      readFrame(this.buffer, 0, this.have, frame, maxBytes);
      this.need = frame.end;
    }
    const take = Math.min(this.need - this.have, end - at);
    this.room(this.have + take);
    chunk.copy(this.buffer, this.have, at, at + take);
    this.have += take;
    return at + take;
  }

  /** Gives the packet away and forgets it. */
  take(): Buffer {
    const packet = this.buffer.subarray(0, this.have);
    this.clear();
    return packet;
  }

  clear(): void {
    this.buffer = Buffer.alloc(0);
    this.have = 0;
    this.need = 0;
  }

  private room(bytes: number): void {
    if (this.buffer.length >= bytes) return;
    let size = Math.max(FIRST_BYTES, this.buffer.length);
    while (size < bytes) size *= 2;
    const larger = Buffer.allocUnsafeSlow(this.need > 0 ? Math.min(size, this.need) : size);
    this.buffer.copy(larger, 0, 0, this.have);
    this.buffer = larger;
  }
}
