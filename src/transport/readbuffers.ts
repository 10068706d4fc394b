// Buffers that a connection reads into again and again, for readers that are done with a chunk when they return: what
// is read costs no memory of its own, so passing bytes on gives the garbage collector nothing to do. Used by stream.ts.
// Every connection has a small buffer; one that fills it is lent a large one until it has little to read again. Large
// ones are bounded in number for all connections together: where none is left, small ones have to do. Must not let two
// connections read into the same buffer, nor touch one that a reader has kept.
import type { Socket } from 'node:net';
import type { LentReader, ReadBuffers } from './transport.ts';

/** Holds most telemetry in one piece, and costs 10,000 idle clients 40 MB (two directions each). */
const SMALL_BYTES = 2048;
/** What the system is asked for at once otherwise too. */
const LARGE_BYTES = 65_536;
/**
 * Less than this in a large buffer while they are scarce, and it is given back; else when a small one would have done.
 */
const LITTLE_BYTES = LARGE_BYTES / 4;
/** 32 MB. */
const LARGE_MOST = 512;
/** Large buffers kept for the next one who wants one: 1 MB. */
const SPARE_MOST = 16;

/** The large buffers of a group of connections. */
export class LargeBuffers implements ReadBuffers {
  private readonly spare: Buffer[] = [];
  private lentCount = 0;

  /** Large buffers that connections have now. */
  get lent(): number {
    return this.lentCount;
  }

  get scarce(): boolean {
    return this.lentCount > LARGE_MOST / 2;
  }

  take(): Buffer | null {
    if (this.lentCount >= LARGE_MOST) return null;
    this.lentCount++;
    return this.spare.pop() ?? Buffer.allocUnsafeSlow(LARGE_BYTES);
  }

  giveBack(buffer: Buffer, kept: boolean): void {
    this.lentCount--;
    if (!kept && this.spare.length < SPARE_MOST) this.spare.push(buffer);
  }
}

/**
 * Has the socket read into buffers that are given to it: `first`, then after each read what `next` says. `read` gets
 * what came. False where this Node.js cannot: nothing has changed then. Node offers it for sockets that a program dials
 * (`onread` of net.connect) and not for those that it accepts; this sets the same fields.
 */
export function readInto(
  socket: Socket,
  first: Buffer,
  read: (bytes: number, into: Buffer) => void,
  next: () => Buffer,
): boolean {
  const handle: unknown = Reflect.get(socket, '_handle');
  const slots = Object.getOwnPropertySymbols(socket);
  const slot = (name: string): symbol | undefined => slots.find((symbol) => symbol.description === name);
  const [buffer, callback, generate] = [slot('kBuffer'), slot('kBufferCb'), slot('kBufferGen')];
  if (typeof handle !== 'object' || handle === null || buffer === undefined || callback === undefined) return false;
  const use: unknown = Reflect.get(handle, 'useUserBuffer');
  if (generate === undefined || typeof use !== 'function' || Reflect.get(socket, buffer) !== null) return false;
  Reflect.set(socket, buffer, first);
  Reflect.set(socket, callback, read);
  Reflect.set(socket, generate, next);
  Reflect.apply(use, handle, [first]);
  return true;
}

/** The buffer of one connection. */
export class ReadBuffer {
  private readonly buffers: ReadBuffers;
  private readonly reader: LentReader;
  private current: Buffer = Buffer.allocUnsafeSlow(SMALL_BYTES);
  private small: Buffer | null = this.current;
  private filled = 0;
  private kept = false;
  private over = false;

  constructor(buffers: ReadBuffers, reader: LentReader) {
    this.buffers = buffers;
    this.reader = reader;
  }

  /** Has the socket read into this buffer from now on. False where this Node.js cannot: nothing has changed then. */
  attach(socket: Socket): boolean {
    return readInto(
      socket,
      this.current,
      (bytes, into) => this.take(bytes, into),
      () => this.next(),
    );
  }

  /** The connection has closed: nothing is read into it any more. */
  close(): void {
    if (this.over) return;
    this.over = true;
    if (this.current !== this.small) this.buffers.giveBack(this.current, this.kept);
  }

  private take(bytes: number, into: Buffer): void {
    this.filled = bytes;
    this.kept = this.reader(into.subarray(0, bytes));
  }

  /** Where the next bytes go. */
  private next(): Buffer {
    const { current, filled, kept } = this;
    if (this.over) return current;
    this.kept = false;
    if (current === this.small) {
      if (kept) this.small = null;
      if (filled < SMALL_BYTES && !kept) return current;
      this.current = (filled < SMALL_BYTES ? null : this.buffers.take()) ?? this.smallOne();
      return this.current;
    }
    const much = filled >= (this.buffers.scarce ? LITTLE_BYTES : SMALL_BYTES);
    if (much && !kept) return current;
    this.buffers.giveBack(current, kept);
    this.current = (much ? this.buffers.take() : null) ?? this.smallOne();
    return this.current;
  }

  private smallOne(): Buffer {
    this.small ??= Buffer.allocUnsafeSlow(SMALL_BYTES);
    return this.small;
  }
}
