// The documentation as a site: docs/*.md and README.md become dist/docs, which the console serves at /docs without any
// other host: pages, styles, search and its index. Run by `make site` and by scripts/build.ts. Equal Markdown gives equal
// bytes; no page holds a script or a style of its own, so that the policy of the console holds.
// Sources: https://www.11ty.dev/docs/programmatic/ (Markdown to HTML), https://lucaong.github.io/minisearch/ (index).
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Eleventy } from '@11ty/eleventy';
import { build } from 'esbuild';
import MiniSearch from 'minisearch';
import { INDEX_OPTIONS, type Section } from '../src/console/web/site/words.ts';
import { writeList } from './pagelist.ts';
import { CHAPTERS } from './site/contents.ts';
import { type Heading, markdownOf, titleOf } from './site/markdown.ts';
import { type Place, pageHtml } from './site/shell.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const docs = path.join(root, 'docs');
const web = path.join(root, 'src/console/web/site');

/** Every page of docs/ by its name, in the order of the chapters. */
function places(): Place[] {
  const names = (folder: string): string[] =>
    readdirSync(path.join(docs, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => path.posix.join(folder, name.slice(0, -3)))
      .sort();
  const unlisted = new Set([...names('.'), ...(existsSync(path.join(docs, 'zh')) ? names('zh') : [])]);
  const found: Place[] = [];
  for (const { title: chapter, pages } of CHAPTERS)
    for (const page of pages)
      for (const name of page.endsWith('*')
        ? [...unlisted].filter((one) => one.startsWith(page.slice(0, -1)))
        : [page]) {
        if (!unlisted.delete(name) && name !== 'index') continue;
        const file = name === 'index' ? path.join(root, 'README.md') : path.join(docs, `${name}.md`);
        const text = readFileSync(file, 'utf8');
        // README.md names pages by the way from the root.
        const markdown = name === 'index' ? text.replaceAll('](docs/', '](') : text;
        found.push({ name, chapter, title: name === 'index' ? 'Overview' : titleOf(markdown), markdown });
      }
  if (unlisted.size > 0) throw new Error(`scripts/site/contents.ts lacks ${[...unlisted].join(', ')}`);
  return found;
}

/** The HTML of each page's Markdown, by name. */
async function bodies(all: readonly Place[], headings: Map<string, Heading[]>): Promise<Map<string, string>> {
  // All templates are given; the input folder has none of its own.
  const empty = mkdtempSync(path.join(tmpdir(), 'site-'));
  const eleventy = new Eleventy(empty, path.join(empty, 'out'), {
    quietMode: true,
    config: (config) => {
      for (const { name, markdown } of all) {
        const data = { permalink: `/${name}.html`, eleventyExcludeFromCollections: true };
        config.addTemplate(`${name}.md`, markdown, data);
      }
      config.setLibrary('md', markdownOf(new Set(all.map(({ name }) => name)), headings));
      return { markdownTemplateEngine: false };
    },
  });
  const made = new Map<string, string>();
  try {
    for (const { url, content } of await eleventy.toJSON()) made.set(url.slice(1, -'.html'.length), content);
  } finally {
    rmSync(empty, { recursive: true });
  }
  return made;
}

/** Gives the files that went in. */
async function searchScript(folder: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [path.join(web, 'search.ts')],
    outfile: path.join(folder, 'search.js'),
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    absWorkingDir: root,
  });
  return Object.keys(metafile.inputs);
}

function searchIndex(all: readonly Place[], headings: ReadonlyMap<string, readonly Heading[]>): string {
  const index = new MiniSearch<Section>(INDEX_OPTIONS);
  let id = 0;
  for (const { name, title } of all)
    for (const { anchor, text, body } of headings.get(name) ?? [])
      index.add({
        id: id++,
        url: `${name}.html${anchor === '' ? '' : `#${anchor}`}`,
        page: title,
        heading: text,
        text: body,
      });
  return JSON.stringify(index);
}

/** Builds beside `folder` and takes its place only when all of it is there. Gives the files of packages that went in. */
export async function buildSite(folder: string): Promise<string[]> {
  const fresh = `${folder}.${process.pid}`;
  try {
    mkdirSync(fresh, { recursive: true });
    const all = places();
    const headings = new Map<string, Heading[]>();
    const html = await bodies(all, headings);
    for (const [at, place] of all.entries()) {
      const file = path.join(fresh, `${place.name}.html`);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, pageHtml(all, at, html.get(place.name) ?? ''));
    }
    cpSync(path.join(docs, 'console'), path.join(fresh, 'console'), { recursive: true });
    cpSync(path.join(web, '../icon.svg'), path.join(fresh, 'icon.svg'));
    cpSync(path.join(web, 'site.css'), path.join(fresh, 'site.css'));
    writeFileSync(path.join(fresh, 'search.json'), searchIndex(all, headings));
    const inputs = await searchScript(fresh);
    writeList(fresh, '/docs/');
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
    return inputs;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  await buildSite(path.join(root, 'dist/docs'));
