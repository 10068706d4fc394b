// Numbers, sizes, times as people read them. Pure; used by every page.

/** 1234 -> "1,234", 12345678 -> "12.3 M": at most five signs. */
export function count(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size < 10 && !Number.isInteger(value)) return value.toFixed(1);
  if (size < 10_000) return Math.round(value).toLocaleString('en-US');
  for (const [unit, name] of UNITS) if (size >= unit) return `${three(value / unit)} ${name}`;
  return String(value);
}
const UNITS = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;

/** Three digits that matter. */
function three(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Bytes with the units of the configuration (1024). */
export function bytes(value: number): string {
  if (!Number.isFinite(value)) return '-';
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < SIZES.length - 1) {
    size /= 1024;
    unit++;
  }
  const text = unit === 0 || Number.isInteger(size) ? String(Math.round(size)) : three(size);
  return `${text} ${SIZES[unit]}`;
}

/** Milliseconds as "1d 2h", "3m 4s", "250 ms": the two largest units. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '-';
  if (ms > 0 && ms < 0.95) return `${Math.max(1, Math.round(ms * 1000))} µs`;
  if (Math.abs(ms) < 1000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  const parts: string[] = [];
  let seconds = Math.floor(ms / 1000);
  for (const [length, name] of [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's'],
  ] as const) {
    const whole = Math.floor(seconds / length);
    seconds -= whole * length;
    if (whole > 0) parts.push(`${whole}${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** Time of day in local time; with milliseconds when asked. */
export function clock(ms: number, precise = false): string {
  const date = new Date(ms);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return precise ? `${time}.${String(date.getMilliseconds()).padStart(3, '0')}` : time;
}

/** "2031-05-07 08:09:10" in local time. */
export function date(ms: number): string {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

export function percent(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %` : '-';
}

/** One line of text from any JSON value, short enough for a table. */
export function short(value: unknown, limit = 120): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}
