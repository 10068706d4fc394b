// Tables and values for people, on a terminal or not. Called by ctl.ts and top.ts.
// Client ids, topics and errors come from outside: control characters are shown, never sent to the terminal.

export type Row = Readonly<Record<string, unknown>>;

export interface Column {
  readonly title: string;
  readonly right?: boolean;
  value(row: Row): unknown;
}

/** A column that shows one member of a row. */
export function column(title: string, key: string, right = false): Column {
  return { title, right, value: (row) => row[key] };
}

/** Text with control characters (C0, DEL, C1, line separators, bidirectional overrides) as escapes. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code > 0xff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\x${code.toString(16).padStart(2, '0')}`;
  });
}

export function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'string') return printable(value);
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toFixed(2);
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(shown).join(' ');
  return printable(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

/** Lines of a table with a title line; the last column is not padded. */
export function table(columns: readonly Column[], rows: readonly Row[]): string {
  const cells = rows.map((row) => columns.map(({ value }) => shown(value(row))));
  const widths = columns.map(({ title }, i) =>
    cells.reduce((max, line) => Math.max(max, line[i].length), title.length),
  );
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, i) => (columns[i].right ? text.padStart(widths[i]) : text.padEnd(widths[i])))
      .join('  ')
      .trimEnd();
  return `${[line(columns.map(({ title }) => title)), ...cells.map(line)].join('\n')}\n`;
}

/** Lines of "name  value". */
export function facts(pairs: readonly (readonly [string, unknown])[]): string {
  const width = pairs.reduce((max, [name]) => Math.max(max, name.length), 0);
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}\n`).join('');
}

/** 1536 -> "1.5 KB" (1024 each). */
export function sizeText(bytes: unknown): string {
  if (typeof bytes !== 'number') return '-';
  let value = bytes;
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (value < 1024 || unit === 'GB') return `${unit === 'B' ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return String(bytes);
}

/** A column of bytes, in units. */
export function sizeColumn(title: string, key: string): Column {
  return { title, right: true, value: (row) => sizeText(row[key]) };
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** 7500 -> "2 h 5 min": the two largest units. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => whole >= size);
  if (first < 0) return '0 s';
  let left = whole;
  const words: string[] = [];
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) words.push(`${count} ${unit}`);
  }
  return words.join(' ');
}

/** REST gives NanoMQ's words, "3 Hours, 2 minutes, 1 seconds"; anything else is shown as it is. */
export function uptimeText(text: unknown): unknown {
  const found = typeof text === 'string' ? /^(\d+) Hours, (\d+) minutes, (\d+) seconds$/.exec(text) : null;
  if (found === null) return text;
  return durationText(Number(found[1]) * 3600 + Number(found[2]) * 60 + Number(found[3]));
}

/** The version of MQTT that a protocol level stands for. */
export function mqttVersion(level: unknown): unknown {
  if (level === 3) return '3.1';
  if (level === 4) return '3.1.1';
  return level === 5 ? '5.0' : level;
}
