// How the documentation is searched: what is a word, and what counts more. Used by search.ts in the browser and by
// scripts/site.ts, which builds the index; both must cut texts in the same way.
import type { Options } from 'minisearch';

export interface Section {
  readonly id: number;
  /** Relative to the folder of the site: "guide-tls.html#renew". */
  readonly url: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

const HAN = /[\u3400-\u9fff\uf900-\ufaff]/;

/** Words in lower case; Chinese as single characters and pairs, because nothing stands between its words. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [part] of text.toLowerCase().matchAll(/[\u3400-\u9fff\uf900-\ufaff]+|[\p{L}\p{N}_$]+/gu)) {
    if (!HAN.test(part)) words.push(part);
    else
      for (let i = 0; i < part.length; i++) words.push(part[i], ...(i + 1 < part.length ? [part.slice(i, i + 2)] : []));
  }
  return words;
}

export const INDEX_OPTIONS: Options<Section> = {
  fields: ['page', 'heading', 'text'],
  storeFields: ['url', 'page', 'heading'],
  tokenize: wordsOf,
  processTerm: (term) => term,
  searchOptions: { boost: { heading: 3, page: 2 }, prefix: (term) => !HAN.test(term), combineWith: 'AND' },
};
