// Topic Names by their bytes: one that has been seen is found without text, checks, rights or a search for its route.
// Made by routes.ts and asked by session/ for every PUBLISH. Bounded in entries and in bytes of each; a new topic takes
// the place of the oldest of its four, so a flood of new topics cannot empty the table at once. Holds only names that
// their finder has checked.
import type { KnownTopic, KnownTopics, Route } from './router.ts';

/** Power of two; four entries each: 16,384 topics in all. */
const SETS = 4096;
const WAYS = 4;
/** Longer topics are not kept: 16,384 of 64 KB each would be a way to fill memory. */
const LONG_BYTES = 256;
/** An entry with a name of usual length, as text and as bytes. */
const ENTRY_BYTES = 400;

class Known implements KnownTopic {
  /** Bytes of `utf8`; -1 when it has been forgotten: nothing equals it any more. */
  bytes: number;
  /** The topic that came after this one the last time: devices publish in turns. */
  next: Known | null = null;
  route: Route | null = null;
  readonly name: string;
  readonly utf8: Uint8Array;
  readonly levels: number;
  readonly serial: number;

  constructor(name: string, utf8: Uint8Array, levels: number, serial: number) {
    this.name = name;
    this.utf8 = utf8;
    this.bytes = utf8.length;
    this.levels = levels;
    this.serial = serial;
  }
}

export class TopicTable implements KnownTopics {
  private readonly entries: (Known | null)[] = new Array(SETS * WAYS).fill(null);
  /** The way of each set that is replaced next. */
  private readonly turns = new Uint8Array(SETS);
  /** Nobody outside knows which topics share a set. */
  private readonly seed = Math.floor(Math.random() * 0x7fff_ffff);
  private nextSerial = 1;
  private sweptVersion = 0;
  private kept = 0;
  private lastNamed: Known | null = null;

  find(buffer: Uint8Array, start: number, end: number, before: KnownTopic | null): KnownTopic | null {
    const bytes = end - start;
    const last = before as Known | null;
    if (last !== null) {
      const next = last.next;
      if (next !== null && next.bytes === bytes && same(next.utf8, buffer, start, bytes)) return next;
    }
    if (bytes > LONG_BYTES) return null;
    const at = this.setOf(buffer, start, end) * WAYS;
    for (let i = at; i < at + WAYS; i++) {
      const entry = this.entries[i];
      if (entry === null) return null;
      if (entry.bytes !== bytes || !same(entry.utf8, buffer, start, bytes)) continue;
      if (last !== null && last.bytes >= 0) last.next = entry;
      return entry;
    }
    return null;
  }

  add(name: string, buffer: Uint8Array, start: number, end: number): KnownTopic {
    const utf8 = new Uint8Array(end - start);
    utf8.set(buffer.subarray(start, end));
    let levels = 1;
    for (const byte of utf8) if (byte === SLASH) levels++;
    const entry = new Known(name, utf8, levels, this.nextSerial++);
    if (utf8.length > LONG_BYTES) return entry;
    const set = this.setOf(utf8, 0, utf8.length);
    const at = set * WAYS;
    for (let i = at; i < at + WAYS; i++) {
      if (this.entries[i] !== null) continue;
      this.entries[i] = entry;
      this.kept++;
      return entry;
    }
    const way = this.turns[set];
    this.turns[set] = (way + 1) % WAYS;
    this.forget(this.entries[at + way]);
    this.entries[at + way] = entry;
    return entry;
  }

  /** Memory of the entries that are kept, their routes left out. */
  get bytes(): number {
    return this.kept * ENTRY_BYTES;
  }

  /** Routes are found again: those there were take too much memory. */
  forgetRoutes(): void {
    for (const entry of this.entries) if (entry !== null) entry.route = null;
  }

  nameAt(buffer: Uint8Array, start: number, end: number): string {
    const known = this.find(buffer, start, end, this.lastNamed) as Known | null;
    // Forgotten between its check and now: the bytes say it all the same.
    if (known === null) return Buffer.from(buffer.buffer, buffer.byteOffset + start, end - start).toString();
    this.lastNamed = known;
    return known.name;
  }

  /** Forgets routes of other versions. O(topics) after a change. */
  sweep(version: number): void {
    if (this.sweptVersion === version) return;
    this.sweptVersion = version;
    if (this.kept === 0) return;
    for (const entry of this.entries) if (entry?.route && entry.route.version !== version) entry.route = null;
  }

  /** What it leads to must not stay in memory through those who still hold it. */
  private forget(entry: Known | null): void {
    if (entry === null) return;
    entry.bytes = -1;
    entry.next = null;
    entry.route = null;
  }

  /** FNV-1a from a seed of its own, with its upper half folded in. */
  private setOf(buffer: Uint8Array, start: number, end: number): number {
    let hash = this.seed;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ buffer[i], 0x0100_0193);
    return (hash ^ (hash >>> 15)) & (SETS - 1);
  }
}

const SLASH = 0x2f;

/** Topics mostly differ at their end: from there a difference is found at once. */
function same(utf8: Uint8Array, buffer: Uint8Array, start: number, bytes: number): boolean {
  for (let i = bytes - 1; i >= 0; i--) if (utf8[i] !== buffer[start + i]) return false;
  return true;
}
