// What waits for a webhook: a bounded queue of events, taken out singly or as batches, put back when a request fails.
// Called by webhook.ts. A batch that fails again, or is refused, is taken apart: its halves go alone, so that one bad
// event costs nobody else his place.
import { Fifo } from '../base/queue.ts';

/** Events and bytes that may wait. */
const MOST_EVENTS = 10_000;
const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of the bodies of one batch; a longer event goes alone. */
const MOST_BATCH_BYTES = 1024 * 1024;

export interface Item {
  readonly body: Buffer;
  attempts: number;
  /** With how many events it may share a request at most, itself included. */
  together: number;
}

export class WebhookQueue {
  private readonly items = new Fifo<Item>();
  /** Events in one request. */
  private readonly most: number;
  private queuedBytes = 0;

  /** @param most events in one request, 1 or more */
  constructor(most: number) {
    this.most = most;
  }

  get length(): number {
    return this.items.length;
  }

  get bytes(): number {
    return this.queuedBytes;
  }

  hasRoom(bytes: number): boolean {
    return this.items.length < MOST_EVENTS && this.queuedBytes + bytes <= MOST_BYTES;
  }

  add(body: Buffer): void {
    this.items.push({ body, attempts: 0, together: this.most });
    this.queuedBytes += body.length;
  }

  /**
   * Whether a request would be full, or there is a reason not to wait until it is: something in front was sent before.
   */
  get isDue(): boolean {
    const first = this.items.peek();
    if (first === undefined) return false;
    return first.attempts > 0 || this.items.length >= first.together || this.queuedBytes >= MOST_BATCH_BYTES;
  }

  /** What the next request takes, in order; empty when nothing waits. */
  take(): Item[] {
    const taken: Item[] = [];
    let bytes = 0;
    let most = this.most;
    for (let item = this.items.peek(); item !== undefined; item = this.items.peek()) {
      most = Math.min(most, item.together);
      if (taken.length >= most || (taken.length > 0 && bytes + item.body.length > MOST_BATCH_BYTES)) break;
      this.items.shift();
      bytes += item.body.length;
      taken.push(item);
    }
    this.queuedBytes -= bytes;
    return taken;
  }

  /** Puts back what take() gave. */
  putBack(items: readonly Item[]): void {
    for (let i = items.length - 1; i >= 0; i--) {
      this.items.unshift(items[i]);
      this.queuedBytes += items[i].body.length;
    }
  }

  /** Puts a batch back whose events shall share smaller requests. */
  putBackApart(items: readonly Item[]): void {
    for (const item of items) item.together = Math.ceil(items.length / 2);
    this.putBack(items);
  }
}

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** A JSON array of bodies. */
export function batchBody(items: readonly Item[]): Buffer {
  const parts: Buffer[] = [];
  for (const { body } of items) parts.push(parts.length === 0 ? OPEN : COMMA, body);
  return Buffer.concat([...parts, CLOSE]);
}
