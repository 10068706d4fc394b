// Verdicts of the authorizer kept per client, so that rights cost a map look-up and not a rule walk.
// Used by named.ts and state.ts; emptied when the authorizer's version rises. Its memory is bounded whatever topics come.

/** Topics remembered for one client; above that all are forgotten. */
const TOPICS = 1000;
/** Of topics longer than this only the last one is remembered: a thousand of 64 KB each would be a client's way to fill memory. */
const LONG_CHARACTERS = 256;

export class Verdicts {
  private readonly map = new Map<string, boolean>();
  private long = '';
  private longVerdict = false;

  get(topic: string): boolean | undefined {
    if (topic.length <= LONG_CHARACTERS) return this.map.get(topic);
    return topic === this.long ? this.longVerdict : undefined;
  }

  set(topic: string, verdict: boolean): void {
    if (topic.length > LONG_CHARACTERS) {
      this.long = topic;
      this.longVerdict = verdict;
      return;
    }
    if (this.map.size >= TOPICS) this.map.clear();
    this.map.set(topic, verdict);
  }

  clear(): void {
    this.map.clear();
    this.long = '';
  }
}

/** What TopicVerdicts.get() says: no verdict yet, or a denial (0), or a grant (1). */
export const UNKNOWN = -1;
const FIRST_SLOTS = 8;
/** 32 KB for a client that publishes to so many topics. */
const MOST_SLOTS = 4096;

/**
 * Verdicts of one client by the serials of topics (router.ts, KnownTopic). Topics that share a slot are asked for again in turn, and the
 * table grows when that happens: topics that were first seen one after another never share one.
 */
export class TopicVerdicts {
  /** Twice the serial, and 1 more for a grant; 0 = free. */
  private slots = new Float64Array(FIRST_SLOTS);

  get(serial: number): number {
    const { slots } = this;
    const verdict = slots[serial & (slots.length - 1)] - 2 * serial;
    return verdict === 0 || verdict === 1 ? verdict : UNKNOWN;
  }

  set(serial: number, verdict: boolean): void {
    let at = serial & (this.slots.length - 1);
    const there = this.slots[at];
    if (there !== 0 && Math.floor(there / 2) !== serial && this.slots.length < MOST_SLOTS) {
      this.grow();
      at = serial & (this.slots.length - 1);
    }
    this.slots[at] = 2 * serial + (verdict ? 1 : 0);
  }

  clear(): void {
    this.slots.fill(0);
  }

  private grow(): void {
    const before = this.slots;
    this.slots = new Float64Array(before.length * 2);
    for (const value of before) if (value !== 0) this.slots[Math.floor(value / 2) & (this.slots.length - 1)] = value;
  }
}
