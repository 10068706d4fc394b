// What a test run skipped, and why: one table from a vitest JSON report, with the command that brings what was missing. Run by
// `make test`. With --strict, as in CI, it exits 1 for a skip without a reason, or whose reason does not hold on this machine.
// A reason stands in parentheses in the name of the test or of a group around it. Plain JavaScript: it must work without node_modules.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Word in a reason, the program it is about, the Debian package that brings it. */
const PROGRAMS = [
  ['openssl', 'openssl', 'openssl'],
  ['chromium', 'chromium', 'chromium'],
  ['promtool', 'promtool', 'prometheus'],
  ['redis', 'redis-server', 'redis-server'],
  ['mosquitto', 'mosquitto', 'mosquitto mosquitto-clients'],
  ['nngcat', 'nngcat', 'nng-utils'],
  ['nanocat', 'nanocat', 'nanomsg-utils'],
  ['gcc', 'gcc', 'gcc'],
  ['libnng', 'libnng', 'libnng-dev'],
  ['groff', 'groff', 'groff'],
  ['fish', 'fish', 'fish'],
  ['zsh', 'zsh', 'zsh'],
  ['nginx', 'nginx', 'nginx-light libnginx-mod-stream'],
];

function has(program) {
  if (program === 'libnng') return spawnSync('sh', ['-c', 'ls /usr/include/nng/nng.h']).status === 0;
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  return spawnSync('sh', ['-c', `command -v ${program}`], { env }).status === 0;
}

/** All texts in parentheses of the names around a test, its own last. */
function reasonsOf(names) {
  return names.flatMap((name) => [...name.matchAll(/\(([^()]*)\)/g)].map(([, text]) => text));
}

/** What is to be said of one skipped test. */
function judge(names) {
  const reasons = reasonsOf(names);
  for (const reason of reasons) {
    const row = PROGRAMS.find(([word]) => new RegExp(`\\b${word}`, 'i').test(reason));
    if (row !== undefined) {
      const there = has(row[1]);
      return { reason, holds: !there, brings: there ? '' : `apt-get install ${row[2]}` };
    }
    if (/\broot\b/.test(reason)) return { reason, holds: process.getuid?.() === 0 || /mount/.test(reason), brings: '' };
  }
  const reason = reasons.at(-1);
  return reason === undefined
    ? { reason: 'no reason given', holds: false, brings: '' }
    : { reason, holds: true, brings: '' };
}

const [file, mode] = process.argv.slice(2);
const report = JSON.parse(readFileSync(file, 'utf8'));
const rows = new Map();
for (const suite of report.testResults) {
  for (const test of suite.assertionResults) {
    if (!['skipped', 'pending', 'todo', 'disabled'].includes(test.status)) continue;
    const where = suite.name.replace(`${process.cwd()}/`, '');
    const verdict = judge([...test.ancestorTitles, test.title]);
    const key = `${where}\0${verdict.reason}`;
    const row = rows.get(key) ?? { where, count: 0, ...verdict };
    row.count++;
    rows.set(key, row);
  }
}
if (rows.size > 0) {
  console.log('\nSkipped:');
  for (const { where, count, reason, brings, holds } of rows.values())
    console.log(
      `  ${String(count).padStart(3)}  ${where}: ${reason}${brings === '' ? '' : `  ->  ${brings}`}${holds ? '' : '  [NOT JUSTIFIED]'}`,
    );
}
if (mode === '--strict' && [...rows.values()].some(({ holds }) => !holds)) {
  console.error('skips.mjs: a test was skipped without a reason that holds on this machine');
  process.exitCode = 1;
}
