// Which server each client was led to the last time (`sticky` of a pool): a key, such as the client id, finds it again
// until it has not been used for a while. Made by pool.ts. Bounded in entries; the one that was used longest ago goes
// first. Kept over reloads, not over restarts. Source: HAProxy, stick-table and stick on.

interface Entry {
  /** Of the server. */
  address: string;
  /** Connections that are open. */
  open: number;
  /** Monotonic ms from which it no longer counts, while none is open. */
  untilMs: number;
}

export class StickyTable {
  expireMs: number;
  most: number;
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(expireMs: number, most: number) {
    this.expireMs = expireMs;
    this.most = most;
  }

  get size(): number {
    return this.entries.size;
  }

  /** The address of the server, null where there is none or its time is over. */
  find(key: string, nowMs: number): string | null {
    const entry = this.entries.get(key);
    if (entry === undefined) return null;
    if (entry.open > 0 || nowMs < entry.untilMs) return entry.address;
    this.entries.delete(key);
    return null;
  }

  /** A client is connected to this server. */
  enter(key: string, address: string, nowMs: number): void {
    const entry = this.entries.get(key) ?? { address, open: 0, untilMs: 0 };
    this.entries.delete(key);
    this.entries.set(key, entry);
    entry.address = address;
    entry.open++;
    this.bound(nowMs);
  }

  /** It has gone: the time runs from now on. */
  leave(key: string, nowMs: number): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    entry.open = Math.max(0, entry.open - 1);
    entry.untilMs = nowMs + this.expireMs;
    this.entries.delete(key);
    this.entries.set(key, entry);
  }

  private bound(nowMs: number): void {
    for (const [key, { open, untilMs }] of this.entries) {
      const isOver = open === 0 && untilMs <= nowMs;
      if (!isOver && this.entries.size <= this.most) return;
      this.entries.delete(key);
    }
  }
}
