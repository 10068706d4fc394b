// What the clients of one proxy with `topics` share: their memory, who is connected under which client id, what is left
// of those who have gone, and what servers have said of their limits. Made by entrance.ts, through which each exchange
// asks. A client id is taken over here when its new connection has been let in by the server, so that the old one does
// not fight for it.
import type { Properties } from '../../mqtt/property.ts';
import type { Delivery } from './deliveries.ts';
import type { Budget } from './held.ts';

/** Deliveries of clients that have gone; the oldest clients are forgotten first. */
const REMEMBERED = 100_000;

interface Remembered {
  readonly upstreams: string;
  readonly deliveries: readonly Delivery[];
}

export interface Taken {
  takenOver(): void;
}

export class Exchanges {
  readonly budget: Budget = { usedBytes: 0 };
  private readonly connected = new Map<string, Taken>();
  private readonly remembered = new Map<string, Remembered>();
  private rememberedCount = 0;
  private readonly limits = new Map<string, Properties>();

  /** The client is in; another connection of the same is ended. */
  enter(key: string, one: Taken): void {
    const other = this.connected.get(key);
    this.connected.set(key, one);
    if (other !== undefined && other !== one) other.takenOver();
  }

  leave(key: string, one: Taken): void {
    if (this.connected.get(key) === one) this.connected.delete(key);
  }

  /** Keeps what a client with a session has not completed. */
  remember(key: string, upstreams: readonly string[], deliveries: readonly Delivery[]): void {
    if (deliveries.length === 0) return;
    this.recall(key, upstreams);
    this.remembered.set(key, { upstreams: upstreams.join('\0'), deliveries });
    this.rememberedCount += deliveries.length;
    for (const [oldest, { deliveries: gone }] of this.remembered) {
      if (this.rememberedCount <= REMEMBERED) break;
      this.remembered.delete(oldest);
      this.rememberedCount -= gone.length;
    }
  }

  /** Gives it back, once. */
  recall(key: string, upstreams: readonly string[]): readonly Delivery[] {
    const found = this.remembered.get(key);
    if (found === undefined) return [];
    this.remembered.delete(key);
    this.rememberedCount -= found.deliveries.length;
    return found.upstreams === upstreams.join('\0') ? found.deliveries : [];
  }

  /** What a server of an upstream has said in CONNACK, for clients that are connected before it is asked. */
  learn(upstream: string, properties: Properties | null): void {
    this.limits.set(upstream, properties ?? {});
  }

  known(upstream: string): Properties {
    return this.limits.get(upstream) ?? {};
  }
}
