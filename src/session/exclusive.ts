// Exclusive subscriptions: $exclusive/<filter> is granted to one session at a time, connected or not; others are
// refused until it unsubscribes or ends. Ordinary subscriptions to the same filter are not concerned. Made by
// broker/, one for a broker. Knows who has what and nothing of sessions.
import { EXCLUSIVE_PREFIX } from '../mqtt/topic.ts';

export class Exclusives {
  /** Client ids by filter, the prefix left out. */
  private readonly holders = new Map<string, string>();

  get count(): number {
    return this.holders.size;
  }

  /** Whether another client has it. */
  taken(filter: string, clientId: string): boolean {
    const holder = this.holders.get(filter);
    return holder !== undefined && holder !== clientId;
  }

  take(filter: string, clientId: string): void {
    this.holders.set(filter, clientId);
  }

  /**
   * The filter behind the prefix of a subscription that this client has exclusively, or null: what begins like one may
   * be an ordinary filter, of a time when there were none.
   */
  heldBy(clientId: string, topicFilter: string): string | null {
    if (!topicFilter.startsWith(EXCLUSIVE_PREFIX)) return null;
    const filter = topicFilter.slice(EXCLUSIVE_PREFIX.length);
    return this.holders.get(filter) === clientId ? filter : null;
  }

  release(filter: string): void {
    this.holders.delete(filter);
  }
}
