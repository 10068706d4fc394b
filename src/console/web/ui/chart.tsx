// One chart over time, drawn by uPlot on a canvas. Colours are those of the page and follow its theme; what it shows is
// also said in words.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { clock, date } from '../lib/format.ts';
import { useStore } from '../lib/store.ts';
import { dark } from '../lib/theme.ts';

export interface Line {
  readonly label: string;
  /** Name of a colour of the style sheet: "one" for --line-one. */
  readonly colour: string;
  readonly values: (number | null)[];
}

/** Something that happened, as a line across the chart. */
export interface Mark {
  /** Seconds since the epoch. */
  readonly time: number;
  /** Name of a colour of the style sheet. */
  readonly colour: string;
  readonly text: string;
}

/** What a colour of the style sheet comes to now. */
function resolved(probe: HTMLElement, name: string): string {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

function faded(colour: string): string {
  const numbers = colour.match(/[\d.]+/g)?.slice(0, 3) ?? ['0', '0', '0'];
  return `rgba(${numbers.join(', ')}, 0.13)`;
}

/** Draws the marks over the lines. */
function drawMarks(plot: uPlot, probe: HTMLElement, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.setLineDash([4, 3]);
  ctx.lineWidth = 1;
  for (const { time, colour } of marks) {
    const at = Math.round(plot.valToPos(time, 'x', true));
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.strokeStyle = resolved(probe, colour);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

interface Drawing {
  readonly lines: readonly Line[];
  readonly format: Format;
  readonly steps: number[] | undefined;
  readonly spans: boolean;
  /** Read when it is drawn. */
  readonly marks: () => readonly Mark[];
  /** The point under the pointer, null: there is none. */
  readonly onPoint: (index: number | null) => void;
}

function optionsOf(probe: HTMLElement, width: number, height: number, drawing: Drawing): uPlot.Options {
  const { lines, format, steps, spans, marks, onPoint } = drawing;
  const axis = { stroke: resolved(probe, 'muted'), font: '11px system-ui, sans-serif' };
  const grid = { stroke: resolved(probe, 'line'), width: 1 };
  return {
    width,
    height,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    hooks: {
      setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)],
      draw: [(plot) => drawMarks(plot, probe, marks())],
    },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { range: timeRange }, y: spans ? {} : { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, ticks: { show: false }, space: 70, size: 24, values: clockTicks },
      {
        ...axis,
        grid,
        ticks: { show: false },
        size: 58,
        space: 32,
        ...(steps === undefined ? {} : { incrs: steps }),
        values: (_, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour }) => {
        const stroke = resolved(probe, `line-${colour}`);
        return { label, stroke, fill: faded(stroke), width: 1.6, points: { show: spans, size: 4 }, spanGaps: spans };
      }),
    ],
  };
}

/** 1, 2, 4 ... bytes: steps that are whole numbers of KB and MB. */
export const BYTE_STEPS: number[] = Array.from({ length: 45 }, (_, power) => 2 ** power);

const HOUR_SECONDS = 3600;
const DAYS_SECONDS = 2 * 86_400;

function clockTicks(_: uPlot, ticks: number[]): string[] {
  const span = (ticks.at(-1) ?? 0) - (ticks[0] ?? 0);
  return ticks.map((tick) => {
    const ms = tick * 1000;
    // Seconds, minutes or days, by what the axis spans.
    if (span > DAYS_SECONDS) return date(ms).slice(5, 10);
    return span > HOUR_SECONDS ? clock(ms).slice(0, 5) : clock(ms);
  });
}

/** Seconds that a chart spans at least. */
const LEAST_SECONDS = 60;

/**
 * uPlot would give a single point a day, so the times themselves are looked at; without any there is nothing to span.
 */
function timeRange(plot: uPlot, min: number, max: number): uPlot.Range.MinMax {
  const [times] = plot.data;
  const last = times.at(-1);
  if (last === undefined) return [min, max];
  return last - times[0] >= LEAST_SECONDS ? [times[0], last] : [last - LEAST_SECONDS, last];
}

type Format = (value: number) => string;

export function Chart({
  label,
  times,
  lines,
  format,
  height = 150,
  steps,
  marks = NO_MARKS,
  spans = false,
}: {
  readonly label: string;
  readonly times: number[];
  readonly lines: readonly Line[];
  readonly format: Format;
  readonly height?: number;
  /** Steps of the axis that read well with the format, 1, 2, 5 unless told. */
  readonly steps?: number[];
  readonly marks?: readonly Mark[];
  /** Lines go on over points without a value, and the scale need not begin at 0. */
  readonly spans?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useStore(dark);
  const data: uPlot.AlignedData = [times, ...lines.map(({ values }) => values)];
  const latest = useRef(data);
  latest.current = data;
  const shownMarks = useRef(marks);
  shownMarks.current = marks;
  const [point, setPoint] = useState<number | null>(null);
  useEffect(() => {
    const at = box.current;
    if (at === null || probe.current === null) return;
    const width = (): number => Math.max(120, at.clientWidth);
    const drawing = { lines, format, steps, spans, marks: () => shownMarks.current, onPoint: setPoint };
    const drawn = new uPlot(optionsOf(probe.current, width(), height, drawing), latest.current, at);
    plot.current = drawn;
    const watcher = new ResizeObserver(() => drawn.setSize({ width: width(), height }));
    watcher.observe(at);
    return () => {
      watcher.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [isDark, height]);
  const length = times.length;
  const last = times.at(-1);
  useEffect(() => plot.current?.setData(latest.current), [length, last, marks.length]);
  // The newest values, or those under the pointer.
  const at = point !== null && point < length ? point : null;
  const shownOf = (line: Line): string => wordOf(at === null ? line.values.at(-1) : line.values[at], format);
  const near = at === null ? [] : nearTo(times, at, marks);
  const words = lines.map((line) => `${line.label}: ${wordOf(line.values.at(-1), format)}`).join(', ');
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{label}</span>
        <span class="legend">
          {lines.map((line) => (
            <span key={line.label} class={`legend-${line.colour}`}>
              {line.label} <b>{shownOf(line)}</b>
            </span>
          ))}
          {at !== null && <time class="chart-time">{momentText(times, at)}</time>}
          {near.length > 0 && <span class="chart-marks">{near.map(({ text }) => text).join(' · ')}</span>}
        </span>
      </figcaption>
      <div ref={box} class="chart-box" role="img" aria-label={`${label}. ${words}`} />
      <span ref={probe} hidden />
    </figure>
  );
}

function wordOf(value: number | null | undefined, format: Format): string {
  return value === null || value === undefined ? '–' : format(value);
}

const NO_MARKS: readonly Mark[] = [];
/** Marks this near to a point, in shares of the width, are told with it. */
const NEAR = 0.01;

function nearTo(times: number[], at: number, marks: readonly Mark[]): readonly Mark[] {
  const reach = Math.max(1, ((times.at(-1) ?? 0) - times[0]) * NEAR);
  return marks.filter(({ time }) => Math.abs(time - times[at]) <= reach).slice(0, 3);
}

function momentText(times: number[], at: number): string {
  const span = (times.at(-1) ?? 0) - times[0];
  return span > HOUR_SECONDS ? date(times[at] * 1000) : clock(times[at] * 1000);
}
