// Stored messages that new subscriptions of one session are still owed: pulled one at a time, in slices, as the client takes them.
// Used by outbox.ts. A hundred thousand of them must not stall the loop nor fill memory.
import type { Message } from '../mqtt/message.ts';
import type { Backlog, Target } from './delivery.ts';

/** Messages sent in a row before others get their turn. */
const SLICE = 256;
/** What a search without a find counts among them. */
const SEARCH = 32;

export class Backlogs {
  private readonly list: Backlog[] = [];
  private scheduled = false;
  /** The first of the list waits for a verdict; nothing of the others goes before it. */
  private waiting: Backlog | null = null;
  /** What it has waited for. */
  private known: Message | null = null;
  private readonly pump: () => void;

  /** `pump` is called when it is this session's turn again. */
  constructor(pump: () => void) {
    this.pump = pump;
  }

  get empty(): boolean {
    return this.list.length === 0;
  }

  add(backlog: Backlog): void {
    this.list.push(backlog);
  }

  clear(): void {
    this.list.length = 0;
    this.waiting = null;
    this.known = null;
  }

  /** Hands messages to `deliver` while `hasRoom` says so; what is left after a slice goes on later. */
  send(hasRoom: () => boolean, deliver: (message: Message, target: Target) => void): void {
    let left = SLICE;
    while (this.list.length > 0 && this.waiting === null && hasRoom()) {
      if (left <= 0) {
        this.continueLater();
        return;
      }
      const backlog = this.list[0];
      const message = this.known ?? backlog.next();
      this.known = null;
      if (message instanceof Promise) {
        this.wait(backlog, message);
        return;
      }
      left -= message === undefined ? SEARCH : 1;
      if (message === null) this.list.shift();
      else if (message !== undefined) deliver(message, backlog.target);
    }
  }

  private wait(backlog: Backlog, verdict: Promise<Message | undefined>): void {
    this.waiting = backlog;
    void verdict.then((message) => {
      // The session may have ended, or have begun again, meanwhile.
      if (this.waiting !== backlog) return;
      this.waiting = null;
      this.known = message ?? null;
      this.pump();
    });
  }

  private continueLater(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.pump();
    });
  }
}
