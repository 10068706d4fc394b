// The registry of base/metrics.ts as Prometheus text (exposition format 0.0.4), and as plain numbers for REST and
// events. Called by metricsserver.ts, api.ts and events.ts. Values are floats in base units; nothing is formatted for
// people. Source: https://prometheus.io/docs/instrumenting/exposition_formats/ "Text-based format".
import type { Family, Labels, Metrics } from '../base/metrics.ts';

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Families that do not carry the product's name get it; these are names of their own by convention. */
const PREFIX = 'tidegate_';
const OWN = ['tidegate_', 'process_', 'nodejs_'];

/** The name a family is shown under. */
export function shownName(name: string): string {
  return OWN.some((prefix) => name.startsWith(prefix)) ? name : PREFIX + name;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '');
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

function labelText(labels: Labels, more = ''): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  if (more !== '') parts.push(more);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function appendFamily(lines: string[], family: Family): void {
  const { spec } = family;
  if (family.series.size === 0 && family.histograms.size === 0) return;
  const name = shownName(spec.name);
  lines.push(`# HELP ${name} ${escapeHelp(spec.text)}`, `# TYPE ${name} ${spec.type}`);
  for (const series of family.series.values())
    lines.push(`${name}${labelText(series.labels)} ${number(series.read())}`);
  for (const { labels, histogram } of family.histograms.values()) {
    let below = 0;
    for (let i = 0; i < histogram.bounds.length; i++) {
      below += histogram.counts[i];
      lines.push(`${name}_bucket${labelText(labels, `le="${number(histogram.bounds[i])}"`)} ${below}`);
    }
    lines.push(`${name}_bucket${labelText(labels, 'le="+Inf"')} ${histogram.count}`);
    lines.push(`${name}_sum${labelText(labels)} ${number(histogram.sum)}`);
    lines.push(`${name}_count${labelText(labels)} ${histogram.count}`);
  }
}

/** Everything the registry holds, one family after the other, as a page for Prometheus. */
export function renderMetrics(metrics: Metrics): string {
  const lines: string[] = [];
  for (const family of metrics.all()) appendFamily(lines, family);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** The sum over all series of a family whichever way its name is written; 0 when there is none. */
export function total(metrics: Metrics, name: string): number {
  let sum = 0;
  for (const family of metrics.all()) {
    if (shownName(family.spec.name) !== shownName(name)) continue;
    for (const series of family.series.values()) sum += series.read();
  }
  return sum;
}
