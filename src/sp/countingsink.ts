// The transport of a pipe as its writer sees it, counting what was taken and what went down with the connection. Made
// by pipe.ts, one per stream. Neither holds bytes nor decides anything.
import type { ByteSink } from '../base/writer.ts';
import type { Connection } from '../transport/transport.ts';

export class CountingSink implements ByteSink {
  readonly offers: boolean;
  private readonly connection: Connection;
  /** `error` is set when the bytes went down with the connection. */
  private readonly took: (bytes: number, error: unknown) => void;
  /** Bytes that were offered and are not known to be taken. */
  private offeredBytes = 0;

  constructor(connection: Connection, took: (bytes: number, error: unknown) => void) {
    this.connection = connection;
    this.took = took;
    this.offers = connection.offers === true;
  }

  get taken(): boolean {
    return this.connection.taken === true;
  }

  write(bytes: Uint8Array, done: () => void): void {
    const size = this.offeredBytes + bytes.length;
    this.offeredBytes = 0;
    this.connection.write(bytes, (error?: unknown) => {
      this.took(size, error);
      done();
    });
  }

  offer(bytes: Uint8Array): boolean {
    this.offeredBytes += bytes.length;
    const taken = this.connection.offer?.(bytes) === true;
    if (taken) this.count();
    return taken;
  }

  cork(): void {
    this.connection.cork();
  }

  uncork(): void {
    this.connection.uncork();
    if (this.taken) this.count();
  }

  private count(): void {
    const bytes = this.offeredBytes;
    this.offeredBytes = 0;
    if (bytes > 0) this.took(bytes, null);
  }
}
