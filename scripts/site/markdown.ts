// How the site reads Markdown: headings get the anchors that the pages link to (GitHub's), links between pages become links
// between HTML files, what lies outside of the site is named and not linked. Called by scripts/site.ts.
// Nothing of it may need a style or script in the page: alignment is a class.
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';

type Token = ReturnType<ReturnType<typeof MarkdownIt>['parse']>[number];

export interface Heading {
  readonly anchor: string;
  readonly text: string;
  /** Words below it, for the search. */
  body: string;
}

/** The first heading. */
export function titleOf(markdown: string): string {
  return /^# (.+)$/m.exec(markdown)?.[1].replaceAll(/[`*]/g, '') ?? '';
}

/** As GitHub makes them. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

interface Env {
  readonly page?: { readonly url?: string };
}

/** "zh/guide-tls" of the page that is rendered. */
function nameOf(env: Env): string {
  return (env.page?.url ?? '/index.html').replace(/^\//, '').replace(/\.html$/, '');
}

/** Where a link of a page leads in the site; null: nowhere. `names` are the pages. */
export function siteLink(from: string, href: string, names: ReadonlySet<string>): string | null {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href;
  const [file, anchor] = href.split('#');
  const folder = from.includes('/') ? from.slice(0, from.lastIndexOf('/') + 1) : '';
  const target = new URL(file, `http://site/docs/${folder}`).pathname;
  const page = target === '/README.md' ? 'index' : /^\/docs\/(.+)\.md$/.exec(target)?.[1];
  if (page === undefined || !names.has(page)) return target.startsWith('/docs/console/') ? href : null;
  const up = folder === '' ? '' : '../';
  return `${up}${page}.html${anchor === undefined ? '' : `#${anchor}`}`;
}

/** The library as Eleventy calls it; `headings` takes what the search finds. */
export function markdownOf(
  names: ReadonlySet<string>,
  headings: Map<string, Heading[]>,
): ReturnType<typeof MarkdownIt> {
  const md = new MarkdownIt({ html: true });
  md.use(anchors, { slugify: anchorOf, tabIndex: false });
  const relink = (token: Token, name: string): void => {
    if (token.type !== 'link_open') return;
    const href = String(token.attrGet('href') ?? '');
    const there = siteLink(name, href, names);
    if (there === null) token.attrs = [['title', href.replace(/^(?:\.\.\/)+/, '')]];
    else token.attrSet('href', there);
  };
  md.core.ruler.push('site', (state) => {
    const name = nameOf(state.env as Env);
    const found: Heading[] = [];
    headings.set(name, found);
    for (const [i, token] of state.tokens.entries()) {
      const style = token.attrGet('style');
      if (style !== null) {
        token.attrs = (token.attrs ?? []).filter(([key]) => key !== 'style');
        token.attrJoin('class', `to-${String(style).replace('text-align:', '')}`);
      }
      if (token.type === 'heading_open')
        found.push({ anchor: String(token.attrGet('id') ?? ''), text: plain(state.tokens[i + 1].content), body: '' });
      else if (found.length > 0 && token.content !== '' && state.tokens[i - 1]?.type !== 'heading_open')
        found[found.length - 1].body += `${plain(token.content)} `;
      for (const inner of token.children ?? []) relink(inner, name);
    }
  });
  md.renderer.rules.table_open = () => '<div class="table"><table>\n';
  md.renderer.rules.table_close = () => '</table></div>\n';
  return md;
}

/** Without the marks of Markdown. */
function plain(text: string): string {
  return text
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .replaceAll(/[`*[\]|]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
