// What goes out on one connection that several others write to: order is kept, and a reader that is slow is told of in
// time. Used by clientside.ts for the client and by leg.ts for a server. Knows nothing of MQTT.
import type { Connection } from '../../transport/transport.ts';
import type { Loan } from './loan.ts';

/** Unsent bytes and writes that count as full, and what has to be left when it is no longer so. */
const HIGH_BYTES = 128 * 1024;
const LOW_BYTES = 16 * 1024;
const HIGH_PIECES = 256;
const LOW_PIECES = 16;

/** Written behind what waits, to be told when that is taken. */
const NOTHING = Buffer.alloc(0);

export class Outlet {
  sentBytes = 0;
  private pieces = 0;
  private full = false;
  private readonly sink: Connection;
  private readonly loan: Loan;
  private readonly offers: boolean;
  private readonly onFull: (full: boolean) => void;
  private readonly taken = (): void => {
    this.pieces--;
    if (!this.full || this.pieces > LOW_PIECES || this.sink.queuedBytes > LOW_BYTES) return;
    this.full = false;
    this.onFull(false);
  };

  /** `onFull` is called whenever that changes. */
  constructor(sink: Connection, loan: Loan, onFull: (full: boolean) => void) {
    this.sink = sink;
    this.loan = loan;
    this.onFull = onFull;
    this.offers = sink.offers === true;
  }

  /** Sends bytes that stay as they are until they are taken. */
  write(bytes: Buffer): void {
    const { sink } = this;
    let rest = bytes;
    this.sentBytes += bytes.length;
    if (this.offers && sink.queuedBytes === 0) {
      if (sink.offer?.(bytes) === true) return;
      rest = NOTHING;
    }
    this.loan.kept = true;
    this.pieces++;
    sink.write(rest, this.taken);
    if (this.full || (this.pieces <= HIGH_PIECES && sink.queuedBytes <= HIGH_BYTES)) return;
    this.full = true;
    this.onFull(true);
  }

  get isFull(): boolean {
    return this.full;
  }
}
