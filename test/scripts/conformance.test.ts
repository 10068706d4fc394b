// The list of normative statements and its tags: nothing is named that is no statement, and nothing is left without a line.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findPlaces, loadClauses, missing, tagsIn } from '../harness/clauses.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const clauses = loadClauses(ROOT);

describe('tagsIn', () => {
  it('finds tags with their version and mark', () => {
    const text = '// [MQTT-3.1.4-2] and ~[MQTT-4.8.0-1 of 3.1.1], ![MQTT-3-8.3-4]';
    expect(tagsIn(text)).toEqual([
      { id: 'MQTT-3.1.4-2', version: null, mark: '' },
      { id: 'MQTT-4.8.0-1', version: '3.1.1', mark: '~' },
      { id: 'MQTT-3-8.3-4', version: null, mark: '!' },
    ]);
  });
  it('takes sections and plain words for none', () =>
    expect(tagsIn('[section 3.1] [MQTT-4.7] MQTT-3.1.4-2')).toEqual([]));
});

describe('the list of statements', () => {
  it('has 251 of MQTT 5.0 and 143 of MQTT 3.1.1', () => {
    const count = (version: string): number => clauses.filter((clause) => clause.version === version).length;
    expect([count('5.0'), count('3.1.1')]).toEqual([251, 143]);
  });
  it('has each number once', () =>
    expect(new Set(clauses.map(({ version, id }) => version + id)).size).toBe(clauses.length));
  const conformance = findPlaces(ROOT, clauses);
  it('holds every tag that code, tests and vectors use', () => expect(conformance.unknown).toEqual([]));
  it('leaves no statement on servers without a line, a test or a reason', () =>
    expect(missing(conformance)).toEqual([]));
});
