// Writes docs/conformance.md: every normative statement of MQTT 3.1.1 and 5.0, where it is obeyed and which tests hold
// it. Run: tsx scripts/conformance.ts [--check]. With --check nothing is written; exit code 1 when a statement has no
// line, a tag names no statement, or the file is not what it should be.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Clause,
  type Conformance,
  findPlaces,
  loadClauses,
  missing,
  type Places,
} from '../test/harness/clauses.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const FILE = join(ROOT, 'docs/conformance.md');

const WHO: Readonly<Record<Clause['who'], string>> = { server: 'server', client: 'client', both: 'both' };

/** "connect.ts session.ts" with the folder only where it is needed to tell. */
function listed(map: ReadonlyMap<string, number>): string {
  return [...map].map(([name, count]) => (count > 1 ? `${short(name)} (${count})` : short(name))).join(', ');
}

function short(name: string): string {
  return name.replace(/^src\//, '').replace(/^test\/(vectors\/mqtt\/)?/, '');
}

function remark(clause: Clause, places: Places): string {
  const parts: string[] = [];
  if (places.marks.has('!')) parts.push('not supported');
  if (places.marks.has('~')) parts.push('in part');
  if (clause.how !== undefined) parts.push(clause.how);
  else if (clause.who === 'client' && places.source.size + places.tests.size === 0) parts.push('behaviour of clients');
  return parts.join('; ');
}

function row(clause: Clause, places: Places): string {
  const cells = [
    clause.id.slice('MQTT-'.length),
    WHO[clause.who],
    clause.text,
    listed(places.source),
    listed(places.tests),
    remark(clause, places),
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function table(conformance: Conformance, version: Clause['version']): string {
  const rows = [...conformance.places].filter(([clause]) => clause.version === version);
  const shown = rows.filter(([, { source, tests }]) => source.size + tests.size > 0).length;
  const tested = rows.filter(([, { tests }]) => tests.size > 0).length;
  return [
    `## MQTT ${version}`,
    `${rows.length} statements; ${shown} are named in code or tests, ${tested} in tests.`,
    [
      '| statement | whose | what it says | obeyed in | held by | remark |',
      '|---|---|---|---|---|---|',
      ...rows.map(([clause, places]) => row(clause, places)),
    ].join('\n'),
  ].join('\n\n');
}

function page(conformance: Conformance): string {
  return [
    '# Conformance to MQTT 3.1.1 and 5.0',
    [
      'Made by `npx tsx scripts/conformance.ts` from the statements in `test/vectors/clauses.json` and from the tags in the code.',
      'What a statement says is shortened here and in our words; the number leads to the full text in the OASIS standards.',
      '"Obeyed in" is relative to `src/`, "held by" to `test/` (vectors: `test/vectors/mqtt/`), with the number of places where it is more than one.',
      'Statements on clients bind the bridges to remote brokers and the command line clients, which use the `mqtt` package;',
      'where one is named here, it is because the server checks that clients keep to it.',
      'MQTT 3.1 has no numbered statements; its packets are in the same vectors.',
    ].join('\n'),
    table(conformance, '5.0'),
    table(conformance, '3.1.1'),
  ]
    .join('\n\n')
    .concat('\n');
}

function present(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const conformance = findPlaces(ROOT, loadClauses(ROOT));
const problems = [
  ...missing(conformance).map((clause) => `nothing shows [${clause.id}] of ${clause.version}: ${clause.text}`),
  ...conformance.unknown.map((tag) => `no such statement: ${tag}`),
];
if (process.argv.includes('--check')) {
  if (present(FILE) !== page(conformance))
    problems.push('docs/conformance.md is not up to date: npx tsx scripts/conformance.ts');
} else writeFileSync(FILE, page(conformance));
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
