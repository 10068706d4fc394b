// A connection that is handed to the built-in broker and still counted here: passes everything through, adds up bytes, tells the end.
// Made by relay.ts for routes to "local". Must not change, delay or keep anything.
import type { CloseReason, Connection, TlsInfo, TransportKind } from '../transport/transport.ts';

export class Tap implements Connection {
  readonly kind: TransportKind;
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local: string;
  readonly tls: TlsInfo | null;
  bytesIn = 0;
  bytesOut = 0;
  private readonly below: Connection;
  private handler: ((reason: CloseReason) => void) | null = null;

  /** `onClosed` is called once, after the broker has been told. */
  constructor(below: Connection, onClosed: (reason: CloseReason) => void) {
    this.below = below;
    this.kind = below.kind;
    this.remote = below.remote;
    this.remoteAddress = below.remoteAddress;
    this.local = below.local;
    this.tls = below.tls;
    below.onClose((reason) => {
      this.handler?.(reason);
      onClosed(reason);
    });
  }

  get queuedBytes(): number {
    return this.below.queuedBytes;
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.below.onData((chunk) => {
      this.bytesIn += chunk.length;
      handler(chunk);
    });
  }

  onEnd(handler: () => void): void {
    this.below.onEnd(handler);
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.handler = handler;
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.bytesOut += bytes.length;
    this.below.write(bytes, done);
  }

  cork(): void {
    this.below.cork();
  }

  uncork(): void {
    this.below.uncork();
  }

  pause(): void {
    this.below.pause();
  }

  resume(): void {
    this.below.resume();
  }

  shutdown(): void {
    this.below.shutdown();
  }

  end(graceMs?: number): void {
    this.below.end(graceMs);
  }

  destroy(reset?: boolean): void {
    this.below.destroy(reset);
  }
}
