// The search of the documentation site, in the browser: loads the index with the first key press and shows the sections
// that match. Bundled by scripts/site.ts. Asks no other host.
import MiniSearch from 'minisearch';
import { INDEX_OPTIONS, type Section } from './words.ts';

const MOST_RESULTS = 20;

function start(input: HTMLInputElement, list: HTMLElement): void {
  const base = new URL(input.dataset.base ?? './', document.baseURI);
  let loading: Promise<MiniSearch<Section>> | null = null;
  const load = async (): Promise<MiniSearch<Section>> => {
    const answer = await fetch(new URL('search.json', base));
    if (!answer.ok) throw new Error(String(answer.status));
    return MiniSearch.loadJSON(await answer.text(), INDEX_OPTIONS);
  };
  const show = async (): Promise<void> => {
    const wanted = input.value.trim().slice(0, 200);
    loading ??= load();
    const index = await loading;
    // Typed further meanwhile: that search shows its own results.
    if (wanted !== input.value.trim().slice(0, 200)) return;
    const found = wanted === '' ? [] : index.search(wanted).slice(0, MOST_RESULTS);
    list.replaceChildren(
      ...found.map(({ url, page, heading }) => {
        const link = document.createElement('a');
        link.href = new URL(url, base).href;
        link.textContent = heading === page ? page : `${page}: ${heading}`;
        const item = document.createElement('li');
        item.append(link);
        return item;
      }),
    );
    list.dataset.count = String(found.length);
    list.hidden = wanted === '';
  };
  input.addEventListener('input', () => {
    show().catch(() => {
      loading = null;
      list.replaceChildren();
      list.hidden = true;
    });
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      input.value = '';
      list.hidden = true;
    }
    if (event.key === 'Enter') list.querySelector('a')?.click();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    input.focus();
  });
}

const input = document.querySelector<HTMLInputElement>('#search');
const list = document.querySelector<HTMLElement>('#found');
if (input !== null && list !== null) start(input, list);
