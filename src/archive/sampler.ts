// Figures of the gateway over time: looks at them every ten seconds, makes minutes and ten minutes of the looks, keeps
// the last hour in memory and hands all of them to the archive. Built by gateway/archive.ts. Counters become rates
// here, so that a restart makes a gap and not a fall.
import type { Clock, Timer } from '../base/clock.ts';
import type { Archive } from './archive.ts';
import type { FigureRow, Figures } from './protocol.ts';

const LOOK_MS = 10_000;
/** An hour. */
const IN_MEMORY = 360;
const COARSER_SECONDS = [60, 600] as const;
/** How far back the steps of ten seconds and of a minute reach. */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A range that was reckoned from another moment a little ago still counts as an hour or a day. */
const SLACK_MS = 60_000;
/** Rows that wait for an archive that does not take them. */
const MOST_WAITING = 500;

/** Figures by name; counters are told apart by `counters`. */
export interface Source {
  readonly counters: readonly string[];
  look(): Readonly<Record<string, number>>;
}

type Values = Readonly<Record<string, number>>;

/** Means of several looks; of figures whose name ends in p99, the largest. */
function summed(looks: readonly Values[]): Values {
  const names = new Set(looks.flatMap((values) => Object.keys(values)));
  const sums: Record<string, number> = {};
  for (const name of names) {
    const found = looks.map((values) => values[name]).filter((value) => value !== undefined);
    sums[name] = name.endsWith('p99') ? Math.max(...found) : found.reduce((a, b) => a + b, 0) / found.length;
  }
  return sums;
}

function rounded(values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Number(value.toPrecision(6))]));
}

export class Sampler {
  private readonly clock: Clock;
  private readonly source: Source;
  private archive: Archive | null = null;
  private timer: Timer | null = null;
  private readonly hour: { readonly time: number; readonly values: Values }[] = [];
  private readonly waiting: FigureRow[] = [];
  private writing = false;
  private before: { readonly mono: number; readonly values: Values } | null = null;
  private readonly coarser = COARSER_SECONDS.map((seconds) => ({ seconds, step: 0, looks: [] as Values[] }));

  constructor(clock: Clock, source: Source) {
    this.clock = clock;
    this.source = source;
  }

  start(archive: Archive | null): void {
    this.archive = archive;
    this.look();
    this.timer = this.clock.every(LOOK_MS, () => this.look());
  }

  /** What is half a minute is written as it is. */
  async stop(): Promise<void> {
    this.timer?.cancel();
    for (const one of this.coarser) this.close(one);
    await this.flush();
  }

  /**
   * The finest step that is kept for all of the time and is no finer than asked for. Where the archive does not answer,
   * the last hour is given from memory; a time before that rejects.
   * @param leastMs no finer than this
   */
  async find(names: readonly string[], from: number, to: number, leastMs: number): Promise<Figures> {
    const stepMs = Math.max(leastMs, this.stepFor(from));
    const first = this.hour[0]?.time ?? Number.POSITIVE_INFINITY;
    if (this.archive === null || (stepMs <= LOOK_MS && from >= first)) return this.remembered(names, from, to);
    try {
      const figures = await this.archive.ask('figures', { names, from, to, stepMs });
      return this.withRunning(figures, names, stepMs, to);
    } catch (error) {
      if (stepMs > LOOK_MS) throw error;
      return this.remembered(names, from, to);
    }
  }

  // ---- inside

  private stepFor(from: number): number {
    const backMs = this.clock.now() - from - SLACK_MS;
    if (backMs <= HOUR_MS) return LOOK_MS;
    return (backMs <= DAY_MS ? COARSER_SECONDS[0] : COARSER_SECONDS[1]) * 1000;
  }

  private remembered(names: readonly string[], from: number, to: number): Figures {
    const rows = this.hour.filter(({ time }) => time >= from && time <= to);
    const values = Object.fromEntries(names.map((name) => [name, rows.map((row) => row.values[name] ?? null)]));
    return { times: rows.map(({ time }) => time), values };
  }

  /** With the step that has begun and is not written yet. */
  private withRunning(figures: Figures, names: readonly string[], stepMs: number, to: number): Figures {
    const one = this.coarser.find(({ seconds }) => seconds * 1000 >= stepMs);
    if (stepMs <= LOOK_MS || one === undefined || one.looks.length === 0) return figures;
    const time = one.step * one.seconds * 1000;
    if (time > to || time <= (figures.times.at(-1) ?? 0)) return figures;
    const now = summed(one.looks);
    figures.times.push(time);
    for (const name of names) figures.values[name].push(now[name] ?? null);
    return figures;
  }

  private look(): void {
    const time = Math.round(this.clock.now());
    const raw = this.source.look();
    const values = rounded(this.rates(raw));
    this.hour.push({ time, values });
    if (this.hour.length > IN_MEMORY) this.hour.shift();
    this.put({ level: LOOK_MS / 1000, time, values });
    for (const one of this.coarser) {
      const step = Math.floor(time / (one.seconds * 1000));
      if (step !== one.step && one.looks.length > 0) this.close(one);
      one.step = step;
      one.looks.push(values);
    }
    void this.flush();
  }

  private close(one: { seconds: number; step: number; looks: Values[] }): void {
    if (one.looks.length === 0) return;
    const time = one.step * one.seconds * 1000;
    this.put({ level: one.seconds, time, values: rounded(summed(one.looks)) });
    one.looks = [];
  }

  private put(row: FigureRow): void {
    this.waiting.push(row);
    if (this.waiting.length > MOST_WAITING) this.waiting.shift();
  }

  /** Gauges as they are, counters as their rise in a second. */
  private rates(raw: Values): Values {
    const { counters } = this.source;
    const mono = this.clock.mono();
    const { before } = this;
    this.before = { mono, values: raw };
    const values: Record<string, number> = {};
    for (const [name, value] of Object.entries(raw)) {
      if (!counters.includes(name)) values[name] = value;
      else if (before !== null && mono > before.mono)
        values[name] = Math.max(0, ((value - (before.values[name] ?? 0)) * 1000) / (mono - before.mono));
    }
    return values;
  }

  private async flush(): Promise<void> {
    const { archive, waiting } = this;
    if (archive === null || waiting.length === 0 || this.writing) return;
    const rows = waiting.splice(0);
    this.writing = true;
    try {
      await archive.write({ what: 'figures', rows });
    } catch {
      // The archive has logged it; the newest are tried again.
      waiting.unshift(...rows.slice(-Math.max(0, MOST_WAITING - waiting.length)));
    } finally {
      this.writing = false;
    }
  }
}
