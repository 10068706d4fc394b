// Which page is shown: the part of the address behind "#/". Used by main.tsx and by links between pages.
import { createStore } from './store.ts';

export interface Place {
  readonly page: string;
  /** What stands behind the page: a client id, a tab. */
  readonly rest: string;
}

/** "#/clients/dev%2F1" -> clients, "dev/1". */
export function readPlace(hash: string): Place {
  const path = hash.replace(/^#\/?/, '');
  const cut = path.indexOf('/');
  if (cut < 0) return { page: path, rest: '' };
  try {
    return { page: path.slice(0, cut), rest: decodeURIComponent(path.slice(cut + 1)) };
  } catch {
    return { page: path.slice(0, cut), rest: '' };
  }
}

export function hrefOf(page: string, rest = ''): string {
  return rest === '' ? `#/${page}` : `#/${page}/${encodeURIComponent(rest)}`;
}

export const place = createStore<Place>(readPlace(location.hash));

export function startRoute(): void {
  addEventListener('hashchange', () => place.set(readPlace(location.hash)));
}

export function go(page: string, rest = ''): void {
  location.hash = hrefOf(page, rest);
}
