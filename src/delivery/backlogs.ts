// Stored messages that new subscriptions of one session are still owed: pulled one at a time, in slices, as the client
// takes them. Used by outbox.ts. A hundred thousand of them must not stall the loop nor fill memory.
import type { Message } from '../mqtt/message.ts';
import type { Backlog, Target } from './delivery.ts';

/** Messages sent in a row before others get their turn. */
const SLICE = 256;
/** What a search without a find counts among them. */
const SEARCH = 32;

/** One of them: the search under way, its target, its place. */
const BACKLOG_BYTES = 900;

export class Backlogs {
  /**
   * By filter, in the order of the subscriptions: a filter that is subscribed again is owed all of them again, so what
   * was left of the first time is not needed.
   */
  private readonly list = new Map<string, Backlog>();
  private scheduled = false;
  /** The first of the list waits for a verdict; nothing of the others goes before it. */
  private waiting: Backlog | null = null;
  /** What it has waited for. */
  private known: Message | null = null;
  private readonly later: (go: () => void) => void;
  private readonly pump: () => void;
  private readonly weigh: (bytes: number) => void;

  /**
   * `pump` is called when it is this session's turn again, as `later` has it; `weigh` when the list grows or shrinks.
   */
  constructor(later: (go: () => void) => void, pump: () => void, weigh: (bytes: number) => void) {
    this.later = later;
    this.pump = pump;
    this.weigh = weigh;
  }

  get empty(): boolean {
    return this.list.size === 0;
  }

  add(backlog: Backlog): void {
    this.drop(backlog.filter);
    this.list.set(backlog.filter, backlog);
    this.weigh(BACKLOG_BYTES);
  }

  /** The filter is subscribed no more: what is left of its messages is not sent. True when others were behind it. */
  drop(filter: string): boolean {
    const backlog = this.list.get(filter);
    if (backlog === undefined) return false;
    const wasFirst = backlog === this.first();
    this.list.delete(filter);
    this.weigh(-BACKLOG_BYTES);
    if (!wasFirst) return false;
    this.waiting = null;
    this.known = null;
    return !this.empty;
  }

  private first(): Backlog | undefined {
    for (const backlog of this.list.values()) return backlog;
    return undefined;
  }

  clear(): void {
    this.weigh(-BACKLOG_BYTES * this.list.size);
    this.list.clear();
    this.waiting = null;
    this.known = null;
  }

  /** Hands messages to `deliver` while `hasRoom` says so; what is left after a slice goes on later. */
  send(hasRoom: () => boolean, deliver: (message: Message, target: Target) => void): void {
    // What goes on later is on its way: new subscriptions do not give this session more turns than others have.
    if (this.scheduled) return;
    let left = SLICE;
    for (let backlog = this.first(); backlog !== undefined; backlog = this.first()) {
      if (this.waiting !== null || !hasRoom()) return;
      if (left <= 0) {
        this.continueLater();
        return;
      }
      const message = this.known ?? backlog.next();
      this.known = null;
      if (message instanceof Promise) {
        this.wait(backlog, message);
        return;
      }
      left -= message === undefined ? SEARCH : 1;
      if (message === null) {
        this.list.delete(backlog.filter);
        this.weigh(-BACKLOG_BYTES);
      } else if (message !== undefined) deliver(message, backlog.target);
    }
  }

  private wait(backlog: Backlog, verdict: Promise<Message | undefined>): void {
    this.waiting = backlog;
    const known = (message: Message | undefined): void => {
      // The session may have ended, or have begun again, meanwhile.
      if (this.waiting !== backlog) return;
      this.waiting = null;
      this.known = message ?? null;
      this.pump();
    };
    // Where nobody could say, it is left out.
    verdict.then(known, () => known(undefined));
  }

  private continueLater(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.later(() => {
      this.scheduled = false;
      this.pump();
    });
  }
}
