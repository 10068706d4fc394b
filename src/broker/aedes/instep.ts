// Whether this gateway is in step with the others that share its broker: it knows all subscriptions of kept sessions,
// and hears what is published. While Redis was away it has missed changes; until it has caught up, nothing of QoS 1 and
// 2 is acknowledged: a message would not be queued for a session that another gateway has taken up meanwhile. Made by
// sharing.ts for a shared broker.
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AedesSubscription } from './parts.ts';

/** What every gateway's persistence hears of new subscriptions (aedes-persistence, broadcastPersistence.js). */
const ADDED = '$SYS/sub/add';
/** Ours: comes back to its sender behind everything that was sent before. */
export const IN_STEP = '$SYS/tidegate/in-step';
/** Without an echo for so long it is tried again. */
const RETRY_MS = 1000;

export interface InStepParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether all connections to Redis are up. */
  readonly ready: () => boolean;
  /** Client ids with kept subscriptions, of all gateways. */
  readonly clients: () => Promise<readonly string[]>;
  readonly subscriptions: (clientId: string) => Promise<readonly AedesSubscription[]>;
  /** Tells all gateways, this one included. */
  readonly tell: (topic: string, payload: string) => Promise<void>;
  /** It has caught up. */
  readonly onReturn: () => void;
}

export class InStep {
  /** False from the loss of a connection until everything missed is known. */
  now = true;
  private readonly parts: InStepParts;
  private readonly own = randomUUID();
  private attempts = 0;
  private timer: Timer | null = null;

  constructor(parts: InStepParts) {
    this.parts = parts;
  }

  /** A connection has gone. */
  lost(): void {
    this.now = false;
    this.timer ??= this.parts.clock.every(RETRY_MS, () => void this.catchUp());
  }

  /** An echo has come. */
  heard(payload: string): void {
    if (this.now || payload !== `${this.own} ${this.attempts}` || !this.parts.ready()) return;
    this.now = true;
    this.stop();
    this.parts.onReturn();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  /**
   * Tells everybody what Redis has, and waits for the echo. Called when the connections are back, and again while there
   * is none.
   */
  async catchUp(): Promise<void> {
    const { ready, clients, subscriptions, tell, log } = this.parts;
    if (this.now || !ready()) return;
    const attempt = ++this.attempts;
    try {
      for (const clientId of await clients()) {
        const subs = await subscriptions(clientId);
        if (subs.length > 0) await tell(ADDED, JSON.stringify({ clientId, subs }));
        if (attempt !== this.attempts) return;
      }
      await tell(IN_STEP, `${this.own} ${attempt}`);
    } catch (error) {
      log('error', 'BRK-SHARE', { error: errorText(error) });
    }
  }
}
