// How a bridge to a remote broker is: its state and last error, and the log lines about them. Made by bridge.ts. A
// state is logged when it or the error is new, not at every attempt.
import type { Log } from '../../base/log.ts';
import type { BridgeState } from '../bridge.ts';

export class Condition {
  state: BridgeState = 'starting';
  lastError: string | null = null;
  private readonly log: Log;
  private readonly labels: Readonly<Record<string, unknown>>;
  /** State and error as they were last logged. */
  private logged = '';
  /** Whether the last state in the log was a loss. */
  private warned = false;

  constructor(log: Log, labels: Readonly<Record<string, unknown>>) {
    this.log = log;
    this.labels = labels;
  }

  enter(state: BridgeState, fields: Readonly<Record<string, unknown>>): void {
    const text = `${state} ${this.lastError ?? ''}`;
    const known = text === this.logged;
    this.state = state;
    this.logged = text;
    if (known) return;
    // A recovery at the level of the loss: those who read only warnings see both.
    const level = state === 'connected' && !this.warned ? 'info' : 'warn';
    this.log(level, 'MQB-STATE', { ...this.labels, state, ...fields });
    this.warned = state === 'retrying' || state === 'error';
  }
}
