// Metrics are declared once (name, text, type, unit) and shown everywhere from this registry: /metrics, REST, console,
// $SYS. Called by every stage to declare, by console/ to read. Incrementing is `counter.value++`: nothing is cheaper.
// Names follow Prometheus: base units, counters end in _total. Labels never hold client ids.

export interface MetricSpec {
  readonly name: string;
  readonly text: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: 'messages' | 'bytes' | 'seconds' | 'connections' | 'sessions' | 'items' | 'packets' | 'ratio' | 'none';
}
export type Labels = Readonly<Record<string, string>>;

/** A number that the owner changes in place. */
export interface Cell {
  value: number;
}

export interface Series {
  readonly labels: Labels;
  read(): number;
}
export interface HistogramSeries {
  readonly labels: Labels;
  readonly histogram: Histogram;
}
export interface Family {
  readonly spec: MetricSpec;
  readonly series: Map<string, Series>;
  readonly histograms: Map<string, HistogramSeries>;
}

export class Histogram {
  /** Upper bounds, ascending; a last bucket above all of them is implied. */
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.bounds.length && value > this.bounds[i]) i++;
    this.counts[i]++;
    this.sum += value;
    this.count++;
  }

  /**
   * The value that a share `q` (0 to 1) of all observations did not exceed: the bound of its bucket; 0 when there are
   * none.
   */
  quantile(q: number): number {
    let left = q * this.count;
    if (left === 0) return 0;
    for (let i = 0; i < this.bounds.length; i++) {
      left -= this.counts[i];
      if (left <= 0) return this.bounds[i];
    }
    return Number.POSITIVE_INFINITY;
  }
}

function labelKey(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export class Metrics {
  private readonly families = new Map<string, Family>();

  private family(spec: MetricSpec): Family {
    let family = this.families.get(spec.name);
    if (family === undefined) {
      family = { spec, series: new Map(), histograms: new Map() };
      this.families.set(spec.name, family);
    }
    return family;
  }

  /** The cell of a counter or settable gauge; the same name and labels give the same cell. */
  cell(spec: MetricSpec, labels: Labels = {}): Cell {
    const family = this.family(spec);
    const key = labelKey(labels);
    const known = family.series.get(key);
    if (known !== undefined && 'value' in known) return known as Series & Cell;
    const made = {
      labels,
      value: 0,
      read(): number {
        return this.value;
      },
    };
    family.series.set(key, made);
    return made;
  }

  /** A value that is computed when it is read. */
  read(spec: MetricSpec, read: () => number, labels: Labels = {}): void {
    this.family(spec).series.set(labelKey(labels), { labels, read });
  }

  histogram(spec: MetricSpec, bounds: readonly number[], labels: Labels = {}): Histogram {
    const family = this.family(spec);
    const key = labelKey(labels);
    const known = family.histograms.get(key);
    if (known !== undefined) return known.histogram;
    const histogram = new Histogram(bounds);
    family.histograms.set(key, { labels, histogram });
    return histogram;
  }

  /** The histogram without labels of this name, or undefined when there is none. */
  histogramOf(name: string): Histogram | undefined {
    return this.families.get(name)?.histograms.get(labelKey({}))?.histogram;
  }

  /** Forgets every series that carries these labels (a bridge that is removed). */
  drop(labels: Labels): void {
    const wanted = Object.entries(labels);
    for (const family of this.families.values()) {
      for (const map of [family.series, family.histograms]) {
        for (const [key, series] of map) if (wanted.every(([k, v]) => series.labels[k] === v)) map.delete(key);
      }
    }
  }

  all(): Family[] {
    return [...this.families.values()].sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  }

  /** The value of one series, or undefined when there is none. */
  value(name: string, labels: Labels = {}): number | undefined {
    return this.families.get(name)?.series.get(labelKey(labels))?.read();
  }
}
