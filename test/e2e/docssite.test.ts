// The documentation as the console serves it: read in a browser without any other host, searched, in both languages, under the
// policy of the console; and addresses that lead out of its folder.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadPages } from '../../src/console/pages.ts';
import { ask } from '../console/request.ts';
import { ConsoleStage } from '../console/standins.ts';
import { launch, missing, type Opened, open } from '../harness/browser.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const DOCS = path.join(ROOT, 'dist/docs');
if (!existsSync(DOCS)) execFileSync('npx', ['tsx', 'scripts/site.ts'], { cwd: ROOT, stdio: 'inherit' });
const listed = JSON.parse(readFileSync(path.join(DOCS, 'pages.json'), 'utf8')) as { path: string; file: string }[];
let stage: ConsoleStage;
beforeAll(async () => {
  stage = await new ConsoleStage({ pages: await loadPages() }).start();
});
afterAll(() => stage.stop());
const get = (target: string, headers: Record<string, string> = {}) =>
  ask(stage.server.port, 'GET', target, { user: null, headers });

describe('pages of the documentation', () => {
  test('have the policy of the console, a type and a tag', async () => {
    const { status, headers } = await get('/docs/guide-tls.html');
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-cache',
    ]);
    expect(headers['content-security-policy']).toBe((await get('/')).headers['content-security-policy']);
    expect((await get('/docs/guide-tls.html', { 'if-none-match': String(headers.etag) })).status).toBe(304);
  });

  test('/docs leads to the folder, the folder shows its first page', async () => {
    const { status, headers } = await get('/docs');
    expect([status, headers.location]).toEqual([308, 'docs/']);
    expect((await get('/docs/')).text).toBe((await get('/docs/index.html')).text);
  });

  test.each([
    '/docs/pages.json',
    '/docs/../main.js',
    '/docs/%2e%2e/main.js',
    '/docs/..%2fmain.js',
    '/docs/guide-tls.html.gz',
    '/docs/guide-tls',
    '/docs//guide-tls.html',
    '/docs/zh',
    '/docs/nothing.html',
  ])('%s is none of them', async (target) => {
    expect((await get(target)).status).not.toBe(200);
  });

  test('hold no script and no style of their own, and nothing of another host', () => {
    for (const { file } of listed.filter(({ file }) => file.endsWith('.html'))) {
      const text = readFileSync(path.join(DOCS, file), 'utf8');
      expect(text.match(/<script(?! src="(?:\.\.\/)?search\.js" defer><)[^>]*>|<style|\son\w+=|\sstyle=/), file).toBe(
        null,
      );
      expect(text.match(/<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?\/\//), file).toBe(null);
    }
  });

  test('link to pages and headings that are there', () => {
    const files = new Map(listed.map(({ file }) => [file, readFileSync(path.join(DOCS, file), 'utf8')]));
    const broken: string[] = [];
    for (const [file, text] of files) {
      if (!file.endsWith('.html')) continue;
      for (const [, href] of text.matchAll(/<a[^>]*\shref="([^"]+)"/g)) {
        if (/^(?:https?:|mailto:)/.test(href)) continue;
        const url = new URL(href.replaceAll('&amp;', '&'), `http://x/${file}`);
        const target = files.get(url.pathname.slice(1));
        const anchor = decodeURIComponent(url.hash.slice(1));
        if (target === undefined || (anchor !== '' && !target.includes(`id="${anchor}"`)))
          broken.push(`${file}: ${href}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

describe.skipIf(missing !== null)(`in a browser${missing === null ? '' : ` (${missing})`}`, () => {
  let browser: Browser;
  let opened: Opened | null = null;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    expect(opened?.complaints ?? []).toEqual([]);
    await opened?.page.context().close();
    opened = null;
  });
  const openDocs = async (target: string): Promise<Opened['page']> => {
    opened = await open(browser, `http://127.0.0.1:${stage.server.port}${target}`);
    return opened.page;
  };

  test('a search finds a section and leads to it', async () => {
    const page = await openDocs('/docs');
    await page.keyboard.press('/');
    await page.keyboard.type('nng_delimiter');
    await page.locator('#found a').first().waitFor();
    await page.getByRole('searchbox').fill('certificate authority');
    const link = page.locator('#found a[href*="guide-tls.html"]').first();
    await link.waitFor();
    await link.click();
    await page.waitForURL(/guide-tls\.html/);
    await page.getByRole('heading', { level: 1 }).waitFor();
  });

  test('a search in Chinese finds Chinese pages, from a folder below', async () => {
    const page = await openDocs('/docs/zh/index.html');
    await page.getByRole('searchbox').fill('证书');
    const link = page.locator('#found a[href*="/docs/zh/"]').first();
    await link.waitFor();
    await link.click();
    await page.waitForURL(/\/docs\/zh\/[\w-]+\.html/);
    expect(await page.evaluate('document.documentElement.lang')).toBe('zh-CN');
  });

  test('pictures are shown', async () => {
    const page = await openDocs('/docs/console.html');
    await page.locator('main img').first().waitFor();
    const isShown = 'document.querySelector("main img").naturalWidth > 0';
    await expect.poll(() => page.evaluate(isShown)).toBe(true);
  });
});
