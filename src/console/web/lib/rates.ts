// Counters over time as rates: a bounded series of samples for charts. Pure; fed by the event stream.

export interface Sample {
  /** Wall-clock milliseconds. */
  readonly time: number;
  readonly values: Readonly<Record<string, number>>;
}

/** The last samples, oldest first. */
export class Series {
  private readonly samples: Sample[] = [];
  private readonly limit: number;

  /** @param limit samples that are kept */
  constructor(limit: number) {
    this.limit = limit;
  }

  /**
   * Takes a sample; one from the past is left out, and a counter that has fallen (a restart) begins the series anew.
   */
  add(sample: Sample, counters: readonly string[]): void {
    const last = this.samples.at(-1);
    if (last !== undefined) {
      if (sample.time <= last.time) return;
      if (counters.some((name) => (sample.values[name] ?? 0) < (last.values[name] ?? 0))) this.samples.length = 0;
    }
    this.samples.push(sample);
    if (this.samples.length > this.limit) this.samples.shift();
  }

  get length(): number {
    return this.samples.length;
  }

  /** Seconds since the epoch, one for each sample. */
  times(): number[] {
    return this.samples.map(({ time }) => time / 1000);
  }

  /** A gauge as it was. */
  gauge(name: string, factor = 1): (number | null)[] {
    return this.samples.map(({ values }) => (values[name] === undefined ? null : values[name] * factor));
  }

  /** A counter's rise in a second, null for the first sample and after gaps in which nobody looked. */
  rates(name: string, gapMs = 15_000): (number | null)[] {
    return this.samples.map((sample, i) => {
      const before = this.samples[i - 1];
      if (before === undefined || sample.time - before.time > gapMs) return null;
      return rate(before, sample, name);
    });
  }

  /** The latest rate of a counter, null while there are not two samples. */
  rate(name: string): number | null {
    return this.rates(name).at(-1) ?? null;
  }

  latest(name: string): number | null {
    return this.samples.at(-1)?.values[name] ?? null;
  }
}

function rate(before: Sample, after: Sample, name: string): number {
  const seconds = (after.time - before.time) / 1000;
  return Math.max(0, ((after.values[name] ?? 0) - (before.values[name] ?? 0)) / seconds);
}
