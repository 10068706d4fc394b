// What everything costs that peers make the gateway keep: one place that counts it, by kind, and one set of weights for
// what V8 and Node hold beside the bytes themselves. Each stage adds and takes back where it keeps something, never for
// what only passes through. Its bounds are asked where something is refused, the sums are shown as a metric. Weights
// are of heap snapshots (Node.js 20, 64 bit).

/** What is counted. */
export const KINDS = [
  'sessions',
  'subscriptions',
  'retained',
  'queued',
  'delayed',
  'unsent',
  'input',
  'connections',
  'names',
  'caches',
  'sp',
  'failures',
  'http',
  'recording',
] as const;
export type Kind = (typeof KINDS)[number];

/** A Map with up to four entries. */
export const MAP_BYTES = 184;
const SMALL_ENTRIES = 4;
/** An entry of a Map that has grown: slots are doubled, so half are empty at worst. */
export const ENTRY_BYTES = 40;

/** What the entry with this index, from 0, costs beside the Map. */
export function entryBytes(index: number): number {
  return index < SMALL_ENTRIES ? 0 : ENTRY_BYTES;
}

/** An object with as many fields as most records have. */
export const OBJECT_BYTES = 96;
/** A Buffer that has memory of its own, beside that memory. */
export const BUFFER_BYTES = 200;

/** Shorter texts are not looked at: what a wide character would add is less than their header. */
const LOOKED_AT_CHARACTERS = 64;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of one-byte strings
const WIDE = /[^\u0000-\u00ff]/;

/** Memory of a string: V8 keeps one byte a character, two where any is beyond U+00FF. O(n) for long ones. */
export function textBytes(text: string): number {
  const { length } = text;
  // V8 has all strings of one character.
  if (length < 2) return 0;
  if (length <= LOOKED_AT_CHARACTERS) return 24 + length;
  return 24 + (WIDE.test(text) ? 2 * length : length);
}

/**
 * Memory that a topic or filter takes in a tree at most: all its levels are new. O(length). @param nodeBytes of one
 * node
 */
export function pathBytes(path: string, nodeBytes: number): number {
  let levels = 1;
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) levels++;
  return levels * (nodeBytes + MAP_BYTES + 24) + path.length;
}

/** What stays when its connection ends. */
export type Kept = 'sessions' | 'subscriptions' | 'retained';

/** The part of the bound for what is kept that one kind may take, so that none shuts the others out. */
const SHARES: Readonly<Record<Kept, number>> = { sessions: 1, subscriptions: 1 / 2, retained: 1 / 2 };
/** Subscriptions and retained messages together: the rest is left to sessions. */
const TREES_SHARE = 3 / 4;

function zeros(): Record<Kind, number> {
  return Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
}

export class Ledger {
  /** Bytes that may be kept; 0 = no limit. */
  keptLimit = 0;
  /** Bytes of everything; 0 = no limit. Each kind has a bound of its own; this one is for all of them at once. */
  totalLimit = 0;
  private readonly bytes = zeros();
  private readonly sources: { readonly kind: Kind; readonly read: () => number }[] = [];

  /** Something is kept, or, with a negative number, kept no longer. */
  add(kind: Kind, bytes: number): void {
    this.bytes[kind] += bytes;
  }

  /** A stage that counts by itself, because it is asked more often than it changes. */
  watch(kind: Kind, read: () => number): void {
    this.sources.push({ kind, read });
  }

  of(kind: Kind): number {
    let sum = this.bytes[kind];
    for (const source of this.sources) if (source.kind === kind) sum += source.read();
    return sum;
  }

  /** Whether `bytes` more of this kind may be kept. */
  hasRoom(kind: Kept, bytes: number): boolean {
    const limit = this.keptLimit;
    if (limit === 0 || bytes <= 0) return true;
    if (this.isFull(bytes)) return false;
    if (this.of(kind) + bytes > SHARES[kind] * limit) return false;
    const trees = this.of('subscriptions') + this.of('retained');
    if (kind !== 'sessions' && trees + bytes > TREES_SHARE * limit) return false;
    return trees + this.of('sessions') + bytes <= limit;
  }

  /** Whether everything together leaves no room for `bytes` more. */
  isFull(bytes: number): boolean {
    return this.totalLimit > 0 && this.total + bytes > this.totalLimit;
  }

  get total(): number {
    let sum = 0;
    for (const kind of KINDS) sum += this.of(kind);
    return sum;
  }
}
