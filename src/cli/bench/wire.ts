// One TCP or Unix connection of the load generator: reads into one buffer of its own, hands on whole packets, writes
// blocks. Used by publishers and subscribers. Nothing is allocated per packet; one view is made per read. Sources:
// Node's net.Socket `onread` (user buffers).
import net from 'node:net';
import { systemErrorText } from '../../base/systemerror.ts';

export type Address = { readonly host: string; readonly port: number } | { readonly path: string };

export function addressText(address: Address): string {
  return 'path' in address ? address.path : `${address.host}:${address.port}`;
}

export interface WireUser {
  /**
   * Reads buffer[start, end) and returns the offset behind what it has used; the rest comes again with more behind it.
   */
  consume(buffer: Buffer, start: number, end: number): number;
  /** The connection is gone, for whatever reason; called once, and not after close(). */
  lost(why: string): void;
}

export class Wire {
  private readonly socket: net.Socket;
  private readonly user: WireUser;
  private storage: Buffer;
  private filled = 0;
  private closed = false;

  constructor(address: Address, bufferBytes: number, user: WireUser) {
    this.user = user;
    this.storage = Buffer.allocUnsafeSlow(bufferBytes);
    this.socket = net.connect({
      ...address,
      noDelay: true,
      onread: {
        buffer: () => this.storage.subarray(this.filled),
        callback: (bytes) => {
          this.take(bytes);
          return true;
        },
      },
    });
    this.socket.on('error', (error) => this.end(systemErrorText(error)));
    this.socket.on('close', () => this.end('closed by the peer'));
  }

  /** `done` is called when the bytes may change again. */
  write(bytes: Uint8Array, done?: () => void): void {
    if (this.closed) return;
    this.socket.write(bytes, done);
  }

  close(): void {
    this.closed = true;
    this.socket.destroy();
  }

  private end(why: string): void {
    if (this.closed) return;
    this.closed = true;
    this.user.lost(why);
  }

  private take(bytes: number): void {
    if (this.closed) return;
    this.filled += bytes;
    let used: number;
    try {
      used = this.user.consume(this.storage, 0, this.filled);
    } catch (error) {
      this.socket.destroy();
      this.end(systemErrorText(error));
      return;
    }
    if (used > 0) {
      this.storage.copyWithin(0, used, this.filled);
      this.filled -= used;
    }
    if (this.filled === this.storage.length) {
      // A packet larger than the buffer: its reader said how large packets may be before this grows.
      const larger = Buffer.allocUnsafeSlow(this.storage.length * 2);
      this.storage.copy(larger);
      this.storage = larger;
    }
  }
}
