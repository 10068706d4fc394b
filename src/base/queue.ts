// A first-in first-out queue on a ring: push and shift are O(1) and leave no garbage behind.
// Used by delivery/, session/, bridge/. Bounds and what happens at them are the user's policy.

const SMALLEST = 8;

export class Fifo<T> {
  private ring: (T | undefined)[] = [];
  private head = 0;
  private count = 0;

  get length(): number {
    return this.count;
  }

  push(item: T): void {
    if (this.count === this.ring.length) this.grow();
    this.ring[(this.head + this.count) & (this.ring.length - 1)] = item;
    this.count++;
  }

  /** Puts an item in front of all others. */
  unshift(item: T): void {
    if (this.count === this.ring.length) this.grow();
    this.head = (this.head - 1) & (this.ring.length - 1);
    this.ring[this.head] = item;
    this.count++;
  }

  shift(): T | undefined {
    if (this.count === 0) return undefined;
    const item = this.ring[this.head];
    this.ring[this.head] = undefined;
    this.head = (this.head + 1) & (this.ring.length - 1);
    if (--this.count === 0 && this.ring.length > 1024) this.clear();
    return item;
  }

  peek(): T | undefined {
    return this.count === 0 ? undefined : this.ring[this.head];
  }

  clear(): void {
    this.ring = [];
    this.head = 0;
    this.count = 0;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.count; i++) yield this.ring[(this.head + i) & (this.ring.length - 1)] as T;
  }

  private grow(): void {
    const ring: (T | undefined)[] = new Array(Math.max(SMALLEST, this.ring.length * 2));
    for (let i = 0; i < this.count; i++) ring[i] = this.ring[(this.head + i) & (this.ring.length - 1)];
    this.ring = ring;
    this.head = 0;
  }
}
