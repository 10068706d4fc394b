// A connection that is handed to the built-in broker and still counted here: passes everything through, adds up bytes,
// tells the end. Made by relay.ts for routes to "local". With `inspect` every packet goes through the client's filter
// on both ways; else nothing is changed.

import type { CloseReason, Connection, TlsInfo, TransportKind } from '../transport/transport.ts';
import type { Guard } from './guard.ts';
import type { Out } from './packetstream.ts';

const NOTHING = Buffer.alloc(0);

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
  private reader: ((chunk: Buffer) => void) | null = null;
  private guard: Guard | null = null;
  private paused = false;
  private held = false;

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

  /**
   * Has everything filtered from now on if there is something to filter by: `make` gets where bytes for the broker and
   * for the client go.
   */
  filter(make: (toBroker: Out, toClient: Out) => Guard | null): void {
    this.guard = make(
      (bytes) => this.reader?.(bytes),
      (bytes) => {
        this.bytesOut += bytes.length;
        this.below.write(bytes, () => {});
      },
    );
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.reader = handler;
    this.below.onData((chunk) => {
      this.bytesIn += chunk.length;
      if (this.guard === null) handler(chunk);
      else this.guard.fromClient(chunk);
    });
  }

  onEnd(handler: () => void): void {
    this.below.onEnd(handler);
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.handler = handler;
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.guard === null) {
      this.bytesOut += bytes.length;
      this.below.write(bytes, done);
      return;
    }
    // A copy: the filter may keep the beginning of a packet, and these bytes are the writer's again when done() is
    // called.
    this.guard.fromServer(Buffer.from(bytes));
    this.below.write(NOTHING, done);
  }

  cork(): void {
    this.below.cork();
  }

  uncork(): void {
    this.below.uncork();
  }

  /** Stops reading for the filter, or goes on; the broker's own pause() stands beside it. */
  hold(on: boolean): void {
    this.held = on;
    if (on) this.below.pause();
    else if (!this.paused) this.below.resume();
  }

  pause(): void {
    this.paused = true;
    this.below.pause();
  }

  resume(): void {
    this.paused = false;
    if (!this.held) this.below.resume();
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
