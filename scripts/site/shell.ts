// What is around the text of each page of the site: navigation, search, the pages before and after. Called by
// scripts/site.ts. Holds no script and no style of its own.

export interface Place {
  /** "guide-tls", "zh/index". */
  readonly name: string;
  readonly chapter: string;
  readonly title: string;
  readonly markdown: string;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

function link(up: string, { name, title }: Place, attributes = ''): string {
  return `<a href="${up}${name}.html"${attributes}>${escaped(title)}</a>`;
}

function navigation(all: readonly Place[], here: Place, up: string): string {
  const chapters = [...new Set(all.map(({ chapter }) => chapter))];
  return chapters
    .map((chapter) => {
      const items = all
        .filter((one) => one.chapter === chapter)
        .map((one) => `<li>${link(up, one, one === here ? ' aria-current="page"' : '')}</li>`);
      return `<h2>${escaped(chapter)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
    })
    .join('\n');
}

/** The whole page number `at`. */
export function pageHtml(all: readonly Place[], at: number, body: string): string {
  const here = all[at];
  const up = here.name.includes('/') ? '../' : '';
  const isChinese = here.name.startsWith('zh/');
  const [search, skip] = isChinese ? ['搜索文档', '跳到正文'] : ['Search the documentation', 'Skip to the text'];
  const [before, after] = [all[at - 1], all[at + 1]];
  return `<!doctype html>
<html lang="${isChinese ? 'zh-CN' : 'en'}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(here.title)} - Tidegate</title>
<link rel="icon" type="image/svg+xml" href="${up}icon.svg">
<link rel="stylesheet" href="${up}site.css">
<script src="${up}search.js" defer></script>
</head>
<body>
<a class="skip" href="#text">${skip}</a>
<nav aria-label="${isChinese ? '目录' : 'Pages'}">
<a class="name" href="${up}index.html">Tidegate</a>
<input id="search" type="search" placeholder="${search}" aria-label="${search}" data-base="${up === '' ? './' : up}" autocomplete="off">
<ul id="found" aria-live="polite" hidden></ul>
${navigation(all, here, up)}
</nav>
<main id="text">
${body}
<footer><span>${before === undefined ? '' : `&larr; ${link(up, before)}`}</span><span>${after === undefined ? '' : `${link(up, after)} &rarr;`}</span></footer>
</main>
</body>
</html>
`;
}
