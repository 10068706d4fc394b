// Memory for the many small pieces that outlive the chunk they came in: cut from slabs, so that a piece costs one view
// and no allocation. Used by mqtt/message.ts for the payloads of messages that are kept. A slab lives as long as one of
// its pieces, as Node's own pool does.
import { SharedBytes, SpareBuffers } from './sharedbytes.ts';
import { copyWords, WordView } from './words.ts';

/** As large as Node's own pool: what a single kept piece can hold on to. */
const SLAB_BYTES = 8192;
/** Larger pieces get memory of their own. */
const PIECE_BYTES = 1024;

export class Slab {
  /** For what is too large for a slab and is soon gone. */
  readonly spare = new SpareBuffers();
  private readonly source: WordView;
  private readonly target = new WordView();
  private buffer: Buffer = Buffer.allocUnsafeSlow(SLAB_BYTES);
  private at = 0;

  /** `source` is the view of the chunk that is being read (Turn.source). */
  constructor(source: WordView) {
    this.source = source;
  }

  /** A copy of from[start, end) to be sent; whoever has asked for it says when it is handled. */
  share(from: Uint8Array, start: number, end: number): SharedBytes {
    const memory = this.spare.take(end - start);
    memory.set(from.subarray(start, end), 0);
    return new SharedBytes(memory.subarray(0, end - start), this.spare, memory);
  }

  /** A copy of from[start, start + bytes) that nobody else writes to. */
  copy(from: Uint8Array, start: number, bytes: number): Buffer {
    if (bytes > PIECE_BYTES) {
      const own = Buffer.allocUnsafe(bytes);
      own.set(from.subarray(start, start + bytes));
      return own;
    }
    if (this.at + bytes > SLAB_BYTES) {
      this.buffer = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.at = 0;
    }
    const at = this.at;
    copyWords(from, this.source, start, this.buffer, this.target, at, bytes);
    // Whole words: copies of eight bytes stay aligned.
    this.at = (at + bytes + 7) & ~7;
    return this.buffer.subarray(at, at + bytes);
  }
}
