// What the journal knows of one outbox: its messages, and of its QoS 2 exchanges which ones the remote has received.
// Used by outbox.ts. Says when a step is durable, for the packets that depend on it: a PUBLISH at QoS 2, and PUBREL.
// Steps of one turn share a commit. Marks lie in a spool of their own under the sequences of their messages, so that a
// message is not written a second time.
import type { Clock } from '../../base/clock.ts';
import { Hold } from '../../mqtt/message.ts';
import type { Journal, SpoolEntry } from '../../store/store.ts';
import { Keeping } from '../keeping.ts';

export type OutboxJournal = Pick<Journal, 'durable' | 'accepting' | 'spoolPut' | 'spoolDelete' | 'barrierAll'>;

/** A step that could not be stored is tried again after this. */
const RETRY_MS = 250;
const MARK = Buffer.from([1]);

export interface RecordsOptions<T> {
  /** Of the outbox and of its marks, as the journal knows them. */
  readonly name: string;
  readonly marks: string;
  readonly journal: OutboxJournal;
  readonly clock: Clock;
  /** These have waited for the journal, and need not any more. */
  readonly stored: (items: readonly T[]) => void;
}

export class Records<T> {
  private readonly options: RecordsOptions<T>;
  private readonly messages: Keeping;
  /** Marks that are in the journal. */
  private marked = 0;
  private waiting: T[] = [];
  private readonly commit = (): void => this.barrier(this.waiting.splice(0));

  constructor(options: RecordsOptions<T>, restored: readonly SpoolEntry[], marks: readonly SpoolEntry[]) {
    const { name, journal, clock } = options;
    this.options = options;
    this.messages = new Keeping(name, journal, clock, restored);
    this.marked = marks.length;
  }

  get durable(): boolean {
    return this.messages.durable;
  }

  get accepting(): boolean {
    return this.messages.accepting;
  }

  /** The number of something that only memory holds. */
  number(): number {
    return this.messages.number();
  }

  put(bytes: Uint8Array): number {
    return this.messages.put(bytes);
  }

  /** The remote has received the message of this number. */
  mark(sequence: number): void {
    if (!this.durable) return;
    this.options.journal.spoolPut(this.options.marks, sequence, MARK);
    this.marked++;
  }

  /** The remote has forgotten what it has received. True when there was anything. */
  unmark(): boolean {
    if (this.marked === 0) return false;
    this.options.journal.spoolDelete(this.options.marks, Number.POSITIVE_INFINITY);
    this.marked = 0;
    return true;
  }

  /** stored() is called with `item` when everything told so far is durable: never within this call. */
  settle(item: T): void {
    this.waiting.push(item);
    if (this.waiting.length === 1) queueMicrotask(this.commit);
  }

  /** Everything up to this number is done. */
  forget(upToSequence: number): void {
    this.messages.forget(upToSequence);
    // Behind the messages: without its mark a message would be sent again.
    if (this.marked > 0) this.options.journal.spoolDelete(this.options.marks, upToSequence);
  }

  clear(): void {
    this.messages.clear();
    this.unmark();
  }

  private barrier(items: readonly T[]): void {
    const { journal, clock, stored } = this.options;
    const hold = new Hold();
    journal.barrierAll(hold);
    hold.whenDone((reasonCode) => {
      if (reasonCode === 0) stored(items);
      else clock.after(RETRY_MS, () => this.barrier(items));
    });
  }
}
