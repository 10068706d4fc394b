// `tidegate ctl topics`, and the busiest topics below `ctl top`: what is published topic by topic, a second and in all.
// Called by ctl.ts and top.ts. Rates are the gateway's, over its last seconds.
import type { Command } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import type { CtlClient } from './client.ts';
import { column, type Row, sizeColumn, sizeText, table } from './table.ts';
import { type Adder, query, rowOf, rowsOf, say } from './work.ts';

/** Rows asked for at once, the most that the gateway gives. */
const PAGE_ROWS = 10_000;

function perSecond(value: unknown): string {
  const number = typeof value === 'number' ? value : 0;
  return number === 0 ? '0' : number.toFixed(number < 10 ? 2 : 0);
}

const RATES = [
  column('TOPIC', 'topic'),
  { title: 'MSGS/S', right: true, value: (row: Row) => perSecond(row.messages_rate) },
  { title: 'BYTES/S', right: true, value: (row: Row) => sizeText(Math.round(Number(row.bytes_rate))) },
];
const COLUMNS = [...RATES, column('MESSAGES', 'messages', true), sizeColumn('BYTES', 'bytes')];

interface TopicOptions {
  readonly filter?: string;
  readonly prefix?: string;
  readonly search?: string;
  readonly sort: string;
  readonly limit: number;
}

/** Rows may change their places from one page to the next: each topic is taken once. */
async function list(client: CtlClient, options: TopicOptions): Promise<{ rows: Row[]; meta: Row }> {
  const { filter, prefix, search, sort, limit } = options;
  const found = new Map<unknown, Row>();
  let meta: Row = {};
  for (let page = 1; page === 1 || found.size < limit; page++) {
    const paged = { page: String(page), limit: String(Math.max(1, Math.min(limit, PAGE_ROWS))) };
    const reply = await client.call('GET', `/topics${query({ filter, prefix, search, sort, ...paged })}`);
    meta = reply.meta;
    for (const row of rowsOf(reply.data)) found.set(row.topic, row);
    if (meta.hasnext !== true) break;
  }
  return { rows: [...found.values()].slice(0, limit), meta };
}

function sumLine(title: string, sum: Row): string {
  const rates = `${perSecond(sum.messages_rate)} messages and ${sizeText(Math.round(Number(sum.bytes_rate)))} a second`;
  return `${title}: ${rates}, ${String(sum.messages)} messages in all\n`;
}

/** Adds `topics`. */
export function addTopicCommand(ctl: Command, add: Adder, wholeNumber: (text: string) => number): void {
  add<TopicOptions>(ctl, 'topics', 'what is published, topic by topic, busiest first', async (work, options) => {
    const { rows, meta } = await list(work.client, options);
    const others = rowOf(meta.others);
    const rest = Number(others.messages) > 0 ? sumLine('topics not counted one by one', others) : '';
    say(work, rows, `${table(COLUMNS, rows)}${sumLine(`${String(meta.count)} topics`, rowOf(meta.sum))}${rest}`);
  })
    .option('--filter <filter>', 'topic filter; "$SYS/#" for the gateway\'s own')
    .option('--prefix <text>', 'how the topic begins')
    .option('--search <text>', 'part of the topic')
    .option(
      '--sort <key>',
      'topic, messages, bytes, messages_rate or bytes_rate, - before it for the highest first',
      '-messages_rate',
    )
    .option('--limit <rows>', 'rows at most', wholeNumber, 50);
}

/**
 * A table of the topics with most messages a second right now; empty where there are none or the gateway does not tell.
 */
export async function busiest(client: CtlClient, limit: number): Promise<string> {
  if (limit === 0) return '';
  try {
    const { rows } = await list(client, { sort: '-messages_rate', limit });
    const busy = rows.filter((row) => Number(row.messages_rate) > 0);
    return busy.length === 0 ? '' : `\n${table(RATES, busy)}`;
  } catch (error) {
    if (error instanceof GatewayError) return '';
    throw error;
  }
}
