// One bridge's part of the journal: numbers what is kept, tells the journal of it and of what is done. Used by
// bridge/nng/spool.ts (NNG frames) and bridge/mqtt/outbox.ts (messages for a remote broker), which know what the bytes
// mean and in which order they are done. Without a durable journal it only counts.
import type { Clock } from '../base/clock.ts';
import type { Journal, SpoolEntry } from '../store/store.ts';

export type SpoolJournal = Pick<Journal, 'durable' | 'accepting' | 'spoolPut' | 'spoolDelete'>;

export class Keeping {
  private readonly name: string;
  private readonly journal: SpoolJournal | null;
  private nextSequence: number;

  /**
   * @param name of the bridge in the journal
   * @param journal null = memory only
   * @param restored what an earlier process has left, ascending
   */
  constructor(name: string, journal: SpoolJournal | null, clock: Clock, restored: readonly SpoolEntry[]) {
    this.name = name;
    this.journal = journal?.durable === true ? journal : null;
    // Beyond what an earlier process has used, unless its entries are known and say it exactly.
    this.nextSequence = restored.length > 0 ? restored[restored.length - 1].sequence + 1 : clock.now();
  }

  /** Whether what is put survives the process, so that an acknowledgement has to wait for the commit. */
  get durable(): boolean {
    return this.journal !== null;
  }

  /** False while the store takes nothing: disk full, max_size reached. */
  get accepting(): boolean {
    return this.journal === null || this.journal.accepting;
  }

  /** The number of something that only memory holds. */
  number(): number {
    return this.nextSequence++;
  }

  /** Keeps bytes, which must not change afterwards, and gives their number. The caller has looked at `accepting`. */
  put(bytes: Uint8Array): number {
    const sequence = this.nextSequence++;
    this.journal?.spoolPut(this.name, sequence, bytes);
    return sequence;
  }

  /** Everything up to this number is done. */
  forget(upToSequence: number): void {
    this.journal?.spoolDelete(this.name, upToSequence);
  }

  /** Nothing is wanted any more. */
  clear(): void {
    this.forget(Number.POSITIVE_INFINITY);
  }
}
