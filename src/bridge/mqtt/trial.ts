// Finds out whether a message that is forwarded again and again goes round in circles, by holding its topic for some
// seconds: a loop falls silent, and each copy that is let go comes back; a device that repeats itself goes on, or does
// not answer. Nothing is lost by asking. Used by guard.ts where messages carry no marks (before 5.0). Times are the
// clock's; keeps a bounded number of messages.
import type { Clock, Timer } from '../../base/clock.ts';
import type { Hold, Message } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';

/** Silence before a copy is let go, drawn anew each time: no device has that rhythm. */
const SILENCE_MS = 600;
const SILENCE_MORE_MS = 1200;
/** A copy that is let go is back by then. */
const ANSWER_MS = 500;
/** So many answers in a row prove it. */
const ANSWERS = 3;
const LONGEST_MS = 10_000;
const MOST_HELD = 1000;
const MOST_BYTES = 4 << 20;

/** A message on its way to the remote. */
export interface HeldForward {
  readonly message: Message;
  readonly topic: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly rule: number;
  /** The publisher's acknowledgement waits. */
  readonly hold: Hold | null;
}

export interface TrialUser {
  letGo(held: HeldForward): void;
  /** It is a loop: `left` are the messages that were held. */
  proven(rule: number, topic: string, left: readonly HeldForward[]): void;
}

export class LoopTrial {
  private readonly clock: Clock;
  private readonly user: TrialUser;
  private readonly random: () => number;
  /** The local topic and payload that are looked at; null = no trial. */
  private subject: { readonly topic: string; readonly payload: Uint8Array; readonly rule: number } | null = null;
  private held: HeldForward[] = [];
  private heldBytes = 0;
  private asked = false;
  private answers = 0;
  private timer: Timer | null = null;
  private limit: Timer | null = null;

  /** @param random 0 to 1 */
  constructor(clock: Clock, user: TrialUser, random: () => number = Math.random) {
    this.clock = clock;
    this.user = user;
    this.random = random;
  }

  get running(): boolean {
    return this.subject !== null;
  }

  /** Begins with this message, which is held. */
  start(first: HeldForward): void {
    const { topic, payload } = first.message;
    this.subject = { topic, payload, rule: first.rule };
    this.answers = 0;
    this.asked = false;
    this.limit = this.clock.after(LONGEST_MS, () => this.end());
    this.take(first);
  }

  /** Whether messages of this topic by this rule are held now. */
  concerns(topic: string, rule: number): boolean {
    return this.subject !== null && this.subject.topic === topic && this.subject.rule === rule;
  }

  /** Holds a message that the trial concerns. */
  take(one: HeldForward): void {
    this.held.push(one);
    this.heldBytes += one.message.bytes;
    one.hold?.add();
    if (this.held.length > MOST_HELD || this.heldBytes > MOST_BYTES) {
      this.end();
      return;
    }
    const { subject } = this;
    if (subject === null || Buffer.compare(one.message.payload, subject.payload) !== 0) return;
    if (this.asked && ++this.answers >= ANSWERS) {
      const left = this.clear();
      this.user.proven(subject.rule, subject.topic, left);
      return;
    }
    this.asked = false;
    this.wait(SILENCE_MS + this.random() * SILENCE_MORE_MS, () => this.ask());
  }

  /** No loop, or no time to find out: everything goes on its way. */
  end(): void {
    for (const one of this.clear()) this.user.letGo(one);
  }

  // ---- inside

  /** Lets the oldest copy go. */
  private ask(): void {
    const { subject } = this;
    const at = this.held.findIndex(
      ({ message }) => Buffer.compare(message.payload, subject?.payload ?? message.payload) === 0,
    );
    const [one] = this.held.splice(at < 0 ? 0 : at, 1);
    if (one === undefined) {
      this.end();
      return;
    }
    this.heldBytes -= one.message.bytes;
    this.asked = true;
    this.wait(ANSWER_MS, () => this.end());
    this.user.letGo(one);
  }

  private wait(ms: number, then: () => void): void {
    this.timer?.cancel();
    this.timer = this.clock.after(ms, then);
  }

  private clear(): HeldForward[] {
    const left = this.held;
    this.held = [];
    this.heldBytes = 0;
    this.subject = null;
    this.timer?.cancel();
    this.limit?.cancel();
    this.timer = null;
    this.limit = null;
    return left;
  }
}
