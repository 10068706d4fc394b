// What the subcommands of `tidegate ctl` share: the call to the gateway, its answer as rows, what is printed.
// Used by ctl.ts and ctl*.ts; the request itself is client.ts.
import { readFile } from 'node:fs/promises';
import { text as readText } from 'node:stream/consumers';
import type { Command, OptionValues } from 'commander';
import { errorText, GatewayError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import type { Io } from '../cli.ts';
import type { CtlClient } from './client.ts';
import { type Column, type Row, table } from './table.ts';

/** Rows asked for at once; lists longer than that are fetched page by page. */
const PAGE_ROWS = 1000;

/** What every subcommand works with. */
export interface Work {
  readonly client: CtlClient;
  readonly io: Io;
  readonly json: boolean;
}

export function rowsOf(data: unknown): Row[] {
  return Array.isArray(data) ? data.filter((row) => typeof row === 'object' && row !== null) : [];
}

export function rowOf(data: unknown): Row {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? { ...data } : {};
}

export function say({ io, json }: Work, data: unknown, text: string): void {
  io.stdout.write(json ? `${JSON.stringify(data)}\n` : text);
}

export function show(work: Work, rows: readonly Row[], columns: readonly Column[]): void {
  say(work, rows, table(columns, rows));
}

export function query(values: Readonly<Record<string, string | undefined>>): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) found.set(name, value);
  const text = found.toString();
  return text === '' ? '' : `?${text}`;
}

/** All pages of a list, up to `limit` rows. */
export async function pages(
  work: Work,
  path: string,
  values: Record<string, string | undefined>,
  limit: number,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let page = 1; rows.length < limit; page++) {
    const asked = query({ ...values, page: String(page), limit: String(PAGE_ROWS) });
    const reply = await work.client.call('GET', path + asked);
    rows.push(...rowsOf(reply.data));
    if (reply.meta.hasnext !== true) break;
  }
  return rows.slice(0, limit);
}

/** The document of a file, or of standard input for "-". */
export async function documentOf(file: string, io: Io): Promise<unknown> {
  let text: string;
  try {
    text = file === '-' ? await readText(io.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `${file}: ${systemErrorText(error)}`, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `${file} is not JSON: ${errorText(error)}`, error);
  }
}

export interface KeepOptions {
  readonly keep?: boolean;
}

/** `keep` of a query; undefined leaves it out. */
export function keepWord({ keep }: KeepOptions): string | undefined {
  return keep === true ? 'true' : undefined;
}

/** "created", and where it is kept, if it is. */
export function outcome(word: string, data: unknown): string {
  const { kept, note } = rowOf(data);
  const where = kept === undefined ? '' : `, kept in ${String(kept)}`;
  return `${word}${where}${note === undefined ? '' : `\n${String(note)}`}\n`;
}

/** Adds a subcommand whose action gets a client that is ready. */
export type Adder = <Options extends OptionValues>(
  parent: Command,
  words: string,
  text: string,
  run: (work: Work, options: Options, args: readonly string[]) => Promise<void>,
) => Command;

export const KEEP_OPTION = ['--keep', 'write it to tidegate.d, so that it holds after a restart'] as const;
