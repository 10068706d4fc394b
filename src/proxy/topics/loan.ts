// What is read for an exchange, into buffers that are used again: whoever needs bytes of a chunk after it was dealt
// with says so, and the buffer is left to the exchange. Made by exchange.ts, one for all its connections: chunks are
// dealt with one after the other.
import type { Connection, ReadBuffers } from '../../transport/transport.ts';

export class Loan {
  /** Bytes of the present chunk are still needed: unsent, or not dealt with. */
  kept = false;
  /** Nobody says what is kept: every chunk has a buffer of its own. */
  private own = false;
  private readonly buffers: ReadBuffers;

  constructor(buffers: ReadBuffers) {
    this.buffers = buffers;
  }

  /** A filter has come between: it keeps what it cannot decide on. */
  refuse(): void {
    this.own = true;
  }

  /** Has `take` get what `source` sends. */
  read(source: Connection, take: (chunk: Buffer) => void): void {
    const lent = (chunk: Buffer): boolean => {
      this.kept = false;
      take(chunk);
      return this.kept;
    };
    if (!this.own && source.readInto?.(this.buffers, lent) === true) return;
    const { kind } = source;
    const copies = kind === 'memory' || kind === 'ws' || kind === 'wss';
    source.onData(copies ? (chunk) => take(Buffer.from(chunk)) : take);
  }
}
