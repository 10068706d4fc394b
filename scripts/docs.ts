// `make docs`: writes the files that are made from tables in the code (configuration schema, errors, log messages,
// metrics).
// `--check` writes nothing and ends with 1 when a file is not what it should be; `make check` calls that.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS } from '../src/base/errors.ts';
import { MESSAGES } from '../src/base/messages.ts';
import { FOREIGN } from '../src/config/schema/foreign.ts';
import { metricsMarkdown } from './metrics.ts';
import { fromMosquitto, fromNanomq } from './moving.ts';
import { referenceHocon, referenceMarkdown, referenceToml } from './reference.ts';
import { sysMarkdown } from './sys.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

function referenceErrors(): string {
  const errors = Object.entries(ERRORS).map(([code, row]) => `| \`${code}\` | ${row.exit} | ${row.text} |`);
  const messages = Object.entries(MESSAGES).map(([id, text]) => `| \`${id}\` | ${text} |`);
  return [
    '# Errors and log messages',
    'Made from the tables in the code by `make docs`.',
    '## Errors',
    'Exit codes: 1 failure while running, 64 invalid command line, 78 invalid configuration.',
    ['| code | exit | |', '|---|---|---|', ...errors].join('\n'),
    '## Log messages',
    'The field `msgid` of a log line; ids are never used for something else.',
    ['| id | |', '|---|---|', ...messages].join('\n'),
  ]
    .join('\n\n')
    .concat('\n');
}

const FILES = new Map<string, () => string | Promise<string>>([
  ['etc/tidegate.reference.conf', referenceHocon],
  ['etc/tidegate.reference.toml', referenceToml],
  ['docs/reference-config.md', () => referenceMarkdown(FOREIGN)],
  ['docs/reference-errors.md', referenceErrors],
  ['docs/metrics.md', metricsMarkdown],
  ['docs/reference-sys.md', sysMarkdown],
  ['docs/from-mosquitto.md', fromMosquitto],
  ['docs/from-nanomq.md', fromNanomq],
]);

function present(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const check = process.argv.includes('--check');
let stale = 0;
for (const [file, make] of FILES) {
  const path = join(ROOT, file);
  const text = await make();
  if (present(path) === text) continue;
  stale++;
  if (check) console.error(`${file} is not up to date: run make docs`);
  else writeFileSync(path, text);
}
process.exitCode = check && stale > 0 ? 1 : 0;
