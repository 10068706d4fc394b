// Verdicts of the authorizer kept per client, so that rights cost a map look-up and not a rule walk. Used by named.ts
// and state.ts; emptied when the authorizer's version rises. Its memory is bounded whatever topics come.

import { ENTRY_BYTES, type Ledger, textBytes } from '../base/ledger.ts';

/** Topics remembered for one client; above that all are forgotten. */
const TOPICS = 1000;
/**
 * Of topics longer than this only the last one is remembered: a thousand of 64 KB each would be a client's way to fill
 * memory.
 */
const LONG_CHARACTERS = 256;
/** Above this memory of all clients together a client remembers nothing new. */
const ALL_BYTES = 32 * 1024 * 1024;

export class Verdicts {
  private readonly ledger: Ledger;
  private bytes = 0;
  private readonly map = new Map<string, boolean>();
  private long = '';
  private longVerdict = false;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  get(topic: string): boolean | undefined {
    if (topic.length <= LONG_CHARACTERS) return this.map.get(topic);
    return topic === this.long ? this.longVerdict : undefined;
  }

  set(topic: string, verdict: boolean): void {
    if (topic.length > LONG_CHARACTERS) {
      this.count(textBytes(topic) - (this.long === '' ? 0 : textBytes(this.long)));
      this.long = topic;
      this.longVerdict = verdict;
      return;
    }
    if (this.map.size >= TOPICS) this.clear();
    this.map.set(topic, verdict);
    this.count(ENTRY_BYTES + textBytes(topic));
    // Only the newest is remembered then: who waits for it must find it.
    if (this.map.size > 1 && this.ledger.of('caches') > ALL_BYTES) this.clear(topic, verdict);
  }

  private count(bytes: number): void {
    this.bytes += bytes;
    this.ledger.add('caches', bytes);
  }

  clear(newest = '', verdict = false): void {
    this.map.clear();
    this.long = '';
    this.count(-this.bytes);
    if (newest !== '') this.set(newest, verdict);
  }
}

/** What TopicVerdicts.get() says: no verdict yet, or a denial (0), or a grant (1). */
export const UNKNOWN = -1;
const FIRST_SLOTS = 8;
/** 32 KB for a client that publishes to so many topics. */
const MOST_SLOTS = 4096;
const SLOT_BYTES = 8;

/**
 * Verdicts of one client by the serials of topics (router.ts, KnownTopic). Topics that share a slot are asked for again
 * in turn, and the table grows when that happens: topics that were first seen one after another never share one.
 */
export class TopicVerdicts {
  /** Twice the serial, and 1 more for a grant; 0 = free. */
  private slots = new Float64Array(FIRST_SLOTS);
  private readonly ledger: Ledger;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  get(serial: number): number {
    const { slots } = this;
    const verdict = slots[serial & (slots.length - 1)] - 2 * serial;
    return verdict === 0 || verdict === 1 ? verdict : UNKNOWN;
  }

  set(serial: number, verdict: boolean): void {
    let at = serial & (this.slots.length - 1);
    const there = this.slots[at];
    if (there !== 0 && Math.floor(there / 2) !== serial && this.mayGrow()) {
      this.grow();
      at = serial & (this.slots.length - 1);
    }
    this.slots[at] = 2 * serial + (verdict ? 1 : 0);
  }

  clear(): void {
    this.slots.fill(0);
  }

  /** The client has gone. */
  close(): void {
    this.ledger.add('caches', -SLOT_BYTES * (this.slots.length - FIRST_SLOTS));
    this.slots = new Float64Array(FIRST_SLOTS);
  }

  private mayGrow(): boolean {
    return this.slots.length < MOST_SLOTS && this.ledger.of('caches') < ALL_BYTES;
  }

  private grow(): void {
    const before = this.slots;
    this.slots = new Float64Array(before.length * 2);
    this.ledger.add('caches', SLOT_BYTES * before.length);
    for (const value of before) if (value !== 0) this.slots[Math.floor(value / 2) & (this.slots.length - 1)] = value;
  }
}
