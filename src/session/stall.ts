// A client that does not read what it is sent: its own packets are not read either while it is owed too much, and it is
// closed when nothing moves at all. One per client; asked by client.ts and reader.ts.
import type { Writer } from '../base/writer.ts';
import type { Connection } from '../transport/transport.ts';

/** Messages stop at one such buffer; answers to the client's own packets may fill another. */
const BUFFERS = 2;

export class Stall {
  /** Monotonic milliseconds since when nothing has moved; 0 = it moves, or there is room. */
  private sinceMs = 0;
  private lastBytes = 0;
  private wake: (() => void) | null = null;

  /**
   * Whether a buffer of `writeBuffer` bytes has been full and at rest for longer than `timeoutMs`. 0 for either =
   * never.
   */
  lasts(nowMs: number, writer: Writer, connection: Connection, writeBuffer: number, timeoutMs: number): boolean {
    const bytes = connection.queuedBytes;
    if (writeBuffer === 0 || timeoutMs === 0 || writer.queuedBytes < writeBuffer || bytes !== this.lastBytes) {
      this.sinceMs = 0;
      this.lastBytes = bytes;
      return false;
    }
    if (this.sinceMs === 0) this.sinceMs = nowMs;
    return nowMs - this.sinceMs > timeoutMs;
  }

  /** Time that has passed so far does not count. */
  excuse(): void {
    this.sinceMs = 0;
  }

  /** Resolves when the client has taken most of what it is owed; null while that is not too much. */
  room(writer: Writer, writeBuffer: number): Promise<void> | null {
    if (writeBuffer === 0 || writer.queuedBytes < BUFFERS * writeBuffer) return null;
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  /** Bytes have left. */
  moved(writer: Writer, writeBuffer: number): void {
    if (this.wake === null || writer.queuedBytes > writeBuffer) return;
    const { wake } = this;
    this.wake = null;
    wake();
  }
}
