// One chart over time, drawn by uPlot on a canvas. Colours are those of the page and follow its theme; what it shows is
// also said in words.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useStore } from '../lib/store.ts';
import { dark } from '../lib/theme.ts';

export interface Line {
  readonly label: string;
  /** Name of a colour of the style sheet: "one" for --line-one. */
  readonly colour: string;
  readonly values: (number | null)[];
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

function optionsOf(
  probe: HTMLElement,
  width: number,
  height: number,
  lines: readonly Line[],
  format: Format,
  steps: number[] | undefined,
): uPlot.Options {
  const axis = { stroke: resolved(probe, 'muted'), font: '11px system-ui, sans-serif' };
  const grid = { stroke: resolved(probe, 'line'), width: 1 };
  return {
    width,
    height,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { range: timeRange }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] } },
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
        return { label, stroke, fill: faded(stroke), width: 1.6, points: { show: false }, spanGaps: false };
      }),
    ],
  };
}

/** 1, 2, 4 ... bytes: steps that are whole numbers of KB and MB. */
export const BYTE_STEPS: number[] = Array.from({ length: 45 }, (_, power) => 2 ** power);

function clockTicks(_: uPlot, ticks: number[]): string[] {
  return ticks.map((tick) => {
    const date = new Date(tick * 1000);
    const two = (n: number): string => String(n).padStart(2, '0');
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
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
}: {
  readonly label: string;
  readonly times: number[];
  readonly lines: readonly Line[];
  readonly format: Format;
  readonly height?: number;
  /** Steps of the axis that read well with the format, 1, 2, 5 unless told. */
  readonly steps?: number[];
}) {
  const box = useRef<HTMLDivElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useStore(dark);
  const data: uPlot.AlignedData = [times, ...lines.map(({ values }) => values)];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const at = box.current;
    if (at === null || probe.current === null) return;
    const width = (): number => Math.max(120, at.clientWidth);
    const drawn = new uPlot(optionsOf(probe.current, width(), height, lines, format, steps), latest.current, at);
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
  useEffect(() => plot.current?.setData(latest.current), [length, last]);
  const words = lines.map((line) => `${line.label}: ${wordOf(line.values.at(-1), format)}`).join(', ');
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{label}</span>
        <span class="legend">
          {lines.map((line) => (
            <span key={line.label} class={`legend-${line.colour}`}>
              {line.label} <b>{wordOf(line.values.at(-1), format)}</b>
            </span>
          ))}
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
