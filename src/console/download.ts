// Long answers as files: rows are asked for page by page and written as the reader takes them, as JSON lines or CSV.
// Called by pastapi.ts and recordingapi.ts. Holds one page; ends when the reader goes.
import type { ServerResponse } from 'node:http';
import { errorText } from '../base/errors.ts';
import { type Answer, fail } from './answer.ts';
import type { JsonObject } from './console.ts';

export interface Page {
  readonly rows: readonly JsonObject[];
  /** Whether another page follows. */
  readonly more: boolean;
}

/** A field as RFC 4180 has it; one that a spreadsheet would take for a formula is led by an apostrophe. */
export function csvField(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

async function taken(response: ServerResponse, text: string): Promise<void> {
  if (response.write(text) || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.removeListener('drain', done);
      response.removeListener('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/**
 * @param columns of CSV, in order @param next gives the next page; when it rejects the download is cut, so that nobody
 * takes a part for the whole
 */
export function download(name: string, format: string, columns: readonly string[], next: () => Promise<Page>): Answer {
  if (format !== 'jsonl' && format !== 'csv') return fail('query', 'format must be jsonl or csv');
  const line =
    format === 'jsonl'
      ? (row: JsonObject): string => `${JSON.stringify(row)}\n`
      : (row: JsonObject): string => `${columns.map((column) => csvField(row[column])).join(',')}\r\n`;
  const write = async (response: ServerResponse): Promise<void> => {
    if (format === 'csv') await taken(response, `${columns.join(',')}\r\n`);
    for (let more = true; more && !response.destroyed; ) {
      const page = await next();
      await taken(response, page.rows.map(line).join(''));
      more = page.more;
    }
    response.end();
  };
  return {
    status: 200,
    contentType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
    headers: { 'content-disposition': `attachment; filename="${name}.${format}"` },
    body: '',
    stream: (response) => {
      response.on('error', () => {});
      write(response).catch((error: unknown) =>
        response.destroy(error instanceof Error ? error : new Error(errorText(error))),
      );
    },
  };
}
