// Keeps a bridge before 5.0 from sending round in circles: a message that is suspected is held until it is known what
// it is, and a rule whose messages come back waits for a minute. Made by bridge.ts, asked for every message that is
// forwarded. What suspects is loop.ts, what finds out trial.ts.
import type { Clock, Timer } from '../../base/clock.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { LoopProbe } from './loop.ts';
import { type HeldForward, LoopTrial, type TrialUser } from './trial.ts';

/** A rule whose messages come back is tried again after this. */
export const LOOP_PAUSE_MS = 60_000;
/** After a trial finds no loop, wait this long before the next one. */
const INNOCENT_MS = 60_000;

export interface GuardUser {
  /** A message has passed suspiciously often. */
  suspected(topic: string): void;
  /** The message goes on its way. */
  letGo(held: HeldForward): void;
  /** The rule waits from now on; `left` are the messages that were held. */
  paused(rule: number, topic: string, left: readonly HeldForward[]): void;
  /** No rule waits any more. */
  resumed(): void;
}

export class LoopGuard implements TrialUser {
  private readonly clock: Clock;
  private readonly user: GuardUser;
  /** Whether a suspicion is looked into: not where messages carry marks and cannot go round. */
  private readonly asks: () => boolean;
  private readonly probe: LoopProbe;
  private readonly trial: LoopTrial;
  /** When the last trial ended without proof. */
  private innocentMs = Number.NEGATIVE_INFINITY;
  /** Rules whose messages come back: they wait for somebody to break the loop, and are tried again after a while. */
  private readonly waiting = new Set<number>();
  private resume: Timer | null = null;

  constructor(clock: Clock, user: GuardUser, asks: () => boolean) {
    this.clock = clock;
    this.user = user;
    this.asks = asks;
    this.probe = new LoopProbe(clock);
    this.trial = new LoopTrial(clock, this);
  }

  /** Whether any rule waits. */
  get pausing(): boolean {
    return this.waiting.size > 0;
  }

  /** Whether this rule waits. */
  pauses(rule: number): boolean {
    return this.waiting.size > 0 && this.waiting.has(rule);
  }

  /** True when the message is held to find out whether it goes round. */
  holds(publication: Publication, topic: string, qos: Qos, retain: boolean, rule: number): boolean {
    const { trial } = this;
    if (trial.running) {
      if (!trial.concerns(publication.topic, rule)) return false;
      trial.take(heldOf(publication, topic, qos, retain, rule));
      return true;
    }
    if (!this.probe.passes(topic, publication.buffer, publication.payloadStart, publication.payloadEnd)) return false;
    this.user.suspected(topic);
    if (!this.asks() || this.clock.mono() - this.innocentMs < INNOCENT_MS) return false;
    trial.start(heldOf(publication, topic, qos, retain, rule));
    return true;
  }

  /** Rules are taken away: what is held goes on its way, nothing waits. */
  end(): void {
    this.trial.end();
    this.unpause();
  }

  // ---- from trial.ts

  letGo(held: HeldForward): void {
    this.innocentMs = this.clock.mono();
    this.user.letGo(held);
  }

  proven(rule: number, topic: string, left: readonly HeldForward[]): void {
    this.waiting.add(rule);
    this.user.paused(rule, topic, left);
    this.resume ??= this.clock.after(LOOP_PAUSE_MS, () => this.unpause());
  }

  private unpause(): void {
    this.resume?.cancel();
    this.resume = null;
    if (this.waiting.size > 0) this.user.resumed();
    this.waiting.clear();
  }
}

function heldOf(publication: Publication, topic: string, qos: Qos, retain: boolean, rule: number): HeldForward {
  const hold = publication.qos > 0 ? publication.hold() : null;
  return { message: publication.message(), topic, qos, retain, rule, hold };
}
