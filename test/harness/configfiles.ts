// A folder with configuration files in it, and what loading one of them gives: for tests of config/ and of commands that read it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import type { Config, Loaded, Problem } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';

const made: string[] = [];
afterAll(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}, 120_000);

/** A new folder with these files; names may have folders in them. */
export function folder(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const path = mkdtempSync(join(tmpdir(), 'config-'));
  made.push(path);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

export interface Given {
  readonly ext?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly set?: readonly string[];
  /** Files beside it. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

/** Loads the text as c.<ext>; `{dir}` in it is its folder. */
export function load(text: string | Uint8Array, given: Given = {}): Loaded {
  const dir = folder(given.files);
  const file = `c.${given.ext ?? 'conf'}`;
  writeFileSync(join(dir, file), typeof text === 'string' ? text.replaceAll('{dir}', dir) : text);
  return loadConfig({ file, env: given.env ?? {}, set: given.set ?? [], cwd: dir });
}

export function config(text: string, given: Given = {}): Config {
  return load(text, given).config;
}

/** What is wrong with the text, as "line:column key: message". Fails when nothing is. */
export function problems(text: string | Uint8Array, given: Given = {}): string[] {
  try {
    load(text, given);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(brief);
    throw error;
  }
  throw new Error('the configuration is valid');
}

export function warnings(text: string, given: Given = {}): string[] {
  return load(text, given).warnings.map(brief);
}

function brief({ at, key, message }: Problem): string {
  return `${at.line > 0 ? `${at.line}:${at.column}` : at.file} ${key}: ${message}`;
}
