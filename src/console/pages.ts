// The built pages of the console (dist/web, made by scripts/web.ts) as a PageSource: every file is read once, at start,
// into memory. Called by gateway/console.ts when http_server is configured. Only files that the build has listed are
// known; no path is ever made from a request.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page, PageSource } from './console.ts';

/** What scripts/web.ts writes beside the pages. */
interface Listed {
  /** "/assets/app-3f2a.js". */
  readonly path: string;
  readonly file: string;
  readonly contentType: string;
  readonly immutable: boolean;
  /** File with the same packed, null where that is not smaller. */
  readonly gzip: string | null;
}

/** Beside the bundle of the command; for whoever runs from the sources, in the folder that the build writes to. */
const PLACES = ['./web/', '../../dist/web/'];

async function readList(): Promise<{ base: URL; list: Listed[] } | null> {
  for (const place of PLACES) {
    const base = new URL(place, import.meta.url);
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
  const body = await read(listed.file);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const { contentType, immutable } = listed;
  return { body, contentType, etag, immutable, ...(listed.gzip === null ? {} : { gzip: await read(listed.gzip) }) };
}

/** All pages, or null when they are not built. Rejects when a listed file cannot be read. */
export async function loadPages(): Promise<PageSource | null> {
  const found = await readList();
  if (found === null) return null;
  const pages = new Map<string, Page>();
  for (const listed of found.list) pages.set(listed.path, await readPage(found.base, listed));
  return { page: (path) => pages.get(path) };
}
