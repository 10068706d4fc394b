// The normative statements of MQTT 3.1.1 and 5.0 (test/vectors/clauses.json) and where they occur: in source comments as
// [MQTT-3.1.4-2], in test names, in the `clause` of vectors. Used by scripts/conformance.ts and its test.
// A bare tag means 5.0, or 3.1.1 where only that has it; [MQTT-3.1.2-2 of 3.1.1] says which. 3.1 has no numbers of its own.
// Marks before a tag: ~[..] obeyed in part, ![..] not supported.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export type SpecVersion = '3.1.1' | '5.0';

export interface Clause {
  version: SpecVersion;
  id: string;
  /** Whose behaviour it is. */
  who: 'server' | 'client' | 'both';
  /** What it says, shortened and in our words. */
  text: string;
  /** 3.1.1: the statements of 5.0 that say the same. */
  as?: string[];
  /** Why it holds where no line of code can show it. */
  how?: string;
}

export interface Tag {
  id: string;
  /** Null for a bare tag. */
  version: SpecVersion | null;
  mark: '' | '~' | '!';
}

/** Where one statement is obeyed and which tests hold it; files relative to the root, with counts where it is more than one. */
export interface Places {
  source: Map<string, number>;
  tests: Map<string, number>;
  marks: Set<'~' | '!'>;
}

export interface Conformance {
  places: Map<Clause, Places>;
  /** Tags that are no statement, with their file. */
  unknown: string[];
}

const TAG = /([~!]?)\[(MQTT-[0-9.-]*[0-9]-[0-9]+)(?: of (3\.1\.1|5\.0))?\]/g;

/** All tags in a piece of source text. */
export function tagsIn(text: string): Tag[] {
  return [...text.matchAll(TAG)].map(([, mark, id, version]) => ({
    id,
    version: (version as SpecVersion | undefined) ?? null,
    mark: mark as Tag['mark'],
  }));
}

export function loadClauses(root: string): Clause[] {
  return JSON.parse(readFileSync(join(root, 'test/vectors/clauses.json'), 'utf8')) as Clause[];
}

/** Looks for every statement in src/ and test/ below `root`. */
export function findPlaces(root: string, clauses: readonly Clause[]): Conformance {
  const index = new Map(clauses.map((clause) => [`${clause.version} ${clause.id}`, clause]));
  const found: Conformance = { places: new Map(), unknown: [] };
  for (const clause of clauses) found.places.set(clause, { source: new Map(), tests: new Map(), marks: new Set() });
  for (const file of filesBelow(join(root, 'src'), '.ts')) addText(found, index, clauses, root, file, 'source');
  for (const file of filesBelow(join(root, 'test'), '.ts')) addText(found, index, clauses, root, file, 'tests');
  for (const file of filesBelow(join(root, 'test/vectors/mqtt'), '.json')) addVectors(found, index, root, file);
  return found;
}

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules') && name !== join('harness', 'clauses.ts'))
    .sort()
    .map((name) => join(folder, name));
}

function addText(
  found: Conformance,
  index: ReadonlyMap<string, Clause>,
  clauses: readonly Clause[],
  root: string,
  file: string,
  side: 'source' | 'tests',
): void {
  const name = relative(root, file);
  for (const tag of tagsIn(readFileSync(file, 'utf8'))) {
    const clause =
      tag.version === null
        ? (index.get(`5.0 ${tag.id}`) ?? index.get(`3.1.1 ${tag.id}`))
        : index.get(`${tag.version} ${tag.id}`);
    if (clause === undefined) {
      found.unknown.push(`${name}: [${tag.id}${tag.version === null ? '' : ` of ${tag.version}`}]`);
      continue;
    }
    // A line of code without a version serves both; a bare tag stands for the statement of the other version that says the same.
    const alike = tag.version === null ? twins(clause, clauses) : [];
    for (const one of [clause, ...alike]) {
      const places = found.places.get(one);
      if (places === undefined) continue;
      count(places[side], name);
      if (tag.mark !== '') places.marks.add(tag.mark);
    }
  }
}

function twins(clause: Clause, clauses: readonly Clause[]): Clause[] {
  if (clause.version === '5.0') return clauses.filter((one) => one.as?.includes(clause.id));
  return clauses.filter((one) => one.version === '5.0' && clause.as?.includes(one.id));
}

interface TaggedVector {
  clause?: string[];
  version?: number;
}

function addVectors(found: Conformance, index: ReadonlyMap<string, Clause>, root: string, file: string): void {
  const name = relative(root, file);
  for (const vector of JSON.parse(readFileSync(file, 'utf8')) as TaggedVector[]) {
    const version: SpecVersion = vector.version === 5 ? '5.0' : '3.1.1';
    for (const id of vector.clause ?? []) {
      if (!id.startsWith('MQTT-')) continue;
      const clause = index.get(`${version} ${id}`);
      if (clause === undefined) found.unknown.push(`${name}: ${version} ${id}`);
      // 3.1 is tested by what 3.1.1 says where it says the same, but that is no proof for 3.1.1.
      else if (vector.version !== 3) count(found.places.get(clause)?.tests ?? new Map(), name);
    }
  }
}

function count(map: Map<string, number>, name: string): void {
  map.set(name, (map.get(name) ?? 0) + 1);
}

/** Statements that nothing shows: no line, no test, no reason. What clients do is not ours to show. */
export function missing(conformance: Conformance): Clause[] {
  return [...conformance.places]
    .filter(
      ([clause, { source, tests }]) =>
        clause.who !== 'client' && clause.how === undefined && source.size + tests.size === 0,
    )
    .map(([clause]) => clause);
}
