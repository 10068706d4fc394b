// A headless Chromium on the console's pages: finds the program, opens pages that collect what goes wrong in them, writes pictures.
// Used by test/e2e/console.test.ts. Tests are skipped, with `missing` as the reason, on machines without the program.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { loadPages } from '../../src/console/pages.ts';

const PROGRAM = '/usr/bin/chromium';

/** Why browser tests cannot run here, null when they can. */
export const missing = existsSync(PROGRAM) ? null : `${PROGRAM} is not installed (apt-get install chromium)`;

/** Where the pictures go. */
export const PICTURES = path.join(os.tmpdir(), 'tidegate-console-pictures');

const root = path.join(import.meta.dirname, '../..');

/** Builds the pages if no build has left them. */
export async function buildPages(): Promise<void> {
  if ((await loadPages()) !== null) return;
  execFileSync(path.join(root, 'node_modules/.bin/tsx'), ['scripts/web.ts'], { cwd: root, stdio: 'inherit' });
}

export function launch(): Promise<Browser> {
  mkdirSync(PICTURES, { recursive: true });
  return chromium.launch({ executablePath: PROGRAM, args: ['--no-sandbox', '--disable-gpu'] });
}

/** A page of its own session, and everything that its console and scripts complained about. */
export interface Opened {
  readonly page: Page;
  readonly complaints: string[];
}

export async function open(browser: Browser, url: string, more: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-US', ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}

export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: path.join(PICTURES, `${name}.png`) });
}

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on the page that keeps people out: faults of impact serious and critical, one line each. */
export async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: readonly Finding[];
  };
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}
