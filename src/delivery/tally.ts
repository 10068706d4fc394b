// What one session has been sent and what it has lost, counted for itself and for all sessions together. Used by
// outbox.ts and sender.ts: whatever is dropped goes through here, each reason under its own name. Logs nothing itself.
import type { Message } from '../mqtt/message.ts';
import type { DeliveryStats } from './delivery.ts';

/** An entry of a queue and its slot. */
const ENTRY_BYTES = 112;

export type Trouble = 'queue-full' | 'slow';

export class Tally {
  /** Messages of this session alone. */
  sent = 0;
  dropped = 0;
  private readonly stats: DeliveryStats;
  private readonly onTrouble: (reason: Trouble) => void;
  /** Told already and not over yet. */
  private troubled: Trouble | null = null;

  constructor(stats: DeliveryStats, onTrouble: (reason: Trouble) => void) {
    this.stats = stats;
    this.onTrouble = onTrouble;
  }

  /** Messages have been written: `bytes` are those of their whole packets. */
  wrote(messages: number, bytes: number): void {
    this.sent += messages;
    this.stats.sent += messages;
    this.stats.sentBytes += bytes;
  }

  /** QoS 0 for a client that does not read. */
  slow(count: number): void {
    this.dropped += count;
    this.stats.droppedSlow += count;
    this.trouble('slow');
  }

  full(): void {
    this.dropped++;
    this.stats.droppedQueueFull++;
    this.trouble('queue-full');
  }

  /** QoS 0 for a session whose client is away. */
  offline(count: number): void {
    this.dropped += count;
    this.stats.droppedOffline += count;
  }

  tooLarge(): void {
    this.dropped++;
    this.stats.droppedTooLarge++;
  }

  expired(): void {
    this.dropped++;
    this.stats.droppedExpired++;
  }

  byHook(): void {
    this.dropped++;
    this.stats.droppedByHook++;
  }

  forbidden(): void {
    this.dropped++;
    this.stats.droppedForbidden++;
  }

  /** The store could not take it. */
  refused(): void {
    this.dropped++;
    this.stats.refusedStore++;
  }

  /** Whether all sessions together hold so many bytes; 0 = no bound. */
  crowded(totalBytes: number): boolean {
    return this.stats.full || (totalBytes > 0 && this.stats.queuedBytes >= totalBytes);
  }

  /**
   * A message waits or is in flight (1), or is not any more (-1). One that several sessions hold counts once, its
   * entries each.
   */
  hold(message: Message, sign: 1 | -1): void {
    const { stats } = this;
    if (sign === 1 ? message.holders++ === 0 : --message.holders === 0) stats.queuedBytes += sign * message.bytes;
    stats.queuedBytes += sign * ENTRY_BYTES;
    stats.queuedMessages += sign;
  }

  /** Memory of the session's own lists has grown, or shrunk. */
  weigh(bytes: number): void {
    this.stats.queuedBytes += bytes;
  }

  /** The trouble is over, any or this one: the next time it is told again. */
  recovered(reason: Trouble | null = null): void {
    if (reason === null || this.troubled === reason) this.troubled = null;
  }

  private trouble(reason: Trouble): void {
    if (this.troubled === reason) return;
    this.troubled = reason;
    this.onTrouble(reason);
  }
}
