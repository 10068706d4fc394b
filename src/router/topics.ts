// Counts what is published topic by topic, for whoever looks: REST, console, `ctl topics`. Made and asked by routes.ts.
// A count belongs to its topic, not to a route: routes are found anew whenever subscriptions change and carry the same
// count on, so a message costs two additions and nothing is looked up. The number of counts is bounded; what has none
// of its own is counted together. Rates are differences over a window that is remembered, not averages that somebody
// would have to keep up to date.
import type { Clock } from '../base/clock.ts';
import type { TopicCount } from './router.ts';

/** A count with a topic of usual length. */
const COUNT_BYTES = 200;
/** Topics with a count of their own. */
export const COUNTED_TOPICS = 20_000;
/** Longer topics are counted together. */
const LONG_CHARACTERS = 256;
/** How often turn() is to be called: rates are over the last one to two of these. */
export const WINDOW_MS = 5000;
/**
 * Windows without a message after which a topic makes room for others, if there are others; then what is silent at all.
 */
const SILENT_WINDOWS = [12, 1] as const;
/** Room for a tenth of all counts is worth having all routes found anew. */
const WORTH = COUNTED_TOPICS / 10;

/** Messages on one topic as they are told. */
export interface TopicRates {
  readonly topic: string;
  readonly messages: number;
  /** Of payloads. */
  readonly bytes: number;
  /** A second. */
  readonly messageRate: number;
  readonly byteRate: number;
}

class Count implements TopicCount {
  messages = 0;
  bytes = 0;
  /** What they were at the last turn and at the one before. */
  lastMessages = 0;
  lastBytes = 0;
  oldMessages = 0;
  oldBytes = 0;
  silentWindows = 0;
  readonly topic: string;

  constructor(topic: string) {
    this.topic = topic;
  }

  turn(): void {
    this.silentWindows = this.messages === this.lastMessages ? this.silentWindows + 1 : 0;
    this.oldMessages = this.lastMessages;
    this.oldBytes = this.lastBytes;
    this.lastMessages = this.messages;
    this.lastBytes = this.bytes;
  }

  /** Takes over everything that another one has counted. */
  merge(from: Count): void {
    this.messages += from.messages;
    this.bytes += from.bytes;
    this.lastMessages += from.lastMessages;
    this.lastBytes += from.lastBytes;
    this.oldMessages += from.oldMessages;
    this.oldBytes += from.oldBytes;
  }
}

export class TopicCounts {
  private readonly clock: Clock;
  private readonly counts = new Map<string, Count>();
  private readonly rest = new Count('');
  /** Topics were counted together because there was no room for them. */
  private crowded = false;
  private lastMs: number;
  private oldMs: number;

  /** Memory of all counts: their topics are short. */
  get bytes(): number {
    return this.counts.size * COUNT_BYTES;
  }

  constructor(clock: Clock) {
    this.clock = clock;
    this.lastMs = clock.mono();
    this.oldMs = this.lastMs;
  }

  /** The count of a topic, or the one of all that have none of their own. Holds until turn() returns true. */
  of(topic: string): TopicCount {
    const known = this.counts.get(topic);
    if (known !== undefined) return known;
    if (topic.length > LONG_CHARACTERS) return this.rest;
    if (this.counts.size >= COUNTED_TOPICS) {
      this.crowded = true;
      return this.rest;
    }
    const made = new Count(topic);
    this.counts.set(topic, made);
    return made;
  }

  /**
   * A window has passed. True when silent topics had to make room: counts that are kept somewhere are not theirs any
   * more. O(topics).
   */
  turn(): boolean {
    const nowMs = this.clock.mono();
    this.oldMs = this.lastMs;
    this.lastMs = nowMs;
    this.rest.turn();
    for (const count of this.counts.values()) count.turn();
    return this.crowded && this.makeRoom();
  }

  private makeRoom(): boolean {
    this.crowded = false;
    const before = this.counts.size;
    for (const windows of SILENT_WINDOWS) {
      for (const count of this.counts.values()) {
        if (count.silentWindows < windows) continue;
        this.counts.delete(count.topic);
        this.rest.merge(count);
      }
      if (before - this.counts.size >= WORTH) return true;
    }
    return this.counts.size < before;
  }

  /** Milliseconds that rates told now are over. */
  get windowMs(): number {
    return this.clock.mono() - this.oldMs;
  }

  /** Topics with a count of their own, in no particular order. */
  *list(): Generator<TopicRates, undefined> {
    const seconds = this.windowMs / 1000;
    for (const count of this.counts.values()) yield ratesOf(count, seconds);
    return undefined;
  }

  /** All others together. */
  others(): TopicRates {
    return ratesOf(this.rest, this.windowMs / 1000);
  }
}

function ratesOf(count: Count, seconds: number): TopicRates {
  const { topic, messages, bytes } = count;
  return {
    topic,
    messages,
    bytes,
    messageRate: seconds > 0 ? (messages - count.oldMessages) / seconds : 0,
    byteRate: seconds > 0 ? (bytes - count.oldBytes) / seconds : 0,
  };
}
