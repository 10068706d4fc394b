// Limits that hold before a peer has said anything: how many connections may come a second, and how many may wait to be
// let in. Asked by broker/aedes/engine.ts for each new connection. Closes nothing itself.
import type { Clock } from '../base/clock.ts';
import type { SessionLimits } from '../session/session.ts';

export class Admission {
  private readonly clock: Clock;
  private sinceMs = 0;
  private count = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Why a connection may not come in, null = it may. @param pending connections that are not let in yet */
  refusal(limits: SessionLimits, pending: number): string | null {
    if (limits.maxPendingConnections > 0 && pending >= limits.maxPendingConnections)
      return 'too many connections that are not let in yet';
    if (limits.maxConnectRate === 0) return null;
    const nowMs = this.clock.mono();
    if (nowMs - this.sinceMs >= 1000) {
      this.sinceMs = nowMs;
      this.count = 0;
    }
    return ++this.count > limits.maxConnectRate ? 'too many connections a second' : null;
  }
}
