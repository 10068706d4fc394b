// The output side of one peer: bytes are appended here and leave in few large writes at the end of a turn. Called by
// delivery/ (MQTT) and sp/ (pipes). Owns no buffer while idle: blocks come from a pool and go back when written. It
// never drops and never refuses: its users look at `queuedBytes` before they append and decide by their own policy.
import type { SharedBytes } from './sharedbytes.ts';
import type { Flushable, Turn } from './turn.ts';
import { copyWords, WordView } from './words.ts';

/** Where the bytes go. `done` is called once the bytes may change again (written, or lost with the connection). */
export interface ByteSink {
  write(bytes: Uint8Array, done: () => void): void;
  /** Several writes follow and may leave as one system call. */
  cork(): void;
  uncork(): void;
  /**
   * write() for one who goes on at once where he can: true = the system has taken all of it and all before it, or the
   * connection has ended. False = what is left waits, and the bytes may not change until what is written next is done.
   * Between cork() and uncork() it says nothing: `taken` tells afterwards.
   */
  offer?(bytes: Uint8Array): boolean;
  /** What the last offer() has said, as it is now. */
  readonly taken?: boolean;
  /** Whether offer() is worth a try here: not under TLS and the like, where bytes are never taken at once. */
  readonly offers?: boolean;
}

const LARGEST_BLOCK = 65_536;
/**
 * A new peer gets a small block; one that fills it gets a larger next: idle and slow peers stay cheap, busy ones write
 * 64 KB.
 */
const BLOCK_SIZES = [2048, 16_384, LARGEST_BLOCK] as const;
/** Blocks kept for reuse in each size; beyond that the garbage collector has them. */
const KEPT = [1024, 256, 128] as const;

/** Blocks of fixed sizes for all writers of a gateway. Buffers are not zeroed: only written parts are ever sent. */
export class BlockPool {
  /** Bytes of the blocks that are in use now: what all peers together have not taken yet. */
  usedBytes = 0;
  private readonly free: Buffer[][] = BLOCK_SIZES.map(() => []);

  take(size: number): Buffer {
    this.usedBytes += BLOCK_SIZES[size];
    return this.free[size].pop() ?? Buffer.allocUnsafeSlow(BLOCK_SIZES[size]);
  }

  /** A block of its own for a piece that is larger than any. */
  takeLarge(bytes: number): Buffer {
    this.usedBytes += bytes;
    return Buffer.allocUnsafeSlow(bytes);
  }

  /** Something refers to shared bytes; they count while anything does. */
  hold(shared: SharedBytes): void {
    if (shared.holders++ === 0) this.usedBytes += shared.bytes.length;
  }

  letGo(shared: SharedBytes): void {
    if (shared.letGo()) this.usedBytes -= shared.bytes.length;
  }

  give(block: Buffer): void {
    this.usedBytes -= block.length;
    const size = BLOCK_SIZES.indexOf(block.length as (typeof BLOCK_SIZES)[number]);
    if (size >= 0 && this.free[size].length < KEPT[size]) this.free[size].push(block);
  }
}

/** Blocks in a row of which little is used before a peer gets smaller ones. */
const LITTLE_BLOCKS = 8;
/** Written behind what was offered and not taken at once: it is done when that is. */
const NOTHING = Buffer.alloc(0);
const NO_BLOCK = Buffer.alloc(0);
/** Less room than this at the end of a block is left empty rather than filled with the beginning of a long piece. */
const ROOM_BYTES = 1024;

/** What is complete and waits to be sent: the written part of a block, or part of shared bytes. */
interface Piece {
  readonly bytes: Buffer;
  readonly block: Buffer | null;
  readonly shared: SharedBytes | null;
}

export class Writer implements Flushable {
  dirty = false;
  /** Bytes appended and not yet confirmed by the sink. */
  queuedBytes = 0;
  /** The block being filled, valid after reserve(); write at `at`, then call advance(). */
  block: Buffer = NO_BLOCK;
  at = 0;
  private sink: ByteSink | null;
  private readonly turn: Turn;
  /** Of `block`; an idle writer has neither. */
  private readonly view = new WordView();
  private readonly pool: BlockPool;
  private size = 0;
  /** Blocks in a row of which little was used. */
  private little = 0;
  private full: Piece[] = [];
  /** Called after the sink has confirmed bytes, for whoever waits for room. */
  private readonly onRoom: (() => void) | null;

  constructor(turn: Turn, pool: BlockPool, sink: ByteSink, onRoom: (() => void) | null = null) {
    this.turn = turn;
    this.pool = pool;
    this.sink = sink;
    this.onRoom = onRoom;
  }

  /** Makes room for `bytes` in a row: afterwards `block` has them free from `at` on. */
  reserve(bytes: number): void {
    if (this.block.length - this.at >= bytes) return;
    this.nextBlock(bytes);
  }

  /** Counts `bytes` written at `at` as appended. */
  advance(bytes: number): void {
    this.at += bytes;
    this.queuedBytes += bytes;
    if (!this.dirty) this.turn.touch(this);
  }

  /** Appends a copy of source[start, end). */
  append(source: Uint8Array, start: number, end: number): void {
    const bytes = end - start;
    this.reserve(bytes);
    copyWords(source, this.turn.source, start, this.block, this.view, this.at, bytes);
    this.advance(bytes);
  }

  /** The same for bytes that need not lie in a row: they are spread over as many blocks as they take. */
  spread(source: Uint8Array, start: number, end: number): void {
    let at = start;
    while (end - at > this.block.length - this.at) {
      const room = this.block.length - this.at;
      if (room >= ROOM_BYTES) {
        this.append(source, at, at + room);
        at += room;
      }
      this.nextBlock(Math.min(end - at, LARGEST_BLOCK));
    }
    this.append(source, at, end);
  }

  /** Appends shared.bytes[start, end) without a copy. */
  refer(shared: SharedBytes, start: number, end: number): void {
    this.closeBlock();
    this.pool.hold(shared);
    this.full.push({ bytes: shared.bytes.subarray(start, end), block: null, shared });
    this.queuedBytes += end - start;
    if (!this.dirty) this.turn.touch(this);
  }

  /** Sends what has been appended. Called by the turn; calling it directly is allowed before a connection ends. */
  flush(): void {
    const sink = this.sink;
    if (sink === null) return;
    if (sink.offers === true) {
      if (this.full.length > 0) this.offerAll(sink);
      else if (this.at > 0) this.offerBlock(sink);
      return;
    }
    if (this.full.length === 0) {
      if (this.at > 0) this.send(sink);
      return;
    }
    sink.cork();
    // A sink that confirms at once may bring more to send while this goes on: filled blocks always go before the open
    // one.
    while (this.full.length > 0) {
      const full = this.full;
      this.full = [];
      for (const piece of full) this.confirm(sink, piece);
    }
    if (this.at > 0) this.send(sink);
    sink.uncork();
  }

  /** Lets go of everything: nothing is sent any more and appended bytes are forgotten. */
  close(): void {
    this.sink = null;
    if (this.block !== NO_BLOCK) this.pool.give(this.block);
    for (const piece of this.full) this.free(piece);
    this.full = [];
    this.block = NO_BLOCK;
    this.view.clear();
    this.at = 0;
    this.queuedBytes = 0;
  }

  get closed(): boolean {
    return this.sink === null;
  }

  /** The open block alone, which the system mostly takes at once: nothing is then scheduled for later. */
  private offerBlock(sink: ByteSink): void {
    const before = this.queuedBytes - this.at;
    const piece = this.takeBlock();
    const { bytes, block } = piece;
    if (before === 0 && sink.offer?.(bytes) === true) {
      if (block !== null) this.pool.give(block);
      this.left(bytes.length);
    } else if (before === 0) sink.write(NOTHING, () => this.done([piece], bytes.length));
    else sink.write(bytes, () => this.done([piece], bytes.length));
  }

  /** Filled blocks and the open one, in one write. */
  private offerAll(sink: ByteSink): void {
    const pieces = this.full;
    this.full = [];
    if (this.at > 0) pieces.push(this.takeBlock());
    let total = 0;
    sink.cork();
    for (const { bytes } of pieces) {
      sink.offer?.(bytes);
      total += bytes.length;
    }
    sink.uncork();
    if (sink.taken === true) this.done(pieces, total);
    else sink.write(NOTHING, () => this.done(pieces, total));
  }

  private done(pieces: readonly Piece[], bytes: number): void {
    for (const piece of pieces) this.free(piece);
    this.left(bytes);
  }

  /** The sink has taken so much. */
  private left(bytes: number): void {
    if (this.sink === null) return;
    this.queuedBytes -= bytes;
    if (this.onRoom !== null) this.onRoom();
  }

  private send(sink: ByteSink): void {
    this.confirm(sink, this.takeBlock());
  }

  private takeBlock(): Piece {
    const block = this.block;
    const bytes = block.subarray(0, this.at);
    // A peer that uses little of its blocks gets smaller ones: broadcasts to many idle peers stay small. Not at the
    // first one: what comes in bursts would be cut into pieces.
    if (this.at * 16 >= block.length) this.little = 0;
    else if (this.size > 0 && ++this.little >= LITTLE_BLOCKS) {
      this.size--;
      this.little = 0;
    }
    this.block = NO_BLOCK;
    this.view.clear();
    this.at = 0;
    return { bytes, block, shared: null };
  }

  private confirm(sink: ByteSink, piece: Piece): void {
    sink.write(piece.bytes, () => {
      this.free(piece);
      this.left(piece.bytes.length);
    });
  }

  private free({ block, shared }: Piece): void {
    if (block !== null) this.pool.give(block);
    if (shared !== null) this.pool.letGo(shared);
  }

  /** What was written so far waits to be sent, and nothing is written behind it. */
  private closeBlock(): void {
    const { block } = this;
    if (this.at === 0) return;
    this.full.push({ bytes: block.subarray(0, this.at), block, shared: null });
    this.block = NO_BLOCK;
    this.view.clear();
    this.at = 0;
  }

  private nextBlock(bytes: number): void {
    if (this.at > 0) {
      this.closeBlock();
      if (this.size < BLOCK_SIZES.length - 1) this.size++;
    } else if (this.block !== NO_BLOCK) this.pool.give(this.block);
    // A piece larger than any block gets a buffer of its own that the pool will not take back.
    while (this.size < BLOCK_SIZES.length - 1 && BLOCK_SIZES[this.size] < bytes) this.size++;
    this.block = bytes > BLOCK_SIZES[this.size] ? this.pool.takeLarge(bytes) : this.pool.take(this.size);
    this.at = 0;
  }
}

/** Below this a loop beats the call into the engine's copy (make bench, "copy"). */
const LOOP_BYTES = 32;

/** Copies `bytes` from source[from..] to target[at..]; the ranges lie in different buffers. */
export function copyBytes(source: Uint8Array, from: number, target: Uint8Array, at: number, bytes: number): void {
  if (bytes <= LOOP_BYTES) for (let i = 0; i < bytes; i++) target[at + i] = source[from + i];
  else target.set(source.subarray(from, from + bytes), at);
}
