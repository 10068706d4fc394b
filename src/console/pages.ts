// The built pages of the console (dist/web) and of its documentation (dist/docs) as a PageSource; the build lists them
// in pages.json. Called by gateway/console.ts when http_server is configured. Files are read when they are asked for,
// those of the console stay in memory. Only files that are listed are known; no path is made from a request.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page, PageSource } from './console.ts';

/** A row of pages.json. */
interface Listed {
  /** "/assets/app-3f2a.js". */
  readonly path: string;
  readonly file: string;
  readonly contentType: string;
  readonly etag: string;
  readonly immutable: boolean;
  /** File with the same packed, null where that is not smaller. */
  readonly gzip: string | null;
}

/** Beside the bundle of the command; for a gateway run from its sources, in the folder that the build writes to. */
const PLACES = ['./', '../../dist/'];

interface Found {
  readonly base: URL;
  readonly list: readonly Listed[];
}

async function readList(folder: 'web/' | 'docs/'): Promise<Found | null> {
  for (const place of PLACES) {
    const base = new URL(place + folder, import.meta.url);
    try {
      return { base, list: JSON.parse(await readFile(new URL('pages.json', base), 'utf8')) as Listed[] };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return null;
}

async function readPage(base: URL, listed: Listed): Promise<Page> {
  const read = (name: string): Promise<Buffer> => readFile(fileURLToPath(new URL(name, base)));
  const { file, contentType, etag, immutable, gzip } = listed;
  const body = await read(file);
  return { body, contentType, etag, immutable, ...(gzip === null ? {} : { gzip: await read(gzip) }) };
}

/** All pages, or null when those of the console are not built. Pages reject when a listed file cannot be read. */
export async function loadPages(): Promise<PageSource | null> {
  const [web, docs] = await Promise.all([readList('web/'), readList('docs/')]);
  if (web === null) return null;
  const known = new Map<string, { readonly base: URL; readonly listed: Listed }>();
  for (const { base, list } of docs === null ? [web] : [web, docs])
    for (const listed of list) known.set(listed.path, { base, listed });
  const kept = new Map<string, Promise<Page>>();
  return {
    page: (path) => {
      const found = known.get(path);
      if (found === undefined || found.base !== web.base)
        return found === undefined ? undefined : readPage(found.base, found.listed);
      const page = kept.get(path) ?? readPage(found.base, found.listed);
      kept.set(path, page);
      page.catch(() => kept.delete(path));
      return page;
    },
  };
}
