// Limits that hold before a peer has said anything: how many connections may come a second, how many may wait to be let
// in, and what all connections may cost. Asked by broker/base.ts for each new connection. Closes nothing itself.
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { SessionLimits } from '../session/session.ts';
import { connectionLimit } from '../session/weight.ts';

export class Newcomers {
  private readonly clock: Clock;
  private readonly ledger: Ledger;
  private sinceMs = 0;
  private count = 0;

  constructor(clock: Clock, ledger: Ledger) {
    this.clock = clock;
    this.ledger = ledger;
  }

  /** Why a connection may not come in, null = it may. @param pending connections that are not let in yet */
  refusal(limits: SessionLimits, pending: number): string | null {
    const tooFast = this.tooFast(limits.maxConnectRate);
    const most = connectionLimit(limits);
    if (most > 0 && (this.ledger.of('connections') >= most || this.ledger.isFull(0)))
      return 'no memory for more connections';
    if (tooFast) return 'too many connections a second';
    const { maxPendingConnections } = limits;
    return maxPendingConnections > 0 && pending >= maxPendingConnections
      ? 'too many connections that are not let in yet'
      : null;
  }

  private tooFast(maxConnectRate: number): boolean {
    if (maxConnectRate === 0) return false;
    const nowMs = this.clock.mono();
    if (nowMs - this.sinceMs >= 1000) {
      this.sinceMs = nowMs;
      this.count = 0;
    }
    return ++this.count > maxConnectRate;
  }
}
