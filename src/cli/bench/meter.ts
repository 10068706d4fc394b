// What one run measured: latencies in a histogram, and for each receiver the order in which it saw every publisher.
// Fed by subscribers, read at the end by run.ts. Constant memory, nothing allocated per message.
import { isOurs, publisherOf, readU32 } from './payload.ts';

/** Buckets of 1 us up to 100 ms, then of 100 us up to 10 s, then one for the rest. */
const FINE = 100_000;
const COARSE_US = 100;

export class Latency {
  private readonly counts = new Uint32Array(2 * FINE + 1);
  private total = 0;
  private largestUs = 0;

  observe(us: number): void {
    const bucket = us < FINE ? us : Math.min(2 * FINE, FINE + Math.floor((us - FINE) / COARSE_US));
    this.counts[bucket]++;
    this.total++;
    if (us > this.largestUs) this.largestUs = us;
  }

  clear(): void {
    this.counts.fill(0);
    this.total = 0;
    this.largestUs = 0;
  }

  get count(): number {
    return this.total;
  }

  get maxUs(): number {
    return this.largestUs;
  }

  /** Microseconds that the share `q` (0 to 1) of all messages did not exceed; 0 when there are none. */
  quantileUs(q: number): number {
    const wanted = Math.max(1, Math.ceil(q * this.total));
    let seen = 0;
    for (let i = 0; i < this.counts.length; i++) {
      seen += this.counts[i];
      if (seen >= wanted) return Math.min(this.largestUs, i < FINE ? i : FINE + (i - FINE) * COARSE_US);
    }
    return 0;
  }
}

/**
 * One receiver's view. Looks at the payloads it is shown: all of them, or samples of which only the order can be told.
 */
export class Meter {
  received = 0;
  /** Seen after a later one of the same publisher (repeated ones included). */
  disorder = 0;
  /** Missing between two that were seen; only known when all are looked at. */
  gaps = 0;
  private readonly last: Float64Array;
  private readonly latency: Latency;
  private readonly all: boolean;

  constructor(publishers: number, latency: Latency, all: boolean) {
    this.last = new Float64Array(publishers).fill(-1);
    this.latency = latency;
    this.all = all;
  }

  /** Takes note of the payload at `at`. False when it is not one of ours. */
  look(buffer: Uint8Array, at: number, timeUs: number): boolean {
    if (!isOurs(buffer, at)) return false;
    this.latency.observe(((timeUs >>> 0) - readU32(buffer, at)) >>> 0);
    const publisher = publisherOf(buffer, at);
    const sequence = readU32(buffer, at + 4);
    const before = this.last[publisher];
    if (sequence <= before) this.disorder++;
    else {
      if (this.all) this.gaps += sequence - before - 1;
      this.last[publisher] = sequence;
    }
    return true;
  }
}
