// The prefixes a sub0 socket has asked for: which bodies its owner wants to see; none = nothing.
// Used by protocols/sub.ts and nanomsg.ts, which receive more than was asked for: peers of pub0 send all they have.
// Source: nng_sub(7), NNG_OPT_SUB_SUBSCRIBE.

export class Prefixes {
  /** Whether matches() need not be asked: read for every message. */
  everything = false;
  private readonly list: Uint8Array[] = [];

  /** The same prefix may be there more than once. */
  add(prefix: Uint8Array): void {
    this.list.push(Uint8Array.from(prefix));
    this.everything = this.list.some((known) => known.length === 0);
  }

  /** Takes one of those that are the same. */
  remove(prefix: Uint8Array): void {
    const at = this.list.findIndex((known) => Buffer.compare(known, prefix) === 0);
    if (at < 0) return;
    this.list.splice(at, 1);
    this.everything = this.list.some((known) => known.length === 0);
  }

  /** Whether bytes[start, end) begins with one of them. O(prefixes). */
  matches(bytes: Uint8Array, start: number, end: number): boolean {
    const { list } = this;
    for (let i = 0; i < list.length; i++) if (beginsWith(bytes, start, end, list[i])) return true;
    return false;
  }
}

function beginsWith(bytes: Uint8Array, start: number, end: number, prefix: Uint8Array): boolean {
  if (end - start < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
  return true;
}
