// A connection from which something has been read already, given to somebody who is to read it from the beginning.
// Given by gateway/transports.ts to proxy/, for when a client that was pre-read goes to the built-in broker. Costs
// nothing once the bytes are delivered: from then on the reader is attached to the connection below.
import type { CloseReason, Connection, TlsInfo, TransportKind } from './transport.ts';

class Pushback implements Connection {
  readonly kind: TransportKind;
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local: string;
  readonly tls: TlsInfo | null;
  private readonly below: Connection;
  /** What comes first; null once it is delivered or nobody wants it any more. */
  private bytes: Buffer | null;
  private reader: ((chunk: Buffer) => void) | null = null;
  private paused = false;
  private scheduled = false;
  private readonly deliver = (): void => {
    this.scheduled = false;
    const { bytes, reader } = this;
    if (bytes === null || reader === null || this.paused) return;
    this.bytes = null;
    reader(bytes);
    // The reader may have set another one, paused, or ended the connection: all of that is in the state by now.
    this.attach(this.reader ?? reader);
  };

  constructor(below: Connection, bytes: Buffer) {
    this.below = below;
    this.bytes = bytes.length > 0 ? bytes : null;
    this.kind = below.kind;
    this.remote = below.remote;
    this.remoteAddress = below.remoteAddress;
    this.local = below.local;
    this.tls = below.tls;
    // Whoever read before is still attached and must not get what belongs to the next reader.
    below.pause();
  }

  get queuedBytes(): number {
    return this.below.queuedBytes;
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.reader = handler;
    if (this.bytes === null) this.attach(handler);
    else this.schedule();
  }

  onEnd(handler: () => void): void {
    this.below.onEnd(handler);
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.below.onClose((reason) => {
      this.bytes = null;
      handler(reason);
    });
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.below.write(bytes, done);
  }

  cork(): void {
    this.below.cork();
  }

  uncork(): void {
    this.below.uncork();
  }

  pause(): void {
    this.paused = true;
    this.below.pause();
  }

  resume(): void {
    this.paused = false;
    if (this.bytes !== null) this.schedule();
    else if (this.reader !== null) this.below.resume();
  }

  shutdown(): void {
    this.below.shutdown();
  }

  end(graceMs?: number): void {
    this.bytes = null;
    this.below.end(graceMs);
  }

  destroy(reset?: boolean): void {
    this.bytes = null;
    this.below.destroy(reset);
  }

  private attach(reader: (chunk: Buffer) => void): void {
    this.below.onData(reader);
    if (!this.paused) this.below.resume();
  }

  private schedule(): void {
    if (this.scheduled || this.reader === null) return;
    this.scheduled = true;
    setImmediate(this.deliver);
  }
}

/**
 * The same connection, whose reader gets `bytes` first and then what comes. Whoever read before has to leave the
 * connection alone from now on, its handlers are replaced; the bytes must not change.
 */
export function withPushback(connection: Connection, bytes: Buffer): Connection {
  return new Pushback(connection, bytes);
}
