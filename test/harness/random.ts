// A small random generator with a seed, so that what fuzzing finds can be found again (mulberry32). Not for secrets.

export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** 0 to 2^32 - 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** 0 to below - 1. */
  below(below: number): number {
    return this.next() % below;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }

  bytes(count: number): Buffer {
    const buffer = Buffer.alloc(count);
    for (let i = 0; i < count; i++) buffer[i] = this.next() & 255;
    return buffer;
  }

  /** A copy of `bytes` with a few bytes changed, taken out or put in; lengths near the ends of their range are likely. */
  mutated(bytes: Uint8Array): Buffer {
    let result: Buffer = Buffer.from(bytes);
    for (let count = 1 + this.below(4); count > 0; count--) {
      const at = this.below(result.length + 1);
      const value = this.below(3) === 0 ? this.pick([0, 1, 2, 0x7f, 0x80, 0xff]) : this.below(256);
      const kind = this.below(4);
      if (kind === 0)
        result = Buffer.concat([result.subarray(0, at), this.bytes(1 + this.below(3)), result.subarray(at)]);
      else if (kind === 1) result = Buffer.concat([result.subarray(0, at), result.subarray(at + 1 + this.below(3))]);
      else if (at < result.length) result[at] = value;
    }
    return result;
  }
}
