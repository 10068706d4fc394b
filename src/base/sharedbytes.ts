// Bytes that nobody writes to for now, sent by several writers without a copy for each. Made where a large packet is
// put together (codec/assembler.ts) or copied once for all its receivers (mqtt/message.ts), sent by base/writer.ts.
// Their memory is used again when the packet is handled, nothing refers to it any more and nobody has kept a view:
// large buffers are dear to allocate, and each of them brings the garbage collector nearer.

/**
 * Smaller pieces are copied: two buffers to send instead of one cost more than a copy of that many bytes (make bench,
 * 16 KB).
 */
export const SHARE_BYTES = 16_384;
/** Sizes are multiples of this, so that packets of about the same size fit each other's buffers. */
const STEP_BYTES = 16_384;
/** Spare buffers kept, and how much larger than asked for one may be. */
const SPARE_MOST_BYTES = 16 << 20;
const LARGER_BY = 2;

/** Large buffers that are free. */
export class SpareBuffers {
  /** Of all that are free. */
  bytes = 0;
  private free: Buffer[] = [];
  /** The fewest that were free since the last trim(): they were not needed. */
  private unneeded = 0;
  private readonly most: number;

  /** @param most bytes that are kept while they are free */
  constructor(most = SPARE_MOST_BYTES) {
    this.most = most;
  }

  /** A buffer of at least `bytes`. What is in it is not defined. */
  take(bytes: number): Buffer {
    const { free } = this;
    for (let i = free.length - 1; i >= 0; i--) {
      const buffer = free[i];
      if (buffer.length < bytes || buffer.length > LARGER_BY * bytes + STEP_BYTES) continue;
      free[i] = free[free.length - 1];
      free.pop();
      this.bytes -= buffer.length;
      if (free.length < this.unneeded) this.unneeded = free.length;
      return buffer;
    }
    return Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
  }

  /** The buffer is needed no more, and nobody has a view of it. */
  give(buffer: Buffer): void {
    if (buffer.length < STEP_BYTES || this.bytes + buffer.length > this.most) return;
    this.free.push(buffer);
    this.bytes += buffer.length;
  }

  /** To be called now and then: lets go of what has not been needed since the last time. */
  trim(): void {
    for (const buffer of this.free.splice(0, this.unneeded)) this.bytes -= buffer.length;
    this.unneeded = this.free.length;
  }
}

export class SharedBytes {
  readonly bytes: Buffer;
  /**
   * Pieces of output that refer to it now: the business of writer.ts, which counts the memory once however many there
   * are.
   */
  holders = 0;
  private state: 'used' | 'handled' | 'kept' = 'used';
  private readonly home: SpareBuffers | null;
  private readonly memory: Buffer;

  /** `bytes` of `memory`, which goes back to `home` in the end. */
  constructor(bytes: Buffer, home: SpareBuffers | null = null, memory: Buffer = bytes) {
    this.bytes = bytes;
    this.home = home;
    this.memory = memory;
  }

  /** Somebody has a view of the bytes for an unknown time. */
  keep(): void {
    this.state = 'kept';
  }

  /** Whoever made it is done: nobody begins to use it from here on. */
  handled(): void {
    if (this.state !== 'used') return;
    this.state = 'handled';
    if (this.holders === 0) this.home?.give(this.memory);
  }

  /** One of the holders has let go. True when it was the last one. */
  letGo(): boolean {
    if (--this.holders > 0) return false;
    if (this.state === 'handled') this.home?.give(this.memory);
    return true;
  }
}
