// The counters of a bridge's rules by their place in the configuration. Made by outbox.ts, whose messages outlive
// rules; bridge.ts sets the rules.
import type { DropReason, RuleCounters } from '../counters.ts';

export class RuleTally {
  rules: readonly RuleCounters[] = [];
  /** For messages of rules that no longer exist; made when there is something to count. */
  orphans: (() => RuleCounters) | null = null;

  forwarded(rule: number, payloadBytes: number): void {
    const counters = this.of(rule);
    if (counters === null) return;
    counters.forwarded.value++;
    counters.bytes.value += payloadBytes;
  }

  drop(rule: number, reason: DropReason): void {
    this.of(rule)?.drop(reason);
  }

  private of(rule: number): RuleCounters | null {
    return this.rules[rule] ?? this.orphans?.() ?? null;
  }
}
