// `tidegate ctl events`: what happened on a gateway, over its restarts. Called by ctl.ts. The list, its kinds and the
// files are those of GET /api/v4/happenings.
import type { Command } from 'commander';
import { type Column, column, type Row } from './table.ts';
import { type Adder, query, rowOf, rowsOf, show, type Work } from './work.ts';

/** Rows asked for at once, the most that the gateway gives. */
const PAGE_ROWS = 1000;

interface EventOptions {
  readonly from: string;
  readonly to?: string;
  readonly kind?: string;
  readonly search?: string;
  readonly limit: number;
}

function fieldsText(fields: unknown): string {
  const named = Object.entries(rowOf(fields)).filter(([name]) => name !== 'id');
  return named.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ');
}

const COLUMNS: readonly Column[] = [
  column('TIME', 'at'),
  column('KIND', 'kind'),
  column('LEVEL', 'level'),
  column('WHAT', 'text'),
  { title: 'DETAILS', value: ({ fields }) => fieldsText(fields) },
];

/** Newest first, as the gateway gives them; pages go on from the last row. */
async function events(work: Work, { from, to, kind, search, limit }: EventOptions): Promise<void> {
  const rows: Row[] = [];
  let before: string | undefined;
  while (rows.length < limit) {
    const size = String(Math.min(PAGE_ROWS, limit - rows.length));
    const asked = query({ from, to, kinds: kind, search, limit: size, before });
    const { data, meta } = await work.client.call('GET', `/happenings${asked}`);
    rows.push(...rowsOf(data));
    if (typeof meta.next !== 'number') break;
    before = String(meta.next);
  }
  show(work, rows, COLUMNS);
}

/** Adds `events`. */
export function addEventsCommand(ctl: Command, add: Adder, wholeNumber: (text: string) => number): void {
  add<EventOptions>(ctl, 'events', 'what happened, over restarts: changes, bridges, alarms; newest first', events)
    .option('--from <time>', 'earliest time: -2h, -7d, ISO 8601 or milliseconds', '-30d')
    .option('--to <time>', 'latest time, now unless given')
    .option('--kind <kinds>', 'gateway, configuration, bridge, alarm, login, clients; with commas')
    .option('--search <text>', 'part of the text or of a detail')
    .option('--limit <rows>', 'rows at most', wholeNumber, 100);
}
