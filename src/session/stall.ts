// A client that has stopped reading: its output buffer is full and nothing of it leaves. Asked by client.ts about twice a second.
import type { Writer } from '../base/writer.ts';
import type { Connection } from '../transport/transport.ts';

export class Stall {
  /** Monotonic milliseconds since when nothing has moved; 0 = it moves, or there is room. */
  private sinceMs = 0;
  private lastBytes = 0;

  /** Whether a buffer of `writeBuffer` bytes has been full and at rest for longer than `timeoutMs`. 0 for either = never. */
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
}
