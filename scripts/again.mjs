// The second look at a failed test run: the files that failed are run once more, alone, and the report takes their second result. A test that
// fails twice fails the run; one that passes alone is named as unsteady, with its first error. More than MOST_FILES failed files are no
// accident and are not run again; nor is a run with errors outside of tests (unhandled.mjs counts them). Run by `make test` in CI; plain JavaScript.
// Usage: again.mjs REPORT [COMMAND instead of npx]. Changes REPORT in place.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const MOST_FILES = 5;
const MOST_ERROR_LINES = 12;
const MOST_TIME_MS = 900_000;

const failedOf = (file) => file.assertionResults.filter(({ status }) => status === 'failed');
const isBad = (file) => file.status === 'failed' || failedOf(file).length > 0;
const nameOf = (file) => file.name.replace(`${process.cwd()}/`, '');
const titleOf = (test) => [...test.ancestorTitles, test.title].join(' > ');

/** What went wrong, without colours, in a few lines. */
function errorOf(messages) {
  const lines = stripVTControlCharacters(messages.join('\n'))
    .split('\n')
    .filter((line) => !line.includes('node_modules'));
  return lines.slice(0, MOST_ERROR_LINES).map((line) => `      ${line}`);
}

function print(heading, files) {
  if (files.length === 0) return;
  console.log(`\n${heading}`);
  for (const file of files) {
    const tests = failedOf(file);
    if (tests.length === 0) console.log([`  ${nameOf(file)}: the file`, ...errorOf([file.message ?? ''])].join('\n'));
    for (const test of tests)
      console.log([`  ${nameOf(file)}: ${titleOf(test)}`, ...errorOf(test.failureMessages ?? [])].join('\n'));
  }
}

/** The report of a run of these files alone, one after the other, or null when it did not come to an end. */
function runAlone(files, reportFile) {
  const again = `${reportFile}.again`;
  rmSync(again, { force: true });
  const words = ['vitest', 'run', '--maxWorkers=1', '--reporter=json', `--outputFile=${again}`];
  const command = process.argv[3] ?? 'npx';
  spawnSync(command, [...words, ...files.map(nameOf)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: MOST_TIME_MS,
  });
  try {
    const report = JSON.parse(readFileSync(again, 'utf8'));
    rmSync(again);
    return report;
  } catch {
    return null;
  }
}

/** Sums of the tests' states, as vitest writes them. */
function recount(report) {
  const count = (...states) =>
    report.testResults.flatMap((file) => file.assertionResults).filter(({ status }) => states.includes(status)).length;
  report.numPassedTests = count('passed');
  report.numFailedTests = count('failed');
  report.success = !report.testResults.some(isBad);
}

/** How many errors nobody handled, by the file that unhandled.mjs writes; without it, at least one. */
function unhandled(reportFile) {
  try {
    return Number(readFileSync(`${reportFile}.unhandled`, 'utf8'));
  } catch {
    return 1;
  }
}

const reportFile = process.argv[2];
const outside = unhandled(reportFile);
const report = JSON.parse(readFileSync(reportFile, 'utf8'));
const first = report.testResults.filter(isBad);
if (outside === 0 && first.length > 0 && first.length <= MOST_FILES) {
  console.log(`\nRun again, alone: ${first.map(nameOf).join(', ')}`);
  const second = runAlone(first, reportFile);
  const results = new Map((second?.testResults ?? []).map((file) => [file.name, file]));
  // A file without a second result keeps its first: it counts as failed.
  report.testResults = report.testResults.map((file) => (isBad(file) && results.get(file.name)) || file);
  recount(report);
  writeFileSync(reportFile, JSON.stringify(report));
  print(
    'Unsteady: failed in the whole run, passed alone:',
    first.filter((file) => !isBad(results.get(file.name) ?? file)),
  );
}
print('Failed:', report.testResults.filter(isBad));
if (outside > 0) console.log(`\nErrors outside of tests: ${outside}`);
if (outside > 0 || !report.success || report.testResults.some(isBad)) process.exitCode = 1;
