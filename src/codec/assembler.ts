// A packet that arrives in pieces: its bytes are collected here once, in a buffer that in the end has its size. Used by
// cutter.ts and session/reader.ts for the packet that a chunk cuts, never for whole ones. The rest of a large packet is
// read from the connection to where it belongs. A peer that announces much and sends little costs little: it gets a
// buffer of eight times what it has sent, or twice the largest packet that it has ever sent whole. Memory is claimed
// before it is made; who is refused it gets ProtocolError 0x97.
import { SHARE_BYTES, SharedBytes, type SpareBuffers } from '../base/sharedbytes.ts';
import type { Frame } from './codec.ts';
import { readFrame } from './frame.ts';

const FIRST_BYTES = 1024;
const AHEAD = 8;
/** A shorter rest is read with what comes behind it, and copied: that costs less than a read of its own. */
const REGION_BYTES = 16_384;
const NOTHING = Buffer.alloc(0);

export class Assembler {
  /** Where the next bytes of the packet may be read to, while its rest is large; they are then given to filled(). */
  region: Buffer | null = null;
  /**
   * Whether the connection reads to `region`; to one that does not, a region would be left, and copied, at each chunk.
   */
  direct = false;
  /** Bytes of the packet that came last, 0 when it was not in pieces. */
  lastBytes = 0;
  /** The packet so far; whole when `complete`. */
  private buffer: Buffer = NOTHING;
  private have = 0;
  /** Bytes of the whole packet, 0 while its header is not complete. */
  private need = 0;
  /** Of the largest packet that has come whole. */
  private largest = 0;
  private readonly spare: SpareBuffers;
  private readonly claim: (bytes: number) => void;
  /** Bytes that were claimed for the packet. */
  private claimed = 0;

  /**
   * @param claim told how much more is held, or, with a negative number, less; throws ProtocolError when there is no
   * room
   */
  constructor(spare: SpareBuffers, claim: (bytes: number) => void = () => {}) {
    this.spare = spare;
    this.claim = claim;
  }

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
    if (this.region !== null) this.leaveRegion();
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
    this.aim();
    return at + take;
  }

  /** The first `bytes` of `region` have come. */
  filled(bytes: number): void {
    this.have += bytes;
    this.aim();
  }

  /** Gives the packet away and forgets it; whoever has it says when it is handled. */
  take(): SharedBytes {
    const packet = new SharedBytes(this.buffer.subarray(0, this.have), this.spare, this.buffer);
    this.lastBytes = this.have;
    if (this.have > this.largest) this.largest = this.have;
    this.clear();
    return packet;
  }

  clear(): void {
    if (this.claimed > 0) this.claim(-this.claimed);
    this.claimed = 0;
    this.buffer = NOTHING;
    this.have = 0;
    this.need = 0;
    this.region = null;
  }

  private aim(): void {
    this.region = null;
    if (!this.direct) return;
    const rest = this.need - this.have;
    if (rest < REGION_BYTES || this.trusted - this.have < REGION_BYTES) return;
    if (this.buffer.length - this.have < REGION_BYTES) this.room(Math.min(this.need, this.have + REGION_BYTES));
    this.region = this.buffer.subarray(this.have, Math.min(this.need, this.buffer.length));
  }

  /** Bytes come another way while the connection may still read to the region: it becomes a buffer of nobody. */
  private leaveRegion(): void {
    this.region = null;
    this.move(this.buffer.length);
  }

  /** Memory that a peer may have for what it has announced. */
  private get trusted(): number {
    return Math.max(FIRST_BYTES, AHEAD * this.have, 2 * this.largest);
  }

  private room(bytes: number): void {
    if (this.buffer.length >= bytes) return;
    // Of a header that is cut nothing is known yet.
    this.move(this.need > 0 ? Math.min(this.need, Math.max(this.trusted, bytes)) : FIRST_BYTES);
  }

  private move(bytes: number): void {
    this.claim(bytes - this.claimed);
    this.claimed = bytes;
    const to = bytes < SHARE_BYTES ? Buffer.allocUnsafeSlow(bytes) : this.spare.take(bytes);
    this.buffer.copy(to, 0, 0, this.have);
    this.buffer = to;
  }
}
