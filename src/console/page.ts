// Long lists in pages: what `page` and `limit` ask for, and a walk over any number of things that never holds the event
// loop for long. Called by the route files. Nothing is collected beyond one page.
import type { Answer } from './answer.ts';
import { fail } from './answer.ts';
import type { JsonObject } from './console.ts';
import type { QueryParameter } from './route.ts';

/** Rows of a page when the caller does not say, and at most. 1,000 rows of clients are about 600 KB. */
const DEFAULT_LIMIT = 1000;
const MAX_LIMIT = 10_000;
/** Pages past this are not looked up: 10,000 rows of 100,000 pages are more than any gateway holds. */
const MAX_PAGE = 100_000;
/** Things looked at before other work gets its turn: about 1 ms. */
const STRIDE = 2000;

export const PAGE_QUERY: readonly QueryParameter[] = [
  { name: 'page', text: 'which page, from 1', type: 'integer' },
  { name: 'limit', text: `rows in a page, ${DEFAULT_LIMIT} unless told, at most ${MAX_LIMIT}`, type: 'integer' },
];

export interface PageRequest {
  readonly page: number;
  readonly limit: number;
}

function whole(text: string | undefined, fallback: number, max: number): number | null {
  if (text === undefined) return fallback;
  if (!/^\d{1,6}$/.test(text)) return null;
  const value = Number(text);
  return value >= 1 && value <= max ? value : null;
}

/** Reads `page` and `limit`; an answer when they are wrong. */
export function readPage(query: ReadonlyMap<string, string>): PageRequest | Answer {
  const page = whole(query.get('page'), 1, MAX_PAGE);
  if (page === null) return fail('query', `page has to be a number from 1 to ${MAX_PAGE}`);
  const limit = whole(query.get('limit'), DEFAULT_LIMIT, MAX_LIMIT);
  if (limit === null) return fail('query', `limit has to be a number from 1 to ${MAX_LIMIT}`);
  return { page, limit };
}

/** Calls `visit` for each thing until it returns false; lets other work in between. O(n). */
export async function walk<T>(things: Iterable<T>, visit: (thing: T) => boolean): Promise<void> {
  let seen = 0;
  for (const thing of things) {
    if (!visit(thing)) return;
    if (++seen % STRIDE === 0) await new Promise<void>((resume) => setImmediate(resume));
  }
}

export interface PageOf<Row> {
  readonly rows: Row[];
  readonly meta: JsonObject;
}

/**
 * The asked page of the things that pass `keep`, each turned into a row only if it is on that page. O(n), memory of one
 * page.
 */
export async function collect<T, Row>(
  things: Iterable<T>,
  keep: (thing: T) => boolean,
  row: (thing: T) => Row,
  { page, limit }: PageRequest,
): Promise<PageOf<Row>> {
  const rows: Row[] = [];
  const first = (page - 1) * limit;
  let found = 0;
  await walk(things, (thing) => {
    if (keep(thing)) {
      if (found >= first && rows.length < limit) rows.push(row(thing));
      found++;
    }
    return true;
  });
  return { rows, meta: { page, limit, count: found, hasnext: found > first + rows.length } };
}

/** The same in an order of its own. O(n log n), memory of all things that pass `keep`. */
export async function collectSorted<T, Row>(
  things: Iterable<T>,
  keep: (thing: T) => boolean,
  order: (a: T, b: T) => number,
  row: (thing: T) => Row,
  { page, limit }: PageRequest,
): Promise<PageOf<Row>> {
  const kept: T[] = [];
  await walk(things, (thing) => {
    if (keep(thing)) kept.push(thing);
    return true;
  });
  kept.sort(order);
  const first = (page - 1) * limit;
  const rows = kept.slice(first, first + limit).map(row);
  return { rows, meta: { page, limit, count: kept.length, hasnext: kept.length > first + rows.length } };
}
