// Upstreams of topics by the bytes of their names: one that has been seen is found without text and without its rules.
// Made by table.ts, asked for every PUBLISH of either side. Bounded in entries and in bytes of each; a new topic takes
// the place of one of its set, so a flood of new topics costs lookups, not memory.

/** Power of two; two entries each: 4096 topics in all. */
const SETS = 2048;
/** Longer topics are looked up each time. */
const LONG_BYTES = 256;

interface Known {
  readonly name: Uint8Array;
  readonly owner: number;
}

export class Owners {
  private readonly entries: (Known | null)[] = new Array<Known | null>(2 * SETS).fill(null);
  /** Nobody outside knows which topics share a set. */
  private readonly seed = Math.floor(Math.random() * 0x7fff_ffff);
  private last: Known | null = null;

  /** The owner of the topic in buffer[start, end), -1 when it is not known. */
  find(buffer: Uint8Array, start: number, end: number): number {
    const { last } = this;
    if (last !== null && same(last.name, buffer, start, end)) return last.owner;
    if (end - start > LONG_BYTES) return -1;
    const at = this.setOf(buffer, start, end);
    for (let i = at; i < at + 2; i++) {
      const entry = this.entries[i];
      if (entry === null || !same(entry.name, buffer, start, end)) continue;
      this.last = entry;
      return entry.owner;
    }
    return -1;
  }

  /** Takes up a topic that find() did not find. */
  add(buffer: Uint8Array, start: number, end: number, owner: number): void {
    if (end - start > LONG_BYTES) return;
    const name = new Uint8Array(end - start);
    name.set(buffer.subarray(start, end));
    const entry = { name, owner };
    const at = this.setOf(buffer, start, end);
    if (this.entries[at] !== null) this.entries[at + 1] = this.entries[at];
    this.entries[at] = entry;
    this.last = entry;
  }

  /** FNV-1a. */
  private setOf(buffer: Uint8Array, start: number, end: number): number {
    let hash = this.seed;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ buffer[i], 0x0100_0193);
    return ((hash ^ (hash >>> 15)) & (SETS - 1)) * 2;
  }
}

function same(name: Uint8Array, buffer: Uint8Array, start: number, end: number): boolean {
  const { length } = name;
  if (end - start !== length) return false;
  // Topics of one load differ at their ends.
  for (let i = length - 1; i >= 0; i--) if (name[i] !== buffer[start + i]) return false;
  return true;
}
