// The memory of one request body, from its first piece to the answer. Used by app.ts. Counted with all else that peers
// make the gateway keep; when everything together is too much, small requests still pass: they are how an administrator
// makes room.
import type { BodyRoom } from './body.ts';
import type { ConsoleOptions } from './console.ts';

/** A request to change or remove something is smaller. */
const SMALL_BYTES = 65_536;

export class HeldBody {
  readonly room: BodyRoom = (bytes) => this.take(bytes);
  private bytes = 0;
  private readonly ledger: ConsoleOptions['ledger'];

  constructor(ledger: ConsoleOptions['ledger']) {
    this.ledger = ledger;
  }

  /** The request has been answered, or its body is not read any further. */
  letGo(): void {
    this.ledger?.add('http', -this.bytes);
    this.bytes = 0;
  }

  private take(bytes: number): boolean {
    const { ledger } = this;
    if (ledger === undefined) return true;
    if (this.bytes + bytes > SMALL_BYTES && ledger.isFull(bytes)) return false;
    this.bytes += bytes;
    ledger.add('http', bytes);
    return true;
  }
}
