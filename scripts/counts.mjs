// Prints "N passed, N failed, N skipped" from a vitest JSON report, for .ci/run. Plain JavaScript, so that it works when the set-up has failed.
// A test file that could not even be loaded counts as one failed test. Exits 1 when something failed or nothing ran.
import { readFileSync } from 'node:fs';

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const broken = report.testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
).length;
const passed = report.numPassedTests;
const failed = report.numFailedTests + broken;
const skipped = report.numPendingTests + report.numTodoTests;
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
if (failed > 0 || passed === 0 || !report.success) process.exitCode = 1;
